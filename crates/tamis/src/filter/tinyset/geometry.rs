//! The geometry of a TinySet: its blocks, their encoding in a header, and the
//! block of a key.

use core::ops::Range;

use tamis_theory::tinyset::Block;

use super::kernels;
use crate::block::fingerprint::{Form, HeadLayout, RepeatPolicy, Shape};
use crate::error::{Error, Result};
use crate::format::{GeometryBytes, Reader};
use crate::key::stretch;
use crate::placement::reduce;

/// Number and shape of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TinySetGeometry {
    /// Blocks of the first level.
    pub(super) blocks: u64,
    pub(super) shape: Shape,
    /// Blocks of the second level; none unless the form is capped.
    pub(super) second: u64,
    /// Whether keys may be removed.
    pub(super) removable: bool,
    /// Whether a key inserted again is stored again.
    pub(super) repeats: bool,
}

/// Stream of [`stretch`] that chooses a block of the second level.
const SECOND_LEVEL_STREAM: usize = 50;

// Flags of the encoded geometry.
const ELASTIC_FORM: u32 = 1;
const REMOVABLE: u32 = 2;
const REPEATS: u32 = 4;
const REVERSED_HEADS: u32 = 8;

impl TinySetGeometry {
    /// Bytes of all blocks; `None` if they overflow.
    pub(super) fn payload(&self) -> Option<u64> {
        self.blocks
            .checked_add(self.second)?
            .checked_mul(self.shape.bytes() as u64)
    }

    /// Bits of all blocks, without the padding of blocks that are not whole
    /// bytes.
    pub(super) fn bits(&self) -> f64 {
        (self.blocks + self.second) as f64
            * f64::from(self.shape.block.block_bits)
    }

    /// The bytes of one block.
    #[inline(always)]
    pub(super) fn place(&self, block: u64) -> Range<usize> {
        // The array is in memory, so every offset into it is a usize.
        let start = block as usize * self.shape.bytes();
        start..start + self.shape.bytes()
    }

    /// The blocks of the second level have no flag, and remainders only as
    /// long as what comes from a full block of the first.
    pub(super) fn second_shape(&self) -> Shape {
        let Form::Capped(cap) = self.shape.form else { return self.shape };
        let remainder_bits = self.shape.cut(cap).base;
        let block = Block { remainder_bits, ..self.shape.block };
        Shape::new(block, Form::Plain).with_heads(self.shape.heads)
    }

    /// Block and chain in the second level of entries that spill from this
    /// block and chain of the first.
    #[inline(always)]
    pub(super) fn second_address(&self, block: u64, chain: u32) -> (u64, u32) {
        let chains = u64::from(self.shape.block.chains);
        let origin = block.wrapping_mul(chains).wrapping_add(chain.into());
        let mixed = stretch(origin, SECOND_LEVEL_STREAM);
        let place = self.blocks + reduce(mixed, self.second);
        (place, self.shape.chain(mixed))
    }

    pub(super) fn encode(&self) -> GeometryBytes {
        let mut out = GeometryBytes::default();
        out.put(&self.blocks.to_le_bytes());
        out.put(&self.second.to_le_bytes());
        let Block { block_bits, chains, remainder_bits, .. } =
            self.shape.block;
        let (elastic, cap) = match self.shape.form {
            Form::Plain => (0, 0),
            Form::Elastic => (ELASTIC_FORM, 0),
            Form::Capped(cap) => (0, cap),
        };
        let mut flags = elastic;
        flags |= if self.removable { REMOVABLE } else { 0 };
        flags |= if self.repeats { REPEATS } else { 0 };
        let heads = self.shape.heads;
        flags |= if heads.is_reversed() { REVERSED_HEADS } else { 0 };
        let head = heads.bits();
        for field in [block_bits, chains, remainder_bits, cap, flags, head] {
            out.put(&field.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let corrupt = |why| Error::Corrupt { field: "geometry", why };
        let mut at = Reader { bytes };
        let [blocks, second] = [at.u64()?, at.u64()?];
        let [block_bits, chains, remainder_bits, cap, flags, head] =
            [at.u32()?, at.u32()?, at.u32()?, at.u32()?, at.u32()?, at.u32()?];
        at.end()?;
        if flags & !(ELASTIC_FORM | REMOVABLE | REPEATS | REVERSED_HEADS) != 0
        {
            return Err(corrupt("flags this version does not define"));
        }
        let heads = match (head, flags & REVERSED_HEADS != 0) {
            (8, false) => HeadLayout::Bytes,
            (4, false) => HeadLayout::Nibbles,
            (4, true) if cap == 0 => HeadLayout::NibblesReversed,
            (8 | 4, true) => {
                return Err(corrupt(
                    "reversed heads have 4 bits, in one level",
                ));
            }
            _ => return Err(corrupt("heads have 8 or 4 bits")),
        };
        let form = match (flags & ELASTIC_FORM != 0, cap) {
            (false, 0) => Form::Plain,
            (true, 0) => Form::Elastic,
            (false, cap) => Form::Capped(cap),
            (true, _) => return Err(corrupt("two forms at once")),
        };
        let block = Block { remainder_bits, ..Block::new(block_bits, chains) };
        let geometry = Self {
            blocks,
            shape: Shape::new(block, form).with_heads(heads),
            second,
            removable: flags & REMOVABLE != 0,
            repeats: flags & REPEATS != 0,
        };
        geometry.check().map_err(|error| match error {
            Error::InvalidArgument { why, .. } => corrupt(why),
            other => other,
        })?;
        Ok(geometry)
    }

    pub(super) fn check(&self) -> Result<()> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        let Block { block_bits, chains, remainder_bits, .. } =
            self.shape.block;
        if !(1..=1024).contains(&chains) {
            return invalid("chains", "expected 1 to 1024");
        }
        if block_bits > 8192 || block_bits < chains + 16 {
            return invalid(
                "block bits",
                "expected 16 more than there are chains, at most 8192",
            );
        }
        if !(8..=40).contains(&remainder_bits) {
            return invalid("remainder bits", "expected 8 to 40");
        }
        if self.blocks == 0 || self.blocks >= 1 << 55 {
            return invalid("blocks", "expected 1 to 2^55 - 1 blocks");
        }
        let elastic = self.shape.form == Form::Elastic;
        if self.removable && !(elastic && self.repeats) {
            return invalid(
                "removable",
                "needs the elastic form, with repeats",
            );
        }
        match self.shape.form {
            Form::Capped(cap) => {
                if self.second == 0 || self.second > self.blocks {
                    return invalid(
                        "second level",
                        "expected at most as many blocks as in the first",
                    );
                }
                if !kernels::is_fast(self.shape) {
                    return invalid(
                        "block bits",
                        "two levels need blocks of 512 or 256 bits, with a \
                         chain a byte",
                    );
                }
                if cap > 63 || self.shape.cut(cap).base < 8 {
                    return invalid(
                        "cap",
                        "entries of a full block need 8 bits",
                    );
                }
            }
            _ if self.second != 0 => {
                return invalid("second level", "needs a cap");
            }
            _ => {}
        }
        Ok(())
    }

    /// Treatment of repeated keys by single insertions, which report them.
    #[inline(always)]
    pub(super) fn reporting_policy(&self) -> RepeatPolicy {
        match self.repeats {
            false => RepeatPolicy::Skip,
            true => RepeatPolicy::StoreAndReport,
        }
    }

    /// Treatment of repeated keys by batch insertions.
    #[inline(always)]
    pub(super) fn silent_policy(&self) -> RepeatPolicy {
        match self.repeats {
            false => RepeatPolicy::Skip,
            true => RepeatPolicy::Store,
        }
    }
}

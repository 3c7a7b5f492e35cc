//! The shape of a TinySet, and where a key goes in it.

use alloc::vec::Vec;
use core::ops::Range;

use bytemuck::TransparentWrapper;
use tamis_theory::tinyset::Block;

use crate::batch::CACHE;
use crate::block::fingerprint::{
    ANY, Expected, Fixed, Form, HALVED, Known, PLACED, Repeats, SPARSE, Shape,
};
use crate::error::{Error, Result};
use crate::format::Reader;
use crate::key::stretch;
use crate::placement::reduce;

/// Blocks and what they are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
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

/// Streams of [`stretch`]: which block of the second level.
const SECOND: usize = 50;

const ELASTIC: u32 = 1;
const REMOVABLE: u32 = 2;
const REPEATS: u32 = 4;
const PLACED_HEADS: u32 = 8;

impl Geometry {
    const ENCODED: usize = 40;

    /// Bytes of all blocks, if that is a number at all.
    pub(super) fn payload(&self) -> Option<u64> {
        self.blocks
            .checked_add(self.second)?
            .checked_mul(self.shape.bytes() as u64)
    }

    /// Bits of all blocks, as they are counted: a block of free size is
    /// padded to whole bytes in memory.
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
        Shape::new(block, Form::Plain).with_head(self.shape.head)
    }

    /// Block and chain in the second level of what was in this block and
    /// chain of the first.
    #[inline(always)]
    pub(super) fn second_address(&self, block: u64, chain: u32) -> (u64, u32) {
        let chains = u64::from(self.shape.block.chains);
        let origin = block.wrapping_mul(chains).wrapping_add(chain.into());
        let mixed = stretch(origin, SECOND);
        let place = self.blocks + reduce(mixed, self.second);
        (place, self.shape.chain(mixed))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::ENCODED);
        out.extend_from_slice(&self.blocks.to_le_bytes());
        out.extend_from_slice(&self.second.to_le_bytes());
        let Block { block_bits, chains, remainder_bits, .. } =
            self.shape.block;
        let (elastic, cap) = match self.shape.form {
            Form::Plain => (0, 0),
            Form::Elastic => (ELASTIC, 0),
            Form::Capped(cap) => (0, cap),
        };
        let mut flags = elastic;
        flags |= if self.removable { REMOVABLE } else { 0 };
        flags |= if self.repeats { REPEATS } else { 0 };
        flags |= if self.shape.placed { PLACED_HEADS } else { 0 };
        let head = self.shape.head;
        for field in [block_bits, chains, remainder_bits, cap, flags, head] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let corrupt = |why| Error::Corrupt { field: "geometry", why };
        if bytes.len() != Self::ENCODED {
            return Err(corrupt("wrong length"));
        }
        let mut at = Reader { bytes };
        let [blocks, second] = [at.u64()?, at.u64()?];
        let [block_bits, chains, remainder_bits, cap, flags, head] =
            [at.u32()?, at.u32()?, at.u32()?, at.u32()?, at.u32()?, at.u32()?];
        if flags & !(ELASTIC | REMOVABLE | REPEATS | PLACED_HEADS) != 0 {
            return Err(corrupt("flags this version does not define"));
        }
        if !matches!(head, 8 | 4) {
            return Err(corrupt("heads have 8 or 4 bits"));
        }
        let placed = flags & PLACED_HEADS != 0;
        if placed && (head != 4 || cap != 0) {
            return Err(corrupt("placed heads have 4 bits, in one level"));
        }
        let form = match (flags & ELASTIC != 0, cap) {
            (false, 0) => Form::Plain,
            (true, 0) => Form::Elastic,
            (false, cap) => Form::Capped(cap),
            (true, _) => return Err(corrupt("two forms at once")),
        };
        let block = Block { remainder_bits, ..Block::new(block_bits, chains) };
        let shape = Shape::new(block, form);
        let geometry = Self {
            blocks,
            shape: match placed {
                true => shape.with_placed_heads(),
                false => shape.with_head(head),
            },
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
                if self.way(0).name == Name::Free {
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

    /// What becomes of repeats if somebody waits for the answer.
    #[inline(always)]
    pub(super) fn when_told(&self) -> Repeats {
        match self.repeats {
            false => Repeats::Skip,
            true => Repeats::Tell,
        }
    }

    /// The fastest way to handle such blocks, if they are made for so many
    /// items.
    pub(super) fn way(&self, items: u64) -> Way {
        let entries = items / self.blocks.max(1);
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        let cached = self.payload().is_some_and(|b| b <= CACHE as u64);
        Way::new(self.shape, Expected { entries, cached })
    }
}

/// How blocks are handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) name: Name,
    shape: Shape,
    /// Nothing, if the shape has no way of its own.
    known: Known,
}

/// The shapes that have a way of their own, of which the first that fits is
/// taken, and all others.
macro_rules! ways {
    ($($way:ident($blocks:ty),)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Name {
            $($way,)*
            Free,
        }

        /// The blocks of a way.
        pub(super) mod blocks {
            use super::*;

            $(pub(in crate::filter::tinyset) type $way = $blocks;)*
            pub(in crate::filter::tinyset) type Free = Shape;
        }

        impl Way {
            fn new(shape: Shape, expected: Expected) -> Self {
                let (name, known) = None$(.or_else(|| {
                    let blocks = <$blocks>::new(shape, expected)?;
                    Some((Name::$way, blocks.known()))
                }))*
                .unwrap_or((Name::Free, Known::NOTHING));
                Self { name, shape, known }
            }
        }

        $(
            impl InWay for $blocks {
                #[inline(always)]
                fn of(way: &Way) -> &Self {
                    Self::wrap_ref(&way.known)
                }
            }
        )*
    };
}
ways! {
    PlainPlaced(Fixed<64, 0, PLACED>),
    ElasticPlaced(Fixed<64, 2, PLACED>),
    PlainHalved(Fixed<64, 0, HALVED>),
    ElasticHalved(Fixed<64, 2, HALVED>),
    PlainSparse(Fixed<64, 0, SPARSE>),
    ElasticSparse(Fixed<64, 2, SPARSE>),
    PlainLine(Fixed<64, 0>),
    CappedLine(Fixed<64, 1>),
    ElasticLine(Fixed<64, 2>),
    PlainAny(Fixed<64, 0, ANY>),
    ElasticAny(Fixed<64, 2, ANY>),
    PlainHalfHalved(Fixed<32, 0, HALVED>),
    ElasticHalfHalved(Fixed<32, 2, HALVED>),
    PlainHalf(Fixed<32, 0>),
    CappedHalf(Fixed<32, 1>),
    ElasticHalf(Fixed<32, 2>),
}

/// Blocks that are handled in one of the ways.
pub(super) trait InWay: Sized {
    /// The blocks, of which it must be known that this is their way: in
    /// another nothing right is said of them.
    fn of(way: &Way) -> &Self;
}

impl InWay for Shape {
    #[inline(always)]
    fn of(way: &Way) -> &Self {
        &way.shape
    }
}

/// Calls the same code for the type of every way.
macro_rules! by_way {
    ($way:expr, $blocks:ident => $body:expr) => {
        by_way!($way, $blocks => $body;
            PlainPlaced ElasticPlaced PlainHalved ElasticHalved PlainSparse
            ElasticSparse PlainLine CappedLine ElasticLine PlainAny ElasticAny
            PlainHalfHalved ElasticHalfHalved PlainHalf CappedHalf ElasticHalf
            Free)
    };
    ($way:expr, $blocks:ident => $body:expr; $($name:ident)*) => {{
        use $crate::filter::tinyset::geometry::{InWay, Name, Way, blocks};
        let way: &Way = $way;
        match way.name {
            $(Name::$name => {
                let $blocks = <blocks::$name as InWay>::of(way);
                $body
            })*
        }
    }};
}
pub(super) use by_way;

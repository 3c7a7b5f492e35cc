//! The engine of the Bloom kinds: bits in blocks. A [`Layout`] maps a key to
//! the bits that it sets.

#[cfg(feature = "std")]
use alloc::vec::Vec;

use tamis_theory::Prediction;

use super::bit_kernels::{self, BitRange};
use super::envelope::{Envelope, envelope_methods};
use super::estimate::Estimate;
use super::{Filter, FilterMut, Stats, assert_same_length, must_match};
use crate::arch::{Hint as _, L1};
use crate::block::bloom::{BlockProbe, FillHistogram};
use crate::dispatch::{CoreFns, KernelFns};
use crate::error::{Error, Result};
use crate::format::{
    Counts, GeometryBytes, Image, ImageHeader, Kind, Persist, Reader,
    SectionTag,
};
use crate::key::KeyHasher;
use crate::memory::{AfterHeader, BlocksMut, Owned, WholeBuffer};

/// The shape of an array of Bloom blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloomGeometry {
    pub(crate) blocks: u64,
    pub(crate) block_bits: u32,
    pub(crate) probes: u32,
}

impl BloomGeometry {
    #[inline(always)]
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bits as usize / 8
    }

    /// Bytes of all blocks, if that is a number at all.
    pub(crate) fn payload(&self) -> Option<u64> {
        self.blocks.checked_mul(u64::from(self.block_bits / 8))
    }

    fn encode(&self) -> GeometryBytes {
        let mut out = GeometryBytes::default();
        out.put(&self.blocks.to_le_bytes());
        out.put(&self.block_bits.to_le_bytes());
        out.put(&self.probes.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], min_probes: u32) -> Result<Self> {
        let corrupt = |why| Error::Corrupt { field: "geometry", why };
        let mut at = Reader { bytes };
        let geometry = Self {
            blocks: at.u64()?,
            block_bits: at.u32()?,
            probes: at.u32()?,
        };
        at.end()?;
        geometry.check(min_probes).map_err(|error| match error {
            Error::InvalidArgument { why, .. } => corrupt(why),
            other => other,
        })?;
        Ok(geometry)
    }

    pub(crate) fn check(&self, min_probes: u32) -> Result<()> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        if !matches!(self.block_bits, 256 | 512) {
            return invalid("block bits", "a block has 256 or 512 bits");
        }
        if !(min_probes..=tamis_theory::MAX_PROBES).contains(&self.probes) {
            return invalid("probes", "expected 1 (split: 2) to 32");
        }
        // The standard filter addresses single bits with 64-bit numbers.
        if self.blocks == 0 || self.blocks >= 1 << 55 {
            return invalid("blocks", "expected 1 to 2^55 - 1 blocks");
        }
        Ok(())
    }
}

/// What the bits set say about a filter's answers.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub(crate) fpr: f64,
    pub(crate) reads_hit: f64,
    pub(crate) reads_miss: f64,
}

/// The part of the theory that speaks of a kind: functions of the block
/// bits, and of bits per key, probes or a target rate.
#[derive(Debug, Clone, Copy)]
pub struct Theory {
    pub(super) predict: fn(u32, f64, u32) -> tamis_theory::Result<Prediction>,
    pub(super) best: fn(u32, f64) -> tamis_theory::Result<Prediction>,
    pub(super) for_fpr: fn(u32, f64) -> tamis_theory::Result<Prediction>,
}

/// How a kind turns a hash into bits in blocks, and what follows from it.
///
/// A key's bits come in *parts*: each part is one block and the bits in it.
/// A lookup reads the parts in order and stops at the first that is not
/// covered. Sealed: implemented by this crate's kinds alone.
pub trait Layout: Copy + core::fmt::Debug + Send + Sync + 'static {
    #[doc(hidden)]
    const KIND: Kind;
    /// A part without a probe would be a block read for nothing.
    #[doc(hidden)]
    const MIN_PROBES: u32 = 1;
    #[doc(hidden)]
    const THEORY: Theory;
    #[doc(hidden)]
    type Probe: BlockProbe;
    /// The functions of this layout that do not depend on its memory. Each
    /// layout implements it by `bit_kernels::core_fns`, in a function without
    /// type parameters.
    #[doc(hidden)]
    #[cfg_attr(
        feature = "std",
        expect(private_interfaces, reason = "the trait is sealed")
    )]
    fn core_fns(&self) -> &'static CoreFns<Self>;

    /// Whether a key has one part in every geometry.
    #[doc(hidden)]
    const IS_SINGLE: bool = false;

    #[doc(hidden)]
    fn new(geometry: BloomGeometry) -> Self;
    #[doc(hidden)]
    fn geometry(&self) -> &BloomGeometry;
    #[doc(hidden)]
    fn parts(&self) -> u32;
    /// The block and the bits of a part, in blocks of so many bytes: those
    /// of the geometry, but known when the code is compiled.
    #[doc(hidden)]
    fn part<const BYTES: usize>(
        &self,
        hash: u64,
        part: u32,
    ) -> (u64, Self::Probe);

    /// How many groups of eight bits every part has, or [`ANY`].
    #[doc(hidden)]
    fn groups(&self) -> u32;

    /// The bits of a part again, from what was kept of them.
    #[doc(hidden)]
    fn again<const BYTES: usize>(
        &self,
        hash: u64,
        part: u32,
        kept: <Self::Probe as BlockProbe>::Kept,
    ) -> Self::Probe;

    /// A single lookup by plain code, for a layout that gains nothing from
    /// vectors: inlined into the caller, it takes fewer instructions than the
    /// call of a kernel.
    #[doc(hidden)]
    #[inline(always)]
    fn contains_inline(&self, blocks: &[u8], hash: u64) -> Option<bool> {
        let _ = (blocks, hash);
        None
    }

    /// A single insertion by plain code; returns whether a bit was clear.
    #[doc(hidden)]
    #[inline(always)]
    fn insert_inline(&self, blocks: &mut [u8], hash: u64) -> Option<bool> {
        let _ = (blocks, hash);
        None
    }

    #[doc(hidden)]
    fn measure(&self, fill: &FillHistogram) -> Measured;
    /// Numbers of blocks in which a key sets a number of bits: pairs of both.
    #[doc(hidden)]
    fn visits(&self) -> [(u32, u32); 2];
    /// ORs two neighbouring blocks into the one they become when the number
    /// of blocks is halved.
    #[doc(hidden)]
    fn fold(pair: &[u8], into: &mut [u8]) {
        let (left, right) = pair.split_at(into.len());
        for ((out, a), b) in into.iter_mut().zip(left).zip(right) {
            *out = a | b;
        }
    }
}

/// Runs the same code for each size of blocks, as a constant: positions
/// become shifts, and a block an array.
macro_rules! by_size {
    ($layout:expr, $bytes:ident => $body:expr) => {
        match $layout.geometry().block_bits {
            256 => {
                const $bytes: usize = 32;
                $body
            }
            _ => {
                const $bytes: usize = 64;
                $body
            }
        }
    };
}
pub(super) use by_size;

/// A filter of the Bloom family, wrapped by [`Bloom`](crate::Bloom),
/// [`Blocked`](crate::Blocked) and [`Split`](crate::Split).
#[derive(Clone)]
pub struct BitFilter<L: Layout, D = Owned> {
    pub(super) layout: L,
    pub(super) envelope: Envelope<D>,
    fns: KernelFns<Self, L>,
}

impl<L: Layout> BitFilter<L> {
    pub(super) fn with_geometry(
        geometry: BloomGeometry,
        hasher: KeyHasher,
        counts: Counts,
    ) -> Result<Self> {
        geometry.check(L::MIN_PROBES)?;
        let envelope = Envelope::zeroed(geometry.payload(), hasher, counts)?;
        Ok(Self::owned(L::new(geometry), envelope))
    }

    /// Around memory that has all blocks and nothing else.
    pub(super) fn owned(layout: L, envelope: Envelope) -> Self {
        let fns = bit_kernels::select::<_, _, WholeBuffer>(&layout);
        Self { layout, envelope, fns }
    }

    /// All blocks, to be changed.
    fn range(data: &mut Owned) -> BitRange<'_> {
        let blocks = BlocksMut { first: 0, bytes: data.as_mut() };
        BitRange { blocks, part: None }
    }

    /// Inserts the hashes that `hash` makes of `chunks`, on several threads.
    ///
    /// Each thread owns a range of blocks and receives the parts of keys
    /// that belong there: no locks and no atomic operations.
    #[cfg(feature = "std")]
    pub(super) fn insert_chunks<T: Send>(
        &mut self,
        chunks: impl Iterator<Item = T> + Send,
        threads: core::num::NonZero<usize>,
        hash: impl Fn(T, &mut Vec<u64>) + Sync,
    ) {
        if threads.get() == 1 {
            crate::parallel::in_order(chunks, threads, hash, |hashes| {
                self.insert_hash_batch(hashes);
            });
            return;
        }
        let Self { layout, envelope, fns } = self;
        let blocks = bit_kernels::ParallelBits { layout: *layout, fns };
        let bytes = envelope.data.as_mut();
        let inserted =
            crate::parallel::insert(blocks, bytes, chunks, threads, hash);
        envelope.add_items(inserted);
    }
}

impl<'a, L: Layout> BitFilter<L, &'a [u8]> {
    /// The same image elsewhere.
    #[inline(always)]
    pub(super) fn rebound(&self, data: &'a [u8]) -> Self {
        Self {
            layout: self.layout,
            envelope: self.envelope.rebound(data),
            fns: self.fns,
        }
    }
}

impl<L: Layout, D: AsRef<[u8]>> BitFilter<L, D> {
    pub(super) fn from_header(header: &ImageHeader, data: D) -> Result<Self> {
        let geometry = header.geometry(L::KIND)?;
        let geometry = BloomGeometry::decode(geometry, L::MIN_PROBES)?;
        let sections = [(SectionTag::BLOCKS, geometry.payload())];
        let (envelope, _) = Envelope::view(header, data, sections)?;
        let layout = L::new(geometry);
        let fns = bit_kernels::select::<_, _, AfterHeader>(&layout);
        Ok(Self { layout, envelope, fns })
    }

    pub(super) fn into_owned(self) -> Result<BitFilter<L>> {
        let Self { layout, envelope, .. } = self;
        Ok(BitFilter::owned(layout, envelope.into_owned()?))
    }

    #[inline(always)]
    fn blocks(&self) -> &[u8] {
        self.envelope.blocks()
    }

    /// Inserts keys into a copy of the blocks.
    #[cfg(feature = "std")]
    pub(super) fn insert_into(
        &self,
        blocks: &mut [u8],
        hashes: &[u64],
    ) -> super::in_place::Changed {
        let range = BlocksMut { first: 0, bytes: blocks };
        let range = BitRange { blocks: range, part: None };
        self.fns.insert_batch(&self.layout, range, hashes);
        let geometry = self.geometry();
        let place = |hash: u64, part: u32| {
            by_size!(self.layout, BYTES => {
                let (block, _) = self.layout.part::<BYTES>(hash, part);
                let start = block as usize * BYTES;
                start..start + BYTES
            })
        };
        let parts = 0..self.layout.parts();
        let touched = hashes.iter().flat_map(|&hash| {
            parts.clone().map(move |part| place(hash, part))
        });
        let added = hashes.len() as u64;
        super::in_place::Changed {
            result: (),
            items: self.envelope.counts.items.saturating_add(added),
            geometry: geometry.encode(),
            touched: touched.collect(),
        }
    }

    pub(super) fn geometry(&self) -> &BloomGeometry {
        self.layout.geometry()
    }
}

/// Compares two filters; the error names the first field that differs.
pub(super) fn must_match_layout<L: Layout>(
    (hasher, layout): (&KeyHasher, &L),
    (other_hasher, other_layout): (&KeyHasher, &L),
) -> Result<()> {
    let fields = |geometry: &BloomGeometry| {
        [
            ("blocks", geometry.blocks),
            ("block bits", geometry.block_bits.into()),
            ("probes", geometry.probes.into()),
        ]
    };
    must_match(
        (hasher, &fields(layout.geometry())),
        (other_hasher, &fields(other_layout.geometry())),
    )
}

impl<L: Layout, D: AsRef<[u8]>> Filter for BitFilter<L, D> {
    fn kind(&self) -> Kind {
        L::KIND
    }

    envelope_methods!();

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        match self.layout.contains_inline(self.blocks(), hash) {
            Some(found) => found,
            None => self.fns.contains(self, hash),
        }
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes.len(), found.len());
        self.fns.contains_batch(&self.layout, self.blocks(), hashes, found);
    }

    /// At most two blocks: a miss in a standard filter reads two on
    /// average.
    #[inline]
    fn prefetch(&self, hash: u64) {
        by_size!(self.layout, BYTES => {
            for part in 0..self.layout.parts().min(2) {
                let (block, _) = self.layout.part::<BYTES>(hash, part);
                // Blocks are in memory, so their offsets fit a usize.
                let Envelope { data, payload, .. } = &self.envelope;
                let offset = payload.start + block as usize * BYTES;
                L1::prefetch(data.as_ref(), offset);
            }
        });
    }

    fn bytes(&self) -> u64 {
        let geometry = self.layout.geometry().encode();
        self.envelope.header(L::KIND, geometry, None).bytes
    }

    fn stats(&self) -> Stats {
        let geometry = self.layout.geometry();
        let fill = FillHistogram::of(self.blocks(), geometry.block_bits);
        let measured = self.layout.measure(&fill);
        let Counts { items, design_items, design_fpr } = self.envelope.counts;
        let estimate = Estimate::of_bits(&fill, &self.layout.visits());
        let (least_items, estimated_items, most_items) =
            estimate.of_insertions(items);
        let payload_bits = self.blocks().len() as f64 * 8.0;
        Stats {
            kind: L::KIND,
            items,
            least_items,
            estimated_items,
            most_items: Some(most_items),
            design_items,
            bytes: self.bytes(),
            bits_per_key: (items > 0).then(|| payload_bits / items as f64),
            expected_fpr: measured.fpr,
            design_fpr,
            reads_hit: measured.reads_hit,
            reads_miss: measured.reads_miss,
            saturated_blocks: 0,
            stuck_keys: 0,
            // Repeats raise the count but not the load.
            over_design: least_items > design_items,
        }
    }

    fn verify(&self) -> Result<()> {
        self.envelope.verify()?;
        let geometry = self.layout.geometry();
        let ones =
            FillHistogram::of(self.blocks(), geometry.block_bits).ones();
        let most = self.len().saturating_mul(geometry.probes.into());
        if ones > most {
            return Err(Error::Inconsistent(
                "more bits are set than the keys counted could set",
            ));
        }
        if !self.is_empty() && ones == 0 {
            return Err(Error::Inconsistent(
                "keys are counted, no bit is set",
            ));
        }
        Ok(())
    }
}

impl<L: Layout> FilterMut for BitFilter<L> {
    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) -> bool {
        let Self { layout, envelope, fns } = self;
        envelope.add_items(1);
        let blocks = envelope.data.as_mut();
        match layout.insert_inline(blocks, hash) {
            Some(new) => new,
            None => fns.insert(layout, blocks, hash),
        }
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        let Self { layout, envelope, fns } = self;
        envelope.add_items(hashes.len() as u64);
        fns.insert_batch(layout, Self::range(&mut envelope.data), hashes);
    }

    fn clear(&mut self) {
        self.envelope.clear();
    }
}

impl<L: Layout> BitFilter<L> {
    pub(super) fn merge_from<D: AsRef<[u8]>>(
        &mut self,
        other: &BitFilter<L, D>,
    ) -> Result<()> {
        must_match_layout(
            (self.hasher(), &self.layout),
            (other.hasher(), &other.layout),
        )?;
        let ours = self.envelope.data.as_mut().iter_mut();
        for (ours, theirs) in ours.zip(other.blocks()) {
            *ours |= theirs;
        }
        self.envelope.add_items(other.len());
        Ok(())
    }

    pub(super) fn halved(&self) -> Result<Self> {
        let mut geometry = *self.layout.geometry();
        if geometry.blocks % 2 != 0 {
            return Err(Error::NotFoldable { blocks: geometry.blocks });
        }
        geometry.blocks /= 2;
        // Half the memory does the same for half the keys.
        let design_items = self.capacity() / 2;
        let counts = Counts { design_items, ..self.envelope.counts };
        let mut folded = self.envelope.resized(geometry.payload(), counts)?;
        let bytes = geometry.block_bytes();
        let pairs = self.blocks().chunks_exact(2 * bytes);
        for (into, pair) in
            folded.data.as_mut().chunks_exact_mut(bytes).zip(pairs)
        {
            L::fold(pair, into);
        }
        Ok(Self::owned(L::new(geometry), folded))
    }
}

impl<L: Layout, D: AsRef<[u8]>> Persist for BitFilter<L, D> {
    fn image(&self) -> Image<'_> {
        let geometry = self.layout.geometry().encode();
        self.envelope.image(L::KIND, geometry, None)
    }
}

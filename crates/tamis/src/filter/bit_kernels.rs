//! The kernels of the Bloom kinds: one per block size and number of groups.

use core::marker::PhantomData;

use super::bit_filter::{BitFilter, Layout, by_size};
use super::envelope::Envelope;
use crate::arch::{Hint, L2, WithToken, opaque};
use crate::block::Verdict;
use crate::block::bloom::{ANY, BlockProbe};
use crate::dispatch::pipeline::{
    self, L2_BYTES, MultiProbe, Probe, ROW, Update,
};
use crate::dispatch::{
    Backend, Core, CoreFns, Insertion, Kernel, KernelFns, SingleLookup,
};
use crate::format::Kind;
use crate::memory::{BlockSource, BlocksMut, blocks, blocks_mut};

impl<L: Layout> Core for L {
    type View<'a> = &'a [u8];
    type Store<'a> = &'a mut [u8];
    type Range<'a> = BitRange<'a>;
}

/// A range of blocks for insertions.
pub(crate) struct BitRange<'a> {
    pub(super) blocks: BlocksMut<'a>,
    /// The only part of each key to insert; all of them if `None`.
    pub(super) part: Option<u32>,
}

/// Chooses the kernel of a layout, for blocks that single lookups find in
/// `M`.
pub(super) fn select<L: Layout, D: AsRef<[u8]>, M: BlockSource<D>>(
    layout: &L,
) -> KernelFns<BitFilter<L, D>, L> {
    let core = layout.core_fns();
    by_size!(layout, BYTES => match layout.groups() {
        1 => KernelFns::new::<BitLookup<Bits<BYTES, 1>, M>>(core),
        2 => KernelFns::new::<BitLookup<Bits<BYTES, 2>, M>>(core),
        _ => KernelFns::new::<BitLookup<Bits<BYTES, ANY>, M>>(core),
    })
}

/// The functions of a layout that do not depend on its memory; called by
/// [`Layout::core_fns`].
#[inline(always)]
pub(super) fn core_fns<L: Layout>(layout: &L) -> &'static CoreFns<L> {
    by_size!(layout, BYTES => match layout.groups() {
        1 => CoreFns::of::<Bits<BYTES, 1>, Bits<BYTES, 1>>(),
        2 => CoreFns::of::<Bits<BYTES, 2>, Bits<BYTES, 2>>(),
        _ => CoreFns::of::<Bits<BYTES, ANY>, Bits<BYTES, ANY>>(),
    })
}

/// The kernel for blocks of `BYTES` bytes with `GROUPS` groups of positions
/// per part, or [`ANY`] number of them.
struct Bits<const BYTES: usize, const GROUPS: u32>;

/// Whether a layout's bits are computed in vectors.
const fn has_vectors<L: Layout>() -> bool {
    !matches!(L::KIND, Kind::Bloom)
}

/// The single lookup of kernel `K` in blocks of source `M`.
struct BitLookup<K, M>(PhantomData<(K, M)>);

// SAFETY: generic over the memory `D`, and so over every lifetime in it.
#[expect(unsafe_code, reason = "a promise about lifetimes")]
unsafe impl<L, D, M, const BYTES: usize, const GROUPS: u32>
    SingleLookup<BitFilter<L, D>> for BitLookup<Bits<BYTES, GROUPS>, M>
where
    L: Layout,
    D: AsRef<[u8]>,
    M: BlockSource<D>,
{
    // Blocks of half a line and more than two groups are rare: AVX2 saves half
    // of the code.
    const WIDE: bool = has_vectors::<L>() && BYTES == 64 && GROUPS != ANY;

    #[inline(always)]
    fn contains<B: Backend>(
        backend: B,
        filter: &BitFilter<L, D>,
        mut hash: u64,
    ) -> bool {
        let layout = filter.layout;
        if const { B::IS_COMPACT } {
            let blocks = blocks(filter.envelope.blocks());
            let view = BitView::<L, BYTES, ANY> { layout, blocks };
            return pipeline::contains_outlined(view, backend, hash);
        }
        for part in 0..layout.parts() {
            let (block, probe) = layout.part::<BYTES>(hash, part);
            let Envelope { data, payload, .. } = &filter.envelope;
            let Some(block) = M::block::<BYTES>(data, payload.start, block)
            else {
                // Unreachable in a filter whose length was checked; a branch
                // to a panic would increase register pressure.
                return true;
            };
            if !probe.covered::<_, GROUPS>(backend, block) {
                return false;
            }
            if !L::IS_SINGLE {
                // A part computed before the test of the one in front of it
                // would need registers that must be saved first.
                hash = opaque(hash);
            }
        }
        true
    }
}

impl<L: Layout, const BYTES: usize, const GROUPS: u32> Kernel<L>
    for Bits<BYTES, GROUPS>
{
    const WIDE: bool = has_vectors::<L>();

    #[inline(always)]
    fn contains_batch<B: Backend>(
        backend: B,
        &layout: &L,
        view: &[u8],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        let blocks = blocks(view);
        if const { B::IS_COMPACT } {
            // Plain code does not depend on the number of groups.
            let view = BitView::<L, BYTES, ANY> { layout, blocks };
            pipeline::contains_batch(view, backend, hashes, found);
        } else {
            let view = BitView::<L, BYTES, GROUPS> { layout, blocks };
            pipeline::contains_batch(view, backend, hashes, found);
        }
    }
}

impl<L: Layout, const BYTES: usize, const GROUPS: u32> Insertion<L>
    for Bits<BYTES, GROUPS>
{
    const WIDE: bool = has_vectors::<L>();

    #[inline(always)]
    fn insert<B: Backend>(
        backend: B,
        &layout: &L,
        bytes: &mut [u8],
        hash: u64,
    ) -> bool {
        let blocks = blocks_mut::<BYTES>(bytes);
        BitBlocks::<_, BYTES, GROUPS> { layout, first: 0, blocks }
            .insert(backend, hash)
    }

    #[inline(always)]
    fn insert_batch<B: Backend>(
        backend: B,
        &layout: &L,
        range: BitRange<'_>,
        hashes: &[u64],
    ) {
        let BitRange { blocks: BlocksMut { first, bytes }, part } = range;
        let blocks = blocks_mut::<BYTES>(bytes);
        let mut range =
            BitBlocks::<_, BYTES, GROUPS> { layout, first, blocks };
        match part {
            Some(part) if !L::IS_SINGLE => {
                let mut range = PartOf { range, part };
                pipeline::update_batch(backend, &mut range, hashes);
            }
            _ => pipeline::update_batch(backend, &mut range, hashes),
        }
    }
}

/// A range of blocks, to be changed.
struct BitBlocks<'a, L, const BYTES: usize, const GROUPS: u32> {
    layout: L,
    /// Number of the first block.
    first: u64,
    blocks: &'a mut [[u8; BYTES]],
}

impl<L: Layout, const BYTES: usize, const GROUPS: u32>
    BitBlocks<'_, L, BYTES, GROUPS>
{
    #[inline(always)]
    fn prefetch(&self, hash: u64, part: u32) {
        let (block, _) = self.layout.part::<BYTES>(hash, part);
        let offset = (block - self.first) as usize * BYTES;
        L2::prefetch(self.blocks.as_flattened(), offset);
    }

    /// Sets the bits of a part. Returns whether one was clear.
    #[inline(always)]
    fn set<B: Backend>(&mut self, backend: B, hash: u64, part: u32) -> bool {
        let (block, probe) = self.layout.part::<BYTES>(hash, part);
        let block = &mut self.blocks[(block - self.first) as usize];
        match const { B::IS_COMPACT } {
            true => backend.call_outlined(SetMissing { probe, block }),
            false => probe.set_missing::<_, GROUPS>(backend, block),
        }
    }

    /// Sets the bits of a key, all of whose blocks are in the range. Returns
    /// whether one was clear.
    #[inline(always)]
    fn insert<B: Backend>(&mut self, backend: B, hash: u64) -> bool {
        if self.blocks.len() as u64 == self.layout.geometry().blocks {
            let bytes = self.blocks.as_flattened_mut();
            if let Some(new) = self.layout.insert_inline(bytes, hash) {
                return new;
            }
        }
        let mut new = false;
        for part in 0..self.layout.parts() {
            new |= self.set(backend, hash, part);
        }
        new
    }
}

/// Sets the bits of a part, out of line: with
/// [`IS_COMPACT`](crate::arch::Token) one function for every kind of filter.
struct SetMissing<'a, P> {
    probe: P,
    block: &'a mut [u8],
}

impl<B: Backend, P: BlockProbe> WithToken<B> for SetMissing<'_, P> {
    type Output = bool;

    #[inline(always)]
    fn run(self, backend: B) -> bool {
        self.probe.set_missing::<_, ANY>(backend, self.block)
    }
}

/// Insertion of whole keys.
impl<L: Layout, const BYTES: usize, const GROUPS: u32> Update
    for BitBlocks<'_, L, BYTES, GROUPS>
{
    type Item = u64;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn prefetch(&self, &hash: &u64) {
        for part in 0..self.layout.parts() {
            self.prefetch(hash, part);
        }
    }

    #[inline(always)]
    fn update<B: Backend>(&mut self, backend: B, &hash: &u64) {
        self.insert(backend, hash);
    }
}

/// Insertion of one part of each key.
struct PartOf<'a, L, const BYTES: usize, const GROUPS: u32> {
    range: BitBlocks<'a, L, BYTES, GROUPS>,
    part: u32,
}

impl<L: Layout, const BYTES: usize, const GROUPS: u32> Update
    for PartOf<'_, L, BYTES, GROUPS>
{
    type Item = u64;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.range.blocks)
    }

    #[inline(always)]
    fn prefetch(&self, &hash: &u64) {
        self.range.prefetch(hash, self.part);
    }

    #[inline(always)]
    fn update<B: Backend>(&mut self, backend: B, &hash: &u64) {
        self.range.set(backend, hash, self.part);
    }
}

/// The blocks of a filter for batch lookups.
#[derive(Clone, Copy)]
struct BitView<'a, L, const BYTES: usize, const GROUPS: u32> {
    layout: L,
    blocks: &'a [[u8; BYTES]],
}

impl<'a, L: Layout, const BYTES: usize, const GROUPS: u32> MultiProbe
    for BitView<'a, L, BYTES, GROUPS>
{
    const AHEAD: usize = 64;
    const L1_BELOW: usize = L2_BYTES;
    /// A lookup has some forty instructions, so that six of them are in the
    /// reorder buffer at any time; prefetching would be a third of the time.
    const NO_PREFETCH_BELOW: usize = L2_BYTES;
    const IS_SINGLE: bool = L::IS_SINGLE;

    type First = PartProbe<'a, L, BYTES, GROUPS, true>;
    type Next = PartProbe<'a, L, BYTES, GROUPS, false>;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn first(&self) -> Self::First {
        PartProbe { view: *self, part: 0 }
    }

    #[inline(always)]
    fn next(&self, part: u32) -> Self::Next {
        PartProbe { view: *self, part }
    }

    #[inline(always)]
    fn contains_one<B: Backend>(self, backend: B, hash: u64) -> bool {
        let blocks = self.blocks.as_flattened();
        match self.layout.contains_inline(blocks, hash) {
            Some(found) => found,
            None => pipeline::contains(self, backend, hash),
        }
    }
}

/// The probe that tests one part of each key. The `FIRST` part is a constant.
#[derive(Clone, Copy)]
struct PartProbe<
    'a,
    L,
    const BYTES: usize,
    const GROUPS: u32,
    const FIRST: bool,
> {
    view: BitView<'a, L, BYTES, GROUPS>,
    part: u32,
}

impl<L: Layout, const BYTES: usize, const GROUPS: u32, const FIRST: bool>
    PartProbe<'_, L, BYTES, GROUPS, FIRST>
{
    #[inline(always)]
    fn number(&self) -> u32 {
        if FIRST { 0 } else { self.part }
    }

    #[inline(always)]
    fn verdict(&self, covered: bool) -> Verdict {
        if !covered {
            Verdict::Absent
        } else if self.number() + 1 < self.view.layout.parts() {
            Verdict::Continue
        } else {
            Verdict::Maybe
        }
    }
}

/// The plans of a row: the block of each key, and the kept part of its
/// positions.
#[derive(Clone, Copy)]
struct BitPlans<'a, K, const BYTES: usize> {
    blocks: [&'a [u8; BYTES]; ROW],
    kept: [K; ROW],
}

impl<K: Default + Copy, const BYTES: usize> Default
    for BitPlans<'_, K, BYTES>
{
    fn default() -> Self {
        Self { blocks: [&[0; BYTES]; ROW], kept: [K::default(); ROW] }
    }
}

impl<'a, L: Layout, const BYTES: usize, const GROUPS: u32, const FIRST: bool>
    Probe for PartProbe<'a, L, BYTES, GROUPS, FIRST>
{
    type Plans = BitPlans<'a, <L::Probe as BlockProbe>::Kept, BYTES>;

    #[inline(always)]
    fn prefetch<H: Hint>(
        &self,
        hash: u64,
        plans: &mut Self::Plans,
        lane: usize,
    ) {
        let BitView { layout, blocks } = self.view;
        let (block, probe) = layout.part::<BYTES>(hash, self.number());
        let block = &blocks[block as usize];
        H::prefetch(block, 0);
        plans.blocks[lane] = block;
        plans.kept[lane] = probe.kept();
    }

    #[inline(always)]
    fn test<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        plans: &Self::Plans,
        lane: usize,
    ) -> Verdict {
        let (block, kept) = (plans.blocks[lane], plans.kept[lane]);
        let layout = self.view.layout;
        let probe = layout.again::<BYTES>(hash, self.number(), kept);
        self.verdict(probe.covered::<_, GROUPS>(backend, block))
    }

    #[inline(always)]
    fn test_one<B: Backend>(&self, backend: B, hash: u64) -> Verdict {
        let BitView { layout, blocks } = self.view;
        let (block, probe) = layout.part::<BYTES>(hash, self.number());
        let block = &blocks[block as usize];
        self.verdict(probe.covered::<_, GROUPS>(backend, block))
    }
}

/// The blocks of a filter, to be filled on several threads.
#[cfg(feature = "std")]
pub(super) struct ParallelBits<'a, L: Layout> {
    pub(super) layout: L,
    pub(super) fns: &'a KernelFns<BitFilter<L>, L>,
}

#[cfg(feature = "std")]
impl<L: Layout> Clone for ParallelBits<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

#[cfg(feature = "std")]
impl<L: Layout> Copy for ParallelBits<'_, L> {}

#[cfg(feature = "std")]
impl<L: Layout> crate::parallel::Divided for ParallelBits<'_, L> {
    fn blocks(&self) -> u64 {
        self.layout.geometry().blocks
    }

    fn block_bytes(&self) -> usize {
        self.layout.geometry().block_bytes()
    }

    #[inline(always)]
    fn parts(&self) -> u32 {
        self.layout.parts()
    }

    #[inline(always)]
    fn block(&self, hash: u64, part: u32) -> u64 {
        by_size!(self.layout, BYTES => {
            self.layout.part::<BYTES>(hash, part).0
        })
    }

    fn apply(&self, first: u64, bytes: &mut [u8], part: u32, hashes: &[u64]) {
        let blocks = BlocksMut { first, bytes };
        let range = BitRange { blocks, part: Some(part) };
        self.fns.insert_batch(&self.layout, range, hashes);
    }
}

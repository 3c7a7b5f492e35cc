//! The kernels of a TinySet: one per specialisation of the fast block, and the
//! reference for every other shape.

use core::marker::PhantomData;

use super::TinySet;
use super::geometry::TinySetGeometry;
use crate::arch::{Hint, L2, WithToken};
use crate::block::Verdict;
use crate::block::fingerprint::{
    BlockKey, BlockTables, Bytes, Capped, DecodedBlock, Elastic, Entry,
    FastBlock, Form, FormSpec, HeadSpec, InsertOutcome, Nibbles, Plain,
    RepeatPolicy, Reversed, Shape, lookup_reference,
};
use crate::dispatch::pipeline::{
    self, L3_BYTES, MultiProbe, Probe, ROW, Update,
};
use crate::dispatch::{
    Backend, Core, CoreFns, Insertion, Kernel, KernelFns, SingleLookup,
};
use crate::filter::envelope::Envelope;
use crate::memory::{
    BlockSource, BlocksMut, NonEmptyBlocks, UnalignedBlocks, blocks_mut,
};
use crate::placement::address;

/// The part of a TinySet that its kernels need.
#[derive(Clone, Copy)]
pub(super) struct TinySetCore {
    pub(super) geometry: TinySetGeometry,
    tables: BlockTables,
}

impl core::fmt::Debug for TinySetCore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.geometry.fmt(f)
    }
}

impl Core for TinySetCore {
    type View<'a> = &'a [u8];
    type Store<'a> = &'a mut [u8];
    type Range<'a> = BlocksMut<'a>;
}

/// The functions of a TinySet in memory of type `D`.
pub(super) type TinySetFns<D> = KernelFns<TinySet<D>, TinySetCore>;

/// The specialisations of the fast block, passed to another macro. The first
/// that fits a shape is taken.
macro_rules! fast_kernels {
    ($then:ident) => {
        $then! {
            (64, Plain, Reversed) (64, Elastic, Reversed)
            (64, Plain, Nibbles) (64, Elastic, Nibbles)
            (64, Plain, Bytes) (64, Elastic, Bytes) (64, Capped, Bytes)
            (32, Plain, Nibbles) (32, Elastic, Nibbles)
            (32, Plain, Bytes) (32, Elastic, Bytes) (32, Capped, Bytes)
        }
    };
}

/// Whether a shape has a fast kernel.
pub(super) fn is_fast(shape: Shape) -> bool {
    macro_rules! any {
        ($(($bytes:literal, $form:ident, $heads:ident))*) => {
            false $(|| {
                FastBlock::<$bytes, $form, $heads>::tables(shape).is_some()
            })*
        };
    }
    fast_kernels!(any)
}

/// Number of the first of `fast_kernels` that fits, from 1 on, or 0.
#[derive(Clone, Copy)]
pub(super) struct KernelNumber(u8);

impl TinySetCore {
    fn set_load(&mut self, items: u64, block_bytes: u64) {
        let blocks = self.geometry.blocks;
        let in_cache = blocks <= L3_BYTES as u64 / block_bytes;
        self.tables.set_load(items / blocks.max(1), in_cache);
    }

    /// For a filter made for `items` keys.
    pub(super) fn new(
        geometry: TinySetGeometry,
        items: u64,
    ) -> (Self, KernelNumber) {
        let mut kernel = 0;
        macro_rules! first {
            ($(($bytes:literal, $form:ident, $heads:ident))*) => {$(
                type Block<'a> = FastBlock<'a, $bytes, $form, $heads>;
                kernel += 1;
                if let Some(tables) = Block::tables(geometry.shape) {
                    let kernel = KernelNumber(kernel);
                    let mut core = Self { geometry, tables };
                    core.set_load(items, $bytes);
                    return (core, kernel);
                }
            )*};
        }
        macro_rules! each {
            ($($kernel:tt)*) => {
                $({ first!($kernel); })*
            };
        }
        fast_kernels!(each);
        let tables = BlockTables::UNUSED;
        (Self { geometry, tables }, KernelNumber(0))
    }
}

/// Selects the functions of a kernel, for blocks that single lookups find in
/// `M`.
pub(super) fn select<D: AsRef<[u8]>, M: BlockSource<D>>(
    chosen: KernelNumber,
) -> TinySetFns<D> {
    let mut kernel = 0;
    macro_rules! first {
        ($(($bytes:literal, $form:ident, $heads:ident))*) => {$(
            type Here = Fast<$bytes, $form, $heads>;
            #[inline(never)]
            fn core_fns() -> &'static CoreFns<TinySetCore> {
                CoreFns::of::<Here, Here>()
            }
            kernel += 1;
            if chosen.0 == kernel {
                return KernelFns::new::<FastLookup<Here, M>>(core_fns());
            }
        )*};
    }
    macro_rules! each {
        ($($kernel:tt)*) => {
            $({ first!($kernel); })*
        };
    }
    fast_kernels!(each);
    #[inline(never)]
    fn core_fns() -> &'static CoreFns<TinySetCore> {
        CoreFns::of::<Reference, Reference>()
    }
    KernelFns::new::<Reference>(core_fns())
}

/// The kernel of one specialisation.
struct Fast<const BYTES: usize, F, H>(PhantomData<(F, H)>);

/// The single lookup of kernel `K` in blocks of source `M`.
struct FastLookup<K, M>(PhantomData<(K, M)>);

// SAFETY: generic over the memory `D`, and so over every lifetime in it.
#[expect(unsafe_code, reason = "a promise about lifetimes")]
unsafe impl<D, M, const BYTES: usize, F, H> SingleLookup<TinySet<D>>
    for FastLookup<Fast<BYTES, F, H>, M>
where
    D: AsRef<[u8]>,
    M: BlockSource<D>,
    F: FormSpec,
    H: HeadSpec,
{
    const WIDE: bool = true;

    #[inline(always)]
    fn contains<B: Backend>(backend: B, set: &TinySet<D>, hash: u64) -> bool {
        if const { B::IS_COMPACT } {
            let (core, bytes) = (&set.core, set.blocks());
            let view = TinySetView::<BYTES, F, H>::new(core, bytes);
            return pipeline::contains_outlined(view, backend, hash);
        }
        match lookup_fast::<D, M, BYTES, F, H, B>(backend, set, hash) {
            Some(Verdict::Absent) => false,
            Some(Verdict::Maybe) => true,
            // Recomputes everything from the hash: passing intermediate
            // values would keep them live in registers on the fast path.
            _ => {
                let spec = PhantomData::<Fast<BYTES, F, H>>;
                backend.call_cold(ContainsCold { set, hash, spec })
            }
        }
    }
}

#[inline(always)]
fn lookup_fast<D, M, const BYTES: usize, F, H, B>(
    backend: B,
    set: &TinySet<D>,
    hash: u64,
) -> Option<Verdict>
where
    M: BlockSource<D>,
    F: FormSpec,
    H: HeadSpec,
    B: Backend,
{
    let Envelope { data, payload, .. } = &set.envelope;
    let header = payload.start;
    let count = set.core.geometry.blocks;
    let (block, fraction) = match F::SPILLS {
        // `choose` may use the number of all blocks, and here some are of the
        // second level.
        true => {
            let (block, rest) = address(hash, count);
            (M::block::<BYTES>(data, header, block)?, rest)
        }
        false => M::choose::<BYTES>(data, header, count, hash)?,
    };
    let fast = FastBlock::<BYTES, F, H>::new(&set.core.tables);
    let chain = FastBlock::<BYTES, F, H>::chain(hash);
    let key = FastBlock::<BYTES, F, H>::key(chain, fraction);
    fast.lookup_fast(backend, block, key)
}

/// A single lookup that the fast path does not decide.
struct ContainsCold<'a, D, K> {
    set: &'a TinySet<D>,
    hash: u64,
    spec: PhantomData<K>,
}

impl<B, D, const BYTES: usize, F, H> WithToken<B>
    for ContainsCold<'_, D, Fast<BYTES, F, H>>
where
    B: Backend,
    D: AsRef<[u8]>,
    F: FormSpec,
    H: HeadSpec,
{
    type Output = bool;

    #[inline(always)]
    fn run(self, backend: B) -> bool {
        let Self { set, hash, .. } = self;
        let (core, bytes) = (&set.core, set.blocks());
        let spec = PhantomData::<(F, H)>;
        let cold = LookupCold::<BYTES, F, H> { core, bytes, hash, spec };
        let verdict = match F::SPILLS {
            false => backend.call_cold(cold),
            true => backend.call_cold(BothLevels(cold)),
        };
        verdict == Verdict::Maybe
    }
}

/// A lookup in the first level that the fast path does not decide. Not
/// generic over the memory of a filter: compiled once per kernel.
struct LookupCold<'a, const BYTES: usize, F, H> {
    core: &'a TinySetCore,
    bytes: &'a [u8],
    hash: u64,
    spec: PhantomData<(F, H)>,
}

impl<B: Backend, const BYTES: usize, F: FormSpec, H: HeadSpec> WithToken<B>
    for LookupCold<'_, BYTES, F, H>
{
    type Output = Verdict;

    #[inline(always)]
    fn run(self, backend: B) -> Verdict {
        let Self { core, bytes, hash, .. } = self;
        let view = TinySetView::<BYTES, F, H>::new(core, bytes);
        let (block, key) = view.block_and_key(hash);
        view.fast.lookup_outlined(backend, block, key)
    }
}

/// A lookup in both levels.
struct BothLevels<'a, const BYTES: usize, F, H>(LookupCold<'a, BYTES, F, H>);

impl<B: Backend, const BYTES: usize, F: FormSpec, H: HeadSpec> WithToken<B>
    for BothLevels<'_, BYTES, F, H>
{
    type Output = Verdict;

    #[inline(always)]
    fn run(self, backend: B) -> Verdict {
        let LookupCold { core, bytes, hash, .. } = self.0;
        let view = TinySetView::<BYTES, F, H>::new(core, bytes);
        let (block, key) = view.block_and_key(hash);
        match view.fast.lookup(backend, block, key) {
            Verdict::Continue => view.next(1).test_one(backend, hash),
            verdict => verdict,
        }
    }
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> Kernel<TinySetCore>
    for Fast<BYTES, F, H>
{
    const WIDE: bool = true;

    #[inline(always)]
    fn contains_batch<B: Backend>(
        backend: B,
        core: &TinySetCore,
        view: &[u8],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        // A `const` block: only one of the loops is compiled.
        if const { B::WIDE && !F::SPILLS } {
            let tables = core.tables.for_batches();
            let core = &TinySetCore { tables, ..*core };
            let view = TinySetView::<BYTES, F, H>::new(core, view);
            let planned = view.planned();
            pipeline::contains_batch(planned, backend, hashes, found);
        } else {
            let view = TinySetView::<BYTES, F, H>::new(core, view);
            pipeline::contains_batch(view, backend, hashes, found);
        }
    }
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> Insertion<TinySetCore>
    for Fast<BYTES, F, H>
{
    const WIDE: bool = false;

    #[inline(always)]
    fn insert<B: Backend>(
        backend: B,
        core: &TinySetCore,
        bytes: &mut [u8],
        hash: u64,
    ) -> bool {
        let repeats = core.geometry.reporting_policy();
        let store = BlocksMut { first: 0, bytes };
        let mut store = TinySetStore::<BYTES, F, H>::new(core, store);
        match store.insert(backend, hash, repeats) {
            InsertOutcome::New => true,
            InsertOutcome::Repeated => false,
            InsertOutcome::NeedsDecoding => {
                insert_decoded(core, store.decoded(), hash, repeats)
            }
        }
    }

    #[inline(always)]
    fn insert_batch<B: Backend>(
        backend: B,
        core: &TinySetCore,
        store: BlocksMut<'_>,
        hashes: &[u64],
    ) {
        let mut store = TinySetStore::<BYTES, F, H>::new(core, store);
        pipeline::update_batch(backend, &mut store, hashes);
    }
}

/// The blocks of a filter for batch lookups.
struct TinySetView<'a, const BYTES: usize, F, H> {
    core: &'a TinySetCore,
    fast: FastBlock<'a, BYTES, F, H>,
    blocks: NonEmptyBlocks<'a, [u8; BYTES]>,
}

// Manual impls: `derive` would require `F: Copy` and `H: Copy`.
impl<const BYTES: usize, F, H> Clone for TinySetView<'_, BYTES, F, H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<const BYTES: usize, F, H> Copy for TinySetView<'_, BYTES, F, H> {}

impl<'a, const BYTES: usize, F: FormSpec, H: HeadSpec>
    TinySetView<'a, BYTES, F, H>
{
    #[inline(always)]
    fn new(core: &'a TinySetCore, bytes: &'a [u8]) -> Self {
        // Whole blocks, at least one: checked when the filter was made.
        let blocks = NonEmptyBlocks::new(bytemuck::cast_slice(bytes))
            .expect("a filter has blocks");
        Self { core, fast: FastBlock::new(&core.tables), blocks }
    }

    #[inline(always)]
    fn data(self) -> &'a [u8] {
        self.blocks.all().as_flattened()
    }

    /// Number of blocks of the first level. With one level the length of the
    /// slice, so that the bounds check folds away.
    #[inline(always)]
    fn count(self) -> u64 {
        let count = self.core.geometry.blocks;
        match F::SPILLS {
            true => count,
            false => self.blocks.all().len() as u64,
        }
    }

    /// The block of a key in the first level, and its part of the key.
    #[inline(always)]
    fn block_and_key(self, hash: u64) -> (&'a [u8; BYTES], BlockKey) {
        let (block, fraction) = match F::SPILLS {
            true => {
                let (block, rest) = address(hash, self.count());
                (&self.blocks.all()[block as usize], rest)
            }
            false => self.blocks.choose_and_rest(hash),
        };
        (block, Self::key(hash, fraction))
    }

    #[inline(always)]
    fn key(hash: u64, fraction: u64) -> BlockKey {
        let chain = FastBlock::<BYTES, F, H>::chain(hash);
        FastBlock::<BYTES, F, H>::key(chain, fraction)
    }

    /// The view with plans in rows, for filters of one level.
    #[inline(always)]
    fn planned(self) -> PlannedView<'a, BYTES, F, H> {
        let blocks =
            UnalignedBlocks::new(self.data()).expect("a filter has blocks");
        let (view, count) = (self, self.count());
        let small_count = u32::try_from(count).unwrap_or(0);
        PlannedView { view, blocks, count, small_count }
    }
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> Probe
    for TinySetView<'_, BYTES, F, H>
{
    /// None: with AVX2 planning a row costs more than it saves.
    type Plans = ();

    const BRANCHES: bool = true;

    #[inline(always)]
    fn prefetch<P: Hint>(&self, hash: u64, (): &mut (), _: usize) {
        let (block, _) = address(hash, self.count());
        P::prefetch(self.data(), block as usize * BYTES);
    }

    #[inline(always)]
    fn test<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        (): &(),
        _: usize,
    ) -> Verdict {
        self.test_one(backend, hash)
    }

    #[inline(always)]
    fn test_one<B: Backend>(&self, backend: B, hash: u64) -> Verdict {
        let (block, key) = self.block_and_key(hash);
        match self.fast.lookup_fast(backend, block, key) {
            Some(verdict) => verdict,
            // As in the single lookup.
            None => {
                let (core, bytes) = (self.core, self.data());
                let spec = PhantomData::<(F, H)>;
                backend.call_cold(LookupCold::<BYTES, F, H> {
                    core,
                    bytes,
                    hash,
                    spec,
                })
            }
        }
    }
}

impl<'a, const BYTES: usize, F: FormSpec, H: HeadSpec> MultiProbe
    for TinySetView<'a, BYTES, F, H>
{
    const AHEAD: usize = 32;
    const L1_BELOW: usize = L3_BYTES;
    const IS_SINGLE: bool = !F::SPILLS;

    type First = Self;
    type Next = SecondLevel<'a>;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.data().len()
    }

    #[inline(always)]
    fn first(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn next(&self, _: u32) -> SecondLevel<'a> {
        SecondLevel { core: self.core, data: self.data() }
    }
}

/// [`TinySetView`] with plans in rows.
struct PlannedView<'a, const BYTES: usize, F, H> {
    view: TinySetView<'a, BYTES, F, H>,
    blocks: UnalignedBlocks<'a, BYTES>,
    /// Number of blocks.
    count: u64,
    /// The same, or 0 if it needs more than 32 bits.
    small_count: u32,
}

impl<const BYTES: usize, F, H> Clone for PlannedView<'_, BYTES, F, H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<const BYTES: usize, F, H> Copy for PlannedView<'_, BYTES, F, H> {}

/// The plans of a row of keys.
#[derive(Clone, Copy, Default)]
struct PlannedRow {
    /// Byte at which the block begins.
    offsets: [u64; ROW],
    /// The two words of [`BlockKey::pack`].
    words: [u64; ROW],
    heads: [u64; ROW],
}

impl PlannedRow {
    #[inline(always)]
    fn get(&self, lane: usize) -> (u64, BlockKey) {
        let key = BlockKey::unpack((self.words[lane], self.heads[lane]));
        (self.offsets[lane], key)
    }

    #[inline(always)]
    fn set(&mut self, lane: usize, block: u64, bytes: usize, key: BlockKey) {
        self.offsets[lane] = block * bytes as u64;
        (self.words[lane], self.heads[lane]) = key.pack();
    }
}

/// Plans keys one by one, for more than 2^32 - 1 blocks. Not generic over the
/// kernel, of which it takes the function `key`.
#[cold]
#[inline(never)]
fn plan_each(
    count: u64,
    bytes: usize,
    key: fn(u64, u64) -> BlockKey,
    hashes: &[u64; ROW],
    row: &mut PlannedRow,
) {
    for (lane, &hash) in hashes.iter().enumerate() {
        let (block, fraction) = address(hash, count);
        row.set(lane, block, bytes, key(hash, fraction));
    }
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> Probe
    for PlannedView<'_, BYTES, F, H>
{
    type Plans = PlannedRow;

    const PLANS_ROWS: bool = true;

    #[inline(always)]
    fn plan_row(&self, hashes: &[u64; ROW], row: &mut PlannedRow) {
        if self.small_count == 0 {
            let key = TinySetView::<BYTES, F, H>::key;
            return plan_each(self.count, BYTES, key, hashes, row);
        }
        // 32-bit products, which the compiler vectorises.
        let count = u64::from(self.small_count);
        for (lane, &hash) in hashes.iter().enumerate() {
            let high = (hash >> 32) * count;
            let low = (hash & 0xffff_ffff) * count;
            // high <= (2^32 - 1)^2 and low >> 32 < 2^32: no overflow.
            let upper = high + (low >> 32);
            let fraction = upper << 32 | low & 0xffff_ffff;
            let key = TinySetView::<BYTES, F, H>::key(hash, fraction);
            row.set(lane, upper >> 32, BYTES, key);
        }
    }

    #[inline(always)]
    fn prefetch<P: Hint>(&self, _: u64, row: &mut PlannedRow, lane: usize) {
        P::prefetch(self.view.data(), row.offsets[lane] as usize);
    }

    #[inline(always)]
    fn test<B: Backend>(
        &self,
        backend: B,
        _: u64,
        row: &PlannedRow,
        lane: usize,
    ) -> Verdict {
        let (offset, key) = row.get(lane);
        match self.blocks.get(offset) {
            Some(block) => self.view.fast.lookup(backend, block, key),
            // Unreachable in a filter whose length was checked; a panic would
            // increase register pressure.
            None => Verdict::Maybe,
        }
    }

    #[inline(always)]
    fn test_one<B: Backend>(&self, backend: B, hash: u64) -> Verdict {
        self.view.test_one(backend, hash)
    }
}

impl<'a, const BYTES: usize, F: FormSpec, H: HeadSpec> MultiProbe
    for PlannedView<'a, BYTES, F, H>
{
    const AHEAD: usize = 32;
    const L1_BELOW: usize = L3_BYTES;
    const IS_SINGLE: bool = true;

    type First = Self;
    type Next = SecondLevel<'a>;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.view.bytes()
    }

    #[inline(always)]
    fn first(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn next(&self, number: u32) -> SecondLevel<'a> {
        self.view.next(number)
    }
}

/// The probe of the second level. Few lookups get there (1.06 lines per miss
/// at 0.01 %), so it is not specialised.
#[derive(Clone, Copy)]
struct SecondLevel<'a> {
    core: &'a TinySetCore,
    data: &'a [u8],
}

impl SecondLevel<'_> {
    /// Block, chain and fraction of a key in the second level.
    fn place(&self, hash: u64) -> (u64, u32, u64) {
        let geometry = &self.core.geometry;
        let (block, fraction) = address(hash, geometry.blocks);
        let chain = geometry.shape.chain(hash);
        let (block, chain) = geometry.second_address(block, chain);
        (block, chain, fraction)
    }

    #[inline(never)]
    fn lookup(&self, hash: u64) -> Verdict {
        let geometry = &self.core.geometry;
        let (block, chain, fraction) = self.place(hash);
        let block = &self.data[geometry.place(block)];
        lookup_reference(&geometry.second_shape(), block, chain, fraction)
    }
}

impl Probe for SecondLevel<'_> {
    type Plans = ();

    #[inline(always)]
    fn prefetch<P: Hint>(&self, hash: u64, (): &mut (), _: usize) {
        let (block, ..) = self.place(hash);
        P::prefetch(self.data, self.core.geometry.place(block).start);
    }

    #[inline(always)]
    fn test<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        (): &(),
        _: usize,
    ) -> Verdict {
        self.test_one(backend, hash)
    }

    #[inline(always)]
    fn test_one<B: Backend>(&self, _: B, hash: u64) -> Verdict {
        self.lookup(hash)
    }
}

/// A range of blocks for insertions.
struct TinySetStore<'a, const BYTES: usize, F, H> {
    core: &'a TinySetCore,
    first: u64,
    blocks: &'a mut [[u8; BYTES]],
    spec: PhantomData<(F, H)>,
}

impl<'a, const BYTES: usize, F: FormSpec, H: HeadSpec>
    TinySetStore<'a, BYTES, F, H>
{
    #[inline(always)]
    fn new(core: &'a TinySetCore, store: BlocksMut<'a>) -> Self {
        let BlocksMut { first, bytes } = store;
        Self { core, first, blocks: blocks_mut(bytes), spec: PhantomData }
    }

    /// The range for [`insert_decoded`].
    fn decoded(&mut self) -> BlocksMut<'_> {
        let bytes = self.blocks.as_flattened_mut();
        BlocksMut { first: self.first, bytes }
    }

    /// Inserts a key in place, if possible.
    #[inline(always)]
    fn insert<B: Backend>(
        &mut self,
        backend: B,
        hash: u64,
        repeats: RepeatPolicy,
    ) -> InsertOutcome {
        let (block, fraction) = address(hash, self.core.geometry.blocks);
        let block = &mut self.blocks[(block - self.first) as usize];
        let tables = &self.core.tables;
        let spec = PhantomData::<(F, H)>;
        let insert =
            InsertFast { tables, block, hash, fraction, repeats, spec };
        match B::IS_COMPACT {
            true => backend.call_outlined(insert),
            false => insert.run(backend),
        }
    }
}

/// An insertion in place.
struct InsertFast<'a, const BYTES: usize, F, H> {
    tables: &'a BlockTables,
    block: &'a mut [u8; BYTES],
    hash: u64,
    fraction: u64,
    repeats: RepeatPolicy,
    spec: PhantomData<(F, H)>,
}

impl<B: Backend, const BYTES: usize, F: FormSpec, H: HeadSpec> WithToken<B>
    for InsertFast<'_, BYTES, F, H>
{
    type Output = InsertOutcome;

    #[inline(always)]
    fn run(self, backend: B) -> InsertOutcome {
        let Self { tables, block, hash, fraction, repeats, .. } = self;
        let chain = FastBlock::<BYTES, F, H>::chain(hash);
        FastBlock::<BYTES, F, H>::new(tables)
            .insert(backend, block, chain, fraction, repeats)
    }
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> Update
    for TinySetStore<'_, BYTES, F, H>
{
    type Item = u64;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn prefetch(&self, &hash: &u64) {
        let (block, _) = address(hash, self.core.geometry.blocks);
        let offset = (block - self.first) as usize * BYTES;
        L2::prefetch(self.blocks.as_flattened(), offset);
    }

    #[inline(always)]
    fn update<B: Backend>(&mut self, backend: B, &hash: &u64) {
        // Constants, one of them in each branch: an insertion without a
        // lookup has 7 % fewer instructions than one that tests the policy.
        let (repeats, outcome) = match self.core.geometry.repeats {
            true => {
                let repeats = RepeatPolicy::Store;
                (repeats, self.insert(backend, hash, repeats))
            }
            // No builder makes elastic blocks without repeats.
            false if F::ELASTIC => {
                (RepeatPolicy::Skip, InsertOutcome::NeedsDecoding)
            }
            false => {
                let repeats = RepeatPolicy::Skip;
                (repeats, self.insert(backend, hash, repeats))
            }
        };
        if outcome == InsertOutcome::NeedsDecoding {
            insert_decoded(self.core, self.decoded(), hash, repeats);
        }
    }
}

/// Inserts a key by decoding its block. Returns `true` if it certainly was
/// absent.
#[cold]
#[inline(never)]
fn insert_decoded(
    core: &TinySetCore,
    store: BlocksMut<'_>,
    hash: u64,
    repeats: RepeatPolicy,
) -> bool {
    let TinySetCore { geometry, .. } = core;
    let BlocksMut { first, bytes } = store;
    let (block, fraction) = address(hash, geometry.blocks);
    let shape = &geometry.shape;
    let entry = Entry::new(shape.chain(hash), fraction);
    let place = geometry.place(block - first);
    let decoded =
        DecodedBlock::read_or_saturated(shape, &bytes[place.clone()]);
    let has_spilled = match &decoded {
        DecodedBlock::Holding(contents) => contents.has_spilled(entry.chain),
        DecodedBlock::Saturated => false,
    };
    if has_spilled {
        return insert_second(geometry, bytes, block, entry, repeats);
    }
    let (new, stored) = judge(shape, &decoded, entry, repeats);
    if !stored {
        keep_saturated(&decoded, shape, &mut bytes[place]);
        return new;
    }
    match (shape.form, decoded) {
        (Form::Capped(cap), DecodedBlock::Holding(mut contents)) => {
            let spilled = contents.insert_below(entry, cap);
            contents.settle(shape).write(shape, &mut bytes[place]);
            let repeats = RepeatPolicy::Store;
            for entry in spilled {
                insert_second(geometry, bytes, block, entry, repeats);
            }
        }
        (_, decoded) => {
            decoded.insert(shape, entry).write(shape, &mut bytes[place]);
        }
    }
    new
}

/// Inserts an entry of a chain that has spilled from `block` into the second
/// level. Structures of two levels are never filled in ranges.
fn insert_second(
    geometry: &TinySetGeometry,
    bytes: &mut [u8],
    block: u64,
    entry: Entry,
    repeats: RepeatPolicy,
) -> bool {
    let shape = geometry.second_shape();
    let (block, chain) = geometry.second_address(block, entry.chain);
    let entry = Entry { chain, ..entry };
    let bytes = &mut bytes[geometry.place(block)];
    let decoded = DecodedBlock::read_or_saturated(&shape, bytes);
    let (new, stored) = judge(&shape, &decoded, entry, repeats);
    match stored {
        true => decoded.insert(&shape, entry).write(&shape, bytes),
        false => keep_saturated(&decoded, &shape, bytes),
    }
    new
}

/// Writes a block that takes no entry because it is saturated. Bytes of a
/// stranger that cannot be decoded count as saturated here, and must answer
/// "maybe" from then on; a block that already is saturated does not change.
fn keep_saturated(decoded: &DecodedBlock, shape: &Shape, bytes: &mut [u8]) {
    if *decoded == DecodedBlock::Saturated {
        decoded.write(shape, bytes);
    }
}

/// Whether a block certainly lacks the key of an entry, and whether it is to
/// store the entry.
fn judge(
    shape: &Shape,
    decoded: &DecodedBlock,
    entry: Entry,
    repeats: RepeatPolicy,
) -> (bool, bool) {
    let copies = decoded.count(shape, entry.chain, entry.prefix);
    let new = copies == Some(0);
    let stored = match repeats {
        RepeatPolicy::Skip => new,
        _ => !decoded.refuses(shape, entry.chain, entry.prefix),
    };
    (new, stored)
}

/// The kernel of shapes without a fast block: custom chains, block sizes or
/// fingerprint lengths. Bit by bit, and not specialised for any backend.
struct Reference;

/// The blocks of such a filter.
#[derive(Clone, Copy)]
struct ReferenceView<'a> {
    core: &'a TinySetCore,
    data: &'a [u8],
}

impl ReferenceView<'_> {
    #[inline(never)]
    fn contains(&self, hash: u64) -> bool {
        let geometry = &self.core.geometry;
        let (block, fraction) = address(hash, geometry.blocks);
        let chain = geometry.shape.chain(hash);
        let block = &self.data[geometry.place(block)];
        let shape = &geometry.shape;
        lookup_reference(shape, block, chain, fraction) != Verdict::Absent
    }
}

// SAFETY: generic over the memory `D`, and so over every lifetime in it.
#[expect(unsafe_code, reason = "a promise about lifetimes")]
unsafe impl<D: AsRef<[u8]>> SingleLookup<TinySet<D>> for Reference {
    const WIDE: bool = false;

    fn contains<B: Backend>(_: B, set: &TinySet<D>, hash: u64) -> bool {
        ReferenceView { core: &set.core, data: set.blocks() }.contains(hash)
    }
}

impl Kernel<TinySetCore> for Reference {
    const WIDE: bool = false;

    fn contains_batch<B: Backend>(
        _: B,
        core: &TinySetCore,
        data: &[u8],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        let view = ReferenceView { core, data };
        for (&hash, found) in hashes.iter().zip(found) {
            *found = view.contains(hash);
        }
    }
}

impl Insertion<TinySetCore> for Reference {
    const WIDE: bool = false;

    fn insert<B: Backend>(
        _: B,
        core: &TinySetCore,
        bytes: &mut [u8],
        hash: u64,
    ) -> bool {
        let repeats = core.geometry.reporting_policy();
        insert_decoded(core, BlocksMut { first: 0, bytes }, hash, repeats)
    }

    fn insert_batch<B: Backend>(
        _: B,
        core: &TinySetCore,
        store: BlocksMut<'_>,
        hashes: &[u64],
    ) {
        let BlocksMut { first, bytes } = store;
        let repeats = core.geometry.silent_policy();
        for &hash in hashes {
            let store = BlocksMut { first, bytes: &mut *bytes };
            insert_decoded(core, store, hash, repeats);
        }
    }
}

/// The blocks of a filter of one level, to be filled on several threads.
#[cfg(feature = "std")]
#[derive(Clone, Copy)]
pub(super) struct ParallelTinySet<'a> {
    pub(super) core: &'a TinySetCore,
    pub(super) fns: &'a TinySetFns<crate::memory::Owned>,
}

#[cfg(feature = "std")]
impl crate::parallel::Divided for ParallelTinySet<'_> {
    fn blocks(&self) -> u64 {
        self.core.geometry.blocks
    }

    fn block_bytes(&self) -> usize {
        self.core.geometry.shape.bytes()
    }

    #[inline(always)]
    fn parts(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn block(&self, hash: u64, _: u32) -> u64 {
        address(hash, self.core.geometry.blocks).0
    }

    fn apply(&self, first: u64, bytes: &mut [u8], _: u32, hashes: &[u64]) {
        self.fns.insert_batch(self.core, BlocksMut { first, bytes }, hashes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::fingerprint::HeadLayout;
    use proptest::prelude::*;
    use tamis_theory::tinyset::Block;

    /// Rows are planned as single keys are, for every number of blocks.
    fn planned_alike<H: HeadSpec>(
        shape: Shape,
        count: u64,
        hashes: [u64; ROW],
    ) {
        let geometry = TinySetGeometry {
            blocks: count,
            shape,
            second: 0,
            removable: false,
            repeats: false,
        };
        let tables = FastBlock::<64, Plain, H>::tables(shape).unwrap();
        let core = TinySetCore { geometry, tables };
        // Planning reads no block: one is enough.
        let bytes = [0; 64];
        let view = TinySetView::<64, Plain, H>::new(&core, &bytes);
        let mut planned = view.planned();
        planned.count = count;
        planned.small_count = u32::try_from(count).unwrap_or(0);
        let mut row = PlannedRow::default();
        planned.plan_row(&hashes, &mut row);
        for (lane, hash) in hashes.into_iter().enumerate() {
            let (block, fraction) = address(hash, count);
            let (offset, key) = row.get(lane);
            assert_eq!(offset, block * 64);
            let chain = shape.chain(hash);
            assert_eq!(key.chain(), chain);
            // Fingerprints do not use the low 16 bits.
            assert_eq!(key.fraction() >> 16, fraction >> 16);
            let single = FastBlock::<64, Plain, H>::key(chain, fraction);
            assert_eq!(key.pack(), single.pack());
        }
    }

    proptest! {
        #[test]
        fn rows_are_planned_as_single_keys(
            hashes in any::<[u64; ROW]>(),
            count in prop_oneof![
                1u64..1000,
                Just(u64::from(u32::MAX)),
                Just(1 << 32),
                1u64..1 << 50,
            ],
        ) {
            let shape = Shape::new(Block::new(512, 64), Form::Plain);
            planned_alike::<Bytes>(shape, count, hashes);
            let nibbles = shape.with_heads(HeadLayout::Nibbles);
            planned_alike::<Nibbles>(nibbles, count, hashes);
            let reversed = shape.with_heads(HeadLayout::NibblesReversed);
            planned_alike::<Reversed>(reversed, count, hashes);
        }
    }
}

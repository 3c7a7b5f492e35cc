//! The walk of a key through its choices, and the kernels of the balanced
//! filter: one per block size, with and without tracking bits.

use super::Balanced;
use super::shape::{BalancedShape, Refusal, Tally};
use crate::arch::{Hint, L2};
use crate::block::Verdict;
use crate::block::bloom::{ANY, BlockProbe as _, Count, Probes};
use crate::block::guarded::Division;
use crate::dispatch::pipeline::{
    self, L2_BYTES, MultiProbe, Probe, ROW, Update,
};
use crate::dispatch::{
    Backend, Core, CoreFns, Insertion, Kernel, KernelFns, SingleLookup,
};
use crate::filter::envelope::Envelope;
use crate::key::Stream;
use crate::memory::{NonEmptyBlocks, blocks};
use crate::overflow::{Overflow, OverflowList, OverflowListView};
use crate::placement::{
    BlockRange, MAX_CHOICES, other_stream, reduce, ticket, ticket_stream,
    tracking,
};

/// Everything a walk needs, computed once from the shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    pub(super) shape: BalancedShape,
    /// Of the choices before the last, and of the last.
    rules: [ChoiceRule; 2],
    probes: Count,
    block_bytes: usize,
    /// Whether the tracking bits alone decide if a lookup continues, at every
    /// choice but the last.
    is_tracked: bool,
}

/// The rule by which a lookup passes one of the choices.
#[derive(Debug, Clone, Copy)]
struct ChoiceRule {
    division: Division,
    payload_bits: u32,
    refused: Refused,
}

/// Evidence that a block has refused a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// None: the block takes every key.
    Never,
    /// Its tracking bits. A refused key sets them, and a block that counts
    /// its ones refuses every key from then on.
    Tracked,
    /// Its tracking bits, if it has any, and its load.
    Both,
}

/// The memory of a filter for insertions.
pub(super) struct Site<'a> {
    pub(super) blocks: &'a mut [u8],
    pub(super) list: &'a mut OverflowList,
    pub(super) tally: &'a mut Tally,
    /// Whether the keys are new, so that no lookup is needed.
    pub(super) distinct: bool,
}

impl Core for Engine {
    /// The blocks and the overflow list.
    type View<'a> = (&'a [u8], OverflowListView<'a>);
    type Store<'a> = Site<'a>;
    type Range<'a> = Site<'a>;
}

impl Engine {
    pub(super) fn new(shape: BalancedShape) -> Self {
        let last = shape.choices() - 1;
        let rules = [0, last].map(|choice| ChoiceRule::new(&shape, choice));
        Self {
            shape,
            rules,
            is_tracked: last > 0 && rules[0].refused == Refused::Tracked,
            probes: Count::new(shape.probes),
            block_bytes: shape.block_bits as usize / 8,
        }
    }

    #[inline(always)]
    pub(super) fn division(&self, choice: u32) -> Division {
        self.rule(choice).division
    }

    #[inline(always)]
    fn rule(&self, choice: u32) -> &ChoiceRule {
        &self.rules[usize::from(self.is_last(choice))]
    }

    #[inline(always)]
    pub(super) fn place(
        &self,
        hash: u64,
        choice: u32,
    ) -> core::ops::Range<usize> {
        let block = self.shape.proposals.block(hash, choice) as usize;
        let start = block * self.block_bytes;
        start..start + self.block_bytes
    }

    #[inline(always)]
    fn probe(&self, hash: u64, choice: u32) -> Probes {
        let bits = self.rule(choice).payload_bits;
        Probes::new(hash, self.probes, bits)
    }

    #[inline(always)]
    fn class(&self, hash: u64, choice: u32) -> u32 {
        self.rule(choice).class(ticket(hash, choice))
    }

    #[inline(always)]
    fn is_last(&self, choice: u32) -> bool {
        choice + 1 == self.shape.proposals.choices()
    }

    /// Whether a block refuses a key now.
    #[inline(always)]
    fn refuses(&self, block: &[u8], hash: u64, choice: u32) -> bool {
        if self.shape.overflow == Overflow::Absorb && self.is_last(choice) {
            return false;
        }
        self.shape
            .refusal
            .refuses(self.division(choice), block, || ticket(hash, choice))
    }

    /// Whether every block refuses a key now.
    pub(super) fn all_refuse(&self, blocks: &[u8], hash: u64) -> bool {
        (0..self.shape.choices()).all(|choice| {
            self.refuses(&blocks[self.place(hash, choice)], hash, choice)
        })
    }

    /// Whether a lookup that did not find a key here continues.
    #[inline(always)]
    fn continues(
        &self,
        rule: &ChoiceRule,
        block: &[u8],
        hash: u64,
        choice: u32,
    ) -> bool {
        match rule.refused {
            Refused::Never => false,
            Refused::Tracked => rule.has_tracked(block, ticket(hash, choice)),
            Refused::Both => {
                rule.has_refused(block, hash, choice)
                    && self.refuses(block, hash, choice)
            }
        }
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, blocks: &[u8], hash: u64, choice: u32) {
        L2::prefetch(blocks, self.place(hash, choice).start);
    }

    /// Inserts a key unless it is present. Returns whether it was new.
    ///
    /// First the walk of a lookup, reading only: it ends at the block that
    /// takes the key. Then tracking bits are set in the blocks before that
    /// one, and only for keys that ended further on: a key that came back to
    /// its first block is found there.
    #[inline(always)]
    fn insert<B: Backend>(
        &self,
        backend: B,
        site: &mut Site<'_>,
        hash: u64,
    ) -> bool {
        let distinct = site.distinct;
        // Whether a lookup of this key has not ended yet.
        let mut maybe_present = !distinct;
        let mut taken_by = None;
        for choice in 0..self.shape.proposals.choices() {
            let block = &site.blocks[self.place(hash, choice)];
            if maybe_present
                && self.probe(hash, choice).covered::<_, ANY>(backend, block)
            {
                return false;
            }
            if !self.refuses(block, hash, choice) {
                taken_by = Some(choice);
                break;
            }
            maybe_present &=
                self.rule(choice).has_refused(block, hash, choice);
        }
        let choices = self.shape.proposals.choices();
        let ends_at = match taken_by {
            Some(choice) => {
                let placed =
                    &mut site.tally.placed[choice as usize % MAX_CHOICES];
                *placed = placed.saturating_add(1);
                Some(choice)
            }
            None => {
                // The list is exact: a listed key needs no second entry, even
                // a distinct one.
                let look = maybe_present || distinct;
                if look && site.list.view().contains(hash) {
                    return false;
                }
                match self.shape.overflow.choice(hash, choices) {
                    // Every lookup begins at the first block.
                    None if site.list.is_full() => {
                        site.tally.return_key();
                        Some(0)
                    }
                    ends_at => {
                        let refused = &mut site.tally.refused;
                        *refused = refused.saturating_add(1);
                        ends_at
                    }
                }
            }
        };
        for choice in 0..ends_at.unwrap_or(choices) {
            let class = self.class(hash, choice);
            let place = self.place(hash, choice);
            self.division(choice).track(&mut site.blocks[place], class);
        }
        match ends_at {
            Some(choice) => {
                let place = self.place(hash, choice);
                let block = &mut site.blocks[place];
                self.probe(hash, choice).set(backend, block);
                self.division(choice).count(block);
            }
            None => site.list.insert(hash),
        }
        true
    }
}

impl ChoiceRule {
    fn new(shape: &BalancedShape, choice: u32) -> Self {
        let division = shape.division(choice);
        let refused = if shape.absorbs(choice) {
            Refused::Never
        } else if division.tracking_bits > 0
            && matches!(shape.refusal, Refusal::Popcount { .. })
        {
            Refused::Tracked
        } else {
            Refused::Both
        };
        let payload_bits = division.payload_bits();
        Self { division, payload_bits, refused }
    }

    #[inline(always)]
    fn class(&self, ticket: u64) -> u32 {
        tracking::class(ticket, self.division.tracking_bits)
    }

    /// Whether the tracking bits allow that a block has refused a key of this
    /// class.
    #[inline(always)]
    fn has_refused(&self, block: &[u8], hash: u64, choice: u32) -> bool {
        self.division.tracking_bits == 0
            || self.has_tracked(block, ticket(hash, choice))
    }

    /// [`has_refused`](Self::has_refused) for a block with tracking bits.
    #[inline(always)]
    fn has_tracked(&self, block: &[u8], ticket: u64) -> bool {
        self.division.has_tracked(block, self.class(ticket))
    }
}

/// Chooses the kernel of a shape.
pub(super) fn select<D: AsRef<[u8]>>(
    engine: &Engine,
) -> KernelFns<Balanced<D>, Engine> {
    macro_rules! kernel {
        ($bytes:literal, $tracked:literal) => {{
            #[inline(never)]
            fn core_fns() -> &'static CoreFns<Engine> {
                CoreFns::of::<Walk<$bytes, $tracked>, Fill>()
            }
            KernelFns::new::<Walk<$bytes, $tracked>>(core_fns())
        }};
    }
    match (engine.shape.block_bits, engine.is_tracked) {
        (256, false) => kernel!(32, false),
        (256, true) => kernel!(32, true),
        (_, false) => kernel!(64, false),
        (_, true) => kernel!(64, true),
    }
}

/// The kernel for blocks of `BYTES` bytes. `TRACKED` if tracking bits alone
/// decide whether a lookup continues.
struct Walk<const BYTES: usize, const TRACKED: bool>;

// SAFETY: generic over the memory `D`, and so over every lifetime in it.
#[expect(unsafe_code, reason = "a promise about lifetimes")]
unsafe impl<D: AsRef<[u8]>, const BYTES: usize, const TRACKED: bool>
    SingleLookup<Balanced<D>> for Walk<BYTES, TRACKED>
{
    const WIDE: bool = false;

    #[inline(always)]
    fn contains<B: Backend>(
        backend: B,
        filter: &Balanced<D>,
        hash: u64,
    ) -> bool {
        let Envelope { data, payload, .. } = &filter.envelope;
        let blocks = blocks::<BYTES>(&data.as_ref()[payload.start..]);
        let list = filter.list();
        let view =
            WalkView::<BYTES, TRACKED>::new(&filter.engine, blocks, list);
        if const { B::IS_COMPACT } {
            return pipeline::contains_outlined(view, backend, hash);
        }
        let mut verdict = view.choice::<true>(0).test_one(backend, hash);
        let mut choice = 0;
        while verdict == Verdict::Continue {
            choice += 1;
            verdict = view.choice::<false>(choice).test_one(backend, hash);
        }
        verdict == Verdict::Maybe
    }
}

impl<const BYTES: usize, const TRACKED: bool> Kernel<Engine>
    for Walk<BYTES, TRACKED>
{
    const WIDE: bool = false;

    #[inline(always)]
    fn contains_batch<B: Backend>(
        backend: B,
        engine: &Engine,
        (bytes, list): (&[u8], OverflowListView<'_>),
        hashes: &[u64],
        found: &mut [bool],
    ) {
        let blocks = blocks::<BYTES>(bytes);
        let view = WalkView::<BYTES, TRACKED>::new(engine, blocks, list);
        pipeline::contains_batch(view, backend, hashes, found);
    }
}

/// Insertions, for blocks of every size.
struct Fill;

impl Insertion<Engine> for Fill {
    const WIDE: bool = true;

    #[inline(always)]
    fn insert<B: Backend>(
        backend: B,
        engine: &Engine,
        mut site: Site<'_>,
        hash: u64,
    ) -> bool {
        engine.insert(backend, &mut site, hash)
    }

    #[inline(always)]
    fn insert_batch<B: Backend>(
        backend: B,
        engine: &Engine,
        site: Site<'_>,
        hashes: &[u64],
    ) {
        pipeline::update_batch(backend, &mut Filled(engine, site), hashes);
    }
}

/// A filter to be changed.
struct Filled<'a>(&'a Engine, Site<'a>);

impl Update for Filled<'_> {
    type Item = u64;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.1.blocks.len()
    }

    #[inline(always)]
    fn prefetch(&self, &hash: &u64) {
        self.0.prefetch(self.1.blocks, hash, 0);
    }

    #[inline(always)]
    fn update<B: Backend>(&mut self, backend: B, &hash: &u64) {
        self.0.insert(backend, &mut self.1, hash);
    }
}

/// The blocks and the list of a filter for lookups.
#[derive(Clone, Copy)]
struct WalkView<'a, const BYTES: usize, const TRACKED: bool> {
    engine: &'a Engine,
    blocks: &'a [[u8; BYTES]],
    list: OverflowListView<'a>,
}

impl<'a, const BYTES: usize, const TRACKED: bool>
    WalkView<'a, BYTES, TRACKED>
{
    #[inline(always)]
    fn new(
        engine: &'a Engine,
        blocks: &'a [[u8; BYTES]],
        list: OverflowListView<'a>,
    ) -> Self {
        Self { engine, blocks, list }
    }

    #[inline(always)]
    fn choice<const FIRST: bool>(
        &self,
        choice: u32,
    ) -> Choice<'a, BYTES, TRACKED, FIRST> {
        let engine = self.engine;
        // With tracking bits a second choice exists.
        let is_last = !(TRACKED && FIRST) && engine.is_last(choice);
        let level = engine.shape.proposals.range(choice);
        Choice {
            view: *self,
            choice,
            level,
            probes: engine.probes,
            rule: engine.rules[usize::from(is_last)],
            is_last,
            streams: Streams {
                first: Probes::streams(0),
                ticket: ticket_stream(choice),
                block: other_stream(choice),
            },
        }
    }
}

impl<'a, const BYTES: usize, const TRACKED: bool> MultiProbe
    for WalkView<'a, BYTES, TRACKED>
{
    const AHEAD: usize = 64;
    const L1_BELOW: usize = L2_BYTES;
    const IS_SINGLE: bool = false;

    type First = InBatch<'a, BYTES, TRACKED, true>;
    type Next = InBatch<'a, BYTES, TRACKED, false>;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn first(&self) -> Self::First {
        self.choice(0).in_batch()
    }

    #[inline(always)]
    fn next(&self, choice: u32) -> Self::Next {
        self.choice(choice).in_batch()
    }
}

/// One of the choices of a key.
#[derive(Clone, Copy)]
struct Choice<'a, const BYTES: usize, const TRACKED: bool, const FIRST: bool> {
    view: WalkView<'a, BYTES, TRACKED>,
    choice: u32,
    level: BlockRange,
    probes: Count,
    rule: ChoiceRule,
    is_last: bool,
    streams: Streams,
}

/// The hash streams of a choice.
#[derive(Clone, Copy)]
struct Streams {
    first: [Stream; 2],
    ticket: Stream,
    block: Stream,
}

impl<'a, const BYTES: usize, const TRACKED: bool, const FIRST: bool>
    Choice<'a, BYTES, TRACKED, FIRST>
{
    /// The hash that chooses the block of a key.
    #[inline(always)]
    fn chooser(&self, hash: u64) -> u64 {
        match FIRST {
            true => hash,
            false => self.streams.block.word(hash),
        }
    }

    /// The words behind the first positions of a key.
    #[inline(always)]
    fn words(&self, hash: u64) -> [u64; 2] {
        self.streams.first.map(|stream| stream.word(hash))
    }

    /// Tests the block of a key.
    #[inline(always)]
    fn test<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        block: &[u8; BYTES],
        first: [u64; 2],
    ) -> Verdict {
        let Self { view: WalkView { engine, list, .. }, rule, .. } = *self;
        let count = self.probes;
        let bits = match TRACKED && FIRST {
            // At least one bit is a tracking bit. The bound keeps the code for
            // blocks without them from being compiled.
            true => rule.payload_bits.min(8 * BYTES as u32 - 1),
            false => rule.payload_bits,
        };
        if (Probes { hash, count, bits, first })
            .covered::<_, ANY>(backend, block)
        {
            return Verdict::Maybe;
        }
        let choice = if FIRST { 0 } else { self.choice };
        let is_last = self.is_last && !(TRACKED && FIRST);
        let continues = match TRACKED && !is_last {
            true => rule.has_tracked(block, self.streams.ticket.word(hash)),
            false => engine.continues(&rule, block, hash, choice),
        };
        if !is_last {
            // Not a branch: one key in four or five continues.
            return match continues {
                true => Verdict::Continue,
                false => Verdict::Absent,
            };
        }
        let listed = continues
            && engine.shape.overflow == Overflow::List
            && list.contains(hash);
        Verdict::from_match(listed)
    }

    /// Chooses the block of a single key, and tests it.
    #[inline(always)]
    fn test_one<B: Backend>(&self, backend: B, hash: u64) -> Verdict {
        let chooser = self.chooser(hash);
        let block = match FIRST {
            // The first level begins at block 0.
            true => reduce(chooser, self.level.blocks),
            false => self.level.block(chooser),
        };
        let block = &self.view.blocks[block as usize];
        self.test(backend, hash, block, self.words(hash))
    }

    /// The same choice for a loop over many keys: the range of its blocks is
    /// checked once.
    #[inline(always)]
    fn in_batch(self) -> InBatch<'a, BYTES, TRACKED, FIRST> {
        let BlockRange { first, blocks } = self.level;
        let all = self.view.blocks;
        let blocks =
            NonEmptyBlocks::new(&all[first as usize..][..blocks as usize])
                // Behind the last choice no block is chosen.
                .or_else(|| NonEmptyBlocks::new(all))
                .expect("a filter has blocks");
        InBatch { choice: self, blocks }
    }
}

/// A [`Choice`] in a batch.
#[derive(Clone, Copy)]
struct InBatch<'a, const BYTES: usize, const TRACKED: bool, const FIRST: bool>
{
    choice: Choice<'a, BYTES, TRACKED, FIRST>,
    blocks: NonEmptyBlocks<'a, [u8; BYTES]>,
}

/// The plans of a row: the results of all multiplications but that of the
/// tracking class, which present keys hardly ever need.
#[derive(Clone, Copy)]
struct WalkPlans<'a, const BYTES: usize> {
    /// The words behind the first positions.
    first: [[u64; 2]; ROW],
    blocks: [&'a [u8; BYTES]; ROW],
}

impl<const BYTES: usize> Default for WalkPlans<'_, BYTES> {
    fn default() -> Self {
        Self { first: [[0; 2]; ROW], blocks: [&[0; BYTES]; ROW] }
    }
}

impl<'a, const BYTES: usize, const TRACKED: bool, const FIRST: bool> Probe
    for InBatch<'a, BYTES, TRACKED, FIRST>
{
    type Plans = WalkPlans<'a, BYTES>;

    const BRANCHES: bool = true;

    #[inline(always)]
    fn prefetch<H: Hint>(
        &self,
        hash: u64,
        plans: &mut Self::Plans,
        lane: usize,
    ) {
        let block = self.blocks.choose(self.choice.chooser(hash));
        H::prefetch(block, 0);
        plans.blocks[lane] = block;
        plans.first[lane] = self.choice.words(hash);
    }

    #[inline(always)]
    fn test<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        plans: &Self::Plans,
        lane: usize,
    ) -> Verdict {
        let (block, first) = (plans.blocks[lane], plans.first[lane]);
        self.choice.test(backend, hash, block, first)
    }

    #[inline(always)]
    fn test_one<B: Backend>(&self, backend: B, hash: u64) -> Verdict {
        self.choice.test_one(backend, hash)
    }
}

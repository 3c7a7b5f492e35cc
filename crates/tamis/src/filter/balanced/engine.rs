//! The walk of a key through its blocks.

use super::shape::{Refusal, Shape, Tally};
use crate::batch::{self, SMALL_CACHE, Staged, Step};
use crate::block::bloom::{ANY, BlockProbe, Count, Probes};
use crate::block::guarded::Division;
use crate::key::Stream;
use crate::overflow::{Overflow, OverflowList, OverflowListView};
use crate::placement::{
    BlockRange, MAX_CHOICES, Proposals, Range, other_stream, reduce, ticket,
    ticket_stream,
};
use crate::simd;
use crate::simd::Backend;
use crate::summary::tracking;

/// Everything the walk needs, computed once from the shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    proposals: Proposals,
    rounds: [Round; MAX_CHOICES],
    refusal: Refusal,
    overflow: Overflow,
    probes: Count,
    block_bytes: usize,
    /// Whether a lookup goes on if and only if a tracking bit says so, in
    /// every round but the last.
    pub(super) is_tracked: bool,
}

/// What a lookup needs to know of one of the choices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    division: Division,
    payload_bits: u32,
    refused: Refused,
}

/// How a block tells whether it has refused a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// It takes every key.
    Never,
    /// By its tracking bits alone. They are set by a refused key, and a
    /// block that counts its ones refuses every key from then on.
    Tracked,
    /// By its tracking bits, if it has some, and by what it holds.
    Both,
}

/// The memory of a filter that can change.
pub(super) struct Site<'a> {
    pub(super) blocks: &'a mut [u8],
    pub(super) list: &'a mut OverflowList,
    pub(super) tally: &'a mut Tally,
}

impl Engine {
    pub(super) fn new(shape: &Shape) -> Self {
        let rounds =
            core::array::from_fn(|choice| Round::new(shape, choice as u32));
        let but_last = (shape.choices() as usize).saturating_sub(1);
        let but_last: &[Round] = rounds.get(..but_last).unwrap_or_default();
        Self {
            proposals: shape.proposals(),
            rounds,
            is_tracked: !but_last.is_empty()
                && but_last.iter().all(|r| r.refused == Refused::Tracked),
            refusal: shape.refusal,
            overflow: shape.overflow,
            probes: Count::new(shape.probes),
            block_bytes: shape.block_bits as usize / 8,
        }
    }

    #[inline(always)]
    pub(super) fn division(&self, choice: u32) -> Division {
        self.round(choice).division
    }

    #[inline(always)]
    fn round(&self, choice: u32) -> &Round {
        &self.rounds[choice as usize % MAX_CHOICES]
    }

    #[inline(always)]
    fn place(&self, hash: u64, choice: u32) -> core::ops::Range<usize> {
        let block = self.proposals.block(hash, choice) as usize;
        let start = block * self.block_bytes;
        start..start + self.block_bytes
    }

    #[inline(always)]
    fn probe(&self, hash: u64, choice: u32) -> Probes {
        let bits = self.round(choice).payload_bits;
        Probes::new(hash, self.probes, bits)
    }

    #[inline(always)]
    fn class(&self, hash: u64, choice: u32) -> u32 {
        self.round(choice).class(ticket(hash, choice))
    }

    #[inline(always)]
    fn is_last(&self, choice: u32) -> bool {
        choice + 1 == self.proposals.choices()
    }

    /// Whether a block refuses a key now.
    #[inline(always)]
    fn refuses(&self, block: &[u8], hash: u64, choice: u32) -> bool {
        if self.overflow == Overflow::Absorb && self.is_last(choice) {
            return false;
        }
        self.refusal
            .refuses(self.division(choice), block, || ticket(hash, choice))
    }

    /// Whether a lookup that did not find a key here must go on.
    #[inline(always)]
    fn goes_on(
        &self,
        round: &Round,
        block: &[u8],
        hash: u64,
        choice: u32,
    ) -> bool {
        match round.refused {
            Refused::Never => false,
            Refused::Tracked => round.has_tracked(block, ticket(hash, choice)),
            Refused::Both => {
                round.has_refused(block, hash, choice)
                    && self.refuses(block, hash, choice)
            }
        }
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, blocks: &[u8], hash: u64, choice: u32) {
        simd::prefetch::<false>(blocks, self.place(hash, choice).start);
    }

    /// Inserts a key unless it is present; whether it was new. A `distinct`
    /// key is known to be new, and is not looked for.
    ///
    /// First the walk a lookup takes, reading only: it ends at the block
    /// that will take the key. Then tracking bits are set in the blocks
    /// before that one. They are set only for keys that ended further on: a
    /// key that came back to its first block is found there.
    #[inline(always)]
    pub(super) fn insert<B: Backend>(
        &self,
        backend: B,
        site: &mut Site<'_>,
        hash: u64,
        distinct: bool,
    ) -> bool {
        // A lookup of this key would still be on its way.
        let mut maybe_present = !distinct;
        let mut taken_by = None;
        for choice in 0..self.proposals.choices() {
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
                self.round(choice).has_refused(block, hash, choice);
        }
        let choices = self.proposals.choices();
        let ends_at = match taken_by {
            Some(choice) => {
                let placed =
                    &mut site.tally.placed[choice as usize % MAX_CHOICES];
                *placed = placed.saturating_add(1);
                Some(choice)
            }
            None => {
                // The list is exact: what is in it needs no second entry,
                // even if the caller believes it new.
                let look = maybe_present || distinct;
                if look && site.list.view().contains(hash) {
                    return false;
                }
                site.tally.refused = site.tally.refused.saturating_add(1);
                self.overflow.choice(hash, choices)
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

impl Round {
    fn new(shape: &Shape, choice: u32) -> Self {
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

    /// Whether a block has refused a key of this class, as far as it
    /// remembers.
    #[inline(always)]
    fn has_refused(&self, block: &[u8], hash: u64, choice: u32) -> bool {
        self.division.tracking_bits == 0
            || self.has_tracked(block, ticket(hash, choice))
    }

    /// The same of a block with tracking bits.
    #[inline(always)]
    fn has_tracked(&self, block: &[u8], ticket: u64) -> bool {
        self.division.has_tracked(block, self.class(ticket))
    }
}

/// What a lookup needs and nothing else. `TRACKED` if tracking bits alone
/// tell whether it goes on, in every round but the last.
#[derive(Clone, Copy)]
pub(super) struct View<'a, const BYTES: usize, const TRACKED: bool> {
    engine: &'a Engine,
    blocks: &'a [[u8; BYTES]],
    list: OverflowListView<'a>,
}

impl<'a, const BYTES: usize, const TRACKED: bool> View<'a, BYTES, TRACKED> {
    #[inline(always)]
    pub(super) fn new(
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
    ) -> Choice<'a, BlockRange, BYTES, TRACKED, FIRST> {
        let engine = self.engine;
        Choice {
            view: *self,
            choice,
            level: engine.proposals.range(choice),
            probes: engine.probes,
            round: *engine.round(choice),
            is_last: engine.is_last(choice),
            streams: Streams {
                first: Probes::streams(0),
                ticket: ticket_stream(choice),
                block: other_stream(choice),
            },
        }
    }
}

impl<'a, const BYTES: usize, const TRACKED: bool> Staged
    for View<'a, BYTES, TRACKED>
{
    const CACHED: usize = SMALL_CACHE;

    type First = Choice<'a, BlockRange, BYTES, TRACKED, true>;
    type Later = Choice<'a, BlockRange, BYTES, TRACKED, false>;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn first(&self) -> Self::First {
        self.choice(0)
    }

    #[inline(always)]
    fn later(&self, choice: u32) -> Self::Later {
        self.choice(choice)
    }
}

/// What is worked out before a block is there. The multiplications are; the
/// class of the key is not, as present keys hardly ever need it.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a, const BYTES: usize> {
    /// The words behind the first positions.
    first: [u64; 2],
    block: &'a [u8; BYTES],
}

impl<const BYTES: usize> Default for Plan<'_, BYTES> {
    fn default() -> Self {
        Self { first: [0; 2], block: &[0; BYTES] }
    }
}

/// One of the choices: a round of a lookup.
#[derive(Clone, Copy)]
pub(super) struct Choice<
    'a,
    L,
    const BYTES: usize,
    const TRACKED: bool,
    const FIRST: bool,
> {
    view: View<'a, BYTES, TRACKED>,
    choice: u32,
    level: L,
    probes: Count,
    round: Round,
    is_last: bool,
    streams: Streams,
}

/// Where the words of a choice come from.
#[derive(Clone, Copy)]
struct Streams {
    first: [Stream; 2],
    ticket: Stream,
    block: Stream,
}

/// The blocks of a level.
pub(super) trait Blocks<'a, const BYTES: usize>: Copy {
    /// The same for many lookups, of which it is checked once that they are
    /// among `all` blocks.
    fn range(self, all: &'a [[u8; BYTES]]) -> Range<'a, [u8; BYTES]>;

    /// The block that a hash chooses, of `all` blocks.
    fn choose<const FIRST: bool>(
        self,
        all: &'a [[u8; BYTES]],
        hash: u64,
    ) -> &'a [u8; BYTES];
}

impl<'a, const BYTES: usize> Blocks<'a, BYTES> for BlockRange {
    #[inline(always)]
    fn range(self, all: &'a [[u8; BYTES]]) -> Range<'a, [u8; BYTES]> {
        let Self { first, blocks } = self;
        Range::new(&all[first as usize..][..blocks as usize])
            // Behind the last choice, where nobody asks for a block.
            .or_else(|| Range::new(all))
            .expect("a filter has blocks")
    }

    #[inline(always)]
    fn choose<const FIRST: bool>(
        self,
        all: &'a [[u8; BYTES]],
        hash: u64,
    ) -> &'a [u8; BYTES] {
        let block = match FIRST {
            // Nothing is in front of the first level.
            true => reduce(hash, self.blocks),
            false => self.block(hash),
        };
        &all[block as usize]
    }
}

impl<'a, const BYTES: usize> Blocks<'a, BYTES> for Range<'a, [u8; BYTES]> {
    #[inline(always)]
    fn range(self, _: &'a [[u8; BYTES]]) -> Self {
        self
    }

    #[inline(always)]
    fn choose<const FIRST: bool>(
        self,
        _: &'a [[u8; BYTES]],
        hash: u64,
    ) -> &'a [u8; BYTES] {
        self.choose(hash)
    }
}

impl<'a, L, const BYTES: usize, const TRACKED: bool, const FIRST: bool>
    batch::Round for Choice<'a, L, BYTES, TRACKED, FIRST>
where
    L: Blocks<'a, BYTES>,
{
    type Plan = Plan<'a, BYTES>;
    type Many = Choice<'a, Range<'a, [u8; BYTES]>, BYTES, TRACKED, FIRST>;

    #[inline(always)]
    fn for_many(self) -> Self::Many {
        let Self { view, choice, level, probes, round, is_last, .. } = self;
        let Streams { first: [a, b], ticket, block } = self.streams;
        let streams = Streams {
            first: [a.in_memory(), b.in_memory()],
            ticket: ticket.in_memory(),
            block: block.in_memory(),
        };
        let level = level.range(view.blocks);
        Choice { view, choice, level, probes, round, is_last, streams }
    }

    #[inline(always)]
    fn plan(&self, hash: u64) -> Plan<'a, BYTES> {
        let chooser = match FIRST {
            true => hash,
            false => self.streams.block.word(hash),
        };
        let block = self.level.choose::<FIRST>(self.view.blocks, chooser);
        let [a, b] = self.streams.first;
        Plan { first: [a.word(hash), b.word(hash)], block }
    }

    #[inline(always)]
    fn ask<const CACHED: bool>(&self, _: u64, plan: Plan<'a, BYTES>) {
        simd::prefetch::<CACHED>(plan.block, 0);
    }

    #[inline(always)]
    fn step<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        plan: Plan<'a, BYTES>,
    ) -> Step {
        let Self { view: View { engine, list, .. }, round, .. } = *self;
        let Plan { first, block } = plan;
        let count = self.probes;
        let bits = match TRACKED && FIRST {
            // There is a tracking bit in the block, at least. What a whole
            // block would be asked is then not even compiled.
            true => round.payload_bits.min(8 * BYTES as u32 - 1),
            false => round.payload_bits,
        };
        if (Probes { hash, count, bits, first })
            .covered::<_, ANY>(backend, block)
        {
            return Step::Yes;
        }
        let choice = if FIRST { 0 } else { self.choice };
        // Where tracking bits tell, there is a second choice.
        let is_last = self.is_last && !(TRACKED && FIRST);
        let goes_on = match TRACKED && !is_last {
            true => round.has_tracked(block, self.streams.ticket.word(hash)),
            false => engine.goes_on(&round, block, hash, choice),
        };
        if !is_last {
            // Not a branch: one key in four or five goes on.
            return match goes_on {
                true => Step::Next,
                false => Step::No,
            };
        }
        let listed = goes_on
            && engine.overflow == Overflow::List
            && list.contains(hash);
        match listed {
            true => Step::Yes,
            false => Step::No,
        }
    }
}

//! Lookups one by one and in batches: one engine for all structures.
//!
//! A lookup is a sequence of *rounds*, each of which reads one block. For a
//! batch, round 0 of all keys goes first, with the block of a later key
//! already on its way from memory while an earlier one is tested; the keys
//! that need a second block then do the same with each other.

use alloc::vec;
use alloc::vec::Vec;

use crate::simd::{Backend, Task, dispatch};

/// How many keys ahead a block is asked for if it is in a cache, and how
/// many items ahead if it is changed.
const AHEAD: usize = 32;

/// Up to how many bytes all blocks are likely to be in a cache.
pub(crate) const CACHE: usize = 16 << 20;

/// Keys handled together, round by round: bounds the list of survivors.
const CHUNK: usize = 4096;

/// What one round of a lookup says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// Certainly absent.
    No = 0,
    /// The next round decides.
    Next = 1,
    /// Maybe present.
    Yes = 2,
}

/// A structure seen as rounds of block reads.
pub(crate) trait Staged: Copy {
    /// How many keys ahead a block is asked for if it is in memory.
    ///
    /// Far enough that the processor has as many lines on their way as it
    /// can; nearer for tests that wait for their block even when it is
    /// there. See `docs/limits.md`.
    const AHEAD: usize;

    /// Bytes up to which nothing needs to be asked for, since the processor
    /// looks far enough ahead by itself.
    const UNASKED: usize = 0;

    /// The first round, which every key goes through, and the others: what
    /// they need, in so few words that a loop keeps them in registers.
    type First: Round;
    type Later: Round;

    /// Bytes of all blocks.
    fn bytes(&self) -> usize;

    fn first(&self) -> Self::First;

    /// The `number`-th round, from one.
    fn later(&self, number: u32) -> Self::Later;

    /// Whether one round decides every lookup.
    #[inline(always)]
    fn is_one_round(&self) -> bool {
        false
    }
}

/// One of the rounds.
pub(crate) trait Round: Copy {
    /// Asks for the block that this round of a lookup will read.
    fn prefetch<const CACHED: bool>(&self, hash: u64);

    /// Performs the round.
    fn step<B: Backend>(&self, backend: B, hash: u64) -> Step;
}

/// One lookup.
#[inline(always)]
pub(crate) fn all_rounds<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hash: u64,
) -> bool {
    let mut step = structure.first().step(backend, hash);
    let mut number = 0;
    while step == Step::Next {
        number += 1;
        step = structure.later(number).step(backend, hash);
    }
    step == Step::Yes
}

/// Many lookups; `found` is overwritten.
pub(crate) fn contains_all<S: Staged>(
    structure: S,
    hashes: &[u64],
    found: &mut Vec<bool>,
) {
    struct Many<'a, S>(S, &'a [u64], &'a mut [bool]);
    impl<S: Staged> Task for Many<'_, S> {
        type Output = ();

        #[inline(always)]
        fn run<B: Backend>(self, backend: B) {
            let Self(structure, hashes, found) = self;
            if structure.is_one_round() {
                let round = structure.first();
                let outcomes = found;
                OneRound { structure, round, hashes, outcomes }.go(backend);
            } else if structure.bytes() <= S::UNASKED {
                // Then survivors need not be put off, either.
                for (&hash, found) in hashes.iter().zip(found) {
                    *found = all_rounds(structure, backend, hash);
                }
            } else {
                let mut survivors = Survivors::of(hashes.len());
                for (hashes, found) in
                    hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK))
                {
                    survivors.look_up(structure, backend, hashes, found);
                }
            }
        }
    }
    found.clear();
    found.resize(hashes.len(), false);
    dispatch(Many(structure, hashes, found));
}

/// What a lookup in a batch leaves behind: its step, or an answer if there
/// are no other rounds.
trait Outcome {
    fn of(step: Step) -> Self;
}

impl Outcome for u8 {
    #[inline(always)]
    fn of(step: Step) -> Self {
        step as u8
    }
}

impl Outcome for bool {
    #[inline(always)]
    fn of(step: Step) -> Self {
        step == Step::Yes
    }
}

/// One round of all these lookups.
///
/// What is said of a key goes to a place of its own. Survivors are gathered
/// afterwards: an index put behind that of the survivor before it would be
/// a store of which nobody knows where it goes until a block has come, and
/// what is asked for meanwhile would wait for that. And a branch would be
/// guessed wrong all the time.
struct OneRound<'a, S, R, O> {
    structure: S,
    round: R,
    hashes: &'a [u64],
    outcomes: &'a mut [O],
}

impl<S: Staged, R: Round, O: Outcome> OneRound<'_, S, R, O> {
    /// Out of line, so that the loop has the registers for itself.
    #[inline(always)]
    fn go<B: Backend>(self, backend: B) {
        match self.structure.bytes() {
            bytes if bytes <= S::UNASKED => backend.outline(Unasked(self)),
            ..=CACHE => backend.outline(Asked::<_, _, _, true>(self)),
            _ => backend.outline(Asked::<_, _, _, false>(self)),
        }
    }
}

/// Blocks that come by themselves.
struct Unasked<'a, S, R, O>(OneRound<'a, S, R, O>);

impl<S: Staged, R: Round, O: Outcome> Task for Unasked<'_, S, R, O> {
    type Output = ();

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) {
        let Self(OneRound { round, hashes, outcomes, .. }) = self;
        step_all(round, backend, hashes, outcomes);
    }
}

/// Each block asked for a little earlier.
struct Asked<'a, S, R, O, const CACHED: bool>(OneRound<'a, S, R, O>);

impl<S: Staged, R: Round, O: Outcome, const CACHED: bool> Task
    for Asked<'_, S, R, O, CACHED>
{
    type Output = ();

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) {
        let Self(OneRound { round, hashes, outcomes, .. }) = self;
        let ahead = if CACHED { AHEAD } else { S::AHEAD };
        let (first, later) = hashes.split_at(hashes.len().min(ahead));
        for &hash in first {
            round.prefetch::<CACHED>(hash);
        }
        // Those that have another to fetch for, and those that do not:
        // nobody has to ask at every key.
        let (early, late) = outcomes.split_at_mut(later.len());
        // Windows, where two iterators would be one more address to keep.
        for (window, outcome) in hashes.windows(ahead + 1).zip(early) {
            round.prefetch::<CACHED>(window[ahead]);
            *outcome = O::of(round.step(backend, window[0]));
        }
        step_all(round, backend, &hashes[later.len()..], late);
    }
}

#[inline(always)]
fn step_all<R: Round, B: Backend, O: Outcome>(
    round: R,
    backend: B,
    hashes: &[u64],
    outcomes: &mut [O],
) {
    for (&hash, outcome) in hashes.iter().zip(outcomes) {
        *outcome = O::of(round.step(backend, hash));
    }
}

/// The keys of a chunk that need another round.
struct Survivors {
    /// What a round said of each key; whole groups.
    steps: Vec<u8>,
    hashes: Vec<u64>,
    /// Where in the chunk, below [`CHUNK`].
    indices: Vec<u16>,
}

/// Steps that are looked at together.
const GROUP: usize = 64;

impl Survivors {
    /// Room for chunks of that many keys.
    fn of(keys: usize) -> Self {
        let most = keys.min(CHUNK).next_multiple_of(GROUP);
        let (steps, hashes) = (vec![0; most], vec![0; most]);
        Self { steps, hashes, indices: vec![0; most] }
    }

    /// All rounds of a chunk.
    #[inline(always)]
    fn look_up<S: Staged, B: Backend>(
        &mut self,
        structure: S,
        backend: B,
        chunk: &[u64],
        found: &mut [bool],
    ) {
        let steps = &mut self.steps[..chunk.len()];
        OneRound {
            structure,
            round: structure.first(),
            hashes: chunk,
            outcomes: &mut *steps,
        }
        .go(backend);
        for (found, &step) in found.iter_mut().zip(&*steps) {
            *found = step == Step::Yes as u8;
        }
        let mut count = self.gather::<_, true>(backend, chunk, chunk.len());
        let mut number = 1;
        while count > 0 {
            let steps = &mut self.steps[..count];
            OneRound {
                structure,
                round: structure.later(number),
                hashes: &self.hashes[..count],
                outcomes: &mut *steps,
            }
            .go(backend);
            for (&index, &step) in self.indices.iter().zip(&*steps) {
                found[usize::from(index)] = step == Step::Yes as u8;
            }
            count = self.gather::<_, false>(backend, chunk, count);
            number += 1;
        }
    }

    /// Keeps those of `keys` that go on, and says how many. They are all
    /// keys of the `chunk` if it is its `FIRST` round.
    #[inline(always)]
    fn gather<B: Backend, const FIRST: bool>(
        &mut self,
        backend: B,
        chunk: &[u64],
        keys: usize,
    ) -> usize {
        let Self { steps, hashes, indices } = self;
        let steps = &mut steps[..keys.next_multiple_of(GROUP)];
        steps[keys..].fill(Step::No as u8);
        let mut count = 0;
        for (at, group) in bytemuck::cast_slice(steps).iter().enumerate() {
            let mut going_on = backend.low_bits(group);
            while going_on != 0 {
                let place = GROUP * at + going_on.trailing_zeros() as usize;
                let index = match FIRST {
                    true => place as u16,
                    false => indices[place],
                };
                hashes[count] = chunk[usize::from(index)];
                indices[count] = index;
                count += 1;
                going_on &= going_on - 1;
            }
        }
        count
    }
}

/// Something that is changed item by item.
///
/// A trait and not two closures: a closure may become a function of its
/// own, without the instructions of the backend.
pub(crate) trait Updated {
    type Item;

    /// Asks for the blocks that `item` changes.
    fn prefetch(&self, item: &Self::Item);

    fn update<B: Backend>(&mut self, backend: B, item: &Self::Item);
}

/// Every item in order, each asked for a little earlier: the shape of every
/// prefetched update.
#[inline(always)]
pub(crate) fn update_all<U: Updated, B: Backend>(
    backend: B,
    updated: &mut U,
    items: &[U::Item],
) {
    let (first, later) = items.split_at(items.len().min(AHEAD));
    for item in first {
        updated.prefetch(item);
    }
    for (item, later) in items.iter().zip(later) {
        updated.prefetch(later);
        updated.update(backend, item);
    }
    for item in &items[later.len()..] {
        updated.update(backend, item);
    }
}

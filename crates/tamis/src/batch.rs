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
    /// Maybe present.
    Yes = 1,
    /// The next round decides.
    Next = 2,
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

    /// Bytes of all blocks.
    fn bytes(&self) -> usize;

    /// Asks for the block that `round` of this lookup will read.
    fn prefetch<const CACHED: bool>(&self, hash: u64, round: u32);

    /// Performs one round.
    fn step<B: Backend>(&self, backend: B, hash: u64, round: u32) -> Step;

    /// Whether one round decides every lookup.
    #[inline(always)]
    fn is_one_round(&self) -> bool {
        false
    }
}

/// One lookup.
#[inline(always)]
pub(crate) fn all_rounds<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hash: u64,
) -> bool {
    let mut step = structure.step(backend, hash, 0);
    let mut round = 0;
    while step == Step::Next {
        round += 1;
        step = structure.step(backend, hash, round);
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
            if structure.bytes() <= S::UNASKED && !structure.is_one_round() {
                // Then survivors need not be put off, either.
                for (&hash, found) in hashes.iter().zip(found) {
                    *found = all_rounds(structure, backend, hash);
                }
                return;
            }
            if structure.is_one_round() {
                return one_round(structure, backend, hashes, 0, found);
            }
            let mut steps = vec![Step::No; hashes.len().min(CHUNK)];
            let mut survivors = Survivors::default();
            for (hashes, found) in
                hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK))
            {
                let steps = &mut steps[..hashes.len()];
                one_round(structure, backend, hashes, 0, steps);
                for (found, &step) in found.iter_mut().zip(&*steps) {
                    *found = step == Step::Yes;
                }
                survivors.after_first(hashes, steps);
                let mut round = 1;
                while !survivors.hashes.is_empty() {
                    let hashes = &survivors.hashes[..];
                    let steps = &mut steps[..hashes.len()];
                    one_round(structure, backend, hashes, round, steps);
                    survivors.after(steps, found);
                    round += 1;
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

impl Outcome for Step {
    #[inline(always)]
    fn of(step: Step) -> Self {
        step
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
#[inline(always)]
fn one_round<S: Staged, B: Backend, O: Outcome>(
    structure: S,
    backend: B,
    hashes: &[u64],
    round: u32,
    outcomes: &mut [O],
) {
    match structure.bytes() {
        bytes if bytes <= S::UNASKED => {
            step_all(structure, backend, hashes, round, outcomes);
        }
        ..=CACHE => {
            ask_and_step::<_, _, _, true>(
                structure, backend, hashes, round, outcomes,
            );
        }
        _ => {
            ask_and_step::<_, _, _, false>(
                structure, backend, hashes, round, outcomes,
            );
        }
    }
}

/// One round, each block asked for a little earlier.
#[inline(always)]
fn ask_and_step<S: Staged, B: Backend, O: Outcome, const CACHED: bool>(
    structure: S,
    backend: B,
    hashes: &[u64],
    round: u32,
    outcomes: &mut [O],
) {
    let ahead = if CACHED { AHEAD } else { S::AHEAD };
    let (first, later) = hashes.split_at(hashes.len().min(ahead));
    for &hash in first {
        structure.prefetch::<CACHED>(hash, round);
    }
    // Those that have another to fetch for, and those that do not: nobody
    // has to ask at every key.
    let (early, late) = outcomes.split_at_mut(later.len());
    // Windows, where two iterators would be one more address to keep.
    for (window, outcome) in hashes.windows(ahead + 1).zip(early) {
        structure.prefetch::<CACHED>(window[ahead], round);
        *outcome = O::of(structure.step(backend, window[0], round));
    }
    step_all(structure, backend, &hashes[later.len()..], round, late);
}

#[inline(always)]
fn step_all<S: Staged, B: Backend, O: Outcome>(
    structure: S,
    backend: B,
    hashes: &[u64],
    round: u32,
    outcomes: &mut [O],
) {
    for (&hash, outcome) in hashes.iter().zip(outcomes) {
        *outcome = O::of(structure.step(backend, hash, round));
    }
}

/// The keys of a chunk that need another round.
#[derive(Default)]
struct Survivors {
    hashes: Vec<u64>,
    /// Where in the chunk, below [`CHUNK`].
    indices: Vec<u16>,
}

impl Survivors {
    /// Those of a chunk.
    fn after_first(&mut self, hashes: &[u64], steps: &[Step]) {
        self.hashes.clear();
        self.indices.clear();
        for (at, steps) in steps.chunks(64).enumerate() {
            let mut going_on = going_on(steps);
            while going_on != 0 {
                let index = 64 * at + going_on.trailing_zeros() as usize;
                self.hashes.push(hashes[index]);
                self.indices.push(index as u16);
                going_on &= going_on - 1;
            }
        }
    }

    /// Those of the survivors; the answers of the others go to `found`.
    fn after(&mut self, steps: &[Step], found: &mut [bool]) {
        let mut count = 0;
        for (at, &step) in steps.iter().enumerate() {
            let (hash, index) = (self.hashes[at], self.indices[at]);
            found[usize::from(index)] = step == Step::Yes;
            // Written in any case: which go on, nobody could guess.
            (self.hashes[count], self.indices[count]) = (hash, index);
            count += usize::from(step == Step::Next);
        }
        self.hashes.truncate(count);
        self.indices.truncate(count);
    }
}

/// A one for each of up to 64 lookups that goes on.
fn going_on(steps: &[Step]) -> u64 {
    let mut ones = 0;
    let (eights, rest) = steps.split_at(steps.len() / 8 * 8);
    for (at, steps) in eights.chunks_exact(8).enumerate() {
        let bytes = core::array::from_fn(|i| steps[i] as u8);
        let next = u64::from_le_bytes(bytes) >> 1 & 0x0101_0101_0101_0101;
        // The product has the sum of all bytes in its highest, each with a
        // bit of its own.
        let byte = next.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        ones |= byte << (8 * at);
    }
    for (at, &step) in rest.iter().enumerate() {
        ones |= u64::from(step == Step::Next) << (eights.len() + at);
    }
    ones
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

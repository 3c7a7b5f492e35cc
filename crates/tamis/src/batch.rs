//! Lookups one by one and in batches: one engine for all structures.
//!
//! A lookup is a sequence of *rounds*, each of which reads one block. For a
//! batch, round 0 of all keys goes first, with the block of a later key
//! already on its way from memory while an earlier one is tested; the keys
//! that need a second block then do the same with each other.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use crate::simd::{Backend, Task, dispatch};

/// How many keys ahead a block is asked for. Far enough to cover a DRAM
/// access, near enough that the processor's miss queue is full but not
/// overrun.
const AHEAD: usize = 32;

/// Keys handled together, round by round: bounds the list of survivors.
const CHUNK: usize = 4096;

/// What one round of a lookup says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Certainly absent.
    No,
    /// Maybe present.
    Yes,
    /// The next round decides.
    Next,
}

/// A structure seen as rounds of block reads.
pub(crate) trait Staged: Copy {
    /// Asks for the block that `round` of this lookup will read.
    fn prefetch(&self, hash: u64, round: u32);

    /// Performs one round.
    fn step<B: Backend>(&self, backend: B, hash: u64, round: u32) -> Step;

    /// Whether all blocks come in time without being asked for, since the
    /// processor looks far enough ahead by itself.
    #[inline(always)]
    fn is_near(&self) -> bool {
        false
    }

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
            if structure.is_near() && !structure.is_one_round() {
                // Then survivors need not be put off, either.
                for (&hash, found) in hashes.iter().zip(found) {
                    *found = all_rounds(structure, backend, hash);
                }
                return;
            }
            let mut survivors =
                Survivors::new(match structure.is_one_round() {
                    true => 0,
                    false => hashes.len(),
                });
            for (hashes, found) in
                hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK))
            {
                first_round(structure, backend, hashes, found, &mut survivors);
                let mut round = 1;
                while survivors.count > 0 {
                    later_round(
                        structure,
                        backend,
                        hashes,
                        found,
                        &mut survivors,
                        round,
                    );
                    round += 1;
                }
            }
        }
    }
    found.clear();
    found.resize(hashes.len(), false);
    dispatch(Many(structure, hashes, found));
}

/// The keys of a chunk that need another round.
struct Survivors {
    /// Their indices, which are below [`CHUNK`], and room for those of all.
    indices: Vec<u16>,
    count: usize,
}

impl Survivors {
    fn new(hashes: usize) -> Self {
        Self { indices: vec![0; hashes.min(CHUNK)], count: 0 }
    }

    /// Keeps an index if its lookup goes on. Written in any case: where some
    /// go on and some do not, a branch would be guessed wrong all the time.
    #[inline(always)]
    fn keep_if(&mut self, goes_on: bool, index: usize) {
        if let Some(place) = self.indices.get_mut(self.count) {
            *place = index as u16;
            self.count += usize::from(goes_on);
        }
    }

    #[inline(always)]
    fn index(&self, at: usize) -> usize {
        usize::from(self.indices[at])
    }
}

#[inline(always)]
fn first_round<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
    survivors: &mut Survivors,
) {
    let near = structure.is_near();
    let ahead = if near { hashes.len() } else { AHEAD };
    let (first, later) = hashes.split_at(hashes.len().min(ahead));
    for &hash in first.iter().filter(|_| !near) {
        structure.prefetch(hash, 0);
    }
    // Those that have another to fetch for, and those that do not: nobody
    // has to ask at every key.
    let (early, late) = found.split_at_mut(later.len());
    // Windows, where two iterators would be one more address to keep.
    let windows = hashes.windows(AHEAD + 1);
    for (i, (window, found)) in windows.zip(early).enumerate() {
        structure.prefetch(window[AHEAD], 0);
        *found = one_step(structure, backend, window[0], survivors, i);
    }
    let rest = hashes.iter().enumerate().skip(later.len());
    for ((i, &hash), found) in rest.zip(late) {
        *found = one_step(structure, backend, hash, survivors, i);
    }
}

/// The first step of a lookup; if it is not the last, its index survives.
#[inline(always)]
fn one_step<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hash: u64,
    survivors: &mut Survivors,
    index: usize,
) -> bool {
    let step = structure.step(backend, hash, 0);
    if !structure.is_one_round() {
        survivors.keep_if(step == Step::Next, index);
    }
    step == Step::Yes
}

#[inline(always)]
fn later_round<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
    survivors: &mut Survivors,
    round: u32,
) {
    // Those that go on once more are written over those that are done.
    let count = mem::take(&mut survivors.count);
    for at in 0..count.min(AHEAD) {
        structure.prefetch(hashes[survivors.index(at)], round);
    }
    for at in 0..count {
        if at + AHEAD < count {
            structure.prefetch(hashes[survivors.index(at + AHEAD)], round);
        }
        let index = survivors.index(at);
        let step = structure.step(backend, hashes[index], round);
        found[index] = step == Step::Yes;
        survivors.keep_if(step == Step::Next, index);
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

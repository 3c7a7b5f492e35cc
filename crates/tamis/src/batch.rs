//! Lookups one by one and in batches: one engine for all structures.
//!
//! A lookup is a sequence of *rounds*, each of which reads one block. For a
//! batch, round 0 of all keys goes first, with the block of a later key
//! already on its way from memory while an earlier one is tested; the keys
//! that need a second block then do the same with each other.

use alloc::vec::Vec;

use crate::simd::{Backend, Task, dispatch};

/// How many keys ahead a block is asked for. Far enough to cover a DRAM
/// access, near enough that the line is still in the first-level cache (64
/// bytes x 32 is a sixteenth of it) and the processor's miss queue is full
/// but not overrun.
const AHEAD: usize = 32;

/// Keys handled together, round by round: bounds the list of survivors.
const CHUNK: usize = 1024;

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
}

/// One lookup.
#[inline]
pub(crate) fn contains<S: Staged>(structure: S, hash: u64) -> bool {
    struct One<S>(S, u64);
    impl<S: Staged> Task for One<S> {
        type Output = bool;

        #[inline(always)]
        fn run<B: Backend>(self, backend: B) -> bool {
            let Self(structure, hash) = self;
            let mut step = structure.step(backend, hash, 0);
            let mut round = 0;
            while step == Step::Next {
                round += 1;
                step = structure.step(backend, hash, round);
            }
            step == Step::Yes
        }
    }
    dispatch(One(structure, hash))
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
            let mut survivors = Vec::new();
            for (hashes, found) in
                hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK))
            {
                first_round(structure, backend, hashes, found, &mut survivors);
                let mut round = 1;
                while !survivors.is_empty() {
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

#[inline(always)]
fn first_round<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
    survivors: &mut Vec<u16>,
) {
    for &hash in hashes.iter().take(AHEAD) {
        structure.prefetch(hash, 0);
    }
    for (i, (&hash, found)) in hashes.iter().zip(found).enumerate() {
        if let Some(&later) = hashes.get(i + AHEAD) {
            structure.prefetch(later, 0);
        }
        let step = structure.step(backend, hash, 0);
        *found = step == Step::Yes;
        if step == Step::Next {
            // Indices are below CHUNK.
            survivors.push(i as u16);
        }
    }
}

#[inline(always)]
fn later_round<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
    survivors: &mut Vec<u16>,
    round: u32,
) {
    let hash_of = |survivor: u16| hashes[usize::from(survivor)];
    for &survivor in survivors.iter().take(AHEAD) {
        structure.prefetch(hash_of(survivor), round);
    }
    let mut kept = 0;
    for i in 0..survivors.len() {
        if let Some(&later) = survivors.get(i + AHEAD) {
            structure.prefetch(hash_of(later), round);
        }
        let survivor = survivors[i];
        match structure.step(backend, hash_of(survivor), round) {
            Step::No => {}
            Step::Yes => found[usize::from(survivor)] = true,
            Step::Next => {
                survivors[kept] = survivor;
                kept += 1;
            }
        }
    }
    survivors.truncate(kept);
}

/// Calls `act` for every item in order, and `ask` for each a little
/// earlier: the shape of every prefetched update.
#[inline(always)]
pub(crate) fn ahead<T, C: ?Sized>(
    items: &[T],
    context: &mut C,
    mut ask: impl FnMut(&C, &T),
    mut act: impl FnMut(&mut C, &T),
) {
    for item in items.iter().take(AHEAD) {
        ask(context, item);
    }
    for (i, item) in items.iter().enumerate() {
        if let Some(later) = items.get(i + AHEAD) {
            ask(context, later);
        }
        act(context, item);
    }
}

//! Lookups that one round decides, and that are planned together.
//!
//! What is known of a key before its block is there (which block, which
//! chain, which bits to look for) takes as long to work out as a good part of
//! the test itself. For a row of keys at once it takes a few vector
//! instructions, which are others than those that the test is made of.

use crate::simd::{Backend, Task};

/// Keys in a row.
pub(crate) const LANES: usize = 8;

/// Rows that are planned, and asked for, ahead. More than 32 keys would take
/// room in the first-level cache from each other.
const ROWS: usize = 4;

/// A structure in which one block decides every lookup.
pub(crate) trait Together: Copy {
    /// What is known of a row of keys. Kept in arrays of which the compiler
    /// makes vectors, and not key by key.
    type Plans: Copy + Default;

    /// Up to how many bytes blocks are asked for into the first-level cache.
    const CACHED: usize;

    /// Bytes of all blocks.
    fn bytes(&self) -> usize;

    fn plan(&self, hashes: &[u64; LANES], plans: &mut Self::Plans);

    /// Asks for the block of a key.
    fn ask<const CACHED: bool>(&self, plans: &Self::Plans, lane: usize);

    /// Whether a key may be there.
    fn look<B: Backend>(
        &self,
        backend: B,
        plans: &Self::Plans,
        lane: usize,
    ) -> bool;
}

/// Many lookups, each with its place in `found`, where nothing is found yet.
#[inline(always)]
pub(crate) fn look_up<S: Together, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
) {
    match structure.bytes() <= S::CACHED {
        true => backend.outline(Many::<_, true>(structure, hashes, found)),
        false => backend.outline(Many::<_, false>(structure, hashes, found)),
    }
}

/// Out of line, so that the loop has the registers for itself.
struct Many<'a, S, const CACHED: bool>(S, &'a [u64], &'a mut [bool]);

impl<S: Together, const CACHED: bool> Task for Many<'_, S, CACHED> {
    type Output = ();

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) {
        let Self(structure, hashes, found) = self;
        let (rows, rest) = hashes.split_at(hashes.len() / LANES * LANES);
        let rows: &[[u64; LANES]] = bytemuck::cast_slice(rows);
        // In turn, and one more for the row that is planned next.
        let mut plans = [S::Plans::default(); ROWS + 1];
        for (plans, row) in plans[..ROWS].iter_mut().zip(rows) {
            structure.plan(row, plans);
            for lane in 0..LANES {
                structure.ask::<CACHED>(plans, lane);
            }
        }
        // Rows that have another to plan behind them, and the last ones:
        // nobody has to ask at every key.
        let early = rows.len().saturating_sub(ROWS);
        let (found, found_last) = found.split_at_mut(early * LANES);
        let mut at = 0;
        let later = &rows[rows.len() - early..];
        for (found, later) in found.chunks_exact_mut(LANES).zip(later) {
            let (here, next) = row_and_next(&mut plans, at);
            at = if at == ROWS { 0 } else { at + 1 };
            structure.plan(later, next);
            for (lane, found) in found.iter_mut().enumerate() {
                structure.ask::<CACHED>(next, lane);
                *found = structure.look(backend, here, lane);
            }
        }
        for (row, found) in (early..).zip(found_last.chunks_mut(LANES)) {
            let plans = &mut plans[row % (ROWS + 1)];
            if row == rows.len() {
                let mut row = [0; LANES];
                row[..rest.len()].copy_from_slice(rest);
                structure.plan(&row, plans);
            }
            for (lane, found) in found.iter_mut().enumerate() {
                *found = structure.look(backend, plans, lane);
            }
        }
    }
}

/// The plans of a row, and those of the row before it, which is done.
#[inline(always)]
fn row_and_next<P>(plans: &mut [P; ROWS + 1], at: usize) -> (&P, &mut P) {
    let (before, from) = plans.split_at_mut(at);
    match (before.last_mut(), from) {
        (Some(next), [here, ..]) => (here, next),
        (None, [here, .., next]) => (here, next),
        _ => unreachable!("there are several rows, and this is one of them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    /// Finds even hashes, and remembers what was asked for.
    #[derive(Clone, Copy)]
    struct Even<'a>(&'a RefCell<Vec<u64>>);

    impl Together for Even<'_> {
        type Plans = [u64; LANES];

        const CACHED: usize = 0;

        fn bytes(&self) -> usize {
            1
        }

        fn plan(&self, hashes: &[u64; LANES], plans: &mut [u64; LANES]) {
            *plans = *hashes;
        }

        fn ask<const CACHED: bool>(&self, plans: &[u64; LANES], lane: usize) {
            assert!(!CACHED);
            self.0.borrow_mut().push(plans[lane]);
        }

        fn look<B: Backend>(
            &self,
            _: B,
            plans: &[u64; LANES],
            lane: usize,
        ) -> bool {
            plans[lane] % 2 == 0
        }
    }

    #[test]
    fn every_key_has_its_own_answer() {
        let mut state = 1u64;
        for len in 0..=9 * LANES {
            let hashes: Vec<u64> = (0..len)
                .map(|_| {
                    state = state
                        .wrapping_mul(0x5851_f42d_4c95_7f2d)
                        .wrapping_add(1);
                    state >> 20
                })
                .collect();
            let asked = RefCell::default();
            let mut found = vec![false; len];
            let structure = Even(&asked);
            look_up(structure, crate::simd::Scalar, &hashes, &mut found);
            for (hash, found) in hashes.iter().zip(found) {
                assert_eq!(found, hash % 2 == 0, "{len} keys");
            }
            // Whole rows, each key once and in order.
            assert_eq!(asked.take(), hashes[..len / LANES * LANES]);
        }
    }
}

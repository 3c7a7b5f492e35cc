//! Exact false-positive rate of a Bloom block.
//!
//! A block of `bits` cells receives `n` uniform throws that set X cells, and
//! a query probes k uniform cells: the rate is E[(X/bits)^k]. The
//! distribution of X has one state per cell. The chance `G_j` that j *given*
//! cells are all set has only k states:
//!
//! G_j(n+1) = (j/bits) G_{j-1}(n) + (1 - j/bits) G_j(n),
//!
//! since the first throw either covers one of the j cells or does not.
//! Every term is positive, so no digits cancel. The closed form by inclusion
//! and exclusion loses all digits below about 1e-12.
//!
//! The paper's equation (9) has exponent B instead of k, and is then replaced
//! by (1-e^{-ki/B})^k, which is too low because X varies.

use alloc::vec::Vec;

use crate::dot::dot;
use crate::prediction::MAX_PROBES;

const STATES: usize = MAX_PROBES as usize + 1;

/// The chances G_0..G_k after a number of throws.
pub(crate) struct Coverage {
    covered: [f64; STATES],
    hit: [f64; STATES],
    probes: usize,
}

impl Coverage {
    pub(crate) fn new(bits: u32, probes: u32) -> Self {
        // For j > bits the weight in `Distinct` is zero; the clamp keeps
        // the recurrence positive.
        let hit = core::array::from_fn(|j| {
            (j as f64 / f64::from(bits.max(1))).min(1.0)
        });
        let mut covered = [0.0; STATES];
        covered[0] = 1.0;
        let probes = probes.min(MAX_PROBES) as usize;
        Coverage { covered, hit, probes }
    }

    pub(crate) fn throw(&mut self) {
        let mut below = self.covered[0];
        let states = self.covered[1..].iter_mut().zip(&self.hit[1..]);
        for (covered, hit) in states.take(self.probes) {
            let here = *covered;
            // G_{j-1} >= G_j, so both terms are positive.
            *covered = here + hit * (below - here);
            below = here;
        }
    }

    /// E[(X/bits)^k] after the throws so far; `distinct` has the same k.
    #[inline(never)]
    pub(crate) fn moment(&self, distinct: &Distinct) -> f64 {
        // Rounding may put the sum above 1.
        dot(&distinct.chance[..=distinct.probes], &self.covered).min(1.0)
    }
}

/// Chances that k uniform probes fall on j distinct cells.
pub(crate) struct Distinct {
    chance: [f64; STATES],
    probes: usize,
}

impl Distinct {
    pub(crate) fn new(bits: u32, probes: u32) -> Self {
        let mut chance = [0.0; STATES];
        chance[0] = 1.0;
        let bits = f64::from(bits.max(1));
        let probes = probes.min(MAX_PROBES) as usize;
        for k in 1..=probes {
            for j in (1..=k).rev() {
                let known = j as f64 / bits;
                let fresh = ((bits - (j - 1) as f64) / bits).max(0.0);
                chance[j] = chance[j] * known + chance[j - 1] * fresh;
            }
            chance[0] = 0.0;
        }
        Distinct { chance, probes }
    }
}

/// E[(X/bits)^probes] with 0, 1, .. `items` keys in the block.
pub(crate) fn by_items(bits: u32, probes: u32, items: usize) -> Vec<f64> {
    let distinct = Distinct::new(bits, probes);
    let mut coverage = Coverage::new(bits, probes);
    let mut out = Vec::with_capacity(items + 1);
    out.push(coverage.moment(&distinct));
    for _ in 0..items {
        for _ in 0..probes {
            coverage.throw();
        }
        out.push(coverage.moment(&distinct));
    }
    out
}

/// The chance that k given cells are all set with 0, 1, .. `items` keys in
/// the block, each of k distinct cells.
///
/// The recurrence of [`Coverage`], one key per step: a key covers l of j
/// cells with hypergeometric probability.
pub(crate) fn by_items_distinct(
    bits: u32,
    probes: u32,
    items: usize,
) -> Vec<f64> {
    let k = probes.min(MAX_PROBES).min(bits) as usize;
    // covers[j][l]: a key covers l of j cells; its k cells are drawn one by
    // one.
    let covers: Vec<[f64; STATES]> = (0..=k)
        .map(|j| {
            let mut hit = [0.0; STATES];
            hit[0] = 1.0;
            for drawn in 0..k {
                let left = f64::from(bits) - drawn as f64;
                for l in (0..=j.min(drawn + 1)).rev() {
                    let wanted = (j - l) as f64;
                    let missed = ((left - wanted) / left).max(0.0);
                    let found = match l.checked_sub(1) {
                        Some(less) => hit[less] * (wanted + 1.0) / left,
                        None => 0.0,
                    };
                    hit[l] = hit[l] * missed + found;
                }
            }
            hit
        })
        .collect();
    let mut covered = [0.0; STATES];
    covered[0] = 1.0;
    let mut out = Vec::with_capacity(items + 1);
    out.push(covered[k]);
    for _ in 0..items {
        for j in (0..=k).rev() {
            let covers = covers[j][..=j].iter().enumerate();
            covered[j] = covers.map(|(l, c)| c * covered[j - l]).sum();
        }
        out.push(covered[k].min(1.0));
    }
    out
}

/// E[(X/bits)^k] after 0, 1, .. `throws` throws, for two values of k.
pub(crate) fn by_throws(
    bits: u32,
    probes: [u32; 2],
    throws: usize,
) -> Vec<[f64; 2]> {
    let distinct = probes.map(|k| Distinct::new(bits, k));
    let mut coverage = Coverage::new(bits, probes[0].max(probes[1]));
    let mut out = Vec::with_capacity(throws + 1);
    for _ in 0..=throws {
        out.push([0, 1].map(|i: usize| coverage.moment(&distinct[i])));
        coverage.throw();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E[(X/bits)^probes] by the Markov chain of X, one state per cell.
    fn brute_force(bits: usize, probes: i32, throws: usize) -> f64 {
        let mut mass = alloc::vec![0.0; bits + 1];
        mass[0] = 1.0;
        for _ in 0..throws {
            for x in (0..=bits).rev() {
                let from_below = if x == 0 {
                    0.0
                } else {
                    mass[x - 1] * (bits - x + 1) as f64 / bits as f64
                };
                mass[x] = mass[x] * x as f64 / bits as f64 + from_below;
            }
        }
        mass.iter()
            .enumerate()
            .map(|(x, m)| {
                m * libm::pow(x as f64 / bits as f64, f64::from(probes))
            })
            .sum()
    }

    #[test]
    fn agrees_with_the_markov_chain_of_set_cells() {
        for (bits, probes, items) in
            [(64, 5, 9), (100, 12, 3), (512, 8, 40), (28, 32, 2), (64, 1, 1)]
        {
            let fast = by_items(bits, probes, items);
            for (i, value) in fast.iter().enumerate() {
                let slow = brute_force(
                    bits as usize,
                    probes as i32,
                    i * probes as usize,
                );
                assert!(
                    (value - slow).abs() <= 1e-12 * slow,
                    "{bits} {probes} {i}: {value} {slow}"
                );
            }
        }
    }

    #[test]
    fn throws_and_items_agree() {
        let throws = by_throws(256, [6, 5], 60);
        let items = by_items(256, 6, 10);
        assert_eq!(throws[60][0], items[10]);
        assert_eq!(throws.len(), 61);
    }
}

//! Poisson arrivals at a block, with relative accuracy in the tails.
//!
//! Tail and excess are summed from the far end, so every term is positive.
//! The incomplete gamma functions of the paper's (3) are equal, but cancel.

use alloc::vec::Vec;

use crate::load::Load;

/// Arrivals N with a given mean.
pub(crate) struct Poisson {
    mean: f64,
    chance: Vec<f64>,
    /// P(N >= k).
    tail: Vec<f64>,
    /// E(N-k)^+.
    excess: Vec<f64>,
}

impl Poisson {
    pub(crate) fn new(mean: f64) -> Self {
        let chance = Load::poisson_from_zero(mean).dense();
        let (tail, excess) = sums_above(&chance);
        Poisson { mean, chance, tail, excess }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn chances(&self) -> &[f64] {
        &self.chance
    }

    /// P(N >= 0), P(N >= 1), ...
    pub(crate) fn tails(&self) -> &[f64] {
        &self.tail
    }

    /// P(N = i), P(N = i + 1), ...
    pub(crate) fn from(&self, i: usize) -> &[f64] {
        self.chance.get(i..).unwrap_or_default()
    }

    pub(crate) fn chance(&self, i: usize) -> f64 {
        self.chance.get(i).copied().unwrap_or(0.0)
    }

    pub(crate) fn at_least(&self, k: usize) -> f64 {
        self.tail.get(k).copied().unwrap_or(0.0)
    }

    /// P(N < k).
    pub(crate) fn below(&self, k: usize) -> f64 {
        self.chance.iter().take(k).sum()
    }

    pub(crate) fn excess(&self, k: usize) -> f64 {
        self.excess.get(k).copied().unwrap_or(0.0)
    }

    /// The largest k with E(N-k)^+ > `removed`, or 0.
    pub(crate) fn cut(&self, removed: f64) -> usize {
        self.excess.partition_point(|e| *e > removed).saturating_sub(1)
    }
}

/// P(N >= k) and E(N-k)^+ for k = 0, 1, ..., from the chances of N.
pub(crate) fn sums_above(chances: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut tails = alloc::vec![0.0; chances.len()];
    let mut excesses = alloc::vec![0.0; chances.len()];
    let (mut above, mut more) = (0.0, 0.0);
    for i in (0..chances.len()).rev() {
        more += above;
        above += chances[i];
        tails[i] = above;
        excesses[i] = more;
    }
    (tails, excesses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_and_excesses_are_consistent() {
        for mean in [0.0, 0.01, 1.0, 9.6, 70.4, 2000.0] {
            let n = Poisson::new(mean);
            assert!((n.at_least(0) - 1.0).abs() < 1e-13);
            assert!((n.excess(0) - mean).abs() <= 1e-13 * mean);
            for k in 0..n.chances().len() {
                let direct = mean * n.at_least(k.saturating_sub(1))
                    - k as f64 * n.at_least(k);
                assert!((n.excess(k) - direct).abs() <= 1e-11 * (1.0 + mean));
                assert!((n.below(k) + n.at_least(k) - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn small_chances_have_relative_accuracy() {
        let n = Poisson::new(70.4);
        let expected = libm::exp(-70.4);
        assert!((n.chance(0) / expected - 1.0).abs() < 1e-13);
    }
}

//! Distributions of the number of keys in a block.
//!
//! Each distribution is a run of probabilities around its mode, computed from
//! the ratios of neighbours: no factorial, and no e^{-r} that underflows.

use alloc::vec::Vec;

use crate::dot::dot;

/// Relative cut of the upper tail. A load counts at most its chance times 1,
/// and no false-positive rate computed here is below 1e-50.
const UPPER_CUT: f64 = 1e-75;
/// Relative cut of the lower tail, larger because emptier blocks answer
/// "maybe" less often than those at the mode.
const LOWER_CUT: f64 = 1e-30;

/// Probabilities of `first`, `first + 1`, ...
pub(crate) struct Load {
    pub(crate) first: usize,
    pub(crate) chance: Vec<f64>,
}

impl Load {
    pub(crate) fn poisson(mean: f64) -> Self {
        Self::poisson_cut(mean, LOWER_CUT)
    }

    /// With the lower tail down to underflow, for sums over single loads.
    pub(crate) fn poisson_from_zero(mean: f64) -> Self {
        Self::poisson_cut(mean, f64::MIN_POSITIVE)
    }

    fn poisson_cut(mean: f64, cut: f64) -> Self {
        Self::around(
            mean as usize,
            cut,
            |i| mean / (i + 1) as f64,
            |i| i as f64 / mean,
        )
    }

    /// Load of one of `blocks` blocks with `items` keys in all, which may be
    /// a mean: in between, the law of the neighbouring whole numbers.
    pub(crate) fn binomial(items: f64, blocks: u64) -> Self {
        let n = items;
        if blocks <= 1 {
            let more = n - libm::floor(n);
            let mut chance = alloc::vec![1.0 - more];
            chance.extend((more > 0.0).then_some(more));
            return Load { first: n as usize, chance };
        }
        let odds = 1.0 / (blocks as f64 - 1.0);
        Self::around(
            ((n + 1.0) / blocks as f64).min(n) as usize,
            LOWER_CUT,
            |i| (n - i as f64) / (i + 1) as f64 * odds,
            |i| i as f64 / ((n + 1.0 - i as f64) * odds),
        )
    }

    /// `up(i)` is the ratio P(i + 1) / P(i), `down(i)` is P(i - 1) / P(i).
    fn around(
        mode: usize,
        cut: f64,
        up: impl Fn(usize) -> f64,
        down: impl Fn(usize) -> f64,
    ) -> Self {
        let mut chance = Vec::new();
        let (mut first, mut weight) = (mode, 1.0);
        while first > 0 {
            weight *= down(first);
            if weight < cut {
                break;
            }
            first -= 1;
            chance.push(weight);
        }
        chance.reverse();
        let (mut i, mut weight) = (mode, 1.0);
        // Past the mode the ratio is below one and decreases.
        while weight > UPPER_CUT {
            chance.push(weight);
            weight *= up(i);
            i += 1;
        }
        let total: f64 = chance.iter().sum();
        for weight in &mut chance {
            *weight /= total;
        }
        Load { first, chance }
    }

    /// The chances of 0, 1, ...
    pub(crate) fn dense(&self) -> Vec<f64> {
        let mut chances = alloc::vec![0.0; self.first];
        chances.extend_from_slice(&self.chance);
        chances
    }

    pub(crate) fn max(&self) -> usize {
        self.first + self.chance.len() - 1
    }

    /// The mean of `value[i]` over the loads i.
    pub(crate) fn expect(&self, value: &[f64]) -> f64 {
        dot(&self.chance, value.get(self.first..).unwrap_or_default())
    }
}

/// The means of `value` over the number of throws at a block, at which
/// `rate` keys of `step[0]` throws and `rate` keys of `step[1]` throws arrive
/// on average.
///
/// Panjer's recursion, n g(n) = rate (s1 g(n-s1) + s2 g(n-s2)), has only
/// positive terms. It starts from g(0) = 1 instead of e^{-2 rate} and is
/// scaled down when it grows, so that no load underflows.
pub(crate) fn mean_over_throws(
    rate: f64,
    step: [u32; 2],
    value: &[[f64; 2]],
) -> [f64; 2] {
    const LARGE: f64 = 1e200;
    let step = step.map(|s| s as usize);
    let mean = rate * (step[0] + step[1]) as f64;
    let mut recent = [0.0; 64];
    let (mut total, mut sum) = (0.0, [0.0; 2]);
    let mut quiet = 0;
    for (n, value) in value.iter().enumerate() {
        let mut g = 1.0;
        if n > 0 {
            g = 0.0;
            for s in step {
                if s > 0 && s <= n {
                    g += s as f64 * recent[(n - s) % 64];
                }
            }
            g *= rate / n as f64;
        }
        recent[n % 64] = g;
        total += g;
        sum[0] += g * value[0];
        sum[1] += g * value[1];
        if g > LARGE {
            for x in recent.iter_mut().chain(&mut sum) {
                *x /= LARGE;
            }
            total /= LARGE;
        }
        // After a whole step of negligible values all later ones are
        // negligible.
        quiet = if g < UPPER_CUT * total { quiet + 1 } else { 0 };
        if n as f64 > mean && quiet > step[0].max(step[1]) {
            break;
        }
    }
    sum.map(|s| s / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_sum_to_one_and_keep_their_mean() {
        for (load, mean) in [
            (Load::poisson(0.064), 0.064),
            (Load::poisson(51.2), 51.2),
            (Load::poisson(8192.0), 8192.0),
            (Load::binomial(1000.0, 10), 100.0),
            (Load::binomial(3.0, 1), 3.0),
            (Load::binomial(3.25, 1), 3.25),
            (Load::binomial(1000.5, 10), 100.05),
            (Load::binomial(0.0, 5), 0.0),
            (Load::binomial((1u64 << 40) as f64, 1 << 35), 32.0),
        ] {
            let values: Vec<f64> =
                (0..=load.max()).map(|i| i as f64).collect();
            let ones = alloc::vec![1.0; load.max() + 1];
            assert!((load.expect(&ones) - 1.0).abs() < 1e-12);
            assert!((load.expect(&values) - mean).abs() <= 1e-12 * mean);
        }
    }

    #[test]
    fn throws_agree_with_items_when_both_steps_are_equal() {
        for rate in [0.1, 20.0, 900.0] {
            let load = Load::poisson(2.0 * rate);
            let top = 3 * load.max();
            let throws: Vec<[f64; 2]> =
                (0..=top).map(|n| [n as f64, libm::sqrt(n as f64)]).collect();
            let [mean, root] = mean_over_throws(rate, [3, 3], &throws);
            let roots: Vec<f64> =
                (0..=load.max()).map(|i| libm::sqrt(3.0 * i as f64)).collect();
            assert!((mean - 6.0 * rate).abs() < 1e-11 * mean);
            assert!((root - load.expect(&roots)).abs() < 1e-11 * root);
        }
    }
}

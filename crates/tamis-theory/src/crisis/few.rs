//! Levels with few items, by convolution over groups of buckets.
//!
//! The items passed on by a items in b1 + b2 buckets are the sum of those
//! passed on by i items in the first b1 and by a - i items in the last b2, and
//! i is binomial. Doubling from one bucket gives any number of buckets. All
//! terms are positive, so every chance has relative accuracy, however small.
//! Contour integrals would take a hundred times as long: their integrands do
//! not decay, so they need whole circles.

use alloc::vec::Vec;

/// Items beyond the entries of a bucket that still count as few.
const MORE: usize = 50;

/// Most items for which [`laws`] is used, for buckets of `bucket` entries.
pub(super) fn most(bucket: u32) -> usize {
    bucket as usize + MORE
}

/// `laws[a][c]`: chance that a items in `buckets` buckets pass c on, for a
/// from 0 to `most`.
pub(super) fn laws(most: usize, buckets: u64, bucket: u32) -> Vec<Vec<f64>> {
    let one = Laws::one_bucket(most, bucket as usize);
    let mut power = one.clone();
    // Binary exponentiation, from the highest digit down.
    for digit in (0..buckets.ilog2()).rev() {
        power = power.join(&power);
        if buckets >> digit & 1 == 1 {
            power = power.join(&one);
        }
    }
    power.chances
}

#[derive(Clone)]
struct Laws {
    buckets: f64,
    /// `chances[a][c]`: a items pass c on.
    chances: Vec<Vec<f64>>,
}

impl Laws {
    fn one_bucket(most: usize, bucket: usize) -> Self {
        let chances = (0..=most).map(|items| {
            let mut law = alloc::vec![0.0; items.saturating_sub(bucket)];
            law.push(1.0);
            law
        });
        Laws { buckets: 1.0, chances: chances.collect() }
    }

    /// The distributions of the two groups of buckets together.
    fn join(&self, other: &Self) -> Self {
        let buckets = self.buckets + other.buckets;
        let here = self.buckets / buckets;
        let chances = (0..self.chances.len())
            .map(|items| {
                let most = self.chances[items].len().max(1);
                let mut law = alloc::vec![0.0; most];
                for (i, chance) in binomial(items, here).enumerate() {
                    let two = &other.chances[items - i];
                    add_sums(&mut law, chance, &self.chances[i], two);
                }
                law
            })
            .collect();
        Laws { buckets, chances }
    }
}

/// Adds the distribution of the sum of `one` and `two`, times `weight`.
fn add_sums(law: &mut [f64], weight: f64, one: &[f64], two: &[f64]) {
    for (c, p) in one.iter().enumerate() {
        if *p > 0.0 {
            for (sum, q) in law[c..].iter_mut().zip(two) {
                *sum += weight * p * q;
            }
        }
    }
}

/// The binomial distribution: chances that 0, 1, ... of n items are in a
/// `part` of the buckets.
fn binomial(n: usize, part: f64) -> impl Iterator<Item = f64> {
    let (log_in, log_out) = (libm::log(part), libm::log1p(-part));
    let all = libm::lgamma(n as f64 + 1.0);
    (0..=n).map(move |i| {
        let (inside, outside) = (i as f64, (n - i) as f64);
        let log_choose =
            all - libm::lgamma(inside + 1.0) - libm::lgamma(outside + 1.0);
        libm::exp(log_choose + inside * log_in + outside * log_out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_items_in_two_buckets() {
        // Two entries per bucket; divisions 5-0, 4-1 and 3-2.
        let law = &laws(5, 2, 2)[5];
        let expected = [0.0, 20.0 / 32.0, 10.0 / 32.0, 2.0 / 32.0];
        assert_eq!(law.len(), 4);
        for (got, want) in law.iter().zip(expected) {
            assert!((got - want).abs() < 1e-14, "{law:?}");
        }
    }

    #[test]
    fn chances_sum_to_one() {
        for (buckets, bucket) in [(1, 1), (3, 2), (1000, 8), (1 << 40, 1)] {
            for law in laws(40, buckets, bucket) {
                let total: f64 = law.iter().sum();
                assert!((total - 1.0).abs() < 1e-12, "{buckets}: {total}");
            }
        }
    }
}

//! Few items in a level: all ways in which they can divide.
//!
//! What a items in b1 + b2 buckets pass on is the sum of what the i of them
//! in the first b1 and the others in the last b2 pass on, and i is binomial.
//! From one bucket, doubling leads to any number. All terms are positive:
//! every chance keeps its digits, however small. Contour integrals would do
//! as well, at a hundred times the price: few items make large clumps, which
//! take whole circles.

use alloc::vec::Vec;

/// So many items more than a bucket takes are few.
const MORE: usize = 50;

/// The most items that are few, for buckets of h entries.
pub(super) fn most(bucket: u32) -> usize {
    bucket as usize + MORE
}

/// For 0, 1, ... up to `most` items in `buckets`, the chances that they pass
/// 0, 1, ... on.
pub(super) fn laws(most: usize, buckets: u64, bucket: u32) -> Vec<Vec<f64>> {
    let one = Laws::one_bucket(most, bucket as usize);
    let mut power = one.clone();
    // From the highest digit of the number down.
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
    /// By the number of items, then by what they pass on.
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

    /// Both groups of buckets together.
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

/// Adds the law of a sum, weighed.
fn add_sums(law: &mut [f64], weight: f64, one: &[f64], two: &[f64]) {
    for (c, p) in one.iter().enumerate() {
        if *p > 0.0 {
            for (sum, q) in law[c..].iter_mut().zip(two) {
                *sum += weight * p * q;
            }
        }
    }
}

/// The chances of 0, 1, ... of n items to be in a part of all.
fn binomial(n: usize, part: f64) -> impl Iterator<Item = f64> {
    let (log_in, log_out) = (libm::log(part), libm::log1p(-part));
    let all = libm::lgamma(n as f64 + 1.0);
    (0..=n).map(move |i| {
        let (inside, outside) = (i as f64, (n - i) as f64);
        let ways =
            all - libm::lgamma(inside + 1.0) - libm::lgamma(outside + 1.0);
        libm::exp(ways + inside * log_in + outside * log_out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Five items, two buckets of two: 5-0, 4-1 and 3-2.
        let law = &laws(5, 2, 2)[5];
        let expected = [0.0, 20.0 / 32.0, 10.0 / 32.0, 2.0 / 32.0];
        assert_eq!(law.len(), 4);
        for (got, want) in law.iter().zip(expected) {
            assert!((got - want).abs() < 1e-14, "{law:?}");
        }
    }

    #[test]
    fn chances_add_up() {
        for (buckets, bucket) in [(1, 1), (3, 2), (1000, 8), (1 << 40, 1)] {
            for law in laws(40, buckets, bucket) {
                let total: f64 = law.iter().sum();
                assert!((total - 1.0).abs() < 1e-12, "{buckets}: {total}");
            }
        }
    }
}

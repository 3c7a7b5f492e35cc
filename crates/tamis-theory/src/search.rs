//! The least memory and the best number of probes.
//!
//! For a fixed number of probes the false-positive rate falls as memory
//! grows, and Jensen's inequality gives a lower bound that costs one
//! exponential: filling every block to its average is the best any block
//! could do. The number of probes with the least bound is where a descent
//! to the best number begins.

use alloc::vec::Vec;

use crate::check::{MAX_BITS_PER_KEY, MIN_BITS_PER_KEY};
use crate::{Error, MAX_PROBES, Prediction, Result};

/// One family of filters.
pub(crate) trait Family {
    /// Fewest probes that make sense.
    const MIN_PROBES: u32 = 1;
    /// Table for one number of probes at any memory from
    /// `least_bits_per_key` up.
    type Table;
    /// Throws per key into distinct cells, the `k` of the averaged block.
    fn effective_probes(&self, probes: u32) -> f64;
    /// Prepares one number of probes.
    fn table(&self, probes: u32, least_bits_per_key: f64) -> Self::Table;
    /// The prediction, exact.
    fn predict(
        &self,
        table: &Self::Table,
        probes: u32,
        bits_per_key: f64,
    ) -> Prediction;
}

/// (1-e^{-k'/beta})^k, a lower bound on the false-positive rate.
fn least_fpr(effective: f64, probes: u32, bits_per_key: f64) -> f64 {
    let fill = -libm::expm1(-effective / bits_per_key);
    libm::pow(fill, f64::from(probes))
}

/// The inverse of [`least_fpr`] in `bits_per_key`.
fn least_bits(effective: f64, probes: u32, target: f64) -> f64 {
    let fill = libm::pow(target, 1.0 / f64::from(probes));
    effective / -libm::log1p(-fill)
}

/// The number of probes with the least bound.
fn most_promising(min: u32, bound: impl Fn(u32) -> f64) -> u32 {
    let all = (min..=MAX_PROBES).map(|probes| (bound(probes), probes));
    let least = all.min_by(|x, y| x.0.total_cmp(&y.0));
    least.map_or(min, |(_, probes)| probes)
}

/// The best number of probes.
pub(crate) fn best<F: Family>(family: &F, bits_per_key: f64) -> Prediction {
    let start = most_promising(F::MIN_PROBES, |probes| {
        least_fpr(family.effective_probes(probes), probes, bits_per_key)
    });
    best_near(family, bits_per_key, start)
}

/// The best number of probes, from a guess.
///
/// The rate has one valley over the probes, so that a descent finds it in
/// about eight predictions.
fn best_near<F: Family>(
    family: &F,
    bits_per_key: f64,
    start: u32,
) -> Prediction {
    let at = |probes| {
        let table = family.table(probes, bits_per_key);
        family.predict(&table, probes, bits_per_key)
    };
    let range = (F::MIN_PROBES, MAX_PROBES);
    at(lowest(start, range, 2, |probes| at(probes).fpr))
}

/// The smallest memory that reaches a rate with any number of probes.
///
/// Alternates between the memory for some probes and the best probes for
/// that memory. Both fall, and at the end no other number of probes reaches
/// the rate with as little.
pub(crate) fn for_fpr<F: Family>(
    family: &F,
    target: f64,
) -> Result<Prediction> {
    const ROUNDS: usize = 32;
    let least = |probes: u32| {
        least_bits(family.effective_probes(probes), probes, target)
    };
    // The bound is too low, by a tenth for blocks of 512 bits.
    let start = most_promising(F::MIN_PROBES, least);
    let guess = (1.1 * least(start)).clamp(MIN_BITS_PER_KEY, MAX_BITS_PER_KEY);
    let mut probes = best(family, guess).probes;
    let mut found: Option<Prediction> = None;
    for _ in 0..ROUNDS {
        let low = least(probes) * (1.0 - 1e-9);
        let low = low.clamp(MIN_BITS_PER_KEY, MAX_BITS_PER_KEY);
        let table = family.table(probes, low);
        let at = |bits| family.predict(&table, probes, bits);
        let limit = found.map_or(MAX_BITS_PER_KEY, |found| found.bits_per_key);
        let ceiling = at(limit);
        if ceiling.fpr <= target {
            found = Some(falling(at, low, ceiling, target));
        } else if found.is_none() && limit < MAX_BITS_PER_KEY {
            break;
        }
        let bits = found.map_or(MAX_BITS_PER_KEY, |found| found.bits_per_key);
        let better = best_near(family, bits, probes);
        if better.probes == probes || better.fpr > target {
            break;
        }
        probes = better.probes;
    }
    found.ok_or_else(|| {
        let best = best(family, MAX_BITS_PER_KEY);
        Error::Unreachable {
            target,
            best: best.fpr,
            bits_per_key: MAX_BITS_PER_KEY,
        }
    })
}

/// The smallest memory that reaches the target, for a filter without probes.
pub(crate) fn least_memory(
    at: impl Fn(f64) -> Prediction,
    target: f64,
) -> Result<Prediction> {
    let ceiling = at(MAX_BITS_PER_KEY);
    if ceiling.fpr > target {
        let (best, bits_per_key) = (ceiling.fpr, MAX_BITS_PER_KEY);
        return Err(Error::Unreachable { target, best, bits_per_key });
    }
    Ok(falling(at, MIN_BITS_PER_KEY, ceiling, target))
}

/// The smallest memory in `low..=high` that reaches the target, given that
/// `high` does. Illinois steps on the logarithms, where the curve is close
/// to straight; every step keeps the bracket.
fn falling(
    at: impl Fn(f64) -> Prediction,
    low: f64,
    high: Prediction,
    target: f64,
) -> Prediction {
    const ENOUGH: f64 = 1e-12;
    const STEPS: usize = 200;
    let goal = libm::log(target);
    let error = |p: &Prediction| libm::log(p.fpr.max(1e-300)) - goal;
    let start = at(low);
    if start.fpr <= target {
        return start;
    }
    let (mut a, mut error_a) = (libm::log(low), error(&start));
    let mut best = high;
    let (mut b, mut error_b) = (libm::log(high.bits_per_key), error(&high));
    // Which end moved last: an end that stays put is made to count less.
    let mut moved = 0;
    for step in 0..STEPS {
        if b - a <= ENOUGH {
            break;
        }
        // A plain bisection now and then bounds the number of steps.
        let x = if step % 8 == 7 || error_a <= error_b {
            0.5 * (a + b)
        } else {
            a + (b - a) * error_a / (error_a - error_b)
        };
        // Not `clamp`: its panic formats floats, 15 kB of every program that
        // builds a filter.
        let x = x.max(a + 0.4 * ENOUGH).min(b - 0.4 * ENOUGH);
        let here = at(libm::exp(x));
        if here.fpr <= target {
            if moved == 1 {
                error_a *= 0.5;
            }
            (b, error_b, best, moved) = (x, error(&here), here, 1);
        } else {
            if moved == -1 {
                error_b *= 0.5;
            }
            (a, error_a, moved) = (x, error(&here), -1);
        }
    }
    best
}

/// Expected number of distinct cells hit by `probes` throws.
pub(crate) fn distinct_cells(block_bits: u32, probes: u32) -> f64 {
    let bits = f64::from(block_bits);
    -bits * libm::expm1(f64::from(probes) * libm::log1p(-1.0 / bits))
}

/// A point must be lower by this much to be worth a step.
const EVEN: f64 = 1.0 - 1e-6;

/// Where `f` is least in `low..=high`, from `start` in strides that begin
/// with `stride`, grow while they succeed and shrink while they do not. `f`
/// is called once per point.
pub(crate) fn lowest(
    start: u32,
    (low, high): (u32, u32),
    stride: u32,
    mut f: impl FnMut(u32) -> f64,
) -> u32 {
    let mut values: Vec<(u32, f64)> = Vec::new();
    let mut at = |x: u32| -> f64 {
        if let Some((_, value)) = values.iter().find(|(y, _)| *y == x) {
            return *value;
        }
        let value = f(x);
        values.push((x, value));
        value
    };
    let mut x = start.clamp(low, high);
    let mut stride = stride;
    while stride > 0 {
        let up = x.saturating_add(stride).min(high);
        let down = x.saturating_sub(stride).max(low);
        let better = EVEN * at(x);
        if at(up) < better {
            (x, stride) = (up, 2 * stride);
        } else if at(down) < better {
            (x, stride) = (down, 2 * stride);
        } else {
            stride /= 2;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descent_finds_the_bottom_of_a_valley() {
        for bottom in [0u32, 1, 7, 99, 100] {
            for (start, stride) in [(0, 1), (50, 8), (100, 2)] {
                let mut calls = 0;
                let found = lowest(start, (0, 100), stride, |x: u32| {
                    calls += 1;
                    1.0 + f64::from(x.abs_diff(bottom))
                });
                assert_eq!(found, bottom);
                assert!(calls < 24, "{calls}");
            }
        }
    }
}

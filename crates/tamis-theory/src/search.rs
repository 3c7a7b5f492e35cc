//! The least memory and the best number of probes.
//!
//! For a fixed number of probes the false-positive rate falls as memory
//! grows, and Jensen's inequality gives a lower bound that costs one
//! exponential: filling every block to its average is the best any block
//! could do. The bound orders the candidates and discards most of them.

use crate::check::{MAX_BITS_PER_KEY, MIN_BITS_PER_KEY};
use crate::{Error, MAX_PROBES, Prediction, Result};

/// One family of filters.
pub(crate) trait Family {
    /// Fewest probes that make sense.
    const MIN_PROBES: u32 = 1;
    /// What it takes to evaluate one number of probes at any memory from
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

/// Candidate numbers of probes, the most promising first.
fn by_promise(min: u32, promise: impl Fn(u32) -> f64) -> [(f64, u32); 32] {
    let mut all = core::array::from_fn(|i| {
        let probes = i as u32 + 1;
        let promise =
            if probes < min { f64::INFINITY } else { promise(probes) };
        (promise, probes)
    });
    all.sort_by(|a: &(f64, u32), b| a.0.total_cmp(&b.0));
    all
}

pub(crate) fn best<F: Family>(family: &F, bits_per_key: f64) -> Prediction {
    let order = by_promise(F::MIN_PROBES, |probes| {
        least_fpr(family.effective_probes(probes), probes, bits_per_key)
    });
    let evaluate = |probes| {
        let table = family.table(probes, bits_per_key);
        family.predict(&table, probes, bits_per_key)
    };
    let mut best = evaluate(order[0].1);
    for (promise, probes) in &order[1..] {
        // Rounding may put the bound a hair above the truth.
        if *promise > best.fpr * (1.0 + 1e-9) {
            break;
        }
        let other = evaluate(*probes);
        if other.fpr < best.fpr {
            best = other;
        }
    }
    best
}

pub(crate) fn for_fpr<F: Family>(
    family: &F,
    target: f64,
) -> Result<Prediction> {
    let order = by_promise(F::MIN_PROBES, |probes| {
        least_bits(family.effective_probes(probes), probes, target)
    });
    let mut found: Option<Prediction> = None;
    let mut limit = MAX_BITS_PER_KEY;
    for (promise, probes) in order {
        if promise >= limit {
            break;
        }
        let low = (promise * (1.0 - 1e-9)).max(MIN_BITS_PER_KEY);
        let table = family.table(probes, low);
        let at = |bits| family.predict(&table, probes, bits);
        let ceiling = at(limit);
        if ceiling.fpr <= target {
            let better = falling(at, low, ceiling, target);
            limit = better.bits_per_key;
            found = Some(better);
        }
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
        let x = x.clamp(a + 0.4 * ENOUGH, b - 0.4 * ENOUGH);
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

const _: () = assert!(MAX_PROBES == 32, "by_promise lists 32 candidates");

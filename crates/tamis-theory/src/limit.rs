//! Memory that no filter of a family can do without.
//!
//! [`any`] bounds every filter, [`growing`] those that take keys one by one,
//! and [`line()`] those that keep each key in one block of a cache line. The
//! last two think of a filter as a multiset of fingerprints, written in as
//! few bits as its number of states allows; no code of that density is known
//! that a lookup could search quickly.
//!
//! ```
//! use tamis_theory::{limit, tinyset};
//!
//! let tiny = tinyset::for_fpr(tinyset::Block::new(512, 64), 0.001)?;
//! let line = limit::line_for_fpr(512, 0.001)?;
//! assert!(limit::any(0.001)? < limit::growing(0.001)?);
//! assert!(limit::growing(0.001)? < line.bits_per_key);
//! // The distance of a TinySet from the limit of its line.
//! assert!((tiny.bits_per_key - line.bits_per_key - 0.77).abs() < 0.01);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::check::{self, MIN_BITS_PER_KEY};
use crate::load::Load;
use crate::{Prediction, Result, search};

/// Bits per key of any set with false positives: log2(1/`fpr`).
///
/// Filters built once from all keys come within a few percent of it.
///
/// ```
/// let bits = tamis_theory::limit::any(1.0 / 1024.0)?;
/// assert!((bits - 10.0).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn any(fpr: f64) -> Result<f64> {
    Ok(-libm::log2(check::target(fpr)?))
}

/// Bits per key of a set of fingerprints that takes keys at any time:
/// h(`fpr`) / `fpr`, with the binary entropy h.
///
/// It approaches log2(1/`fpr`) + log2(e), the lower bound for every filter
/// that takes keys at any time; at 10 % it is 0.07 bits below that.
///
/// ```
/// let bits = tamis_theory::limit::growing(0.001)?;
/// assert!((bits - 11.408).abs() < 5e-4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn growing(fpr: f64) -> Result<f64> {
    let fpr = check::target(fpr)?;
    let others = libm::log1p(-fpr) * core::f64::consts::LOG2_E;
    Ok(-libm::log2(fpr) - (1.0 - fpr) / fpr * others)
}

/// Least rate of blocks that encode the multiset of their fingerprints
/// without a wasted bit.
///
/// Keys go to blocks at random, so that loads are Poisson. The X
/// fingerprints of a block are numbers below the largest U for which
/// U+X-1 over X, the number of multisets, is at most 2^`block_bits`.
///
/// ```
/// let p = tamis_theory::limit::line(512, 12.05)?;
/// assert!((p.fpr - 0.001).abs() < 2e-6);
/// assert_eq!((p.reads_hit, p.reads_miss), (1.0, 1.0));
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn line(block_bits: u32, bits_per_key: f64) -> Result<Prediction> {
    let bits = f64::from(check::block_bits(block_bits)?);
    let bits_per_key = check::bits_per_key(bits_per_key)?;
    let load = Load::poisson(bits / bits_per_key);
    Ok(prediction(bits_per_key, &load, &rates(bits, load.max())))
}

/// Least memory at which [`line()`] reaches a rate.
///
/// ```
/// let p = tamis_theory::limit::line_for_fpr(512, 0.01)?;
/// assert!((p.bits_per_key - 8.245).abs() < 5e-4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn line_for_fpr(block_bits: u32, fpr: f64) -> Result<Prediction> {
    let bits = f64::from(check::block_bits(block_bits)?);
    let target = check::target(fpr)?;
    let rates = rates(bits, Load::poisson(bits / MIN_BITS_PER_KEY).max());
    let at = |bits_per_key: f64| {
        let load = Load::poisson(bits / bits_per_key);
        prediction(bits_per_key, &load, &rates)
    };
    search::least_memory(at, target)
}

fn prediction(bits_per_key: f64, load: &Load, rates: &[f64]) -> Prediction {
    Prediction {
        bits_per_key,
        probes: 0,
        fpr: load.expect(rates).min(1.0),
        reads_hit: 1.0,
        reads_miss: 1.0,
    }
}

/// Rates of blocks with 0 to `most` keys.
fn rates(bits: f64, most: usize) -> Vec<f64> {
    (0..=most).map(|keys| rate(bits, keys)).collect()
}

/// Rate of a block with `keys` fingerprints: the chance that one of them is
/// the fingerprint looked up.
fn rate(bits: f64, keys: usize) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    let universe = libm::exp(log_universe(bits, keys));
    -libm::expm1(keys as f64 * libm::log1p(-1.0 / universe))
}

/// Largest logarithm that `exp` can invert; a fingerprint of 1000 bits has
/// no rate worth a sum.
const MOST: f64 = 700.0;

/// ln U, where the logarithm of the number of multisets equals `bits`.
///
/// It is convex in ln U, and U = X 2^(bits/X) is too large, so that Newton's
/// steps approach the root from above.
fn log_universe(bits: f64, keys: usize) -> f64 {
    const STEPS: usize = 60;
    let goal = bits * core::f64::consts::LN_2;
    let x = keys as f64;
    let mut log = (libm::log(x) + goal / x).min(MOST);
    for _ in 0..STEPS {
        let universe = libm::exp(log);
        let (count, slope) = log_multisets(universe, keys);
        let step = (count - goal) / slope;
        // Not positive at the root, and where U is above `MOST`.
        if step < 1e-14 * log {
            break;
        }
        log -= step;
    }
    log
}

/// Logarithm of U+X-1 over X, and its derivative by ln U.
fn log_multisets(universe: f64, keys: usize) -> (f64, f64) {
    /// Factors are multiplied up to here: one logarithm for many.
    const LARGE: f64 = 1e290;
    let (mut sum, mut product, mut slope) = (0.0, 1.0, 0.0);
    for i in 0..keys {
        let i = i as f64;
        let factor = (universe + i) / (i + 1.0);
        if product > LARGE / factor {
            sum += libm::log(product);
            product = 1.0;
        }
        product *= factor;
        slope += universe / (universe + i);
    }
    (sum + libm::log(product), slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_multisets_is_the_number_of_states() {
        // 6 numbers below 5: 10 over 6 multisets.
        let (log, slope) = log_multisets(5.0, 6);
        assert!((log - libm::log(210.0)).abs() < 1e-12);
        let h = 1e-6;
        let (up, _) = log_multisets(5.0 * libm::exp(h), 6);
        let (down, _) = log_multisets(5.0 * libm::exp(-h), 6);
        assert!(((up - down) / (2.0 * h) - slope).abs() < 1e-6);
    }

    #[test]
    fn universes_fill_their_block() {
        for bits in [64.0, 512.0, 4096.0] {
            for keys in [1, 2, 7, 40, 300, 5000] {
                let log = log_universe(bits, keys);
                if log == MOST {
                    continue;
                }
                let (count, _) = log_multisets(libm::exp(log), keys);
                let goal = bits * core::f64::consts::LN_2;
                assert!((count / goal - 1.0).abs() < 1e-9, "{bits} {keys}");
            }
        }
        // One fingerprint has all bits.
        let one = log_universe(64.0, 1) / core::f64::consts::LN_2;
        assert!((one - 64.0).abs() < 1e-12);
    }
}

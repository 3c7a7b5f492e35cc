//! Lower bounds and estimates of the bits that record levels.

use core::f64::consts::LN_2;

use crate::crisis::entropy;
use crate::{Error, Result, check};

/// Bits of an exception: the hash of a key and its level in an exact list.
const EXCEPTION_BITS: f64 = 64.0;
/// `u64::MAX`. Without a limit, an infinity would be divided by another.
const MAX_ITEMS: f64 = u64::MAX as f64;

/// Bits per item of the filters B_1, B_2, ... of a stack of perfectly sized
/// filters that return the wrong level for at most `failures` items on
/// average.
///
/// With levels that pass L_j on and keep N_j the memory is the sum of
/// L_j log2(N_j/delta_j)/ln 2, least with delta_j proportional to L_j.
/// `passed_on` is L_0 to L_d, from [`crate::crisis::heuristic`] or
/// [`crate::crisis::Occupancy::passed_on`].
///
/// ```
/// use tamis_theory::{crisis, summary};
///
/// let pages = [184_541_621, 40_468_762];
/// let passed_on = crisis::heuristic(100_000_000, &pages, 4)?;
/// let bits = summary::level_bits(&passed_on, 1e-9)?;
/// assert!((bits - 0.04098381).abs() < 1e-8);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn level_bits(passed_on: &[f64], failures: f64) -> Result<f64> {
    check::in_range("failures", failures, f64::MIN_POSITIVE, f64::MAX)?;
    let items = check_passed_on(passed_on)?;
    Ok(stack_bits(passed_on, failures) / items)
}

/// Bits per item if failures are allowed and recorded in an exact list, at 64
/// bits each.
///
/// A filter that hits with chance f costs L log2(1/f)/ln 2 and 64 N f, in
/// sum least at f = L/(64 N ln^2 2).
///
/// ```
/// use tamis_theory::{crisis::Occupancy, summary};
///
/// let levels = [23_797, 4580, 1013, 332, 158, 80, 40];
/// let table = Occupancy::new(10_000, &levels, 1)?;
/// let never = summary::level_bits(table.passed_on(), 1e-9)?;
/// let recorded =
///     summary::level_bits_with_exceptions(table.passed_on())?;
/// assert!((never - 13.75).abs() < 0.01);
/// assert!((recorded - 2.73).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn level_bits_with_exceptions(passed_on: &[f64]) -> Result<f64> {
    let items = check_passed_on(passed_on)?;
    let levels = passed_on.windows(2).take(passed_on.len() - 2);
    let bits: f64 = levels
        .map(|pair| {
            let (below, here) = (pair[1], pair[0] - pair[1]);
            let best = below / (EXCEPTION_BITS * here * LN_2 * LN_2);
            let hit = best.min(1.0);
            if below > 0.0 && here > 0.0 {
                below * -libm::log(hit) / (LN_2 * LN_2)
                    + EXCEPTION_BITS * here * hit
            } else {
                0.0
            }
        })
        .sum();
    Ok(bits / items)
}

/// Lower bound on the bits per item of a summary with a false-positive rate
/// epsilon: log2(1/epsilon) plus the entropy of the level.
///
/// ```
/// use tamis_theory::{crisis::Occupancy, summary};
///
/// let levels = [23_797, 4580, 1013, 332, 158, 80, 40];
/// let table = Occupancy::new(10_000, &levels, 1)?;
/// let bits = summary::lower_bound(table.passed_on(), 0.01)?;
/// assert!((bits - 7.47).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn lower_bound(passed_on: &[f64], false_positive: f64) -> Result<f64> {
    check_passed_on(passed_on)?;
    let least = check::MIN_FPR;
    check::in_range("false_positive", false_positive, least, 1.0)?;
    Ok(entropy(passed_on) - libm::log2(false_positive))
}

/// The sum of L_j log2(N_j/delta_j)/ln 2 with the best delta_j.
pub(super) fn stack_bits(passed_on: &[f64], failures: f64) -> f64 {
    let end = passed_on.len().saturating_sub(1);
    let below = passed_on.get(1..end).unwrap_or_default();
    let total: f64 = below.iter().sum();
    let terms = passed_on.iter().zip(below).map(|(offered, passed)| {
        // delta_j = failures L_j / total.
        let ratio = (offered - passed) * total / (failures * passed);
        if *passed > 0.0 {
            passed * libm::log2(ratio).max(0.0) / LN_2
        } else {
            0.0
        }
    });
    terms.sum()
}

fn check_passed_on(passed_on: &[f64]) -> Result<f64> {
    let falls = passed_on.windows(2).all(|pair| pair[0] >= pair[1]);
    let countable =
        passed_on.iter().all(|items| (0.0..=MAX_ITEMS).contains(items));
    match passed_on {
        [items, _, ..] if *items > 0.0 && falls && countable => Ok(*items),
        _ => Err(Error::PassedOn { levels: passed_on.len() }),
    }
}

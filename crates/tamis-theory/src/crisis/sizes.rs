//! Division of buckets into levels.

use alloc::vec::Vec;

use super::{MAX_BUCKETS, Occupancy, check_table, insert_only};
use crate::{Error, Result, check};

/// First and last step of the search, in the logarithm of a size.
const FIRST_STEP: f64 = 0.5;
const LAST_STEP: f64 = 1e-4;
/// Ratio of successive levels in the initial division.
const START_RATIO: f64 = 0.3;

/// Divides `buckets` into `choices` levels such that a crisis is least
/// likely, by the heuristic.
///
/// The result minimises the heuristic to rounding. The heuristic gives good
/// sizes even where its estimate of the chance is poor; [`Occupancy`] computes
/// the exact chance. With few levels T_1 gets half of the buckets, with many
/// levels less.
///
/// ```
/// use tamis_theory::crisis::{Occupancy, least_crisis};
///
/// let levels = least_crisis(10_000, 30_000, 6, 1)?;
/// assert_eq!(levels.iter().sum::<u64>(), 30_000);
/// let crisis = Occupancy::new(10_000, &levels, 1)?.crisis();
/// assert!(crisis < 7e-13);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn least_crisis(
    items: u64,
    buckets: u64,
    choices: u32,
    bucket: u32,
) -> Result<Vec<u64>> {
    let choices = check::choices(choices, 1)?;
    let (least, most) = (f64::from(choices), MAX_BUCKETS as f64);
    check::in_range("buckets", buckets as f64, least, most)?;
    check_table(items, &[buckets], bucket)?;
    let division = Division { items: items as f64, bucket };
    Ok(division.least_crisis(buckets, choices))
}

/// The fewest buckets in `choices` levels that keep the chance of a crisis
/// within `budget`.
///
/// The heuristic finds the sizes, so the minimum is approximate; the chance
/// of a crisis is checked exactly.
///
/// ```
/// use tamis_theory::crisis::{Occupancy, fewest_buckets};
///
/// let levels = fewest_buckets(100_000, 3, 64, 1e-9)?;
/// let buckets: u64 = levels.iter().sum();
/// assert!(100_000.0 / (64.0 * buckets as f64) > 0.96);
/// assert!(Occupancy::new(100_000, &levels, 64)?.crisis() <= 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn fewest_buckets(
    items: u64,
    choices: u32,
    bucket: u32,
    budget: f64,
) -> Result<Vec<u64>> {
    let choices = check::choices(choices, 1)?;
    check_table(items, &[1], bucket)?;
    check::in_range("budget", budget, MIN_BUDGET, 1.0)?;
    let division = Division { items: items as f64, bucket };
    // Searches for the heuristic target whose exact chance is `budget`.
    let (mut holds, mut fails) = (None::<f64>, None::<f64>);
    let mut target = budget;
    let mut best: Option<(u64, Vec<u64>)> = None;
    let mut lowest = 1.0f64;
    for _ in 0..ROUNDS {
        let levels = division.fewest_buckets(choices, target);
        let crisis = Occupancy::new(items, &levels, bucket)?.crisis();
        lowest = lowest.min(crisis);
        if crisis <= budget {
            holds = Some(target);
            let total = levels.iter().sum();
            let fewer = best.as_ref().is_none_or(|(least, _)| total < *least);
            if fewer {
                best = Some((total, levels));
            }
        } else {
            fails = Some(target);
        }
        target = match (holds, fails) {
            (Some(holds), Some(fails)) => libm::sqrt(holds * fails),
            _ => {
                let ratio = budget / crisis.max(f64::MIN_POSITIVE);
                // Overshoots, to bracket the budget from both sides.
                let beyond = if ratio < 1.0 { 0.8 } else { 1.25 };
                (target * beyond * ratio.clamp(1e-6, 1e6)).min(1.0)
            }
        };
    }
    best.map(|(_, levels)| levels)
        .ok_or(Error::Budget { budget, best: lowest })
}

/// Number of exact chances computed to find the fewest buckets.
const ROUNDS: usize = 8;

/// Smallest budget accepted.
pub(crate) const MIN_BUDGET: f64 = 1e-20;

/// The table whose buckets are divided.
#[derive(Clone, Copy)]
pub(crate) struct Division {
    pub(crate) items: f64,
    pub(crate) bucket: u32,
}

impl Division {
    /// Items passed on by levels of these sizes, which need not be whole
    /// numbers.
    pub(crate) fn passed_on(self, sizes: &[f64], all: &mut Vec<f64>) -> f64 {
        all.clear();
        let mut left = self.items;
        all.push(left);
        for size in sizes {
            left *= insert_only(self.bucket, left / size);
            all.push(left);
        }
        left
    }

    /// The heuristic chance of a crisis.
    pub(crate) fn estimate(self, levels: &[u64]) -> f64 {
        let sizes: Vec<f64> = levels.iter().map(|m| *m as f64).collect();
        self.passed_on(&sizes, &mut Vec::new())
    }

    fn least_crisis(self, buckets: u64, choices: u32) -> Vec<u64> {
        let mut all = Vec::new();
        let sizes = divide(buckets as f64, choices, |sizes| {
            // Avoids ln(0).
            libm::log(self.passed_on(sizes, &mut all).max(1e-300))
        });
        whole(&sizes, buckets)
    }

    /// Bisection: more buckets make a crisis less likely.
    fn fewest_buckets(self, choices: u32, target: f64) -> Vec<u64> {
        let crisis =
            |buckets: u64| self.estimate(&self.least_crisis(buckets, choices));
        let full = self.items / f64::from(self.bucket);
        let mut low = (0.2 * full) as u64 + u64::from(choices);
        let mut high = 2 * low;
        while crisis(high) > target && high < MAX_BUCKETS / 2 {
            low = high;
            high *= 2;
        }
        // Accurate to one bucket in a million.
        while high - low > 1 + high / 1_000_000 {
            let middle = low + (high - low) / 2;
            if crisis(middle) > target {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.least_crisis(high, choices)
    }
}

/// Rounds sizes to whole numbers of buckets: all levels but the first are
/// rounded up, at the cost of the first. Rounding down would hurt: a last
/// level of 4 buckets instead of 4.5 makes a crisis far more likely.
pub(crate) fn whole(sizes: &[f64], buckets: u64) -> Vec<u64> {
    let mut levels: Vec<u64> =
        sizes.iter().map(|size| libm::ceil(*size) as u64).collect();
    let others: u64 = levels.iter().skip(1).sum();
    if let Some(first) = levels.first_mut() {
        *first = buckets.saturating_sub(others).max(1);
    }
    levels
}

/// The division of `total` into `choices` positive sizes that minimises
/// `cost`, by pattern search in the logarithms of all but the first.
///
/// The cost needs no derivative and may be infinite. The search starts from a
/// geometric division.
pub(crate) fn divide(
    total: f64,
    choices: u32,
    mut cost: impl FnMut(&[f64]) -> f64,
) -> Vec<f64> {
    let mut sizes = alloc::vec![0.0; choices as usize];
    let mut at = |logs: &[f64]| {
        if unfold(logs, total, &mut sizes) {
            cost(&sizes)
        } else {
            f64::INFINITY
        }
    };
    let mut here = start(total, choices);
    let mut least = at(&here);
    let mut step = FIRST_STEP;
    while step >= LAST_STEP {
        let before = here.clone();
        let found = explore(&mut here, least, step, &mut at);
        if found < least {
            least = found;
            // Repeats the successful step once (Hooke and Jeeves).
            let ahead: Vec<f64> =
                here.iter().zip(&before).map(|(h, b)| 2.0 * h - b).collect();
            let there = at(&ahead);
            if there < least {
                least = there;
                here = ahead;
            }
        } else {
            step *= 0.5;
        }
    }
    unfold(&here, total, &mut sizes);
    sizes
}

/// Tries one step up or down in each coordinate, kept if it lowers the cost.
fn explore(
    here: &mut [f64],
    mut least: f64,
    step: f64,
    at: &mut impl FnMut(&[f64]) -> f64,
) -> f64 {
    for i in 0..here.len() {
        let old = here[i];
        for by in [step, -step] {
            here[i] = old + by;
            let cost = at(here);
            if cost < least {
                least = cost;
                break;
            }
            here[i] = old;
        }
    }
    least
}

/// Logarithms of a geometric division, except the first level.
fn start(total: f64, choices: u32) -> Vec<f64> {
    let parts: Vec<f64> = (0..choices)
        .map(|level| libm::pow(START_RATIO, f64::from(level)))
        .collect();
    let sum: f64 = parts.iter().sum();
    parts[1..].iter().map(|part| libm::log(total * part / sum)).collect()
}

/// Computes sizes from logarithms; the first level gets the rest. Returns
/// whether all levels have at least one bucket.
fn unfold(logs: &[f64], total: f64, sizes: &mut [f64]) -> bool {
    let mut rest = total;
    for (size, log) in sizes.iter_mut().skip(1).zip(logs) {
        *size = libm::exp(*log);
        rest -= *size;
    }
    if let Some(first) = sizes.first_mut() {
        *first = rest;
    }
    rest >= 1.0 && sizes.iter().all(|size| *size >= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_minimum_with_a_closed_form() {
        // sum of w/m with sum m = 1000 is least at m in proportion to the
        // root of w.
        let weights = [64.0, 16.0, 4.0, 1.0];
        let sizes = divide(1000.0, 4, |sizes| {
            weights.iter().zip(sizes).map(|(w, m)| w / m).sum()
        });
        for (weight, size) in weights.into_iter().zip(sizes) {
            let expected = 1000.0 * libm::sqrt(weight) / 15.0;
            assert!((size / expected - 1.0).abs() < 1e-3, "{size}");
        }
    }
}

//! Mean-field estimates: every level has its average number of items.

use alloc::vec::Vec;

use super::check_table;
use crate::Result;
use crate::check::{self, MAX_CHOICES};

/// The largest number of entries of a bucket, h.
///
/// A page of 64 KiB has 1024 entries of 64 bytes.
///
/// ```
/// use tamis_theory::crisis::{MAX_BUCKET, overflow_fraction};
///
/// assert!(overflow_fraction(MAX_BUCKET, 900.0).is_ok());
/// assert!(overflow_fraction(MAX_BUCKET + 1, 900.0).is_err());
/// ```
pub const MAX_BUCKET: u32 = 1024;

/// The share of its arrivals that a level passes on, p_h, without removals:
/// buckets of `bucket` entries (h), at which `arrivals` items arrive on
/// average (lambda).
///
/// E(N-h)^+ / lambda, with N Poisson.
///
/// ```
/// use tamis_theory::crisis::overflow_fraction;
///
/// // With one entry it is 1-(1-e^-lambda)/lambda.
/// let one = 1.0 - (1.0 - (-0.5f64).exp()) / 0.5;
/// assert!((overflow_fraction(1, 0.5)? - one).abs() < 1e-15);
/// assert!((overflow_fraction(64, 60.0)? - 0.02532099).abs() < 1e-8);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn overflow_fraction(bucket: u32, arrivals: f64) -> Result<f64> {
    let (bucket, arrivals) = check_bucket(bucket, arrivals)?;
    Ok(insert_only(bucket, arrivals))
}

/// The share of its arrivals that a level passes on in the steady state of
/// insertions and removals: Erlang's loss formula B(lambda, h).
///
/// Here lambda is the number of items *offered* to the level at any time,
/// per bucket, including those it passed on. Each bucket is then a loss
/// system with h servers, which depends on the lifetimes of items only
/// through their mean.
///
/// ```
/// use tamis_theory::crisis::{erlang_b, overflow_fraction};
///
/// assert!((erlang_b(1, 0.5)? - 1.0 / 3.0).abs() < 1e-15);
/// // Removals more than double the items passed on.
/// assert!(erlang_b(64, 60.0)? > 2.0 * overflow_fraction(64, 60.0)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn erlang_b(bucket: u32, arrivals: f64) -> Result<f64> {
    let (bucket, arrivals) = check_bucket(bucket, arrivals)?;
    Ok(blocked(bucket, arrivals))
}

/// Items passed on by each level if every level has its average, from L_0 =
/// `items` to L_d, the paper's estimate of the chance of a crisis.
///
/// An estimate, not a bound: the variance of the levels makes a crisis
/// hundreds of times more likely when the last levels have less than a
/// hundred buckets. Compare with [`super::Occupancy::crisis`].
///
/// ```
/// use tamis_theory::crisis::{Occupancy, heuristic};
///
/// let levels = [23_797, 4580, 1013, 332, 158, 80, 40];
/// let passed_on = heuristic(10_000, &levels, 1)?;
/// assert_eq!((passed_on.len(), passed_on[0]), (8, 10_000.0));
/// let exact = Occupancy::new(10_000, &levels, 1)?.crisis();
/// assert!(exact > 170.0 * passed_on[7]);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn heuristic(items: u64, levels: &[u64], bucket: u32) -> Result<Vec<f64>> {
    check_table(items, levels, bucket)?;
    Ok(passed_on(items as f64, levels, |mean| insert_only(bucket, mean)))
}

/// The steady state of a table whose items are replaced, at constant number.
///
/// ```
/// let levels = [190_000, 65_000, 25_000, 15_000, 3000, 2000];
/// let churn = tamis_theory::crisis::churn(100_000, &levels, 1)?;
/// // The freshly built table has a crisis with probability about 1e-10.
/// assert!((churn.crises_per_turnover - 12.6496).abs() < 1e-4);
/// assert_eq!(churn.level_items().len(), 6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Churn {
    /// Items passed on by each level, from L_0 = all items.
    pub passed_on: Vec<f64>,
    /// Insertions that find no room during n replacements in a table of n
    /// items.
    pub crises_per_turnover: f64,
}

impl Churn {
    /// Items living in each level.
    ///
    /// ```
    /// let churn = tamis_theory::crisis::churn(1000, &[1900, 650], 1)?;
    /// assert!((churn.level_items()[0] - 655.172).abs() < 1e-3);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn level_items(&self) -> Vec<f64> {
        differences(&self.passed_on)
    }
}

/// Computes the steady state of a table in which every removal is followed
/// by the insertion of a new item.
///
/// Items that found no room count as offered: they are inserted, refused and
/// replaced like the others. New items fill the holes of the first level
/// while old items stay in lower levels, so a crisis is far more likely than
/// in a fresh table.
///
/// ```
/// use tamis_theory::crisis::{churn, heuristic};
///
/// let levels = [238_790, 45_590, 9890, 3140, 1480, 740, 370];
/// assert!(heuristic(100_000, &levels, 1)?[7] < 1e-10);
/// let used = churn(100_000, &levels, 1)?;
/// assert!((used.crises_per_turnover - 2159.37).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn churn(items: u64, levels: &[u64], bucket: u32) -> Result<Churn> {
    check_table(items, levels, bucket)?;
    let passed_on =
        passed_on(items as f64, levels, |mean| blocked(bucket, mean));
    let crises_per_turnover = passed_on.last().copied().unwrap_or(0.0);
    Ok(Churn { passed_on, crises_per_turnover })
}

/// Items that stay in each level.
pub(super) fn differences(passed_on: &[f64]) -> Vec<f64> {
    passed_on.windows(2).map(|pair| pair[0] - pair[1]).collect()
}

fn passed_on(
    items: f64,
    levels: &[u64],
    refused: impl Fn(f64) -> f64,
) -> Vec<f64> {
    let mut left = items;
    let mut all = alloc::vec![left];
    for &buckets in levels {
        left *= refused(left / buckets as f64);
        all.push(left);
    }
    all
}

fn check_bucket(bucket: u32, arrivals: f64) -> Result<(u32, f64)> {
    let most = super::MAX_ITEMS as f64 * f64::from(MAX_CHOICES);
    check::in_range("arrivals", arrivals, 0.0, most)?;
    let entries = f64::from(bucket);
    check::in_range("bucket", entries, 1.0, f64::from(MAX_BUCKET))?;
    Ok((bucket, arrivals))
}

/// p_h(lambda); the caller checks the ranges.
pub(crate) fn insert_only(bucket: u32, arrivals: f64) -> f64 {
    if arrivals <= 0.0 {
        return 0.0;
    }
    let log_chance =
        |i: f64| i * libm::log(arrivals) - arrivals - libm::lgamma(i + 1.0);
    let up = |i: f64| arrivals / (i + 1.0);
    excess(f64::from(bucket), arrivals, log_chance, up) / arrivals
}

/// E(N-h)^+ of a distribution with one mode near its `mean`; `up(i)` is the
/// ratio P(i + 1) / P(i).
///
/// Summed from h away from the mean: every term is positive, and none is a
/// difference of large numbers.
pub(super) fn excess(
    h: f64,
    mean: f64,
    log_chance: impl Fn(f64) -> f64,
    up: impl Fn(f64) -> f64,
) -> f64 {
    if mean <= h + 1.0 {
        let mut chance = libm::exp(log_chance(h + 1.0));
        let (mut excess, mut above) = (0.0, 1.0);
        loop {
            let term = above * chance;
            excess += term;
            if term <= 1e-18 * excess {
                return excess;
            }
            chance *= up(h + above);
            above += 1.0;
        }
    }
    let mut chance = libm::exp(log_chance(h));
    let (mut missing, mut i) = (0.0, h);
    while i > 0.0 && chance > 0.0 {
        i -= 1.0;
        chance /= up(i);
        missing += (h - i) * chance;
    }
    mean - h + missing
}

/// B(lambda, h) by the recursion over the number of entries.
pub(crate) fn blocked(bucket: u32, arrivals: f64) -> f64 {
    (1..=bucket).fold(1.0, |refused, entries| {
        let offered = arrivals * refused;
        offered / (f64::from(entries) + offered)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_above_and_below_the_mean_agree() {
        for bucket in [1, 8, 64, 1000] {
            let switch = f64::from(bucket) + 1.0;
            let [below, above] = [switch, switch * (1.0 + 1e-12)]
                .map(|mean| insert_only(bucket, mean));
            assert!((below / above - 1.0).abs() < 1e-9, "{below} {above}");
        }
    }

    #[test]
    fn an_empty_level_passes_nothing_on() {
        assert_eq!(insert_only(1, 0.0), 0.0);
        assert_eq!(blocked(8, 0.0), 0.0);
        assert!((insert_only(4, 1e9) - 1.0).abs() < 1e-8);
    }
}

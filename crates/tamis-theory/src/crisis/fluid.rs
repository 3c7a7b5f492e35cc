//! What a level passes on if every level has its average.

use alloc::vec::Vec;

use super::check_table;
use crate::Result;
use crate::check::{self, MAX_CHOICES};

/// The most entries a bucket may have, h.
///
/// A page of 64 KiB with entries of 64 bytes.
///
/// ```
/// use tamis_theory::crisis::{MAX_BUCKET, overflow_fraction};
///
/// assert!(overflow_fraction(MAX_BUCKET, 900.0).is_ok());
/// assert!(overflow_fraction(MAX_BUCKET + 1, 900.0).is_err());
/// ```
pub const MAX_BUCKET: u32 = 1024;

/// The share of its arrivals that a level passes on, p_h: buckets of
/// `bucket` entries (h), at which `arrivals` items arrive on average
/// (lambda), nothing ever leaves.
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

/// The share of its arrivals that a level passes on once as many items have
/// left it as came: Erlang's loss formula B(lambda, h).
///
/// Here lambda is the number of items *offered* to the level at any time,
/// those it passed on among them, per bucket. Each bucket is then a loss
/// system with h servers, and how long an item stays before it is removed
/// does not matter, only how long on average.
///
/// ```
/// use tamis_theory::crisis::{erlang_b, overflow_fraction};
///
/// assert!((erlang_b(1, 0.5)? - 1.0 / 3.0).abs() < 1e-15);
/// // Removals make a level pass on more than twice as many.
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
/// It is an estimate and no bound: it ignores that levels vary, which makes
/// a crisis hundreds of times as likely when the last levels have less than
/// a hundred buckets. Compare with [`super::Occupancy::crisis`].
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

/// A table whose items are replaced for ever, at constant number.
///
/// ```
/// let levels = [190_000, 65_000, 25_000, 15_000, 3000, 2000];
/// let churn = tamis_theory::crisis::churn(100_000, &levels, 1)?;
/// // Freshly built, it has a crisis once in ten thousand million times.
/// assert!((churn.crises_per_turnover - 12.6496).abs() < 1e-4);
/// assert_eq!(churn.level_items().len(), 6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Churn {
    /// Items passed on by each level in the long run, from L_0 = all.
    pub passed_on: Vec<f64>,
    /// Insertions that find no room while as many items are replaced as
    /// there are.
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

/// The steady state of a table in which every removal is followed by the
/// insertion of a new item.
///
/// Items that found no room count among those offered: they are inserted,
/// refused and replaced like the others. Holes in the first level are filled
/// by new items while old ones stay below, which is why the small chance of
/// a crisis that a fresh table has says nothing about a used one.
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

/// What stays in each level.
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

/// p_h(lambda) for arguments that were checked.
pub(crate) fn insert_only(bucket: u32, arrivals: f64) -> f64 {
    if arrivals <= 0.0 {
        return 0.0;
    }
    let log_chance =
        |i: f64| i * libm::log(arrivals) - arrivals - libm::lgamma(i + 1.0);
    let up = |i: f64| arrivals / (i + 1.0);
    excess(f64::from(bucket), arrivals, log_chance, up) / arrivals
}

/// E(N-h)^+ of a law with one mode near its `mean`; `up(i)` is the chance of
/// i + 1 over that of i.
///
/// Summed from h away from the mean, so that every term is positive and none
/// is a difference of large numbers.
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
    fn both_sums_agree_at_the_seam() {
        for bucket in [1, 8, 64, 1000] {
            let seam = f64::from(bucket) + 1.0;
            let [below, above] = [seam, seam * (1.0 + 1e-12)]
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

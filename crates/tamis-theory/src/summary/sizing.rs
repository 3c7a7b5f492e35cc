//! The smallest filters that meet given error rates.

use alloc::vec::Vec;

use super::filter::group_hit;
use super::{Filter, MAX_PROBES};
use crate::crisis::Occupancy;
use crate::{Result, check};

/// Probes tried on both sides of the estimated optimum.
const AROUND: u32 = 4;

/// Smallest share of the failures allotted to a level.
const LEAST_PART: f64 = 1e-4;

/// Requirements of a filter of cells, with average numbers of items.
pub(super) struct Target {
    /// Items in the filter.
    pub(super) items: f64,
    /// Largest false-positive rate.
    pub(super) rate: f64,
    /// Items below the first level.
    pub(super) below: f64,
    /// Items in the first level.
    pub(super) stay: f64,
    /// Most items of the first level with the wrong level.
    pub(super) failures: f64,
}

/// Cells and probes of the smallest filter, for average numbers of items.
pub(super) fn rough_cells(target: &Target) -> (f64, u32) {
    let share = (target.failures / target.stay.max(1e-300)).min(1.0);
    let cells = |probes: u32| {
        let rate = group(target.items, target.rate, probes);
        let fail = group(target.below, share, probes);
        rate.max(fail) * f64::from(probes)
    };
    let all = (1..=MAX_PROBES).map(|probes| (cells(probes), probes));
    all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 1))
}

/// The fewest cells, and their probes, for
/// [`type_filter`](super::type_filter) with at most `max_failures` items with
/// the wrong level on average (up to all items) and a false-positive rate of
/// at most `max_false_positive` (1e-15 to 0.5).
///
/// ```
/// use tamis_theory::crisis::Occupancy;
/// use tamis_theory::summary::{smallest_type_filter, type_filter};
///
/// let levels = [3800, 1300, 500, 300, 100, 40];
/// let table = Occupancy::new(2000, &levels, 1)?;
/// let (cells, probes) = smallest_type_filter(&table, 2.0, 0.01)?;
/// let enough = type_filter(&table, cells, probes)?;
/// assert!(enough.failure <= 2.0 && enough.false_positive <= 0.01);
/// // One cell less in each group exceeds a limit.
/// let fewer = type_filter(&table, cells - u64::from(probes), probes)?;
/// assert!(fewer.failure > 2.0 || fewer.false_positive > 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn smallest_type_filter(
    table: &Occupancy,
    max_failures: f64,
    max_false_positive: f64,
) -> Result<(u64, u32)> {
    check_goals(table, max_failures, max_false_positive)?;
    let (cells, probes) = cells(table, max_failures, max_false_positive);
    Filter::Bloom { cells, probes }.check()?;
    Ok((cells, probes))
}

/// The smallest filters for [`filter_stack`](super::filter_stack) with at most
/// `max_failures` items with the wrong level on average (up to all items) and
/// a false-positive rate of at most `max_false_positive` (1e-15 to 0.5).
///
/// The failures of a level are proportional to the items below it, the
/// optimum for many items. Levels above next to no items get a minimum share,
/// which costs nothing and limits the size of their filters.
///
/// ```
/// use tamis_theory::crisis::Occupancy;
/// use tamis_theory::summary::{filter_stack, smallest_filter_stack};
///
/// let levels = [3800, 1300, 500, 300, 100, 40];
/// let table = Occupancy::new(2000, &levels, 1)?;
/// let filters = smallest_filter_stack(&table, 2.0, 0.01)?;
/// let enough = filter_stack(&table, &filters)?;
/// assert!(enough.failure <= 2.0 && enough.false_positive <= 0.01);
/// // Nearly all of the failures allowed.
/// assert!(enough.failure > 1.9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn smallest_filter_stack(
    table: &Occupancy,
    max_failures: f64,
    max_false_positive: f64,
) -> Result<Vec<Filter>> {
    check_goals(table, max_failures, max_false_positive)?;
    let filters = stack(table, max_failures, max_false_positive);
    filters.into_iter().map(Filter::check).collect()
}

fn check_goals(table: &Occupancy, failures: f64, rate: f64) -> Result<()> {
    let (least, all) = (f64::MIN_POSITIVE, table.items() as f64);
    check::in_range("max_failures", failures, least, all)?;
    check::in_range("max_false_positive", rate, check::MIN_FPR, 0.5)?;
    Ok(())
}

fn cells(table: &Occupancy, failures: f64, rate: f64) -> (u64, u32) {
    let levels = table.levels().len();
    let wrong = |group: f64, probes: u32| {
        let hit = |c: f64| group_hit(group, probes, c);
        let each = |level| table.stayed(level, hit);
        (0..levels - 1).filter_map(each).sum::<f64>()
    };
    let n = table.items() as f64;
    // Items below the last level are not in the table.
    let below = if levels > 1 { table.passed_on()[1] } else { 0.0 };
    let stay = n - below;
    let target = Target { items: n, rate, below, stay, failures };
    let (_, probes) = rough_cells(&target);
    around(probes, |probes| {
        let least = whole_group(n, rate, probes);
        smallest_group(least, |group| wrong(group, probes) <= failures)
    })
}

fn stack(table: &Occupancy, failures: f64, rate: f64) -> Vec<Filter> {
    let n = table.items() as f64;
    let all = (1..=MAX_PROBES).map(|probes| {
        (whole_group(n, rate, probes) * f64::from(probes), probes)
    });
    let (cells, probes) =
        all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 1));
    let mut filters =
        alloc::vec![Filter::Bloom { cells: cells as u64, probes }];
    let passed_on = table.passed_on();
    let below = &passed_on[1..passed_on.len() - 1];
    let total: f64 = below.iter().sum();
    // `total` may be 0: no item below the first level.
    let more = (LEAST_PART * total).max(f64::MIN_POSITIVE);
    let parts = total + more * below.len() as f64;
    for (level, passed) in below.iter().enumerate() {
        let share = failures * ((passed + more) / parts);
        let wrong = |group: f64, probes: u32| {
            let hit = |c: f64| group_hit(group, probes, c);
            table.stayed(level, hit).unwrap_or(0.0)
        };
        let stay = passed_on[level] - passed;
        let best = libm::log2((stay / share.max(1e-300)).max(2.0));
        let (cells, probes) = around(libm::round(best) as u32, |probes| {
            let near = group(*passed, (share / stay).min(1.0), probes);
            let least = libm::floor(0.5 * near).max(1.0);
            smallest_group(least, |group| wrong(group, probes) <= share)
        });
        filters.push(Filter::Bloom { cells, probes });
    }
    filters
}

/// The fewest cells for numbers of probes near `probes`.
fn around(probes: u32, group: impl Fn(u32) -> f64) -> (u64, u32) {
    let probes = probes.clamp(1, MAX_PROBES);
    let first = probes.saturating_sub(AROUND).max(1);
    let last = (probes + AROUND).min(MAX_PROBES);
    let all = (first..=last).map(|k| (group(k) * f64::from(k), k));
    let best = all.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or((1, 1), |(cells, k)| (cells as u64, k))
}

/// The smallest whole group from `least` on that is large enough, by growing
/// steps and bisection.
fn smallest_group(least: f64, enough: impl Fn(f64) -> bool) -> f64 {
    if enough(least) {
        return least;
    }
    let (mut low, mut high) = (least, 1.1 * least + 1.0);
    while !enough(libm::ceil(high)) && high < 1e18 {
        low = high;
        high *= 1.5;
    }
    let (mut low, mut high) = (libm::floor(low), libm::ceil(high));
    while high - low > 1.0 {
        let middle = libm::floor(0.5 * (low + high));
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Cells of a group, not whole, at which `items` items give `rate`.
fn group(items: f64, rate: f64, probes: u32) -> f64 {
    let fill = libm::pow(rate, 1.0 / f64::from(probes));
    if fill >= 1.0 {
        return 1.0;
    }
    -1.0 / libm::expm1(libm::log1p(-fill) / items.max(1e-9))
}

/// [`group`] rounded up, with a computed rate of at most `rate`.
fn whole_group(items: f64, rate: f64, probes: u32) -> f64 {
    let near = libm::ceil(group(items, rate, probes));
    if group_hit(near, probes, items) > rate { near + 1.0 } else { near }
}

#[cfg(test)]
mod tests {
    use super::super::{filter_stack, type_filter};
    use super::*;

    #[test]
    fn filters_of_degenerate_tables_meet_their_targets() {
        // One item; one level; levels without items; most items below.
        let cases: [(u64, &[u64]); 5] = [
            (1, &[2, 2]),
            (1, &[1]),
            (1000, &[2000]),
            (3, &[1 << 40, 9, 9]),
            (500, &[10, 2000, 300]),
        ];
        for (items, levels) in cases {
            let table = Occupancy::new(items, levels, 1).unwrap();
            for failures in [items as f64, 0.5, 1e-9, f64::MIN_POSITIVE] {
                for rate in [0.5, 0.01, check::MIN_FPR] {
                    let what = (levels, failures, rate);
                    let (cells, probes) =
                        smallest_type_filter(&table, failures, rate).unwrap();
                    let one = type_filter(&table, cells, probes).unwrap();
                    let filters =
                        smallest_filter_stack(&table, failures, rate).unwrap();
                    let all = filter_stack(&table, &filters).unwrap();
                    for found in [one, all] {
                        assert!(found.failure <= failures, "{what:?}");
                        assert!(found.false_positive <= rate, "{what:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn targets_out_of_range_are_errors() {
        let table = Occupancy::new(100, &[190, 65, 25], 1).unwrap();
        for (failures, rate) in [
            (0.0, 0.01),
            (-1.0, 0.01),
            (101.0, 0.01),
            (f64::NAN, 0.01),
            (1.0, 0.0),
            (1.0, 0.51),
            (1.0, f64::NAN),
        ] {
            assert!(smallest_type_filter(&table, failures, rate).is_err());
            assert!(smallest_filter_stack(&table, failures, rate).is_err());
        }
    }
}

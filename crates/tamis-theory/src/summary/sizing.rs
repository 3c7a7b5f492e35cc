//! Filters just large enough.

use alloc::vec::Vec;

use super::filter::group_hit;
use super::{Filter, MAX_PROBES};
use crate::crisis::Occupancy;
use crate::{Result, check};

/// Probes tried on both sides of the best for filters of any size.
const AROUND: u32 = 4;

/// The least part of all failures that a level gets.
const LEAST_PART: f64 = 1e-4;

/// What a filter of cells is to do, by the averages.
pub(super) struct Target {
    /// Items in the filter, and the most false positives.
    pub(super) items: f64,
    pub(super) rate: f64,
    /// Items below the first level, those in it, and how many of those may
    /// be named wrongly.
    pub(super) below: f64,
    pub(super) stay: f64,
    pub(super) failures: f64,
}

/// Cells and probes of the smallest filter by the averages.
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

/// Cells and probes for [`type_filter`](super::type_filter), as few cells as
/// will do: at most `max_failures` items are named wrongly on average (up to
/// all of them), and at most this share of absent keys is taken for present
/// ones (1e-15 to 0.5).
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
/// // One cell less in each group is too few.
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

/// Filters for [`filter_stack`](super::filter_stack), as small as will do: at
/// most `max_failures` items are named wrongly on average (up to all of
/// them), and at most this share of absent keys is taken for present ones
/// (1e-15 to 0.5).
///
/// Each level may fail in proportion to the items below it, which is best
/// where there are many; where there are next to none, a little more costs
/// nothing and keeps the filter within reason.
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
/// // Little of what is allowed is left.
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
    // Those below the last level are nowhere.
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
    // Not even one item may get below the first level.
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

/// The number of probes near `probes` with the fewest cells.
fn around(probes: u32, group: impl Fn(u32) -> f64) -> (u64, u32) {
    let probes = probes.clamp(1, MAX_PROBES);
    let first = probes.saturating_sub(AROUND).max(1);
    let last = (probes + AROUND).min(MAX_PROBES);
    let all = (first..=last).map(|k| (group(k) * f64::from(k), k));
    let best = all.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or((1, 1), |(cells, k)| (cells as u64, k))
}

/// The smallest group from `least` on that is large enough: doubled until
/// it is, then halved.
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

/// Cells of a group at which so many items lead to this rate, not whole.
fn group(items: f64, rate: f64, probes: u32) -> f64 {
    let fill = libm::pow(rate, 1.0 / f64::from(probes));
    if fill >= 1.0 {
        return 1.0;
    }
    -1.0 / libm::expm1(libm::log1p(-fill) / items.max(1e-9))
}

/// The same, whole and not above the rate for all rounding.
fn whole_group(items: f64, rate: f64, probes: u32) -> f64 {
    let near = libm::ceil(group(items, rate, probes));
    if group_hit(near, probes, items) > rate { near + 1.0 } else { near }
}

#[cfg(test)]
mod tests {
    use super::super::{filter_stack, type_filter};
    use super::*;

    #[test]
    fn awkward_tables_get_filters_that_keep_to_the_goals() {
        // One item, one level, levels without an item, most items below.
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
    fn impossible_goals_are_errors() {
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

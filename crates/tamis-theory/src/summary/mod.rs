//! Summaries of a multilevel table: the level of a key, or absence.
//!
//! A summary is stored apart from the table and read first, so that a lookup
//! reads one bucket instead of one in each level. It has two kinds of errors.
//! A *false positive* returns a level for an absent key, which costs a read.
//! A *failure* returns the wrong level for a present key. The three kinds of
//! summaries are those of Kirsch and Mitzenmacher, *Simple Summaries for
//! Hashing with Multiple Choices*:
//!
//! * [`interpolation`]: a sorted list of hashed strings, each with its level
//!   (IS in the paper);
//! * [`type_filter`]: cells that store the highest level hashed to them; the
//!   result is the lowest of k cells (SF);
//! * [`filter_stack`]: Bloom filters B_0 of all items, and B_j of those below
//!   level j; the first filter without the key gives the level (MBF).
//!
//! `failure` is the mean number of items with a failure, an upper bound on
//! the chance of any failure and close to it while small. It is E(N_j f(L_j))
//! summed over the levels, exact for filters whose k probes go to k groups of
//! cells.
//!
//! ```
//! use tamis_theory::crisis::Occupancy;
//! use tamis_theory::summary::{self, Filter};
//!
//! let levels = [3800, 1300, 500, 300, 100, 40];
//! let table = Occupancy::new(2000, &levels, 1)?;
//! let cells = summary::type_filter(&table, 20_000, 8)?;
//! let stack = [(16_000, 5), (9996, 12), (1992, 12), (300, 12), (100, 10),
//!     (40, 8)];
//! let stack = stack.map(|(cells, probes)| Filter::Bloom { cells, probes });
//! let stack = summary::filter_stack(&table, &stack)?;
//! // Half the memory, but twenty times the failures.
//! assert!(stack.bits_per_item < 0.6 * cells.bits_per_item);
//! assert!(stack.failure > 20.0 * cells.failure);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

mod bits;
mod filter;
mod optimise;
mod sizing;

use alloc::vec::Vec;

use crate::crisis::{self, Occupancy};
use crate::{Error, Result, check};

pub use bits::{level_bits, level_bits_with_exceptions, lower_bound};
pub use filter::Filter;
pub use optimise::{
    Designs, Goal, InterpolationDesign, StackDesign, TypeFilterDesign,
    optimise,
};
pub use sizing::{smallest_filter_stack, smallest_type_filter};

/// The most probes of a filter in a summary.
///
/// More than the [`crate::MAX_PROBES`] of a membership filter: failures must
/// be much rarer than false positives.
///
/// ```
/// assert_eq!(tamis_theory::summary::MAX_PROBES, 64);
/// ```
pub const MAX_PROBES: u32 = 64;

/// The longest strings of [`interpolation`].
///
/// ```
/// assert_eq!(tamis_theory::summary::MAX_STRING_BITS, 128);
/// ```
pub const MAX_STRING_BITS: u32 = 128;

/// Predicted memory and error rates of a summary.
///
/// ```
/// use tamis_theory::{crisis::Occupancy, summary};
///
/// let table = Occupancy::new(10_000, &[20_000, 6000, 3000, 1000], 1)?;
/// let p = summary::interpolation(&table, 61)?;
/// assert_eq!(p.bits_per_item, 63.0);
/// assert!((p.failure - 2.168188e-11).abs() < 1e-16);
/// assert!((p.false_positive - 4.336809e-15).abs() < 1e-20);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Memory per item, all parts included.
    pub bits_per_item: f64,
    /// Chance that the summary returns a level for an absent key.
    pub false_positive: f64,
    /// Mean number of items with the wrong level, an upper bound on the
    /// chance of any.
    pub failure: f64,
    /// `failure` by the level of the items, without the last level, which
    /// has no failures. Empty for strings, where all levels are equal.
    pub failure_by_level: Vec<f64>,
}

/// Predicts a sorted list of strings of `bits` bits (b), each with its level.
///
/// It fails if two strings are equal: 1-prod(1-i/2^b). The level takes
/// log2(d) bits, rounded up; absence takes none.
///
/// ```
/// use tamis_theory::{crisis::Occupancy, summary};
///
/// let table = Occupancy::new(10_000, &[24_300, 4460, 870, 218], 1)?;
/// let p = summary::interpolation(&table, 45)?;
/// assert!((p.failure - 1.420942e-6).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn interpolation(table: &Occupancy, bits: u32) -> Result<Prediction> {
    let most = f64::from(MAX_STRING_BITS);
    check::in_range("bits", f64::from(bits), 1.0, most)?;
    let n = table.items() as f64;
    let strings = libm::exp2(f64::from(bits));
    let bits_per_item = f64::from(bits + level_width(table.levels().len()));
    Ok(Prediction {
        bits_per_item,
        false_positive: filter::list_hit(n, bits),
        failure: filter::some_equal(n, strings),
        failure_by_level: Vec::new(),
    })
}

/// Predicts `cells` cells in `probes` groups, each with the highest level
/// hashed to it.
///
/// The remainder of `cells / probes` is unused. A cell has one of d + 1
/// values, and [`cells_per_word`] of them share 64 bits.
///
/// ```
/// use tamis_theory::{crisis::Occupancy, summary};
///
/// let levels = [3800, 1300, 500, 300, 100, 40];
/// let table = Occupancy::new(2000, &levels, 1)?;
/// let p = summary::type_filter(&table, 20_000, 8)?;
/// assert!((p.false_positive - 0.008464309).abs() < 1e-9);
/// assert!((p.failure - 7.936776e-4).abs() < 1e-10);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn type_filter(
    table: &Occupancy,
    cells: u64,
    probes: u32,
) -> Result<Prediction> {
    let filter = Filter::Bloom { cells, probes }.check()?;
    let levels = table.levels().len();
    let failure_by_level: Vec<f64> = (0..levels - 1)
        .filter_map(|level| table.stayed(level, |c| filter.hit(c)))
        .collect();
    let n = table.items() as f64;
    Ok(Prediction {
        bits_per_item: cells as f64 * bits_per_cell(levels) / n,
        false_positive: filter.hit(n),
        failure: failure_by_level.iter().sum(),
        failure_by_level,
    })
}

/// Predicts filters B_0, B_1, ..., one for each level: B_0 holds all items,
/// B_j the items below level j.
///
/// B_0 determines the false positives, the others the failures: an item of
/// level j fails if B_j has a false positive for it. The memory of a hash
/// list is that of its average number of items.
///
/// ```
/// use tamis_theory::crisis::Occupancy;
/// use tamis_theory::summary::{Filter, filter_stack};
///
/// let table = Occupancy::new(1000, &[1900, 650, 250], 1)?;
/// let filters = [
///     Filter::Bloom { cells: 9600, probes: 7 },
///     Filter::Bloom { cells: 12_000, probes: 40 },
///     Filter::HashList { bits: 48 },
/// ];
/// let p = filter_stack(&table, &filters)?;
/// assert!((p.false_positive - 0.0099973).abs() < 1e-7);
/// assert!(p.failure < 1e-8);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn filter_stack(
    table: &Occupancy,
    filters: &[Filter],
) -> Result<Prediction> {
    check_stack(filters, table.levels().len())?;
    let passed_on = table.passed_on();
    let mut bits = 0.0;
    for (filter, items) in filters.iter().zip(passed_on) {
        bits += filter.bits(*items);
    }
    let failure_by_level: Vec<f64> = filters[1..]
        .iter()
        .enumerate()
        .filter_map(|(j, filter)| table.stayed(j, |c| filter.hit(c)))
        .collect();
    let n = table.items() as f64;
    Ok(Prediction {
        bits_per_item: bits / n,
        false_positive: filters[0].hit(n),
        failure: failure_by_level.iter().sum(),
        failure_by_level,
    })
}

/// Items with the wrong level at any time in a stack of counting filters, in
/// the steady state of replacements: the stack at the level items of
/// [`crisis::churn`].
///
/// ```
/// use tamis_theory::summary::{Filter, churned_stack};
///
/// let levels = [1900, 650, 250, 150, 50];
/// let all = Filter::Bloom { cells: 9600, probes: 7 };
/// let below = Filter::Bloom { cells: 3600, probes: 6 };
/// let list = Filter::HashList { bits: 64 };
/// let filters = [all, below, list, list, list];
/// let wrong = churned_stack(1000, &levels, 1, &filters)?;
/// assert!((wrong - 4.588).abs() < 1e-3);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn churned_stack(
    items: u64,
    levels: &[u64],
    bucket: u32,
    filters: &[Filter],
) -> Result<f64> {
    let churn = crisis::churn(items, levels, bucket)?;
    check_stack(filters, levels.len())?;
    let stay = churn.level_items();
    let below = filters[1..].iter().zip(&churn.passed_on[1..]);
    Ok(below.zip(stay).map(|((f, c), n)| n * f.hit(*c)).sum())
}

/// Number of cells of d + 1 values that share 64 bits, for d `levels`.
///
/// ```
/// use tamis_theory::summary::cells_per_word;
///
/// // Five levels and absence: 6^24 is below 2^64.
/// assert_eq!(cells_per_word(5), 24);
/// assert_eq!(cells_per_word(7), 21);
/// ```
pub fn cells_per_word(levels: usize) -> u32 {
    let values = levels as f64 + 1.0;
    // Integers: powers near 2^64 are not exact in `f64`.
    let mut product = 1u128;
    let mut cells = 0;
    while product * (values as u128) <= 1 << 64 {
        product *= values as u128;
        cells += 1;
        if cells == 64 {
            break;
        }
    }
    cells
}

/// Bits of a cell, 64 over [`cells_per_word`].
fn bits_per_cell(levels: usize) -> f64 {
    64.0 / f64::from(cells_per_word(levels))
}

/// Bits that encode one of `levels` levels.
fn level_width(levels: usize) -> u32 {
    usize::BITS - levels.saturating_sub(1).leading_zeros()
}

fn check_stack(filters: &[Filter], levels: usize) -> Result<()> {
    if filters.len() != levels {
        return Err(Error::Filters { filters: filters.len(), levels });
    }
    for filter in filters {
        filter.check()?;
    }
    Ok(())
}

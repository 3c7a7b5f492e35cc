//! Multilevel hash tables: occupancy of the levels, and the probability that
//! an item finds no room.
//!
//! A table has d levels (the paper's sub-tables T_1 to T_d) of shrinking
//! numbers of buckets. An item goes to the first level whose bucket for it
//! has room and stays there. If no level has room, the table has a *crisis*.
//! The paper is Kirsch and Mitzenmacher, *Simple Summaries for Hashing with
//! Multiple Choices*; the table is Broder and Karlin's.
//!
//! | here | in the paper | meaning |
//! |---|---|---|
//! | `items` | n | items in the table |
//! | `levels` | m_1, ..., m_d | buckets of each level |
//! | `choices` | d | number of levels |
//! | `bucket` | 1 | entries per bucket, h |
//! | `passed_on` | L_j | items that level j refused |
//! | `level_items` | N_j | items living in level j |
//!
//! [`Occupancy`] is exact, for buckets of any size. [`heuristic`] is the
//! paper's estimate, which replaces the items of each level by their average.
//! [`churn`] is the steady state under removals that free their slots,
//! [`lazy`] that under removals that keep them until the table is rebuilt.
//!
//! ```
//! use tamis_theory::crisis::Occupancy;
//!
//! let table = Occupancy::new(10_000, &[18_000, 7200, 3600, 1200], 1)?;
//! assert!((table.crisis() - 0.0939331).abs() < 1e-7);
//! // Three quarters of the items live in the first level.
//! assert!((table.level_items()[0] - 7672.6).abs() < 0.1);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

mod bucket;
mod complex;
mod contour;
mod few;
mod fluid;
mod last;
mod lazy;
mod occupancy;
mod pass;
mod sizes;

use alloc::vec::Vec;

use crate::check::{self, MAX_CHOICES};
use crate::load::Load;
use crate::{Error, Result};
use pass::Passed;

use fluid::insert_only;
pub use fluid::{
    Churn, MAX_BUCKET, churn, erlang_b, heuristic, overflow_fraction,
};
pub use lazy::{Lazy, lazy};
pub(crate) use sizes::{Division, MIN_BUDGET, divide, whole};
pub use sizes::{fewest_buckets, least_crisis};

/// The largest number of items of a table.
///
/// ```
/// use tamis_theory::crisis::{MAX_ITEMS, heuristic};
///
/// assert!(heuristic(MAX_ITEMS, &[2 * MAX_ITEMS], 1).is_ok());
/// assert!(heuristic(MAX_ITEMS + 1, &[2 * MAX_ITEMS], 1).is_err());
/// ```
pub const MAX_ITEMS: u64 = 10_000_000_000;

/// Most arrivals n at which levels of one-entry buckets are computed item by
/// item, exact to the last digit in time n^(3/2). Larger levels use contour
/// integrals.
const ITEM_BY_ITEM: usize = 20_000;

/// A freshly filled table: the exact distribution of the items that each
/// level passes on.
///
/// Buckets of one entry are computed item by item; larger buckets, and many
/// items, by numerical inversion of a generating function, to about nine
/// digits (`items` times the rounding error of a number). Hashing is
/// modelled as perfectly random.
///
/// ```
/// use tamis_theory::crisis::Occupancy;
///
/// // By hand: 3 items, 2 levels of 2 buckets.
/// let table = Occupancy::new(3, &[2, 2], 1)?;
/// assert_eq!(table.crisis(), 1.0 / 8.0);
/// assert_eq!(table.passed_on()[1], 1.25);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub struct Occupancy {
    items: u64,
    levels: Vec<u64>,
    bucket: u32,
    /// All levels but the last.
    passed: Vec<Passed>,
    passed_on: Vec<f64>,
    crisis: f64,
}

impl Occupancy {
    /// A table of `levels[j]` buckets in level j, with `bucket` entries each,
    /// filled with `items` items.
    ///
    /// ```
    /// use tamis_theory::crisis::Occupancy;
    ///
    /// let pages = Occupancy::new(20_000, &[1355, 250], 16)?;
    /// assert!((pages.crisis() - 0.01391606).abs() < 1e-8);
    /// assert!(Occupancy::new(20_000, &[], 16).is_err());
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn new(items: u64, levels: &[u64], bucket: u32) -> Result<Self> {
        check_table(items, levels, bucket)?;
        let mut arrivals =
            Load { first: items as usize, chance: alloc::vec![1.0] };
        let mut passed = Vec::new();
        let mut passed_on = alloc::vec![items as f64];
        let (last, others) = match levels.split_last() {
            Some((last, others)) => (*last, others),
            None => return Err(no_levels(levels)),
        };
        for &buckets in others {
            let level = pass(&arrivals, buckets, bucket);
            arrivals = level.law();
            passed_on.push(level.mean());
            passed.push(level);
        }
        let (crisis, left) = last::crisis(&arrivals, last, bucket);
        passed_on.push(left);
        let levels = levels.to_vec();
        Ok(Occupancy { items, levels, bucket, passed, passed_on, crisis })
    }

    /// The chance that some item finds no room.
    ///
    /// ```
    /// use tamis_theory::crisis::Occupancy;
    ///
    /// let crisis = |levels: &[u64]| -> tamis_theory::Result<f64> {
    ///     Ok(Occupancy::new(10_000, levels, 1)?.crisis())
    /// };
    /// // One level more, of the same total size.
    /// let four = crisis(&[18_000, 7200, 3600, 1200])?;
    /// let five = crisis(&[16_695, 7110, 3505, 1791, 899])?;
    /// assert!(four > 0.09 && five < 1e-5);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn crisis(&self) -> f64 {
        self.crisis
    }

    /// Mean number of items each level passes on, from L_0 = all items to
    /// L_d, those that find no room.
    ///
    /// ```
    /// use tamis_theory::crisis::Occupancy;
    ///
    /// let table = Occupancy::new(4, &[3, 2], 1)?;
    /// assert_eq!(table.passed_on()[0], 4.0);
    /// assert!((table.passed_on()[1] - 43.0 / 27.0).abs() < 1e-15);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn passed_on(&self) -> &[f64] {
        &self.passed_on
    }

    /// Mean number of items living in each level.
    ///
    /// ```
    /// let levels = [1900, 650, 250, 100];
    /// let table = tamis_theory::crisis::Occupancy::new(1000, &levels, 1)?;
    /// assert!((table.level_items()[0] - 777.678).abs() < 1e-3);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn level_items(&self) -> Vec<f64> {
        fluid::differences(&self.passed_on)
    }

    /// Entropy of the level of an item, in bits: a lower bound on the memory
    /// of a summary, per item.
    ///
    /// ```
    /// let levels = [23_797, 4580, 1013, 332, 158, 80, 40];
    /// let table = tamis_theory::crisis::Occupancy::new(10_000, &levels, 1)?;
    /// assert!((table.level_entropy() - 0.83).abs() < 0.01);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn level_entropy(&self) -> f64 {
        entropy(&self.passed_on)
    }

    /// Items in the table, n.
    ///
    /// ```
    /// let table = tamis_theory::crisis::Occupancy::new(3, &[2, 2], 1)?;
    /// assert_eq!(table.items(), 3);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Buckets of each level.
    ///
    /// ```
    /// let table = tamis_theory::crisis::Occupancy::new(3, &[2, 2], 1)?;
    /// assert_eq!(table.levels(), [2, 2]);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn levels(&self) -> &[u64] {
        &self.levels
    }

    /// Average buckets read by a lookup of a member without a summary: it
    /// reads level by level until it finds the item.
    ///
    /// ```
    /// let levels = [1900, 650, 250, 100];
    /// let table = tamis_theory::crisis::Occupancy::new(1000, &levels, 1)?;
    /// assert!((table.reads_hit() - 1.25849).abs() < 1e-5);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn reads_hit(&self) -> f64 {
        let offered = self.passed_on.len() - 1;
        self.passed_on[..offered].iter().sum::<f64>() / self.items as f64
    }

    /// Average buckets read by a lookup of a non-member without a summary: it
    /// ends at the first bucket with room, in a table without removals.
    ///
    /// A one-entry bucket is full with chance N_j/m_j; larger ones are
    /// modelled with Poisson arrivals.
    ///
    /// ```
    /// let levels = [1900, 650, 250, 100];
    /// let table = tamis_theory::crisis::Occupancy::new(1000, &levels, 1)?;
    /// assert!((table.reads_miss() - 1.54298).abs() < 1e-5);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn reads_miss(&self) -> f64 {
        let (mut reads, mut reaches) = (0.0, 1.0);
        let arrivals = self.passed_on.iter().zip(&self.levels);
        for ((offered, &buckets), stay) in arrivals.zip(self.level_items()) {
            reads += reaches;
            let buckets = buckets as f64;
            reaches *= if self.bucket == 1 {
                stay / buckets
            } else {
                full(self.bucket, offered / buckets)
            };
        }
        reads
    }

    /// E(N_j f(L_j)) for each level but the last, j = 1, ..., d-1.
    pub(crate) fn stayed(
        &self,
        level: usize,
        f: impl Fn(f64) -> f64,
    ) -> Option<f64> {
        self.passed.get(level).map(|passed| passed.stayed(f))
    }
}

impl core::fmt::Debug for Occupancy {
    /// Omits the distributions, which have thousands of numbers.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Occupancy")
            .field("items", &self.items)
            .field("levels", &self.levels)
            .field("bucket", &self.bucket)
            .field("passed_on", &self.passed_on)
            .field("crisis", &self.crisis)
            .finish_non_exhaustive()
    }
}

/// Entropy of the level of an item, from the items that levels pass on.
pub(crate) fn entropy(passed_on: &[f64]) -> f64 {
    let all = passed_on.first().copied().unwrap_or(0.0);
    let stay = fluid::differences(passed_on);
    let shares = stay.iter().map(|n| n / all).filter(|share| *share > 0.0);
    -shares.map(|share| share * libm::log2(share)).sum::<f64>()
}

fn pass(arrivals: &Load, buckets: u64, bucket: u32) -> Passed {
    if bucket == 1 && arrivals.max() <= ITEM_BY_ITEM {
        occupancy::pass(arrivals, buckets)
    } else {
        contour::pass(arrivals, buckets, bucket)
    }
}

/// P(N >= h) for Poisson arrivals.
fn full(bucket: u32, arrivals: f64) -> f64 {
    let load = Load::poisson(arrivals);
    let missing = (bucket as usize).saturating_sub(load.first);
    load.chance.iter().skip(missing).sum::<f64>().min(1.0)
}

pub(crate) fn check_table(
    items: u64,
    levels: &[u64],
    bucket: u32,
) -> Result<()> {
    check::in_range("items", items as f64, 1.0, MAX_ITEMS as f64)?;
    let entries = f64::from(bucket);
    check::in_range("bucket", entries, 1.0, f64::from(MAX_BUCKET))?;
    let sized = |buckets: &u64| (1..=MAX_BUCKETS).contains(buckets);
    let few = (1..=MAX_CHOICES as usize).contains(&levels.len());
    if few && levels.iter().all(sized) {
        Ok(())
    } else {
        Err(no_levels(levels))
    }
}

/// Most buckets of a level; the sum over 16 levels fits 64 bits.
const MAX_BUCKETS: u64 = 1 << 50;

fn no_levels(levels: &[u64]) -> Error {
    let smallest = levels.iter().copied().min().unwrap_or(0);
    let largest = levels.iter().copied().max().unwrap_or(0);
    Error::Levels { levels: levels.len(), smallest, largest }
}

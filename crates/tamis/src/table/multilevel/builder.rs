//! From what is wanted to a multilevel table.

use alloc::vec::Vec;

use tamis_theory::crisis;

use super::Multilevel;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::placement::MAX_CHOICES;
use crate::summary::{Plan, Shape, Unsummarised};

/// Builds a [`Multilevel`] table: say how many items, or the sizes of the
/// levels, and the rest if it matters.
///
/// Without more: buckets of one entry in six levels, as few as make a crisis
/// less likely than 10^-9. The sizes come from the theory.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(10_000).crisis_budget(1e-6);
/// let design = builder.design()?;
/// assert!(design.crisis <= 1e-6);
/// // Keys that come and go are another matter.
/// assert!(design.crises_per_turnover > 1.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MultilevelBuilder {
    items: Option<u64>,
    size: Size,
    choices: u32,
    bucket_entries: u32,
    stash: usize,
    hasher: KeyHasher,
}

#[derive(Debug, Clone)]
enum Size {
    Levels(Vec<u64>),
    BucketsPerItem(f64),
    CrisisBudget(f64),
}

/// What a table is built to do once it holds its design items.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let levels = [18_000, 7200, 3600, 1200];
/// let builder = Multilevel::builder().items(10_000).levels(&levels);
/// let design = builder.design()?;
/// assert!((design.crisis - 0.0939).abs() < 1e-4);
/// assert!((design.level_items[0] - 7672.6).abs() < 0.1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MultilevelDesign {
    /// The items, and the levels.
    pub shape: Shape,
    /// The chance that one of the items finds no room, if none is removed.
    pub crisis: f64,
    /// Keys in each level, on average (N_j), if none is removed.
    pub level_items: Vec<f64>,
    /// Keys that find no room while every key is replaced once, in the long
    /// run of keys that come and go. From about 1 on a table needs a stash,
    /// and rebuilding.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    ///
    /// let levels = [190_000, 65_000, 25_000, 15_000, 3000, 2000];
    /// let builder = Multilevel::builder().items(100_000).levels(&levels);
    /// let design = builder.design()?;
    /// assert!(design.crisis < 1e-10);
    /// assert!((design.crises_per_turnover - 12.65).abs() < 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub crises_per_turnover: f64,
}

impl MultilevelBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            size: Size::CrisisBudget(1e-9),
            choices: 6,
            bucket_entries: 1,
            stash: 0,
            hasher: KeyHasher::default(),
        }
    }

    /// How many keys will be in the table (n). If only
    /// [`levels`](Self::levels) are given: as many as they have entries.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let table = Multilevel::builder().items(50).build::<u64, ()>()?;
    /// assert_eq!(table.shape().items(), 50);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(self, items: u64) -> Self {
        Self { items: Some(items), ..self }
    }

    /// The buckets of each level (m_1, m_2, ..), 1 to 8 levels. Of this,
    /// [`buckets_per_item`](Self::buckets_per_item) and
    /// [`crisis_budget`](Self::crisis_budget) the last one said counts.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[20, 10, 5]);
    /// let table = builder.build::<u64, ()>()?;
    /// assert_eq!(table.shape().levels(), [20, 10, 5]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn levels(self, levels: &[u64]) -> Self {
        Self { size: Size::Levels(levels.to_vec()), ..self }
    }

    /// Buckets for each item, divided among the levels so that a crisis is
    /// least likely.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(1000).buckets_per_item(3.0);
    /// let table = builder.build::<u64, ()>()?;
    /// assert_eq!(table.shape().levels().iter().sum::<u64>(), 3000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn buckets_per_item(self, buckets: f64) -> Self {
        Self { size: Size::BucketsPerItem(buckets), ..self }
    }

    /// How likely a crisis may be if no key is removed; the fewest buckets
    /// are taken that achieve it. 10^-9 unless said otherwise.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(1000);
    /// let [more, less] = [1e-12, 1e-3].map(|budget| {
    ///     let shape = builder.clone().crisis_budget(budget).shape();
    ///     shape.map(|shape| shape.levels().iter().sum::<u64>())
    /// });
    /// assert!(more? > less?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn crisis_budget(self, budget: f64) -> Self {
        Self { size: Size::CrisisBudget(budget), ..self }
    }

    /// How many levels there are (d), 1 to 8; 6 unless said otherwise. Of no
    /// effect if the levels are given.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(1000).choices(4);
    /// assert_eq!(builder.shape()?.levels().len(), 4);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn choices(self, choices: u32) -> Self {
        Self { choices, ..self }
    }

    /// Entries in a bucket (h), 1 unless said otherwise.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[2]).bucket_entries(4);
    /// let mut table = builder.build()?;
    /// (0..4u8).for_each(|i| assert!(table.insert(i, ()).is_ok()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bucket_entries(self, bucket_entries: u32) -> Self {
        Self { bucket_entries, ..self }
    }

    /// How many keys that no level has room for are kept in a list beside
    /// the levels, which every lookup searches while there is one in it;
    /// none unless said otherwise.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[1]).stash(1).build()?;
    /// table.insert("apple", 1)?;
    /// table.insert("pear", 2)?;
    /// assert!(table.insert("plum", 3).is_err());
    /// assert_eq!(table.stats().stashed, 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn stash(self, entries: usize) -> Self {
        Self { stash: entries, ..self }
    }

    /// How keys are hashed; XXH3 with seed 0 unless said otherwise. Keys
    /// from strangers want [`KeyHasher::siphash`].
    ///
    /// ```
    /// use tamis::{KeyHasher, table::Multilevel};
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let mut table = builder.hasher(KeyHasher::siphash(7)).build()?;
    /// table.insert(1u64, 2u64)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// The items and the levels of the table.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if there are no such levels.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let shape = Multilevel::builder().items(1000).choices(5).shape()?;
    /// assert!(shape.levels().is_sorted_by(|a, b| a >= b));
    /// assert!(Multilevel::builder().shape().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn shape(&self) -> Result<Shape> {
        let h = self.bucket_entries;
        if let Size::Levels(levels) = &self.size {
            let entries = levels.iter().fold(0u64, |sum, &level| {
                sum.saturating_add(level.saturating_mul(h.into()))
            });
            return Shape::new(self.items.unwrap_or(entries), levels, h);
        }
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        let Some(items) = self.items else {
            return invalid("items", "say how many keys to expect");
        };
        if !(1..=MAX_CHOICES as u32).contains(&self.choices) {
            return invalid("choices", "expected 1 to 8");
        }
        let levels = match self.size {
            Size::BucketsPerItem(each) => {
                // Saturates where no memory would do.
                let buckets = libm::ceil(items as f64 * each) as u64;
                crisis::least_crisis(items, buckets, self.choices, h)?
            }
            Size::CrisisBudget(budget) => {
                crisis::fewest_buckets(items, self.choices, h, budget)?
            }
            Size::Levels(_) => Vec::new(),
        };
        Shape::new(items, &levels, h)
    }

    /// What the table would be, and what is to be expected of it.
    ///
    /// # Errors
    ///
    /// Those of [`shape`](Self::shape).
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(1000).levels(&[1900, 650]);
    /// assert!(builder.design()?.crisis > 0.99);
    /// assert!(builder.items(0).design().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn design(&self) -> Result<MultilevelDesign> {
        let shape = self.shape()?;
        let occupancy = shape.occupancy()?;
        let churn = crisis::churn(
            shape.items(),
            shape.levels(),
            shape.bucket_entries(),
        )?;
        Ok(MultilevelDesign {
            crisis: occupancy.crisis(),
            level_items: occupancy.level_items(),
            crises_per_turnover: churn.crises_per_turnover,
            shape,
        })
    }

    /// The empty table, without a summary.
    ///
    /// # Errors
    ///
    /// Those of [`shape`](Self::shape), and [`Error::Allocation`] if there
    /// is not enough memory for the buckets.
    ///
    /// ```
    /// use tamis::{Error, table::Multilevel};
    /// let nothing_said = Multilevel::builder().build::<u64, ()>();
    /// assert!(matches!(nothing_said, Err(Error::InvalidArgument { .. })));
    /// ```
    pub fn build<K, V>(&self) -> Result<Multilevel<K, V>> {
        self.build_with(&Unsummarised::plan())
    }

    /// The empty table, with a summary.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), and of [`Plan::build`].
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let mut table = builder.build_with(&Interpolation::plan())?;
    /// table.insert("apple", 3)?;
    /// assert_eq!(table.lookup("pear").reads, 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build_with<K, V, P: Plan>(
        &self,
        plan: &P,
    ) -> Result<Multilevel<K, V, P::Summary>> {
        let shape = self.shape()?;
        let summary = plan.build(&shape)?;
        Multilevel::new(shape, summary, self.stash, self.hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Deletion, Filter, FilterStack, TypeFilter};

    #[test]
    fn bad_arguments_are_errors() {
        let builder = MultilevelBuilder::new().items(100);
        let all = [
            MultilevelBuilder::new(),
            builder.clone().choices(0),
            builder.clone().choices(9),
            builder.clone().bucket_entries(0),
            builder.clone().items(0),
            builder.clone().items(u64::MAX),
            builder.clone().buckets_per_item(0.0),
            builder.clone().buckets_per_item(-1.0),
            builder.clone().buckets_per_item(f64::NAN),
            builder.clone().buckets_per_item(f64::INFINITY),
            builder.clone().crisis_budget(0.0),
            builder.clone().crisis_budget(f64::NAN),
            builder.clone().levels(&[]),
            builder.clone().levels(&[4, 0]),
            builder.clone().levels(&[4; 9]),
            builder.clone().levels(&[1 << 62]),
            builder.clone().levels(&[u64::MAX, 1]),
            builder.clone().levels(&[1 << 40]).bucket_entries(u32::MAX),
        ];
        for (i, builder) in all.iter().enumerate() {
            assert!(builder.build::<u64, u64>().is_err(), "{i}: {builder:?}");
        }
        assert!(builder.build::<u64, ()>().is_ok());
    }

    #[test]
    fn bad_summaries_are_errors() {
        let builder = MultilevelBuilder::new().levels(&[20, 10]);
        let cells = |cells, probes| {
            let plan = TypeFilter::plan().cells(cells).probes(probes);
            builder.build_with::<u64, u64, _>(&plan).err()
        };
        assert!(cells(100, 4).is_none());
        for (number, probes) in
            [(100, 0), (100, 65), (3, 4), (0, 1), (u64::MAX, 1)]
        {
            assert!(cells(number, probes).is_some(), "{number}, {probes}");
        }
        let filters = |filters: &[Filter]| {
            let plan = FilterStack::plan().filters(filters);
            builder.build_with::<u64, u64, _>(&plan).err()
        };
        let list = |bits| Filter::HashList { bits };
        let bloom = |cells, probes| Filter::Bloom { cells, probes };
        assert!(filters(&[bloom(100, 2), list(64)]).is_none());
        for wrong in [list(0), list(65), bloom(1, 2), bloom(u64::MAX, 1)] {
            assert!(filters(&[bloom(100, 2), wrong]).is_some(), "{wrong:?}");
        }
        assert!(filters(&[]).is_some());
        assert!(filters(&[list(64)]).is_some());
        assert!(filters(&[list(64); 3]).is_some());
        for share in [-1.0, f64::NAN, f64::INFINITY] {
            let plan = TypeFilter::plan().cells(100).probes(4);
            let plan = plan.deletion(Deletion::Lazy { share });
            assert!(builder.build_with::<u64, u64, _>(&plan).is_err());
        }
    }
}

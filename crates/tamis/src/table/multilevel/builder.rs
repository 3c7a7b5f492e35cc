//! Settings and sizing of a multilevel table.

use alloc::vec::Vec;

use tamis_theory::crisis;

use super::{Multilevel, RemovalRule};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::placement::MAX_CHOICES;
use crate::summary::{NoSummary, SummaryBuilder, TableShape};

/// Builds a [`Multilevel`] table from the number of items, or the sizes of the
/// levels, and optional settings.
///
/// Defaults: buckets of one entry in six levels, and the fewest buckets whose
/// crisis probability is at most 10^-9. A *crisis* (the paper's word) is a key
/// that no level has room for. The theory computes the level sizes.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(10_000).crisis_budget(1e-6);
/// let design = builder.design()?;
/// assert!(design.crisis <= 1e-6);
/// // The probability is for insertions alone; churn fills later levels.
/// assert!(design.crises_per_turnover > 1.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MultilevelBuilder {
    items: Option<u64>,
    sizes: LevelSizes,
    choices: u32,
    bucket_entries: u32,
    stash: usize,
    removal: RemovalRule,
    /// `None`: drawn for each table.
    hasher: Option<KeyHasher>,
}

/// The rule that determines the number of buckets in each level.
#[derive(Debug, Clone)]
enum LevelSizes {
    Given(Vec<u64>),
    BucketsPerItem(f64),
    CrisisBudget(f64),
}

/// The expected properties of a table that holds its design items.
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
    /// The design items, the levels and the bucket size.
    pub shape: TableShape,
    /// The probability that one of the items finds no room, if none is
    /// removed.
    pub crisis: f64,
    /// The mean number of keys in each level (N_j), if none is removed.
    pub level_items: Vec<f64>,
    /// Under churn in steady state: the number of keys that find no room
    /// while every key is replaced once. From about 1 on, a table needs a
    /// stash and rebuilds.
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
    /// Under churn with [`RemovalRule::Lazy`]: the probability that a key finds
    /// no room between one rebuild and the next; `None` with other rules.
    ///
    /// ```
    /// use tamis::table::{Multilevel, RemovalRule};
    ///
    /// let levels = [190_000, 65_000, 25_000, 15_000, 3000, 2000];
    /// let builder = Multilevel::builder().items(100_000).levels(&levels);
    /// let design = builder.removal(RemovalRule::Lazy { share: 0.25 }).design()?;
    /// let crisis = design.crisis_per_rebuild.unwrap();
    /// assert!((crisis - 6.2e-6).abs() < 0.1e-6);
    /// assert!(design.crises_per_turnover < 3e-5);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub crisis_per_rebuild: Option<f64>,
}

impl MultilevelBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            sizes: LevelSizes::CrisisBudget(1e-9),
            choices: 6,
            bucket_entries: 1,
            stash: 0,
            removal: RemovalRule::Immediate,
            hasher: None,
        }
    }

    /// The design items (n). Default: the number of entries, if
    /// [`levels`](Self::levels) are given, less the deleted keys of
    /// [`RemovalRule::Lazy`]; otherwise required.
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

    /// The number of buckets in each level (m_1, m_2, ..), 1 to 8 levels.
    /// Replaces [`buckets_per_item`](Self::buckets_per_item) and
    /// [`crisis_budget`](Self::crisis_budget): the last call of the three
    /// counts.
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
        Self { sizes: LevelSizes::Given(levels.to_vec()), ..self }
    }

    /// The number of buckets per item, divided among the levels so that the
    /// crisis probability is least.
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
        Self { sizes: LevelSizes::BucketsPerItem(buckets), ..self }
    }

    /// The largest crisis probability if no key is removed; the table gets
    /// the fewest buckets that achieve it. Default 10^-9.
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
        Self { sizes: LevelSizes::CrisisBudget(budget), ..self }
    }

    /// The number of levels (d), 1 to 8; default 6. Has no effect if
    /// [`levels`](Self::levels) are given.
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

    /// The entries of a bucket (h); default 1.
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

    /// The capacity of the stash, a list of keys that no level has room for;
    /// default 0. Every lookup searches the stash while it is not empty.
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

    /// The rule by which keys are removed; default
    /// [`RemovalRule::Immediate`]. With [`RemovalRule::Lazy`] the crisis budget is
    /// that of a rebuild cycle.
    ///
    /// ```
    /// use tamis::table::{Multilevel, RemovalRule};
    /// let builder = Multilevel::builder().items(100);
    /// let lazy = RemovalRule::Lazy { share: 0.1 };
    /// let mut table = builder.removal(lazy).build()?;
    /// (0..100u32).for_each(|i| assert!(table.insert(i, ()).is_ok()));
    /// (0..10u32).for_each(|i| assert!(table.remove(&i).is_some()));
    /// let stats = table.stats();
    /// assert_eq!((stats.items, stats.stale, stats.rebuilds), (90, 10, 0));
    /// table.remove(&10);
    /// assert_eq!((table.stats().stale, table.stats().rebuilds), (0, 1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn removal(self, removal: RemovalRule) -> Self {
        Self { removal, ..self }
    }

    /// The hasher of the keys. By default each table draws a secret key
    /// ([`KeyHasher::random`]), so that strangers cannot choose keys that collide;
    /// without the feature `std` it is XXH3 with seed 0, and keys of strangers
    /// require [`KeyHasher::siphash`] with a secret key of your own.
    ///
    /// For trusted keys XXH3 is faster, and a table of the same history is the
    /// same at every run.
    ///
    /// ```
    /// use tamis::{KeyHasher, table::Multilevel};
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let mut table = builder.hasher(KeyHasher::xxh3(7)).build()?;
    /// table.insert(1u64, 2u64)?;
    /// assert_eq!(*table.hasher(), KeyHasher::xxh3(7));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher: Some(hasher), ..self }
    }

    /// The hasher of a table: the given one, or a new one.
    pub(in crate::table) fn hasher_of_keys(&self) -> KeyHasher {
        self.hasher.unwrap_or_else(KeyHasher::for_table)
    }

    /// The shape of the table.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if no levels achieve the settings.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let shape = Multilevel::builder().items(1000).choices(5).shape()?;
    /// assert!(shape.levels().is_sorted_by(|a, b| a >= b));
    /// assert!(Multilevel::builder().shape().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn shape(&self) -> Result<TableShape> {
        let h = self.bucket_entries;
        if let LevelSizes::Given(levels) = &self.sizes {
            let entries = levels.iter().fold(0u64, |sum, &level| {
                sum.saturating_add(level.saturating_mul(h.into()))
            });
            let items = self.items.unwrap_or(match self.removal {
                // Items and their share of deleted keys fill the table.
                RemovalRule::Lazy { share } if share > 0.0 => {
                    (entries as f64 / (1.0 + share)) as u64
                }
                _ => entries,
            });
            return TableShape::new(items, levels, h);
        }
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        let Some(items) = self.items else {
            return invalid("items", "set the number of keys to expect");
        };
        if !(1..=MAX_CHOICES as u32).contains(&self.choices) {
            return invalid("choices", "expected 1 to 8");
        }
        let deleted = self.removal.quota(items)?.unwrap_or(0);
        let filled = items.saturating_add(deleted);
        let levels = match self.sizes {
            LevelSizes::BucketsPerItem(each) => {
                // The cast saturates, far above any memory.
                let buckets = libm::ceil(items as f64 * each) as u64;
                crisis::least_crisis(filled, buckets, self.choices, h)?
            }
            LevelSizes::CrisisBudget(budget) => {
                crisis::fewest_buckets(filled, self.choices, h, budget)?
            }
            LevelSizes::Given(_) => Vec::new(),
        };
        TableShape::new(items, &levels, h)
    }

    /// The shape of the table and its expected properties.
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
        let (items, levels) = (shape.items(), shape.levels());
        let h = shape.bucket_entries();
        let (crises_per_turnover, crisis_per_rebuild) =
            match self.removal.quota(items)? {
                Some(quota) => {
                    let lazy = crisis::lazy(items, levels, h, quota)?;
                    (lazy.crises_per_turnover, Some(lazy.crisis_per_rebuild))
                }
                None => {
                    let churn = crisis::churn(items, levels, h)?;
                    (churn.crises_per_turnover, None)
                }
            };
        Ok(MultilevelDesign {
            crisis: occupancy.crisis(),
            level_items: occupancy.level_items(),
            crises_per_turnover,
            crisis_per_rebuild,
            shape,
        })
    }

    /// An empty table without a summary.
    ///
    /// # Errors
    ///
    /// Those of [`shape`](Self::shape), and [`Error::Allocation`] if the
    /// buckets do not fit into memory.
    ///
    /// ```
    /// use tamis::{Error, table::Multilevel};
    /// let no_items = Multilevel::builder().build::<u64, ()>();
    /// assert!(matches!(no_items, Err(Error::InvalidArgument { .. })));
    /// ```
    pub fn build<K, V>(&self) -> Result<Multilevel<K, V>> {
        self.build_with(&NoSummary::builder())
    }

    /// An empty table with a summary.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), and of [`SummaryBuilder::build`].
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let mut table = builder.build_with(&Interpolation::builder())?;
    /// table.insert("apple", 3)?;
    /// assert_eq!(table.lookup("pear").reads, 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build_with<K, V, B: SummaryBuilder>(
        &self,
        summary: &B,
    ) -> Result<Multilevel<K, V, B::Summary>> {
        let shape = self.shape()?;
        let summary = summary.build(&self.removal.filled(&shape)?)?;
        let (stash, removal) = (self.stash, self.removal);
        let hasher = self.hasher_of_keys();
        Multilevel::new(shape, summary, stash, removal, hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Deletion, FilterStack, LevelFilter, TypeFilter};

    #[test]
    fn settings_out_of_range_are_errors() {
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
            builder.clone().removal(RemovalRule::Lazy { share: -0.1 }),
            builder.clone().removal(RemovalRule::Lazy { share: f64::NAN }),
            builder.clone().removal(RemovalRule::Lazy { share: 101.0 }),
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
    fn summaries_out_of_range_are_errors() {
        let builder = MultilevelBuilder::new().levels(&[20, 10]);
        let cells = |cells, probes| {
            let summary = TypeFilter::builder().cells(cells).probes(probes);
            builder.build_with::<u64, u64, _>(&summary).err()
        };
        assert!(cells(100, 4).is_none());
        for (number, probes) in
            [(100, 0), (100, 65), (3, 4), (0, 1), (u64::MAX, 1)]
        {
            assert!(cells(number, probes).is_some(), "{number}, {probes}");
        }
        let filters = |filters: &[LevelFilter]| {
            let summary = FilterStack::builder().filters(filters);
            builder.build_with::<u64, u64, _>(&summary).err()
        };
        let list = |bits| LevelFilter::HashList { bits };
        let bloom = |cells, probes| LevelFilter::Bloom { cells, probes };
        assert!(filters(&[bloom(100, 2), list(64)]).is_none());
        for wrong in [list(0), list(65), bloom(1, 2), bloom(u64::MAX, 1)] {
            assert!(filters(&[bloom(100, 2), wrong]).is_some(), "{wrong:?}");
        }
        assert!(filters(&[]).is_some());
        assert!(filters(&[list(64)]).is_some());
        assert!(filters(&[list(64); 3]).is_some());
        for share in [-1.0, f64::NAN, f64::INFINITY] {
            let summary = TypeFilter::builder().cells(100).probes(4);
            let summary = summary.deletion(Deletion::Lazy { share });
            assert!(builder.build_with::<u64, u64, _>(&summary).is_err());
        }
    }
}

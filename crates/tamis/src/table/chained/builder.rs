//! Settings and sizing of a chained table.

use alloc::vec::Vec;

use super::Chained;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::placement::{Proposals, Scheme};
use crate::placement_design::{GivenParameters, SchemeSettings, level_sizes};

/// Builds a [`Chained`] table from the number of items and optional settings.
///
/// Defaults: multilevel, 1.2 buckets read per insertion, 3 choices, 8 items
/// per bucket. The theory computes threshold, admission and levels.
///
/// ```
/// use tamis::Scheme;
/// use tamis::table::Chained;
///
/// let table = Chained::builder()
///     .items(80_000)
///     .buckets(10_000)
///     .scheme(Scheme::Multilevel)
///     .access_budget(1.1)
///     .choices(3)
///     .build::<u64, u64>()?;
/// assert_eq!(table.level_buckets(), [9091, 833, 76]);
/// assert!((table.design().variance - 3.76109).abs() < 1e-5);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChainedBuilder {
    items: Option<u64>,
    buckets: BucketCount,
    scheme: Scheme,
    access_budget: f64,
    choices: u32,
    overflow_fraction: Option<f64>,
    threshold: Option<u32>,
    admission: Option<f64>,
    level_shares: Option<Vec<f64>>,
    list: usize,
    /// `None`: drawn for each table.
    hasher: Option<KeyHasher>,
}

/// The number of buckets: given, or computed from the items per bucket.
#[derive(Debug, Clone, Copy)]
enum BucketCount {
    Given(u64),
    ForLoad(f64),
}

/// The expected properties of a table that holds its design items.
///
/// ```
/// use tamis::table::Chained;
///
/// let design = Chained::builder().items(8000).design()?;
/// assert_eq!((design.buckets, design.threshold), (1000, Some(8)));
/// assert!((design.variance - 2.10589).abs() < 1e-5);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChainedDesign {
    /// The design items (n).
    pub items: u64,
    /// The number of buckets (m).
    pub buckets: u64,
    /// The scheme that proposes buckets to a key.
    pub scheme: Scheme,
    /// Items per bucket (r), listed items included.
    pub load: f64,
    /// Average buckets read per insertion (a).
    pub access_budget: f64,
    /// A bucket with fewer keys accepts every key (h); `None` if a bucket
    /// refuses none, up to 64 more than four times the load.
    pub threshold: Option<u32>,
    /// The probability that a bucket exactly at the threshold accepts one
    /// more key (p).
    pub admission: f64,
    /// The share of the buckets in each level; in the single and sequential
    /// schemes 1 for every choice.
    pub level_shares: Vec<f64>,
    /// The share of keys that all their buckets refuse (gamma).
    pub overflow_fraction: f64,
    /// The variance of a bucket's occupancy; unless parameters are given, the
    /// smallest of any scheme with this access budget and overflow.
    pub variance: f64,
}

impl ChainedBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            buckets: BucketCount::ForLoad(8.0),
            scheme: Scheme::Multilevel,
            access_budget: 1.2,
            choices: 3,
            overflow_fraction: None,
            threshold: None,
            admission: None,
            level_shares: None,
            list: usize::MAX,
            hasher: None,
        }
    }

    /// The design items (n); required.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let table = Chained::builder().items(50).build::<u64, ()>()?;
    /// assert_eq!(table.design().items, 50);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(self, items: u64) -> Self {
        Self { items: Some(items), ..self }
    }

    /// The number of buckets (m). Replaces [`load`](Self::load): the last
    /// call of the two counts.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50).buckets(10);
    /// assert_eq!(builder.design()?.load, 5.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn buckets(self, buckets: u64) -> Self {
        Self { buckets: BucketCount::Given(buckets), ..self }
    }

    /// The number of items per bucket (r); default 8.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50).load(5.0);
    /// assert_eq!(builder.design()?.buckets, 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        Self { buckets: BucketCount::ForLoad(load), ..self }
    }

    /// The scheme that proposes buckets to a key; default multilevel.
    ///
    /// ```
    /// use tamis::{Scheme, table::Chained};
    /// let builder = Chained::builder().items(50);
    /// let design = builder.scheme(Scheme::Single).design()?;
    /// assert_eq!(design.access_budget, 1.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn scheme(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    /// The average number of buckets read per insertion (a); default 1.2. The
    /// single scheme has 1.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50);
    /// let [less, more] = [1.1, 1.5].map(|a| {
    ///     builder.clone().access_budget(a).design()
    /// });
    /// assert!(more?.variance < less?.variance);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn access_budget(self, access_budget: f64) -> Self {
        Self { access_budget, ..self }
    }

    /// The number of buckets proposed per key (d), 1 to 8; default 3. The
    /// single scheme has 1.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50);
    /// assert_eq!(builder.choices(2).build::<u64, ()>()?.level_buckets().len(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn choices(self, choices: u32) -> Self {
        Self { choices, ..self }
    }

    /// The share of keys in the list (gamma): for the single scheme 0.5 % by
    /// default, for the others the smallest possible.
    ///
    /// A larger share takes the other schemes inside their region of
    /// optimality. The paper then stops reading at the access budget and lists
    /// the remaining keys unread, where its lookups miss them. This table
    /// reads on, so that insertions exceed the budget and fewer keys are
    /// listed; [`ChainedDesign`] has both numbers.
    ///
    /// ```
    /// use tamis::{Scheme, table::Chained};
    /// let builder = Chained::builder().items(50);
    /// let single = builder.clone().scheme(Scheme::Single);
    /// let design = single.overflow_fraction(0.01).design()?;
    /// assert!((design.variance - 7.02734).abs() < 1e-5);
    ///
    /// let inside = builder.access_budget(1.1).overflow_fraction(0.02);
    /// let design = inside.design()?;
    /// assert!(design.access_budget > 1.1 && design.overflow_fraction < 0.02);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn overflow_fraction(self, overflow_fraction: f64) -> Self {
        Self { overflow_fraction: Some(overflow_fraction), ..self }
    }

    /// The load below which a bucket accepts every key (h), instead of the
    /// best one. Without [`admission`](Self::admission) no coin is flipped: a
    /// bucket holds at most h keys.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(8000).threshold(9);
    /// let design = builder.design()?;
    /// assert_eq!((design.threshold, design.admission), (Some(9), 0.0));
    /// assert!((design.access_budget - 1.181).abs() < 1e-3);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn threshold(self, threshold: u32) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// The probability that a bucket exactly at the threshold accepts one
    /// more key (p), instead of the best one.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(8000).threshold(8);
    /// let [less, more] = [0.0, 0.5].map(|p| {
    ///     builder.clone().admission(p).design()
    /// });
    /// assert!(more?.access_budget < less?.access_budget);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn admission(self, admission: f64) -> Self {
        Self { admission: Some(admission), ..self }
    }

    /// The relative sizes of the levels, of any positive sum, instead of the
    /// best ones; their number replaces [`choices`](Self::choices). Without
    /// [`threshold`](Self::threshold) the threshold and the admission are
    /// those that meet the access budget.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(56).buckets(7);
    /// let table = builder.level_shares(&[4.0, 2.0, 1.0]).build::<u8, ()>()?;
    /// assert_eq!(table.level_buckets(), [4, 2, 1]);
    /// assert!((table.design().access_budget - 1.2).abs() < 1e-9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn level_shares(self, shares: &[f64]) -> Self {
        Self { level_shares: Some(shares.to_vec()), ..self }
    }

    /// The capacity of the list, for
    /// [`try_insert`](Chained::try_insert); unlimited by default.
    ///
    /// Twice the keys that the design [lists](ChainedDesign::overflow_fraction)
    /// are enough while the table holds its design items.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(8).threshold(1).list(2);
    /// let mut table = builder.build()?;
    /// let refused = (0..100u8).find(|&i| table.try_insert(i, ()).is_err());
    /// assert_eq!(refused.map(usize::from), Some(table.len()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn list(self, entries: usize) -> Self {
        Self { list: entries, ..self }
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
    /// use tamis::{KeyHasher, table::Chained};
    /// let builder = Chained::builder().items(50);
    /// let mut table = builder.hasher(KeyHasher::xxh3(7)).build()?;
    /// table.insert(1u64, 2u64);
    /// assert_eq!(*table.hasher(), KeyHasher::xxh3(7));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher: Some(hasher), ..self }
    }

    /// The expected properties of the table.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if no design achieves the settings.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50);
    /// assert!(builder.clone().design()?.overflow_fraction < 0.005);
    /// assert!(builder.access_budget(0.5).design().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn design(&self) -> Result<ChainedDesign> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        let Some(items) = self.items else {
            return invalid("items", "set the number of keys to expect");
        };
        let settings = SchemeSettings {
            scheme: self.scheme,
            access_budget: self.access_budget,
            choices: self.choices,
            overflow_fraction: self.overflow_fraction,
            given: GivenParameters {
                threshold: self.threshold,
                admission: self.admission,
                level_shares: self.level_shares.as_deref(),
            },
        };
        let choices = settings.choices()?;
        let levels = match self.scheme {
            Scheme::Multilevel => u64::from(choices),
            _ => 1,
        };
        let (buckets, load) = match self.buckets {
            BucketCount::Given(buckets) => {
                (buckets, items as f64 / buckets.max(1) as f64)
            }
            BucketCount::ForLoad(load) => {
                // The cast saturates, far above any memory.
                let buckets = libm::ceil(items as f64 / load) as u64;
                (buckets.max(levels), load)
            }
        };
        if buckets < levels {
            return invalid("buckets", "expected at least one in each level");
        }
        let balance = settings.balance(load)?;
        Ok(ChainedDesign {
            items,
            buckets,
            scheme: self.scheme,
            load,
            access_budget: balance.access_budget,
            threshold: balance.threshold,
            admission: balance.admission,
            level_shares: balance.level_shares,
            overflow_fraction: balance.overflow_fraction,
            variance: balance.loads.variance(),
        })
    }

    /// An empty table.
    ///
    /// # Errors
    ///
    /// Those of [`design`](Self::design), and [`Error::Allocation`] if the
    /// buckets do not fit into memory.
    ///
    /// ```
    /// use tamis::{Error, table::Chained};
    /// let no_items = Chained::builder().build::<u64, ()>().unwrap_err();
    /// assert!(matches!(no_items, Error::InvalidArgument { .. }));
    /// ```
    pub fn build<K, V>(&self) -> Result<Chained<K, V>> {
        let design = self.design()?;
        let levels = match design.scheme {
            Scheme::Multilevel => {
                level_sizes(design.buckets, &design.level_shares)
            }
            _ => alloc::vec![design.buckets; design.level_shares.len()],
        };
        let proposals = Proposals::new(design.scheme, &levels);
        let hasher = self.hasher.unwrap_or_else(KeyHasher::for_table);
        Chained::with_design(design, proposals, self.list, hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_errors() {
        let builder = ChainedBuilder::new().items(100);
        let all = [
            builder.clone().buckets(0),
            builder.clone().buckets(2),
            builder.clone().choices(0),
            builder.clone().choices(9),
            builder.clone().load(0.0),
            builder.clone().load(-1.0),
            builder.clone().load(f64::NAN),
            builder.clone().load(f64::INFINITY),
            builder.clone().items(0).buckets(10),
            builder.clone().items(u64::MAX).buckets(10),
            builder.clone().access_budget(f64::NAN),
            builder.clone().access_budget(3.1),
            builder.clone().scheme(Scheme::Sequential).access_budget(0.9),
            builder.clone().scheme(Scheme::Single).overflow_fraction(1.0),
            builder.clone().scheme(Scheme::Single).overflow_fraction(-0.1),
            builder.clone().admission(1.5),
            builder.clone().admission(f64::NAN),
            builder.clone().threshold(u32::MAX),
            builder.clone().level_shares(&[]),
            builder.clone().level_shares(&[1.0, 0.0]),
            builder.clone().level_shares(&[1.0, f64::NAN]),
            builder.clone().level_shares(&[f64::MAX; 3]),
            builder.clone().level_shares(&[1.0; 9]),
            builder.clone().scheme(Scheme::Single).level_shares(&[1.0, 2.0]),
            builder.clone().overflow_fraction(1e-6),
            builder.clone().overflow_fraction(f64::NAN),
            builder.clone().items(u64::MAX),
            builder.clone().items(1 << 40).buckets(u64::MAX / 2),
        ];
        for (i, builder) in all.iter().enumerate() {
            assert!(builder.build::<u64, u64>().is_err(), "{i}: {builder:?}");
        }
        assert!(builder.items(0).build::<u64, ()>().is_ok());
    }
}

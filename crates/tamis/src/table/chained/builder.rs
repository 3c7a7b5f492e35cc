//! From what is wanted to a chained table.

use alloc::vec::Vec;

use super::Chained;
use super::bucket::Rule;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::placement::{Proposals, Scheme, Wish, divide};

/// Builds a [`Chained`] table: say how many items, and the rest if it
/// matters.
///
/// Without more: multilevel, 1.2 buckets read per insertion, 3 choices, 8
/// items per bucket. Threshold, admission and levels come from the theory.
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
    size: Size,
    scheme: Scheme,
    access_budget: f64,
    choices: u32,
    overflow_fraction: f64,
    hasher: KeyHasher,
}

#[derive(Debug, Clone, Copy)]
enum Size {
    Buckets(u64),
    Load(f64),
}

/// What a table was built to do once it holds its design items.
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
    /// Items it is built for (n).
    pub items: u64,
    /// Buckets (m).
    pub buckets: u64,
    /// How buckets are proposed.
    pub scheme: Scheme,
    /// Items per bucket (r), the listed ones included.
    pub load: f64,
    /// Average buckets read per insertion (a).
    pub access_budget: f64,
    /// A bucket below it takes every key (h); none if no bucket ever
    /// refuses.
    pub threshold: Option<u32>,
    /// The chance that a bucket exactly at the threshold takes one more key
    /// (p).
    pub admission: f64,
    /// The share of the buckets in each level; one for every choice of the
    /// single and sequential schemes.
    pub level_shares: Vec<f64>,
    /// The share of keys that every bucket refuses (gamma).
    pub overflow_fraction: f64,
    /// The variance of a bucket's occupancy: no scheme with these reads and
    /// this overflow has a smaller one.
    pub variance: f64,
}

impl ChainedBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            size: Size::Load(8.0),
            scheme: Scheme::Multilevel,
            access_budget: 1.2,
            choices: 3,
            overflow_fraction: 0.005,
            hasher: KeyHasher::default(),
        }
    }

    /// How many keys will be in the table.
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

    /// The number of buckets (m). Of this and [`load`](Self::load) the last
    /// one said counts.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50).buckets(10);
    /// assert_eq!(builder.design()?.load, 5.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn buckets(self, buckets: u64) -> Self {
        Self { size: Size::Buckets(buckets), ..self }
    }

    /// Items per bucket (r), 8 unless said otherwise.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(50).load(5.0);
    /// assert_eq!(builder.design()?.buckets, 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        Self { size: Size::Load(load), ..self }
    }

    /// How buckets are proposed; multilevel unless said otherwise.
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

    /// Average buckets read per insertion (a), 1.2 unless said otherwise;
    /// SINGLE has 1.
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

    /// Buckets proposed per key (d), 1 to 8, 3 unless said otherwise; SINGLE
    /// has 1.
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

    /// The share of keys that SINGLE may refuse (gamma), 0.5 % unless said
    /// otherwise; the other schemes take the least they can.
    ///
    /// ```
    /// use tamis::{Scheme, table::Chained};
    /// let builder = Chained::builder().items(50);
    /// let single = builder.scheme(Scheme::Single).overflow_fraction(0.01);
    /// assert!((single.design()?.variance - 7.02734).abs() < 1e-5);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn overflow_fraction(self, overflow_fraction: f64) -> Self {
        Self { overflow_fraction, ..self }
    }

    /// How keys are hashed; XXH3 with seed 0 unless said otherwise. Keys
    /// from strangers want [`KeyHasher::siphash`].
    ///
    /// ```
    /// use tamis::{KeyHasher, table::Chained};
    /// let builder = Chained::builder().items(50);
    /// let mut table = builder.hasher(KeyHasher::siphash(7)).build()?;
    /// table.insert(1u64, 2u64);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// What the table would be.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if there is no such design.
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
            return invalid("items", "say how many keys to expect");
        };
        let wish = Wish {
            scheme: self.scheme,
            access_budget: self.access_budget,
            choices: self.choices,
            overflow_fraction: self.overflow_fraction,
        };
        let choices = wish.choices()?;
        let levels = match self.scheme {
            Scheme::Multilevel => u64::from(choices),
            _ => 1,
        };
        let (buckets, load) = match self.size {
            Size::Buckets(buckets) => {
                (buckets, items as f64 / buckets.max(1) as f64)
            }
            Size::Load(load) => {
                // Saturates where no memory would do.
                let buckets = libm::ceil(items as f64 / load) as u64;
                (buckets.max(levels), load)
            }
        };
        if buckets < levels {
            return invalid("buckets", "expected one for each level at least");
        }
        let balance = wish.balance(load)?;
        Ok(ChainedDesign {
            items,
            buckets,
            scheme: self.scheme,
            load,
            access_budget: balance.access_budget,
            threshold: balance.threshold,
            admission: balance.admission,
            level_shares: balance.shares,
            overflow_fraction: balance.overflow_fraction,
            variance: balance.loads.variance(),
        })
    }

    /// The empty table.
    ///
    /// # Errors
    ///
    /// Those of [`design`](Self::design), and [`Error::Allocation`] if there
    /// is not enough memory for the buckets.
    ///
    /// ```
    /// use tamis::{Error, table::Chained};
    /// let nothing_said = Chained::builder().build::<u64, ()>().unwrap_err();
    /// assert!(matches!(nothing_said, Error::InvalidArgument { .. }));
    /// ```
    pub fn build<K, V>(&self) -> Result<Chained<K, V>> {
        let design = self.design()?;
        let choices = design.level_shares.len() as u32;
        let proposals = match design.scheme {
            Scheme::Multilevel => {
                let levels = divide(design.buckets, &design.level_shares);
                Proposals::multilevel(&levels)
            }
            _ => Proposals::sequential(design.buckets, choices),
        };
        let rule = Rule::new(design.threshold, design.admission);
        Chained::with_design(design, proposals, rule, self.hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_arguments_are_errors() {
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
            builder.clone().items(u64::MAX),
            builder.clone().items(1 << 40).buckets(u64::MAX / 2),
        ];
        for (i, builder) in all.iter().enumerate() {
            assert!(builder.build::<u64, u64>().is_err(), "{i}: {builder:?}");
        }
        assert!(builder.items(0).build::<u64, ()>().is_ok());
    }
}

//! Instruments for studying filters: contents of blocks, forecasts and
//! settings. Most programs do not need them.
//!
//! ```
//! use tamis::TinySet;
//! use tamis::inspect::Inspector;
//!
//! let mut filter = TinySet::builder().items(1000).fpr(0.01).build()?;
//! filter.extend(0..1000u32);
//! let loads = Inspector::new(&filter).loads();
//! assert!(loads.mean() > 40.0);
//! # Ok::<(), tamis::Error>(())
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Result;
use crate::filter::{AnyFilter, Balanced, TinySet};
pub use crate::filter::{BlockState, LoadHistogram, Parameter, Stored};

/// Instruments for one filter; the methods depend on its type.
///
/// ```
/// use tamis::TinySet;
/// use tamis::inspect::Inspector;
/// let filter = TinySet::builder().fpr(0.01).build_from(["apple"])?;
/// assert_eq!(Inspector::new(&filter).loads().items(), 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Inspector<'a, F> {
    filter: &'a F,
}

impl<'a, F> Inspector<'a, F> {
    /// The instruments of `filter`.
    ///
    /// ```
    /// use tamis::Balanced;
    /// use tamis::inspect::Inspector;
    /// let filter = Balanced::builder().items(9).fpr(0.01).build()?;
    /// assert!(Inspector::new(&filter).block_states().count() > 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn new(filter: &'a F) -> Self {
        Self { filter }
    }
}

impl<D: AsRef<[u8]>> Inspector<'_, AnyFilter<D>> {
    /// The settings of a filter, by name, in the order of a report.
    ///
    /// ```
    /// use tamis::inspect::{Inspector, Parameter};
    /// use tamis::{AnyFilter, Kind};
    /// let builder = AnyFilter::builder(Kind::Blocked).items(9);
    /// let filter = builder.bits_per_key(10.0).build()?;
    /// let parameters = Inspector::new(&filter).parameters();
    /// assert!(parameters.contains(&("probes", Parameter::Count(6))));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let bits = |blocks, block_bits: u32, probes: u32| {
            vec![
                ("blocks", Parameter::Count(blocks)),
                ("block_bits", Parameter::Count(block_bits.into())),
                ("probes", Parameter::Count(probes.into())),
            ]
        };
        match self.filter {
            AnyFilter::Bloom(f) => {
                bits(f.block_count(), f.block_bits(), f.probes())
            }
            AnyFilter::Blocked(f) => {
                bits(f.block_count(), f.block_bits(), f.probes())
            }
            AnyFilter::Split(f) => {
                bits(f.block_count(), f.block_bits(), f.probes())
            }
            AnyFilter::Balanced(filter) => filter.parameters(),
            AnyFilter::TinySet(filter) => filter.parameters(),
        }
    }
}

impl<'a, D: AsRef<[u8]>> Inspector<'a, TinySet<D>> {
    /// The number of blocks by the keys they hold. Reads the whole filter.
    ///
    /// ```
    /// use tamis::TinySet;
    /// use tamis::inspect::Inspector;
    /// let filter = TinySet::builder().fpr(0.01).build_from(["apple"])?;
    /// assert_eq!(Inspector::new(&filter).loads().items(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn loads(&self) -> LoadHistogram {
        self.filter.loads()
    }

    /// All entries, block by block, except those of saturated blocks.
    ///
    /// ```
    /// use tamis::TinySet;
    /// use tamis::inspect::Inspector;
    /// let filter = TinySet::builder().fpr(0.01).build_from(["apple", "pear"])?;
    /// assert_eq!(Inspector::new(&filter).stored().count(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn stored(&self) -> impl Iterator<Item = Stored> + use<'a, D> {
        self.filter.stored()
    }

    /// The false-positive rate after `filter.merge_from(other)`, computed from
    /// the merged entries without storing them.
    ///
    /// # Errors
    ///
    /// That of [`TinySet::merge_from`].
    ///
    /// ```
    /// use tamis::TinySet;
    /// use tamis::inspect::Inspector;
    ///
    /// let builder = TinySet::builder().items(2000).fpr(0.001);
    /// let mut left = builder.build_from(0..1000u32)?;
    /// let right = builder.build_from(1000..2000u32)?;
    /// let predicted = Inspector::new(&left).merged_fpr(&right)?;
    /// left.merge_from(&right)?;
    /// assert!((predicted / left.stats().expected_fpr - 1.0).abs() < 1e-9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merged_fpr<E: AsRef<[u8]>>(
        &self,
        other: &TinySet<E>,
    ) -> Result<f64> {
        self.filter.merged_fpr(other)
    }

    /// The false-positive rate of `filter.halved()`, computed from the merged
    /// entries without storing them.
    ///
    /// # Errors
    ///
    /// That of [`TinySet::halved`].
    ///
    /// ```
    /// use tamis::TinySet;
    /// use tamis::inspect::Inspector;
    ///
    /// let builder = TinySet::builder().items(4000).fpr(1e-4);
    /// let filter = builder.build_from(0..2000u32)?;
    /// let predicted = Inspector::new(&filter).folded_fpr()?;
    /// let after = filter.halved()?.stats().expected_fpr;
    /// assert!((predicted / after - 1.0).abs() < 1e-9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn folded_fpr(&self) -> Result<f64> {
        self.filter.folded_fpr()
    }

    /// The false-positive rate of `filter.doubled()`, computed from the entries
    /// without storing them: about the present one. The keys that fill the new
    /// room find fingerprints one bit shorter than a filter built for them would
    /// have.
    ///
    /// # Errors
    ///
    /// That of [`TinySet::doubled`].
    ///
    /// ```
    /// use tamis::TinySet;
    /// use tamis::inspect::Inspector;
    ///
    /// let builder = TinySet::builder().fpr(0.001);
    /// let filter = builder.build_from(0..2000u32)?;
    /// let predicted = Inspector::new(&filter).grown_fpr()?;
    /// let after = filter.doubled()?.stats().expected_fpr;
    /// assert!((predicted / after - 1.0).abs() < 1e-9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn grown_fpr(&self) -> Result<f64> {
        self.filter.grown_fpr()
    }
}

impl<'a, D: AsRef<[u8]>> Inspector<'a, Balanced<D>> {
    /// The content of every block.
    ///
    /// ```
    /// use tamis::Balanced;
    /// use tamis::inspect::Inspector;
    /// let builder = Balanced::builder().bits_per_key(20.0);
    /// let filter = builder.build_from(["apple"])?;
    /// let ones: u32 =
    ///     Inspector::new(&filter).block_states().map(|block| block.ones).sum();
    /// assert!(ones > 0 && ones <= filter.probes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn block_states(
        &self,
    ) -> impl Iterator<Item = BlockState> + use<'a, D> {
        self.filter.block_states()
    }
}

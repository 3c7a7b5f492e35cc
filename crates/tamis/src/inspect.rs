//! Instruments for studying filters: contents of blocks, forecasts and
//! settings. Most programs do not need them.
//!
//! ```
//! use tamis::{TinySet, inspect};
//!
//! let mut filter = TinySet::builder().items(1000).fpr(0.01).build()?;
//! filter.extend(0..1000u32);
//! let loads = inspect::loads(&filter);
//! assert!(loads.mean() > 40.0);
//! # Ok::<(), tamis::Error>(())
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Result;
use crate::filter::{AnyFilter, Balanced, TinySet};
pub use crate::filter::{BlockState, LoadHistogram, Parameter, Stored};

/// The settings of a filter, by name, in the order of a report.
///
/// ```
/// use tamis::inspect::{self, Parameter};
/// use tamis::{AnyFilter, Kind};
/// let builder = AnyFilter::builder(Kind::Blocked).items(9);
/// let filter = builder.bits_per_key(10.0).build()?;
/// let parameters = inspect::parameters(&filter);
/// assert!(parameters.contains(&("probes", Parameter::Count(6))));
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use]
pub fn parameters<D: AsRef<[u8]>>(
    filter: &AnyFilter<D>,
) -> Vec<(&'static str, Parameter)> {
    let bits = |blocks, block_bits: u32, probes: u32| {
        vec![
            ("blocks", Parameter::Count(blocks)),
            ("block_bits", Parameter::Count(block_bits.into())),
            ("probes", Parameter::Count(probes.into())),
        ]
    };
    match filter {
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

/// The number of blocks by the keys they hold. Reads the whole filter.
///
/// ```
/// use tamis::{TinySet, inspect};
/// let filter = TinySet::builder().fpr(0.01).build_from(["apple"])?;
/// assert_eq!(inspect::loads(&filter).items(), 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[must_use]
pub fn loads<D: AsRef<[u8]>>(filter: &TinySet<D>) -> LoadHistogram {
    filter.loads()
}

/// All entries, block by block, except those of saturated blocks.
///
/// ```
/// use tamis::{TinySet, inspect};
/// let filter = TinySet::builder().fpr(0.01).build_from(["apple", "pear"])?;
/// assert_eq!(inspect::stored(&filter).count(), 2);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn stored<D: AsRef<[u8]>>(
    filter: &TinySet<D>,
) -> impl Iterator<Item = Stored> + '_ {
    filter.stored()
}

/// The content of every block.
///
/// ```
/// use tamis::{Balanced, inspect};
/// let builder = Balanced::builder().bits_per_key(20.0);
/// let filter = builder.build_from(["apple"])?;
/// let ones: u32 =
///     inspect::block_states(&filter).map(|block| block.ones).sum();
/// assert!(ones > 0 && ones <= filter.probes());
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn block_states<D: AsRef<[u8]>>(
    filter: &Balanced<D>,
) -> impl Iterator<Item = BlockState> + '_ {
    filter.block_states()
}

/// The false-positive rate after `filter.merge_from(other)`, computed from
/// the merged entries without storing them.
///
/// # Errors
///
/// That of [`TinySet::merge_from`].
///
/// ```
/// use tamis::{TinySet, inspect};
///
/// let builder = TinySet::builder().items(2000).fpr(0.001);
/// let mut left = builder.build_from(0..1000u32)?;
/// let right = builder.build_from(1000..2000u32)?;
/// let predicted = inspect::merged_fpr(&left, &right)?;
/// left.merge_from(&right)?;
/// assert!((predicted / left.stats().expected_fpr - 1.0).abs() < 1e-9);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn merged_fpr<D: AsRef<[u8]>, E: AsRef<[u8]>>(
    filter: &TinySet<D>,
    other: &TinySet<E>,
) -> Result<f64> {
    filter.merged_fpr(other)
}

/// The false-positive rate of `filter.halved()`, computed from the merged
/// entries without storing them.
///
/// # Errors
///
/// That of [`TinySet::halved`].
///
/// ```
/// use tamis::{TinySet, inspect};
///
/// let builder = TinySet::builder().items(4000).fpr(1e-4);
/// let filter = builder.build_from(0..2000u32)?;
/// let predicted = inspect::folded_fpr(&filter)?;
/// let after = filter.halved()?.stats().expected_fpr;
/// assert!((predicted / after - 1.0).abs() < 1e-9);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn folded_fpr<D: AsRef<[u8]>>(filter: &TinySet<D>) -> Result<f64> {
    filter.folded_fpr()
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
/// use tamis::{TinySet, inspect};
///
/// let builder = TinySet::builder().fpr(0.001);
/// let filter = builder.build_from(0..2000u32)?;
/// let predicted = inspect::grown_fpr(&filter)?;
/// let after = filter.doubled()?.stats().expected_fpr;
/// assert!((predicted / after - 1.0).abs() < 1e-9);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn grown_fpr<D: AsRef<[u8]>>(filter: &TinySet<D>) -> Result<f64> {
    filter.grown_fpr()
}

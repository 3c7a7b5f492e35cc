//! Summaries: the level of a multilevel table that holds a key.
//!
//! A multilevel table has one bucket for a key in each level. A summary fits
//! into fast memory and names the level of a key, so that a lookup reads one
//! bucket of the slow memory with the entries (Kirsch and Mitzenmacher,
//! "Simple Summaries for Hashing with Multiple Choices"). It depends only on
//! the 64-bit hash of a key, not on the table, and mixes the hash with
//! functions of its own.
//!
//! | | bits per key | absent keys read | level named wrongly | removal |
//! |---|---|---|---|---|
//! | [`Interpolation`] | 69.5 | none | where two strings of 61 bits are equal | exact |
//! | [`TypeFilter`] | 27.9 | 1 % | for fewer than one key in a thousand | lazy or counting |
//! | [`FilterStack`] | 15.3 | 1 % | for one key in a thousand | lazy or counting |
//! | [`NoSummary`] | 0 | all, in all levels | none is named | nothing to do |
//!
//! (Default settings, 10^6 keys in a table with default settings. Both rates
//! are adjustable.)
//!
//! `cargo xtask bench tables` measures them; `docs/benchmarks.md` has the
//! results.
//!
//! ```
//! use tamis::summary::{
//!     Interpolation, Summary, SummaryBuilder, TableShape,
//! };
//!
//! let shape = TableShape::new(1000, &[1800, 700, 300], 1)?;
//! let mut summary = Interpolation::builder().build(&shape)?;
//! summary.insert(0x1234, 2);
//! assert_eq!(summary.locate(0x1234).level, Some(2));
//! assert_eq!(summary.locate(0x1235).level, None);
//! # Ok::<(), tamis::Error>(())
//! ```

mod cells;
mod counters;
mod deletion;
mod filter_stack;
mod interpolation;
mod layer;
mod located;
mod mixing;
mod no_summary;
mod rates;
mod table_shape;
mod type_filter;

pub use deletion::Deletion;
pub use filter_stack::{FilterStack, FilterStackBuilder};
pub use interpolation::{Interpolation, InterpolationBuilder};
pub use located::{Levels, Located};
pub use no_summary::NoSummary;
pub use table_shape::TableShape;
/// The filter of one level in a [`FilterStack`].
#[doc(no_inline)]
pub use tamis_theory::summary::Filter as LevelFilter;
pub use type_filter::{TypeFilter, TypeFilterBuilder};

use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, Result};

/// An index from keys to levels of a table.
///
/// Every implementation guarantees, after any sequence of insertions and
/// removals in which only inserted keys are removed: a key in the table is
/// never [`ABSENT`](Located::ABSENT), and [`Located::possible`] contains its
/// level. [`Located::level`] may be wrong (a *failure* in the paper: the key
/// is *misnamed*), and is then too high.
///
/// ```
/// use tamis::summary::{
///     Levels, Summary, SummaryBuilder, TableShape, TypeFilter,
/// };
///
/// let shape = TableShape::new(100, &[200, 80], 1)?;
/// let builder = TypeFilter::builder().cells(1000).probes(4);
/// let mut summary = builder.build(&shape)?;
/// summary.insert(7, 1);
/// let located = summary.locate(7);
/// assert_eq!(located.level, Some(1));
/// assert_eq!(located.possible, Levels::below(2));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Summary {
    /// The location of the key with this hash.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Located, NoSummary, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let none = NoSummary::builder().build(&shape)?;
    /// assert_ne!(none.locate(1), Located::ABSENT);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn locate(&self, hash: u64) -> Located;

    /// Records that a key was placed in `level`; a level past the last counts
    /// as the last. Returns whether a key inserted *earlier* may be misnamed
    /// from now on.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().build(&shape)?;
    /// assert!(!summary.insert(1, 0));
    /// assert!(summary.insert(1, 1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn insert(&mut self, hash: u64, level: u32) -> bool;

    /// Records that a key inserted with this level was removed.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().build(&shape)?;
    /// summary.insert(1, 0);
    /// summary.remove(1, 0);
    /// assert_eq!(summary.locate(1).level, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn remove(&mut self, hash: u64, level: u32);

    /// Removes all keys.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().build(&shape)?;
    /// summary.insert(1, 0);
    /// summary.clear();
    /// assert_eq!(summary.locate(1).level, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn clear(&mut self);

    /// The number of removed keys that are still in the summary (see
    /// [`Deletion::Lazy`]).
    ///
    /// ```
    /// use tamis::summary::{
    ///     Summary, SummaryBuilder, TableShape, TypeFilter,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let builder = TypeFilter::builder().cells(1000).probes(4);
    /// let mut summary = builder.build(&shape)?;
    /// summary.insert(1, 0);
    /// summary.remove(1, 0);
    /// assert_eq!(summary.stale(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn stale(&self) -> u64;

    /// Whether the stale keys exceed their share, so that the summary should
    /// be cleared and filled again from the keys of the table.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Deletion, Summary, SummaryBuilder, TableShape, TypeFilter,
    /// };
    /// let shape = TableShape::new(2, &[8, 4], 1)?;
    /// let lazy = Deletion::Lazy { share: 0.5 };
    /// let builder = TypeFilter::builder().cells(1000).probes(4);
    /// let mut summary = builder.deletion(lazy).build(&shape)?;
    /// for hash in [1, 2] {
    ///     assert!(!summary.needs_rebuild());
    ///     summary.insert(hash, 0);
    ///     summary.remove(hash, 0);
    /// }
    /// assert!(summary.needs_rebuild());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn needs_rebuild(&self) -> bool;

    /// The memory of the summary in bits.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Summary, SummaryBuilder, TableShape, TypeFilter,
    /// };
    /// let shape = TableShape::new(9, &[8, 4, 2, 1, 1], 1)?;
    /// // A cell of a table of five levels has six values; a word holds 24.
    /// let builder = TypeFilter::builder().cells(240).probes(2);
    /// assert_eq!(builder.build(&shape)?.bits(), 640);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn bits(&self) -> u64;

    /// The probability that a key that is not in the table is located in some
    /// level, computed from the present contents. Reads the whole summary.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().bits(10).build(&shape)?;
    /// summary.insert(1, 0);
    /// assert_eq!(summary.false_positive(), 1.0 / 1024.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn false_positive(&self) -> f64;
}

/// The settings of a summary; [`build`](Self::build) fits them to a table.
///
/// ```
/// use tamis::summary::{
///     Interpolation, Summary, SummaryBuilder, TableShape,
/// };
/// let builder = Interpolation::builder().bits(40);
/// let [small, large] = [100, 100_000].map(|items| {
///     TableShape::new(items, &[2 * items, items], 1)
///         .and_then(|shape| builder.build(&shape))
/// });
/// assert!(small?.bits() < large?.bits());
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait SummaryBuilder {
    /// The summary that is built.
    type Summary: Summary;

    /// An empty summary for a table of this shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a size is out of range,
    /// [`Error::Infeasible`] if a rate is out of range or unreachable for
    /// this table,
    /// [`Error::Allocation`] if memory runs out.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, SummaryBuilder, TableShape};
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// assert!(Interpolation::builder().bits(62).build(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn build(&self, shape: &TableShape) -> Result<Self::Summary>;
}

/// Formats the size of a summary instead of its contents.
fn fmt_size(
    name: &str,
    summary: &impl Summary,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.debug_struct(name)
        .field("bits", &summary.bits())
        .field("stale", &summary.stale())
        .finish_non_exhaustive()
}

/// `count` default values, or [`Error::Allocation`].
fn zeroed<T: Clone + Default>(count: u64) -> Result<Vec<T>> {
    let bytes = count.saturating_mul(size_of::<T>() as u64);
    let no_memory = || Error::Allocation { bytes };
    let len = usize::try_from(count).map_err(|_| no_memory())?;
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).map_err(|_| no_memory())?;
    zeros.resize(len, T::default());
    Ok(zeros)
}

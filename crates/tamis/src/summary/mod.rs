//! Summaries: which level of a table holds a key, or that none does.
//!
//! A table of several levels has one bucket for a key in each. A summary is
//! small enough for fast memory and names the right one, so that the slow
//! memory with the entries is read once (Kirsch and Mitzenmacher, "Simple
//! Summaries for Hashing with Multiple Choices"). It knows nothing of the
//! table, works on the 64-bit hash of the key, and mixes it in its own way.
//!
//! | | bits per key | absent keys read | level named wrongly | removal |
//! |---|---|---|---|---|
//! | [`Interpolation`] | 69.5 | none | where two strings of 61 bits are equal | exact |
//! | [`TypeFilter`] | 27.9 | 1 % | for fewer than one key in a thousand | lazy or counting |
//! | [`FilterStack`] | 15.3 | 1 % | for one key in a thousand | lazy or counting |
//! | [`Unsummarised`] | 0 | all, in all levels | none is named | nothing to do |
//!
//! (As they come, for 10^6 keys in a table as it comes; both rates can be
//! chosen.)
//!
//! `cargo xtask bench tables` measures them, and `docs/benchmarks.md` has the
//! numbers.
//!
//! ```
//! use tamis::summary::{Interpolation, Plan, Shape, Summary};
//!
//! let shape = Shape::new(1000, &[1800, 700, 300], 1)?;
//! let mut summary = Interpolation::plan().build(&shape)?;
//! summary.insert(0x1234, 2);
//! assert_eq!(summary.locate(0x1234).named, Some(2));
//! assert_eq!(summary.locate(0x1235).named, None);
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
mod shape;
pub(crate) mod tracking;
mod type_filter;
mod unsummarised;

pub use deletion::Deletion;
pub use filter_stack::{FilterStack, FilterStackPlan};
pub use interpolation::{Interpolation, InterpolationPlan};
pub use located::{Levels, Located};
pub use shape::Shape;
#[doc(no_inline)]
pub use tamis_theory::summary::Filter;
pub use type_filter::{TypeFilter, TypeFilterPlan};
pub use unsummarised::Unsummarised;

use alloc::vec::Vec;

use crate::error::{Error, Result};

/// The share of absent keys that are read, unless said otherwise.
const FALSE_POSITIVE: f64 = 0.01;

/// The share of present keys that are misnamed, unless said otherwise.
const MISNAMED: f64 = 1e-3;

/// Says in which level of a table a key is.
///
/// What holds for every implementation, whatever was inserted and removed, if
/// only what was inserted is removed: a key in the table is never
/// [`ABSENT`](Located::ABSENT), and [`Located::possible`] has its level. The
/// level *named* may be wrong (a *failure*), and is then too high.
///
/// ```
/// use tamis::summary::{Levels, Shape, Plan, Summary, TypeFilter};
///
/// let shape = Shape::new(100, &[200, 80], 1)?;
/// let mut summary = TypeFilter::plan().cells(1000).probes(4).build(&shape)?;
/// summary.insert(7, 1);
/// let located = summary.locate(7);
/// assert_eq!(located.named, Some(1));
/// assert_eq!(located.possible, Levels::below(2));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Summary {
    /// Where the key with this hash is.
    ///
    /// ```
    /// use tamis::summary::{Located, Plan, Shape, Summary, Unsummarised};
    /// let none = Unsummarised::plan().build(&Shape::new(9, &[8, 4], 1)?)?;
    /// assert_ne!(none.locate(1), Located::ABSENT);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn locate(&self, hash: u64) -> Located;

    /// Learns that a key was put into a level; levels that the table does
    /// not have count as its last. Whether a key inserted *before* may be
    /// named wrongly from now on.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, Plan, Shape, Summary};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::plan().build(&shape)?;
    /// assert!(!summary.insert(1, 0));
    /// assert!(summary.insert(1, 1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn insert(&mut self, hash: u64, level: u32) -> bool;

    /// Learns that a key inserted with this level is gone.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, Plan, Shape, Summary};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::plan().build(&shape)?;
    /// summary.insert(1, 0);
    /// summary.remove(1, 0);
    /// assert_eq!(summary.locate(1).named, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn remove(&mut self, hash: u64, level: u32);

    /// Forgets everything.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, Plan, Shape, Summary};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::plan().build(&shape)?;
    /// summary.insert(1, 0);
    /// summary.clear();
    /// assert_eq!(summary.locate(1).named, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn clear(&mut self);

    /// Removed keys it has not forgotten.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, Summary, TypeFilter};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// let plan = TypeFilter::plan().cells(1000).probes(4);
    /// let mut summary = plan.build(&shape)?;
    /// summary.insert(1, 0);
    /// summary.remove(1, 0);
    /// assert_eq!(summary.stale(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn stale(&self) -> u64;

    /// Whether so much in it is stale that it should be made again from the
    /// keys there are.
    ///
    /// ```
    /// use tamis::summary::{Deletion, Plan, Shape, Summary, TypeFilter};
    /// let shape = Shape::new(2, &[8, 4], 1)?;
    /// let lazy = Deletion::Lazy { share: 0.5 };
    /// let plan = TypeFilter::plan().cells(1000).probes(4).deletion(lazy);
    /// let mut summary = plan.build(&shape)?;
    /// for hash in [1, 2] {
    ///     assert!(!summary.is_worn());
    ///     summary.insert(hash, 0);
    ///     summary.remove(hash, 0);
    /// }
    /// assert!(summary.is_worn());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn is_worn(&self) -> bool;

    /// The bits of memory it takes.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, Summary, TypeFilter};
    /// let shape = Shape::new(9, &[8, 4, 2, 1, 1], 1)?;
    /// // Six values a cell, 24 of them a word.
    /// let summary = TypeFilter::plan().cells(240).probes(2).build(&shape)?;
    /// assert_eq!(summary.bits(), 640);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn bits(&self) -> u64;

    /// The chance that a key that is not in the table is located somewhere,
    /// from what is in the summary now. Looks at all of it.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, Plan, Shape, Summary};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::plan().bits(10).build(&shape)?;
    /// summary.insert(1, 0);
    /// assert_eq!(summary.false_positive(), 1.0 / 1024.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn false_positive(&self) -> f64;
}

/// What is wanted of a summary, before the table is known.
///
/// ```
/// use tamis::summary::{Interpolation, Plan, Shape, Summary};
/// let plan = Interpolation::plan().bits(40);
/// let [small, large] = [100, 100_000].map(|items| {
///     Shape::new(items, &[2 * items, items], 1)
///         .and_then(|shape| plan.build(&shape))
/// });
/// assert!(small?.bits() < large?.bits());
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Plan {
    /// What it makes.
    type Summary: Summary;

    /// An empty summary for a table.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a size is out of range,
    /// [`Error::Infeasible`] if a rate is, or if there is no such summary for
    /// this table,
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, Plan, Shape};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// assert!(Interpolation::plan().bits(62).build(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn build(&self, shape: &Shape) -> Result<Self::Summary>;
}

/// Zeros, if there is memory for them.
fn zeroed<T: Clone + Default>(count: u64) -> Result<Vec<T>> {
    let bytes = count.saturating_mul(size_of::<T>() as u64);
    let no_memory = || Error::Allocation { bytes };
    let len = usize::try_from(count).map_err(|_| no_memory())?;
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).map_err(|_| no_memory())?;
    zeros.resize(len, T::default());
    Ok(zeros)
}

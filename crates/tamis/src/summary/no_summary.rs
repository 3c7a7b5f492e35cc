//! The summary of a table without one.

use super::{Levels, Located, Summary, SummaryBuilder, TableShape};
use crate::error::Result;

/// No summary: a lookup reads the levels in order, 1 to d buckets for a
/// present key and all d for an absent one. Takes no memory; the baseline for
/// the other summaries.
///
/// ```
/// use tamis::summary::{
///     Levels, NoSummary, Summary, SummaryBuilder, TableShape,
/// };
///
/// let shape = TableShape::new(9, &[8, 4, 2], 1)?;
/// let none = NoSummary::builder().build(&shape)?;
/// assert_eq!(none.locate(1).possible, Levels::below(3));
/// assert_eq!((none.bits(), none.false_positive()), (0, 1.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NoSummary {
    depth: u32,
}

impl NoSummary {
    /// A builder without settings.
    ///
    /// ```
    /// use tamis::summary::{NoSummary, SummaryBuilder, TableShape};
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// assert!(NoSummary::builder().build(&shape).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn builder() -> impl SummaryBuilder<Summary = Self> {
        NoSummaryBuilder
    }
}

struct NoSummaryBuilder;

impl SummaryBuilder for NoSummaryBuilder {
    type Summary = NoSummary;

    fn build(&self, shape: &TableShape) -> Result<NoSummary> {
        Ok(NoSummary { depth: shape.depth() })
    }
}

impl Summary for NoSummary {
    #[inline]
    fn locate(&self, _hash: u64) -> Located {
        Located { level: None, possible: Levels::below(self.depth) }
    }

    fn insert(&mut self, _hash: u64, _level: u32) -> bool {
        false
    }

    fn remove(&mut self, _hash: u64, _level: u32) {}

    fn clear(&mut self) {}

    fn stale(&self) -> u64 {
        0
    }

    fn needs_rebuild(&self) -> bool {
        false
    }

    fn bits(&self) -> u64 {
        0
    }

    fn false_positive(&self) -> f64 {
        1.0
    }
}

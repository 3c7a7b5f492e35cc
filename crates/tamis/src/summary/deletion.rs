//! Removal of keys from a summary.

use super::TableShape;
use crate::error::{Error, Result};

/// How a [`FilterStack`](super::FilterStack) or
/// [`TypeFilter`](super::TypeFilter) removes a key.
///
/// ```
/// use tamis::summary::{
///     Deletion, Summary, SummaryBuilder, TableShape, TypeFilter,
/// };
///
/// let shape = TableShape::new(9, &[8, 4], 1)?;
/// let builder = TypeFilter::builder().cells(1000).probes(4);
/// let mut counting = builder.deletion(Deletion::Counting).build(&shape)?;
/// counting.insert(1, 0);
/// counting.remove(1, 0);
/// assert_eq!(counting.locate(1).level, None);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deletion {
    /// A removed key stays in the summary as a *stale* key. Once the stale
    /// keys exceed `share` of the design items, the table rebuilds the
    /// summary from its keys, at one insertion into the summary per key.
    /// Until then removal is free, and the error rates are those of a table
    /// with the stale keys still in it.
    Lazy {
        /// Stale keys allowed, as a share of the design items.
        share: f64,
    },
    /// Every bit (in a type filter: every level of every cell) has a counter
    /// of four bits and is cleared with the last key that set it. A counter
    /// that reaches 15 stays at 15. Only updates touch the counters, so they
    /// may lie in slower memory than the filter.
    Counting,
}

impl Default for Deletion {
    /// Lazy, with a share of a quarter.
    fn default() -> Self {
        Self::Lazy { share: 0.25 }
    }
}

impl Deletion {
    /// The counter of stale keys for a new summary.
    pub(super) fn stale_keys(self, shape: &TableShape) -> Result<StaleKeys> {
        let share = match self {
            Self::Lazy { share } => share,
            Self::Counting => 0.0,
        };
        if !(share >= 0.0 && share.is_finite()) {
            return Err(Error::InvalidArgument {
                what: "share of stale keys",
                why: "expected a finite number, 0 or more",
            });
        }
        // The cast saturates, at counts that no table reaches.
        let quota = (share * shape.items() as f64) as u64;
        Ok(StaleKeys { count: 0, quota })
    }
}

/// The number of removed keys that are still in a summary, and its limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct StaleKeys {
    pub(super) count: u64,
    quota: u64,
}

impl StaleKeys {
    pub(super) fn exceed_quota(self) -> bool {
        self.count > self.quota
    }
}

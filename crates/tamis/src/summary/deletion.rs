//! How a summary forgets.

use super::Shape;
use crate::error::{Error, Result};

/// What becomes of a removed key in a summary that is a filter.
///
/// ```
/// use tamis::summary::{Deletion, Plan, Shape, Summary, TypeFilter};
///
/// let shape = Shape::new(9, &[8, 4], 1)?;
/// let plan = TypeFilter::plan().cells(1000).probes(4);
/// let mut counting = plan.deletion(Deletion::Counting).build(&shape)?;
/// counting.insert(1, 0);
/// counting.remove(1, 0);
/// assert_eq!(counting.locate(1).named, None);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deletion {
    /// It stays in the summary, stale, until more than this share of the
    /// design items is; then the table makes the summary again from the keys
    /// it has. Costs nothing until then, when it costs one insertion into the
    /// summary for every key; the rates are those of so many keys more.
    Lazy {
        /// Of the design items.
        share: f64,
    },
    /// Every bit (in a type filter: every level of every cell) has a counter
    /// of four bits and is cleared with the last key that set it. A counter
    /// that reaches 15 stays there. Only updates touch the counters: they
    /// may lie in slower memory than the filter.
    Counting,
}

impl Default for Deletion {
    /// Lazy, a quarter.
    fn default() -> Self {
        Self::Lazy { share: 0.25 }
    }
}

impl Deletion {
    /// How many stale keys are allowed.
    pub(super) fn quota(self, shape: &Shape) -> Result<Wear> {
        let share = match self {
            Self::Lazy { share } => share,
            Self::Counting => 0.0,
        };
        if !(share >= 0.0 && share.is_finite()) {
            return Err(Error::InvalidArgument {
                what: "share of stale keys",
                why: "expected a number from 0 on",
            });
        }
        // Saturates at numbers that are never reached.
        Ok(Wear { stale: 0, quota: (share * shape.items() as f64) as u64 })
    }
}

/// Removed keys that are still in a summary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wear {
    pub(super) stale: u64,
    quota: u64,
}

impl Wear {
    pub(super) fn is_over(self) -> bool {
        self.stale > self.quota
    }
}

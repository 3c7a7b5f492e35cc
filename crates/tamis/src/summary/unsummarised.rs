//! No summary at all.

use super::{Levels, Located, Plan, Shape, Summary};
use crate::error::Result;

/// No summary: a lookup reads the levels in order, 1 to d buckets for a key
/// that is there, all d for one that is not. No memory, and the measure for
/// everything that takes some.
///
/// ```
/// use tamis::summary::{Levels, Plan, Shape, Summary, Unsummarised};
///
/// let none = Unsummarised::plan().build(&Shape::new(9, &[8, 4, 2], 1)?)?;
/// assert_eq!(none.locate(1).possible, Levels::below(3));
/// assert_eq!((none.bits(), none.false_positive()), (0, 1.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Unsummarised {
    depth: u32,
}

impl Unsummarised {
    /// Nothing to be said about it.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, Unsummarised};
    /// let shape = Shape::new(9, &[8, 4], 1)?;
    /// assert!(Unsummarised::plan().build(&shape).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn plan() -> impl Plan<Summary = Self> {
        Nothing
    }
}

struct Nothing;

impl Plan for Nothing {
    type Summary = Unsummarised;

    fn build(&self, shape: &Shape) -> Result<Unsummarised> {
        Ok(Unsummarised { depth: shape.depth() })
    }
}

impl Summary for Unsummarised {
    #[inline]
    fn locate(&self, _hash: u64) -> Located {
        Located { named: None, possible: Levels::below(self.depth) }
    }

    fn insert(&mut self, _hash: u64, _level: u32) -> bool {
        false
    }

    fn remove(&mut self, _hash: u64, _level: u32) {}

    fn clear(&mut self) {}

    fn stale(&self) -> u64 {
        0
    }

    fn is_worn(&self) -> bool {
        false
    }

    fn bits(&self) -> u64 {
        0
    }

    fn false_positive(&self) -> f64 {
        1.0
    }
}

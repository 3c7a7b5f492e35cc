//! The table a summary is for.

use alloc::vec::Vec;

use tamis_theory::crisis::Occupancy;

use crate::error::{Error, Result};
use crate::placement::MAX_CHOICES;

/// How many keys a table is for, and how many buckets of how many entries
/// its levels have.
///
/// ```
/// use tamis::summary::Shape;
///
/// let shape = Shape::new(10_000, &[18_000, 7200, 3600, 1200], 1)?;
/// assert_eq!(shape.levels().len(), 4);
/// assert!(Shape::new(10_000, &[], 1).is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    items: u64,
    levels: Vec<u64>,
    bucket_entries: u32,
}

impl Shape {
    /// A table of `items` keys (n) in levels of these many buckets (m_1, m_2,
    /// ..), each of `bucket_entries` (h).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless there are 1 to 8 levels, none of
    /// them empty, of no more buckets and entries than 64 bits count.
    ///
    /// ```
    /// use tamis::summary::Shape;
    /// assert!(Shape::new(10, &[8, 0], 1).is_err());
    /// assert!(Shape::new(10, &[u64::MAX, 2], 1).is_err());
    /// ```
    pub fn new(
        items: u64,
        levels: &[u64],
        bucket_entries: u32,
    ) -> Result<Self> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        if !(1..=MAX_CHOICES).contains(&levels.len()) {
            return invalid("levels", "expected 1 to 8");
        }
        if levels.contains(&0) {
            return invalid("levels", "expected a bucket in each at least");
        }
        if bucket_entries == 0 {
            return invalid("bucket entries", "expected 1 at least");
        }
        let entries = levels
            .iter()
            .try_fold(0u64, |sum, &level| sum.checked_add(level))
            .and_then(|buckets| buckets.checked_mul(bucket_entries.into()));
        if entries.is_none() {
            return invalid("levels", "expected fewer entries than 2^64");
        }
        Ok(Self { items, levels: levels.to_vec(), bucket_entries })
    }

    /// Keys it is for (n).
    ///
    /// ```
    /// use tamis::summary::Shape;
    /// assert_eq!(Shape::new(10, &[8, 4], 1)?.items(), 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Buckets in each level (m_j).
    ///
    /// ```
    /// use tamis::summary::Shape;
    /// assert_eq!(Shape::new(10, &[8, 4], 1)?.levels(), [8, 4]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn levels(&self) -> &[u64] {
        &self.levels
    }

    /// Entries in a bucket (h).
    ///
    /// ```
    /// use tamis::summary::Shape;
    /// assert_eq!(Shape::new(10, &[8, 4], 2)?.bucket_entries(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bucket_entries(&self) -> u32 {
        self.bucket_entries
    }

    /// What the theory knows about such a table.
    pub(crate) fn occupancy(&self) -> Result<Occupancy> {
        let Self { items, levels, bucket_entries } = self;
        Ok(Occupancy::new(*items, levels, *bucket_entries)?)
    }

    /// How many levels there are (d), 1 to 8.
    pub(crate) fn depth(&self) -> u32 {
        self.levels.len() as u32
    }
}

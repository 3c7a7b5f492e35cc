//! The dimensions of a table.

use alloc::vec::Vec;

use tamis_theory::crisis::Occupancy;

use crate::error::{Error, Result};
use crate::placement::MAX_CHOICES;

/// The design items, the levels and the bucket size of a multilevel table.
///
/// ```
/// use tamis::summary::TableShape;
///
/// let shape = TableShape::new(10_000, &[18_000, 7200, 3600, 1200], 1)?;
/// assert_eq!(shape.levels().len(), 4);
/// assert!(TableShape::new(10_000, &[], 1).is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    items: u64,
    levels: Vec<u64>,
    bucket_entries: u32,
}

impl TableShape {
    /// A table for `items` keys (n) whose level j has `levels[j]` buckets
    /// (m_1, m_2, ..) of `bucket_entries` entries (h).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless the table has 1 to 8 levels, every
    /// level has a bucket, and the entries are fewer than 2^64.
    ///
    /// ```
    /// use tamis::summary::TableShape;
    /// assert!(TableShape::new(10, &[8, 0], 1).is_err());
    /// assert!(TableShape::new(10, &[u64::MAX, 2], 1).is_err());
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
            return invalid("levels", "expected at least one bucket in each");
        }
        if bucket_entries == 0 {
            return invalid("bucket entries", "expected at least 1");
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

    /// The design items (n).
    ///
    /// ```
    /// use tamis::summary::TableShape;
    /// assert_eq!(TableShape::new(10, &[8, 4], 1)?.items(), 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The number of buckets in each level (m_j).
    ///
    /// ```
    /// use tamis::summary::TableShape;
    /// assert_eq!(TableShape::new(10, &[8, 4], 1)?.levels(), [8, 4]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn levels(&self) -> &[u64] {
        &self.levels
    }

    /// The entries of a bucket (h).
    ///
    /// ```
    /// use tamis::summary::TableShape;
    /// assert_eq!(TableShape::new(10, &[8, 4], 2)?.bucket_entries(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bucket_entries(&self) -> u32 {
        self.bucket_entries
    }

    /// The theory of a table of this shape.
    pub(crate) fn occupancy(&self) -> Result<Occupancy> {
        let Self { items, levels, bucket_entries } = self;
        Ok(Occupancy::new(*items, levels, *bucket_entries)?)
    }

    /// The number of levels (d), 1 to 8.
    pub(crate) fn depth(&self) -> u32 {
        self.levels.len() as u32
    }
}

//! Positions of entries and counts of keys, common to the tables.

use crate::placement::MAX_CHOICES;

/// The position of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Entry `at` of a bucket, the key's bucket number `choice` (its level, in
    /// a table of levels).
    Bucket { choice: u32, bucket: usize, at: usize },
    /// Entry `at` of the listed entries with the key's hash.
    List { at: usize },
}

/// The result of a search.
pub(super) struct Search {
    pub(super) hash: u64,
    /// `None` if the key is absent.
    pub(super) place: Option<Place>,
    /// Buckets read.
    pub(super) reads: u32,
}

/// Counts of keys and of insertions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TableCounts {
    /// Keys that a lookup finds at each choice; listed keys are not counted.
    pub(super) found_at: [usize; MAX_CHOICES],
    /// New keys inserted since the table was built, cleared or rebuilt.
    pub(super) insertions: u64,
    /// Buckets read by these insertions.
    pub(super) insertion_reads: u64,
}

impl TableCounts {
    /// The number of keys in buckets.
    pub(super) fn in_buckets(&self) -> usize {
        self.found_at.iter().sum()
    }

    /// The count of keys found at `choice`, which is below [`MAX_CHOICES`].
    pub(super) fn found_at_mut(&mut self, choice: u32) -> &mut usize {
        &mut self.found_at[choice as usize % MAX_CHOICES]
    }

    pub(super) fn record_insertion(&mut self, reads: u32) {
        self.insertions += 1;
        self.insertion_reads += u64::from(reads);
    }

    /// Buckets read per insertion; `None` before the first.
    pub(super) fn reads_per_insertion(&self) -> Option<f64> {
        ratio(self.insertion_reads as f64, self.insertions as f64)
    }
}

/// `part / whole`; `None` if `whole` is 0.
pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

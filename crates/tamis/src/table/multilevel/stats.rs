//! Statistics of a table.

use alloc::vec::Vec;

use super::Multilevel;
use crate::key::Key;
use crate::summary::Summary;
use crate::table::place::ratio;

/// Bits that one exception counts in
/// [`MultilevelStats::summary_bits_per_key`].
const EXCEPTION_BITS: u64 = 128;

/// The fill of a table and the cost of its operations.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
/// table.insert("apple", 3)?;
/// let stats = table.stats();
/// assert_eq!((stats.items, stats.reads_hit), (1, Some(1.0)));
/// // Two reads to search for the key; room is found by the occupancy bits.
/// assert_eq!(stats.reads_insert, Some(2.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MultilevelStats {
    /// Keys in the table.
    pub items: usize,
    /// Keys in each level (N_j), the first level first.
    pub level_items: Vec<usize>,
    /// Lazily deleted keys that keep their slots, in each level.
    pub level_deleted: Vec<usize>,
    /// Rebuilds by [`RemovalRule::Lazy`](super::RemovalRule::Lazy) since the table
    /// was built.
    pub rebuilds: u64,
    /// Keys in the stash.
    pub stashed: usize,
    /// Hashes whose true level is recorded because the summary misnames it.
    pub exceptions: usize,
    /// Whether every misnamed key is recorded as an exception, so that a
    /// lookup reads the named bucket only.
    pub audited: bool,
    /// Removed keys that are still in the summary, the lazily deleted ones
    /// included.
    pub stale: u64,
    /// Bits beside the summary that mark full buckets: one per bucket, in
    /// whole words.
    pub occupancy_bits: u64,
    /// Bits of the summary per key, with 128 bits for each exception; `None`
    /// if the table is empty.
    pub summary_bits_per_key: Option<f64>,
    /// Buckets read by the lookup of a present key, on average; `None` if the
    /// table is empty.
    pub reads_hit: Option<f64>,
    /// The share of absent keys for which a bucket is read.
    pub false_positive: f64,
    /// Buckets read per insertion of a new key since the table was built,
    /// cleared or rebuilt: by the search for the key, and once to find the free
    /// slot of a bucket with several. The occupancy bits find the bucket.
    /// `None` before the first insertion.
    pub reads_insert: Option<f64>,
    /// Whether the table holds more keys than its design items.
    pub over_design: bool,
}

impl<K: Key + Eq, V, S: Summary> Multilevel<K, V, S> {
    /// The fill of the table and the cost of lookups, computed from its
    /// present contents. Reads every key and the whole summary.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().items(1000).build()?;
    /// (0..1000u32).for_each(|i| assert!(table.insert(i, ()).is_ok()));
    /// let stats = table.stats();
    /// // Without a summary a key in level j takes j + 1 reads.
    /// let levels = (1..).zip(&stats.level_items);
    /// let reads: usize = levels.map(|(reads, items)| reads * items).sum();
    /// assert_eq!(stats.reads_hit, Some(reads as f64 / 1000.0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> MultilevelStats {
        let items = self.len();
        let levels = self.shape.levels().len();
        let level_items = self.counts.found_at.into_iter().take(levels);
        let level_deleted = self.deleted.at.into_iter().take(levels);
        let exceptions = self.directory.exceptions();
        let summary = &self.directory.summary;
        let bits = summary.bits() + EXCEPTION_BITS * exceptions as u64;
        let reads: u64 = self
            .placed()
            .map(|(hash, level)| {
                let before = self
                    .directory
                    .route(hash)
                    .take_while(|&read| read != level);
                before.count() as u64 + 1
            })
            .sum();
        MultilevelStats {
            items,
            level_items: level_items.collect(),
            level_deleted: level_deleted.collect(),
            rebuilds: self.deleted.rebuilds,
            stashed: self.stash.len(),
            exceptions,
            audited: self.directory.audited,
            stale: summary.stale() + self.deleted.count() as u64,
            occupancy_bits: self.buckets.occupancy_bits(),
            summary_bits_per_key: ratio(bits as f64, items as f64),
            reads_hit: ratio(reads as f64, items as f64),
            false_positive: summary.false_positive(),
            reads_insert: self.counts.reads_per_insertion(),
            over_design: items as u64 > self.shape.items(),
        }
    }
}

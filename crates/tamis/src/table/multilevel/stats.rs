//! What a table says about itself.

use alloc::vec::Vec;

use super::Multilevel;
use crate::key::Key;
use crate::summary::Summary;

/// One level of a table.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
/// table.insert("apple", 3)?;
/// let first = table.stats().levels[0];
/// assert_eq!((first.buckets, first.items, first.occupancy), (20, 1, 0.05));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Its buckets (m_j).
    pub buckets: u64,
    /// The keys in it (N_j).
    pub items: usize,
    /// The share of its entries that are taken.
    pub occupancy: f64,
}

/// How a table is filled, and what that costs.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
/// table.insert("apple", 3)?;
/// let stats = table.stats();
/// assert_eq!((stats.items, stats.reads_hit), (1, Some(1.0)));
/// // Two for looking whether it is there, one to put it in.
/// assert_eq!(stats.reads_insert, Some(3.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MultilevelStats {
    /// Keys in the table.
    pub items: usize,
    /// The levels, largest first.
    pub levels: Vec<LevelStats>,
    /// Keys that no level had room for.
    pub stashed: usize,
    /// Hashes of keys that the summary misnames and that are written down.
    pub exceptions: usize,
    /// Whether every misnamed key is written down, so that lookups need not
    /// read on.
    pub audited: bool,
    /// Removed keys that are still in the summary.
    pub stale: u64,
    /// Bits of the summary per key, written down exceptions included (as 128
    /// bits each); none if the table is empty.
    pub summary_bits_per_key: Option<f64>,
    /// Buckets read by the lookup of a key in the table, on average; none if
    /// it is empty.
    pub reads_hit: Option<f64>,
    /// The share of keys not in the table for which a bucket is read.
    pub false_positive: f64,
    /// Buckets read per insertion of a new key since the table was built,
    /// cleared or rebuilt, those read to see that it is new included; none
    /// before the first.
    pub reads_insert: Option<f64>,
    /// Whether it holds more keys than it was designed for.
    pub over_design: bool,
}

impl<K: Key + Eq, V, S: Summary> Multilevel<K, V, S> {
    /// How the table is filled and what lookups cost, from what it holds
    /// now. Looks at every key, and at the whole summary.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().items(1000).build()?;
    /// (0..1000u32).for_each(|i| assert!(table.insert(i, ()).is_ok()));
    /// let stats = table.stats();
    /// // Without a summary the second level costs two reads, and so on.
    /// let levels = (1..).zip(&stats.levels);
    /// let reads: usize = levels.map(|(reads, l)| reads * l.items).sum();
    /// assert_eq!(stats.reads_hit, Some(reads as f64 / 1000.0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> MultilevelStats {
        let items = self.len();
        let share = |part: f64, of: f64| (of > 0.0).then(|| part / of);
        let size = f64::from(self.shape.bucket_entries());
        let levels = self.shape.levels().iter().zip(self.tally.level_items);
        let levels = levels.map(|(&buckets, items)| LevelStats {
            buckets,
            items,
            occupancy: items as f64 / (buckets as f64 * size),
        });
        let exceptions = self.exceptions.len();
        let bits = self.summary.bits() + 128 * exceptions as u64;
        let reads: u64 = self
            .placed()
            .map(|(hash, level)| {
                let way = self.route(hash).take_while(|&read| read != level);
                way.count() as u64 + 1
            })
            .sum();
        let super::Tally { insertions, insertion_reads, .. } = self.tally;
        MultilevelStats {
            items,
            levels: levels.collect(),
            stashed: self.stash.len(),
            exceptions,
            audited: self.audited,
            stale: self.summary.stale(),
            summary_bits_per_key: share(bits as f64, items as f64),
            reads_hit: share(reads as f64, items as f64),
            false_positive: self.summary.false_positive(),
            reads_insert: share(insertion_reads as f64, insertions as f64),
            over_design: items as u64 > self.shape.items(),
        }
    }
}

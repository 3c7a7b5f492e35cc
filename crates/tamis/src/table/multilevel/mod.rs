//! The multilevel hash table.

mod access;
mod buckets;
mod builder;
mod removal_rule;
mod stats;
mod table_full;
mod upkeep;

pub use access::Lookup;
pub use builder::{MultilevelBuilder, MultilevelDesign};
pub use removal_rule::RemovalRule;
pub use stats::MultilevelStats;
pub use table_full::TableFull;

use core::fmt;

use super::directory::Directory;
use super::entry_list::EntryList;
use super::place::TableCounts;
use crate::error::Result;
use crate::key::KeyHasher;
use crate::placement::{MAX_CHOICES, Proposals, Scheme};
use crate::summary::{NoSummary, Summary, TableShape};
use buckets::Buckets;

/// A hash table of several levels, each smaller than the one before, in which
/// entries never move (Broder and Karlin; with a summary: Kirsch and
/// Mitzenmacher).
///
/// A key has one bucket in each level and goes to the first that has room. If
/// none has, it goes to a small [stash](MultilevelBuilder::stash), or the
/// insertion fails with [`TableFull`], which returns key and value. A
/// [summary](crate::summary), much smaller than the table and kept in faster
/// memory, names the level of a key, so that a lookup reads one bucket instead
/// of several. [`lookup`](Self::lookup) reports the number of buckets read.
///
/// | | without a summary | with one |
/// |---|---|---|
/// | a hit reads | 1 bucket for each level up to the key's | 1, except for the share of [misnamed](crate::summary::FilterStackBuilder::misnamed) keys; 1 for all after an [audit](Self::audit) |
/// | a miss reads | all levels | its share of false positives |
/// | an insertion reads | the buckets of a miss | the same |
/// | memory beside the entries | 1 bit per bucket | the same, and the summary |
///
/// One bit per bucket marks the full ones, so that an insertion finds room
/// without reading the levels before; a bucket of several entries is read once
/// to find the free one.
///
/// **A wrong summary loses no key.** A summary may name a wrong level for a
/// present key (a *misnamed* key), but never excludes the true one. A key that
/// is misnamed when it is inserted becomes an *exception*: its true level is
/// recorded beside the summary, and lookups use the record. An insertion can
/// also cause earlier keys to be misnamed, without revealing which; the table
/// is then no longer *audited*, and a lookup that does not find the key in the
/// named bucket reads the other possible levels. [`audit`](Self::audit) turns
/// every misnamed key into an exception, after which the named bucket suffices
/// again. With [lazy deletion](crate::summary::Deletion::Lazy) a removed key
/// stays in the summary as a *stale* key, which adds false positives and
/// misnamed keys; [`refresh`](Self::refresh) drops the stale keys, and
/// [`remove`](Self::remove) calls it when they exceed their share.
/// [`stats`](Self::stats) reports all three.
///
/// Equal keys must have equal [`Key`](crate::Key) bytes, as `Hash` and `Eq`
/// must agree elsewhere; keys with equal bytes that are *not* equal stay
/// separate.
///
/// **Not guaranteed**:
///
/// * Room under churn with [`RemovalRule::Immediate`], the default, however
///   unlikely a full table is for insertions alone. New keys take the entries
///   that removals free in the first level, old keys stay in the later levels,
///   and those fill up: a table of 10^5 keys with a crisis probability below
///   10^-10 reaches about 13 keys without a place in every turnover
///   ([`crises_per_turnover`](MultilevelDesign::crises_per_turnover)). Such a
///   table needs a stash, and a [`rebuild`](Self::rebuild) when the stash
///   fills; or [`RemovalRule::Lazy`], which keeps the slots until a rebuild and
///   has a crisis in 6 of a million rebuilds.
/// * Room past the design items; the table never adds buckets.
/// * Room for keys chosen to collide, which no one can do against the default
///   [hasher](MultilevelBuilder::hasher). Under another one they fill their
///   buckets and the stash early. The time of an operation stays bounded: it
///   compares a key with the entries of one bucket per level and with 8
///   entries of the stash, or searches the stash in logarithmic time.
///   [`Interpolation`](crate::summary::Interpolation) moves up to 8 bytes for
///   each key of the table if keys are chosen to share a segment.
///
/// ```
/// use tamis::summary::FilterStack;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(10_000).buckets_per_item(3.0);
/// assert!(builder.design()?.crisis < 1e-9);
/// let mut table = builder.build_with(&FilterStack::builder())?;
/// for i in 0..10_000u64 {
///     table.insert(i, i * i)?;
/// }
/// assert_eq!(table.get(&12), Some(&144));
/// let stats = table.stats();
/// // One key in a thousand is misnamed on average, in clusters.
/// assert!(stats.reads_hit.unwrap() < 1.01);
/// assert!(stats.false_positive < 0.012);
/// assert!(stats.summary_bits_per_key.unwrap() < 16.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Multilevel<K, V, S = NoSummary> {
    buckets: Buckets<K, V>,
    /// Keys that no level had room for, at most `stash_entries`.
    stash: EntryList<K, V>,
    stash_entries: usize,
    directory: Directory<S>,
    deleted: DeletedKeys,
    proposals: Proposals,
    shape: TableShape,
    hasher: KeyHasher,
    counts: TableCounts,
}

/// The removed keys that keep their slots.
#[derive(Debug, Clone, Copy)]
struct DeletedKeys {
    rule: RemovalRule,
    /// The number that the next rebuild waits for; `None` if removals free
    /// their slots.
    quota: Option<u64>,
    at: [usize; MAX_CHOICES],
    /// Rebuilds that removals caused.
    rebuilds: u64,
}

impl DeletedKeys {
    fn new(rule: RemovalRule, items: u64) -> Result<Self> {
        let quota = rule.quota(items)?;
        Ok(Self { rule, quota, at: [0; MAX_CHOICES], rebuilds: 0 })
    }

    fn count(&self) -> usize {
        self.at.iter().sum()
    }

    /// No deleted keys, and the quota for `items` keys, also after a rebuild
    /// that failed.
    fn clear(&mut self, items: u64) {
        self.at = [0; MAX_CHOICES];
        // `new` accepted the rule.
        self.quota = self.rule.quota(items).ok().flatten();
    }

    fn at_mut(&mut self, level: u32) -> &mut usize {
        &mut self.at[level as usize % MAX_CHOICES]
    }

    fn exceed_quota(&self) -> bool {
        self.quota.is_some_and(|quota| self.count() as u64 > quota)
    }
}

/// `(), ()`: the types of a table are inferred from
/// [`MultilevelBuilder::build`], so that the builder has no parameters.
impl Multilevel<(), ()> {
    /// A builder with default settings; see [`MultilevelBuilder`].
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let table: Multilevel<u64, u64> =
    ///     Multilevel::builder().items(1000).build()?;
    /// assert!(table.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> MultilevelBuilder {
        MultilevelBuilder::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S: Summary> fmt::Debug
    for Multilevel<K, V, S>
{
    /// Formats the keys and values as a map.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V, S: Summary> Multilevel<K, V, S> {
    fn new(
        shape: TableShape,
        summary: S,
        stash_entries: usize,
        removal: RemovalRule,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let buckets = shape.levels().iter().sum();
        Ok(Self {
            buckets: Buckets::new(buckets, shape.bucket_entries())?,
            stash: EntryList::EMPTY,
            stash_entries,
            directory: Directory::new(summary),
            deleted: DeletedKeys::new(removal, shape.items())?,
            proposals: Proposals::new(Scheme::Multilevel, shape.levels()),
            shape,
            hasher,
            counts: TableCounts::default(),
        })
    }

    /// The design items, the levels and the bucket size.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let table = builder.bucket_entries(4).build::<u64, ()>()?;
    /// assert_eq!(table.shape().levels(), [20, 10]);
    /// assert_eq!(table.shape().bucket_entries(), 4);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &TableShape {
        &self.shape
    }

    /// The summary of the table.
    ///
    /// ```
    /// use tamis::summary::Summary;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let table = builder.build::<u64, ()>()?;
    /// assert_eq!(table.summary().bits(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> &S {
        &self.directory.summary
    }

    /// The hasher of the keys.
    ///
    /// ```
    /// use tamis::{HashId, table::Multilevel};
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let table = builder.build::<u64, ()>()?;
    /// assert_eq!(table.hasher().id(), HashId::SipHash13);
    /// // Each table has a key of its own.
    /// assert_ne!(table.hasher(), builder.build::<u64, ()>()?.hasher());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The number of keys.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert(1u8, 'a')?;
    /// table.insert(1u8, 'b')?;
    /// assert_eq!(table.len(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.in_buckets() + self.stash.len()
    }

    /// Whether the table has no keys.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// assert!(builder.build::<u64, ()>()?.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All keys and values, in unspecified order.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert(1u8, 10)?;
    /// assert_eq!(format!("{table:?}"), "{1: 10}");
    /// table.insert(2u8, 20)?;
    /// assert_eq!(table.iter().map(|(_, value)| value).sum::<i32>(), 30);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        let entries = self.buckets.iter().chain(self.stash.iter());
        entries.map(|(key, value)| (key, value))
    }

    /// Removes all keys.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert(1u8, 'a')?;
    /// table.clear();
    /// assert!(table.is_empty() && table.get(&1).is_none());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.buckets.take().for_each(drop);
        self.stash = EntryList::EMPTY;
        self.directory.clear();
        self.deleted.clear(self.shape.items());
        self.counts = TableCounts::default();
    }
}

//! The multilevel hash table.

mod access;
mod buckets;
mod builder;
mod crisis;
mod stats;
mod upkeep;

pub use access::Lookup;
pub use builder::{MultilevelBuilder, MultilevelDesign};
pub use crisis::Crisis;
pub use stats::{LevelStats, MultilevelStats};

use alloc::collections::BTreeMap;

use super::list::List;
use crate::error::Result;
use crate::key::KeyHasher;
use crate::placement::{MAX_CHOICES, Proposals};
use crate::summary::{Levels, Shape, Summary, Unsummarised};
use buckets::Buckets;

/// A hash table of several levels, each smaller than the one before, in which
/// nothing ever moves (Broder and Karlin; with a summary: Kirsch and
/// Mitzenmacher).
///
/// A key has one bucket in each level and goes to the first that has room.
/// If none has, that is a [`Crisis`], an error that gives key and value back,
/// or the key goes to a small [stash](MultilevelBuilder::stash). Where a key
/// is has to be known to read one bucket and not several: that is what a
/// [summary](crate::summary) is for, which is much smaller than the table and
/// lies in faster memory.
///
/// | | without a summary | with one |
/// |---|---|---|
/// | a hit reads | 1 bucket for each level up to the key's | 1, except for the share of [misnamed](crate::summary::FilterStackPlan::misnamed) keys; 1 for all after an [audit](Self::audit) |
/// | a miss reads | all levels | its share of false positives |
/// | an insertion reads | what a miss does, and the buckets up to the first with room | the same |
/// | memory beside the entries | - | what the summary takes |
///
/// **A wrong summary loses no key.** A key in the table is never taken for
/// absent, and of the levels it can be in none is left out: if the bucket
/// named has not the key, the others are read. Keys known to be misnamed,
/// because they were when they came or because an audit found them, are
/// written down with their true level.
///
/// [`lookup`](Self::lookup) says how many buckets it read.
///
/// Keys that are equal must have equal [`Key`](crate::Key) bytes, as `Hash`
/// and `Eq` must agree elsewhere; keys with equal bytes that are *not* equal
/// stay apart.
///
/// **It cannot promise**:
///
/// * room for keys that come and go, however unlikely a crisis is for keys
///   that only come. New keys take the room that removals leave in the first
///   level, old ones stay in the later levels, and those fill up: a table of
///   10^5 keys with a chance of a crisis below 10^-10 comes to about 13 keys
///   without a place in every turnover
///   ([`crises_per_turnover`](MultilevelDesign::crises_per_turnover)). Such a
///   table needs a stash, and [`rebuild`](Self::rebuild) when that gets full.
/// * room past the design items; it never adds buckets.
/// * anything against chosen keys, without [`KeyHasher::siphash`].
///
/// ```
/// use tamis::summary::FilterStack;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(10_000).buckets_per_item(3.0);
/// assert!(builder.design()?.crisis < 1e-9);
/// let mut table = builder.build_with(&FilterStack::plan())?;
/// for i in 0..10_000u64 {
///     table.insert(i, i * i)?;
/// }
/// assert_eq!(table.get(&12), Some(&144));
/// let stats = table.stats();
/// assert!(stats.reads_hit.unwrap() < 1.003);
/// assert!(stats.false_positive < 0.012);
/// assert!(stats.summary_bits_per_key.unwrap() < 16.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Multilevel<K, V, S = Unsummarised> {
    buckets: Buckets<K, V>,
    /// Keys no level had room for, at most so many.
    stash: List<K, V>,
    stash_entries: usize,
    summary: S,
    /// Hashes of keys that the summary misnames, and where those keys are.
    exceptions: BTreeMap<u64, Levels>,
    /// Whether those are all.
    audited: bool,
    proposals: Proposals,
    shape: Shape,
    hasher: KeyHasher,
    tally: Tally,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    level_items: [usize; MAX_CHOICES],
    /// New keys inserted so far, and the buckets read for that.
    insertions: u64,
    insertion_reads: u64,
}

/// The types of a table are settled by [`MultilevelBuilder::build`], so that
/// the builder needs none.
impl Multilevel<(), ()> {
    /// Starts building a table; see [`MultilevelBuilder`].
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

impl<K, V, S: Summary> Multilevel<K, V, S> {
    fn new(
        shape: Shape,
        summary: S,
        stash_entries: usize,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let buckets = shape.levels().iter().sum();
        Ok(Self {
            buckets: Buckets::new(buckets, shape.bucket_entries())?,
            stash: List::EMPTY,
            stash_entries,
            summary,
            exceptions: BTreeMap::new(),
            audited: true,
            proposals: Proposals::multilevel(shape.levels()),
            shape,
            hasher,
            tally: Tally::default(),
        })
    }

    /// The items it is built for, and its levels.
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
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The summary.
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
        &self.summary
    }

    /// How keys are hashed.
    ///
    /// ```
    /// use tamis::{KeyHasher, table::Multilevel};
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let table = builder.build::<u64, ()>()?;
    /// assert_eq!(*table.hasher(), KeyHasher::default());
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
        self.tally.level_items.iter().sum::<usize>() + self.stash.len()
    }

    /// Whether there are no keys.
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

    /// All keys and values, in no particular order.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert(1u8, 10)?;
    /// table.insert(2u8, 20)?;
    /// assert_eq!(table.iter().map(|(_, value)| value).sum::<i32>(), 30);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        let entries = self.buckets.iter().chain(self.stash.iter());
        entries.map(|(key, value)| (key, value))
    }

    /// Removes everything.
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
        self.stash = List::EMPTY;
        self.summary.clear();
        self.exceptions = BTreeMap::new();
        self.audited = true;
        self.tally = Tally::default();
    }
}

//! The chained hash table of least variance.

mod bucket;
mod builder;

pub use builder::{ChainedBuilder, ChainedDesign};

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;

use super::entry_list::EntryList;
use super::in_reinsertion_order;
use super::multilevel::TableFull;
use super::place::{Place, Search, TableCounts, ratio};
use crate::error::{Error, Result};
use crate::key::{Key, KeyHasher};
use crate::placement::{Proposals, ticket};
use bucket::{Bucket, RefusalRule};

/// A chained hash table whose buckets are filled as evenly as the reads of an
/// insertion allow (Kanizo, Hay and Keslassy, Appendix C).
///
/// A bucket at its threshold refuses a key, which then goes to the next of its
/// buckets, and to a list if all refuse. No scheme with the same reads per
/// insertion and the same share of listed keys has a smaller variance of the
/// occupancy, and no bucket holds more than one key above the threshold.
///
/// Beyond the paper: every bucket records in eight bytes which of 64 classes
/// of keys it ever refused, and a lookup continues to the next bucket only if
/// a key of its class was refused. Nearly every miss then ends at its first
/// bucket. The record stays correct after removals, when the load of a bucket
/// no longer reflects its past refusals.
///
/// At 8 keys per bucket, three choices, measured with 2^17 buckets:
///
/// | | variance of the load | fullest | listed | buckets read: insertion, hit / miss | keys compared per miss: mean, variance |
/// |---|---|---|---|---|---|
/// | plain chaining | 8.00 | 22 | - | 1 / 1 | 8.00, 8.0 |
/// | multilevel, a = 1.05 | 5.18 | 11 | 0.01 % | 1.05 / 1.006 | 8.05, 5.9 |
/// | multilevel, a = 1.1 | 3.76 | 10 | 0.08 % | 1.10 / 1.013 | 8.09, 5.0 |
/// | **multilevel, a = 1.2** | 2.11 | 9 | 0.5 % | 1.20 / 1.026 | 8.16, 4.2 |
/// | multilevel, a = 1.5 | 0.48 | 8 | 4.9 % | 1.50 / 1.070 | 8.14, 5.0 |
/// | sequential, a = 1.2 | 1.89 | 9 | 2.6 % | 1.20 / 1.028 | 8.01, 4.1 |
/// | least loaded of two | 0.90 | | - | 2, 1.5 / 2 | 16.0, 1.8 |
///
/// The last two columns are the cost of a lookup, the first is the quantity
/// that the theory minimises; the appendix equates them. Beyond a = 1.2 the
/// few lookups that read a second bucket cost more than even loads save.
///
/// | | |
/// |---|---|
/// | memory | 32 bytes per bucket, the entries, and the listed ones in a tree |
/// | order of iteration | unspecified |
///
/// The list costs a tree search for the listed keys and for the few misses
/// that continue past every bucket. Equal keys must have equal [`Key`] bytes,
/// as `Hash` and `Eq` must agree elsewhere; keys with equal bytes that are
/// *not* equal stay separate.
///
/// **Not guaranteed**:
///
/// * The design's numbers under churn. Every answer stays correct, but a
///   refused key does not return when its bucket has room again: replacing
///   every key three times at the design load (a = 1.2) leaves 11 % in the
///   list and 1.19 buckets read per miss. [`rebalance`](Self::rebalance)
///   restores the design.
/// * The design's numbers past the design items; the table never adds
///   buckets.
/// * Even loads for keys chosen to collide, which no one can do against the
///   default [hasher](ChainedBuilder::hasher). Under another one they fill
///   the list, which [`try_insert`](Self::try_insert) bounds. The time of an
///   operation stays bounded: it compares a key with the entries of its
///   buckets, each at most one above the threshold (without a threshold,
///   64 above four times the load), and searches the list in logarithmic
///   time.
///
/// Like the collections of the standard library, it aborts if memory runs out
/// during an insertion.
///
/// ```
/// use tamis::table::Chained;
///
/// let mut table = Chained::builder().items(8000).build()?;
/// for i in 0..8000u64 {
///     table.insert(i, i * i);
/// }
/// assert_eq!(table.get(&12), Some(&144));
/// let stats = table.stats();
/// // At this load of 8 plain chaining has a variance of 8.
/// assert!(stats.variance < 3.0);
/// assert!(stats.histogram.len() <= 10);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Chained<K, V> {
    buckets: Vec<Bucket<K, V>>,
    /// Keys that all their buckets refused.
    list: EntryList<K, V>,
    /// The most listed keys of [`try_insert`](Self::try_insert).
    list_capacity: usize,
    proposals: Proposals,
    rule: RefusalRule,
    hasher: KeyHasher,
    counts: TableCounts,
    design: ChainedDesign,
}

/// The fill of a table and the cost of its operations.
///
/// ```
/// use tamis::table::Chained;
///
/// let mut table = Chained::builder().items(80).build()?;
/// table.insert(7u8, "seven");
/// let stats = table.stats();
/// assert_eq!((stats.items, stats.histogram), (1, vec![9, 1]));
/// assert_eq!(stats.accesses, Some(1.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChainedStats {
    /// Keys in the table.
    pub items: usize,
    /// `histogram[i]` buckets hold i keys.
    pub histogram: Vec<u64>,
    /// Keys per bucket, without those in the list.
    pub mean: f64,
    /// The variance of the keys per bucket.
    pub variance: f64,
    /// Buckets read per insertion of a new key since the table was built,
    /// cleared or rebalanced (a); `None` before the first.
    pub accesses: Option<f64>,
    /// The share of keys in the list (gamma); `None` if the table is empty.
    pub overflow_fraction: Option<f64>,
    /// Buckets read by the lookup of a present key, on average; `None` if the
    /// table is empty.
    pub reads_hit: Option<f64>,
    /// Buckets read by the lookup of an absent key, on average.
    pub reads_miss: f64,
    /// Keys compared by the lookup of an absent key, on average.
    pub compared_miss: f64,
    /// Whether the table holds more keys than its design items.
    pub over_design: bool,
}

/// `(), ()`: the types of a table are inferred from
/// [`ChainedBuilder::build`], so that the builder has no parameters.
impl Chained<(), ()> {
    /// A builder with default settings; see [`ChainedBuilder`].
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let table: Chained<u64, u64> =
    ///     Chained::builder().items(1000).build()?;
    /// assert!(table.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> ChainedBuilder {
        ChainedBuilder::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Chained<K, V> {
    /// Formats the keys and values as a map.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V> Chained<K, V> {
    fn with_design(
        design: ChainedDesign,
        proposals: Proposals,
        list_capacity: usize,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let size = size_of::<Bucket<K, V>>() as u64;
        let bytes = design.buckets.saturating_mul(size);
        let no_memory = Error::Allocation { bytes };
        let Ok(count) = usize::try_from(design.buckets) else {
            return Err(no_memory);
        };
        let mut buckets = Vec::new();
        if buckets.try_reserve_exact(count).is_err() {
            return Err(no_memory);
        }
        buckets.resize_with(count, || Bucket::EMPTY);
        let ChainedDesign { threshold, admission, load, .. } = design;
        Ok(Self {
            buckets,
            list: EntryList::EMPTY,
            list_capacity,
            proposals,
            rule: RefusalRule::new(threshold, admission, load),
            hasher,
            counts: TableCounts::default(),
            design,
        })
    }

    /// The properties the table was built for.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let table = Chained::builder().items(1000).build::<u64, ()>()?;
    /// assert_eq!(table.design().access_budget, 1.2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn design(&self) -> &ChainedDesign {
        &self.design
    }

    /// The hasher of the keys.
    ///
    /// ```
    /// use tamis::{HashId, table::Chained};
    /// let table = Chained::builder().items(1000).build::<u64, ()>()?;
    /// assert_eq!(table.hasher().id(), HashId::SipHash13);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The number of buckets in each level; in the single and sequential
    /// schemes the number of all buckets for every choice.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let table = Chained::builder().items(8192).build::<u64, ()>()?;
    /// assert_eq!(table.level_buckets(), [853, 146, 25]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn level_buckets(&self) -> Vec<u64> {
        self.proposals.sizes().to_vec()
    }

    /// The number of keys.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert(1u8, 'a');
    /// table.insert(1u8, 'b');
    /// assert_eq!(table.len(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.in_buckets() + self.list.len()
    }

    /// Whether the table has no keys.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let table = Chained::builder().items(10).build::<u64, ()>()?;
    /// assert!(table.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All keys and values, in unspecified order.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert(1u8, 10);
    /// assert_eq!(format!("{table:?}"), "{1: 10}");
    /// table.insert(2u8, 20);
    /// assert_eq!(table.iter().map(|(_, value)| value).sum::<i32>(), 30);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        let buckets = self.buckets.iter().map(|bucket| &bucket.entries);
        let entries = buckets.flatten().chain(self.list.iter());
        entries.map(|(key, value)| (key, value))
    }

    /// Removes all keys and the records of refused ones.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert(1u8, 'a');
    /// table.clear();
    /// assert!(table.is_empty() && table.get(&1).is_none());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn clear(&mut self) {
        for bucket in &mut self.buckets {
            bucket.entries.clear();
            bucket.refused = 0;
        }
        self.list = EntryList::EMPTY;
        self.counts = TableCounts::default();
    }

    /// The fill of the table and the cost of lookups, computed from its
    /// present contents. Reads every bucket.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(8000).build()?;
    /// (0..8000u32).for_each(|i| assert!(table.insert(i, ()).is_none()));
    /// let (stats, design) = (table.stats(), table.design());
    /// assert!((stats.accesses.unwrap() - design.access_budget).abs() < 0.05);
    /// assert!(stats.reads_miss < 1.1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> ChainedStats {
        let items = self.len();
        let mut histogram = Vec::new();
        for bucket in &self.buckets {
            let load = bucket.entries.len();
            if histogram.len() <= load {
                histogram.resize(load + 1, 0);
            }
            histogram[load] += 1;
        }
        let buckets = self.buckets.len() as f64;
        let listed = self.list.len();
        let in_buckets = items - listed;
        let mean = in_buckets as f64 / buckets;
        let squares: f64 = (0u32..)
            .zip(&histogram)
            .map(|(load, &times)| {
                let away = f64::from(load) - mean;
                away * away * times as f64
            })
            .sum();
        let (mut reads_miss, mut compared_miss, mut reach) = (0.0, 0.0, 1.0);
        for range in self.proposals.ranges() {
            let start = range.first as usize;
            let level = &self.buckets[start..start + range.blocks as usize];
            let (mut load, mut passes) = (0.0, 0.0);
            for bucket in level {
                load += bucket.entries.len() as f64;
                passes += bucket.pass_rate();
            }
            reads_miss += reach;
            compared_miss += reach * load / level.len() as f64;
            reach *= passes / level.len() as f64;
        }
        let all = self.proposals.choices() as usize;
        let hit_reads = (1..)
            .zip(self.counts.found_at)
            .map(|(reads, keys): (usize, _)| reads * keys)
            .sum::<usize>()
            + all * listed;
        ChainedStats {
            items,
            histogram,
            mean,
            variance: squares / buckets,
            accesses: self.counts.reads_per_insertion(),
            overflow_fraction: ratio(listed as f64, items as f64),
            reads_hit: ratio(hit_reads as f64, items as f64),
            reads_miss,
            compared_miss,
            over_design: items as u64 > self.design.items,
        }
    }

    /// The entry that a search found.
    fn entry(&self, search: &Search) -> Option<&(K, V)> {
        match search.place? {
            Place::Bucket { bucket, at, .. } => {
                self.buckets[bucket].entries.get(at)
            }
            Place::List { at } => self.list.get(search.hash, at),
        }
    }

    fn entry_mut(&mut self, search: &Search) -> Option<&mut (K, V)> {
        match search.place? {
            Place::Bucket { bucket, at, .. } => {
                self.buckets[bucket].entries.get_mut(at)
            }
            Place::List { at } => self.list.get_mut(search.hash, at),
        }
    }

    #[inline]
    fn bucket(&self, hash: u64, choice: u32) -> usize {
        self.proposals.block(hash, choice) as usize
    }
}

impl<K: Key + Eq, V> Chained<K, V> {
    /// Reads the key's buckets in order, up to the first that never refused a
    /// key of its class.
    #[inline]
    fn search<Q>(&self, key: &Q) -> Search
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let hash = self.hasher.hash(key);
        let is_key = |(other, _): &(K, V)| other.borrow() == key;
        let choices = self.proposals.choices();
        for choice in 0..choices {
            let index = self.bucket(hash, choice);
            let bucket = &self.buckets[index];
            let reads = choice + 1;
            if let Some(at) = bucket.entries.iter().position(is_key) {
                let place = Place::Bucket { choice, bucket: index, at };
                return Search { hash, place: Some(place), reads };
            }
            if !bucket.may_have_refused(ticket(hash, choice)) {
                return Search { hash, place: None, reads };
            }
        }
        let place = self.list.find(hash, key).map(|at| Place::List { at });
        Search { hash, place, reads: choices }
    }

    /// Inserts a key and its value. A present key keeps its place and gets
    /// the new value; the old value is returned.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// assert_eq!(table.insert("apple", 3), None);
    /// assert_eq!(table.insert("apple", 4), Some(3));
    /// assert_eq!(table.get("apple"), Some(&4));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let search = self.search(&key);
        if let Some((_, old)) = self.entry_mut(&search) {
            return Some(core::mem::replace(old, value));
        }
        self.insert_absent(&search, (key, value));
        None
    }

    /// [`insert`](Self::insert) that fails instead of listing more keys than
    /// the [capacity](ChainedBuilder::list) of the list.
    ///
    /// # Errors
    ///
    /// [`TableFull`], with the key and the value, if every bucket refuses the
    /// key and the list is full. The table is unchanged then.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let builder = Chained::builder().items(10).threshold(2).list(0);
    /// let mut table = builder.build()?;
    /// assert_eq!(table.try_insert(0u64, "first")?, None);
    /// let full = (1..100).find_map(|i| table.try_insert(i, "").err());
    /// assert!(full.is_some_and(|full| !table.contains_key(&full.key)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn try_insert(
        &mut self,
        key: K,
        value: V,
    ) -> core::result::Result<Option<V>, TableFull<K, V>> {
        let search = self.search(&key);
        if let Some((_, old)) = self.entry_mut(&search) {
            return Ok(Some(core::mem::replace(old, value)));
        }
        let refuses = |choice| {
            let bucket = &self.buckets[self.bucket(search.hash, choice)];
            bucket.refuses(self.rule, ticket(search.hash, choice))
        };
        if self.list.len() >= self.list_capacity
            && (0..self.proposals.choices()).all(refuses)
        {
            return Err(TableFull { key, value });
        }
        self.insert_absent(&search, (key, value));
        Ok(None)
    }

    fn insert_absent(&mut self, search: &Search, entry: (K, V)) {
        let placing = self.place(search.hash, entry);
        // The search reads more buckets than the placement if a bucket that
        // now has room once refused a key of this class.
        self.counts.record_insertion(placing.max(search.reads));
    }

    /// Places an absent key in the first bucket that accepts it, or else in
    /// the list. Returns the number of buckets read.
    fn place(&mut self, hash: u64, entry: (K, V)) -> u32 {
        let choices = self.proposals.choices();
        for choice in 0..choices {
            let index = self.bucket(hash, choice);
            let ticket = ticket(hash, choice);
            let bucket = &mut self.buckets[index];
            if bucket.refuses(self.rule, ticket) {
                bucket.mark_refused(ticket);
                continue;
            }
            bucket.push(self.rule, entry);
            // Two choices from one array may be the same bucket, which can
            // accept a key at the second after refusing it at the first:
            // their coins differ. Lookups find it at the first.
            let found_at =
                (0..choice).find(|&before| self.bucket(hash, before) == index);
            *self.counts.found_at_mut(found_at.unwrap_or(choice)) += 1;
            return choice + 1;
        }
        self.list.push(hash, entry);
        choices
    }

    /// The value of a key.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert("apple".to_string(), 3);
    /// assert_eq!(table.get("apple"), Some(&3));
    /// assert_eq!(table.get("pear"), None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        self.entry(&self.search(key)).map(|(_, value)| value)
    }

    /// A mutable reference to the value of a key.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert("apple".to_string(), 3);
    /// *table.get_mut("apple").unwrap() += 1;
    /// assert_eq!(table.get("apple"), Some(&4));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let search = self.search(key);
        self.entry_mut(&search).map(|(_, value)| value)
    }

    /// Whether a key is in the table.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert(5u64, ());
    /// assert!(table.contains_key(&5) && !table.contains_key(&6));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        self.search(key).place.is_some()
    }

    /// Removes a key and returns its value.
    ///
    /// The bucket keeps its record of refused classes: the refused keys stay
    /// in later buckets, where lookups must find them.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert("apple", 3);
    /// assert_eq!(table.remove("apple"), Some(3));
    /// assert_eq!(table.remove("apple"), None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let Search { hash, place, .. } = self.search(key);
        let (_, value) = match place? {
            Place::Bucket { choice, bucket, at } => {
                *self.counts.found_at_mut(choice) -= 1;
                self.buckets[bucket].entries.swap_remove(at)
            }
            Place::List { at } => self.list.remove(hash, at)?,
        };
        Some(value)
    }

    /// Removes and reinserts all keys: keys move up into the room that
    /// removals left, and the records of past refusals are cleared. The result
    /// depends on the keys alone, not on their history.
    ///
    /// Useful when [`ChainedStats::overflow_fraction`] or
    /// [`ChainedStats::reads_miss`] has risen. Entries take at least twice
    /// their memory while this runs.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(800).build()?;
    /// (0..800u32).for_each(|i| assert!(table.insert(i, ()).is_none()));
    /// (0..400u32).for_each(|i| assert!(table.remove(&i).is_some()));
    /// let before = table.stats().reads_miss;
    /// table.rebalance();
    /// assert!(table.stats().reads_miss < before);
    /// assert!((400..800u32).all(|i| table.contains_key(&i)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn rebalance(&mut self) {
        let mut entries = Vec::with_capacity(self.len());
        for bucket in &mut self.buckets {
            entries.append(&mut bucket.entries);
        }
        entries.extend(self.list.take());
        self.clear();
        for (hash, entry) in in_reinsertion_order(&self.hasher, entries) {
            // All keys are distinct: no search for an equal one.
            let reads = self.place(hash, entry);
            self.counts.record_insertion(reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scheme;

    /// The reads that `stats` predicts equal the reads of lookups, before and
    /// after removals.
    #[test]
    fn lookups_make_the_predicted_reads() {
        for scheme in Scheme::ALL {
            let builder = Chained::builder().hasher(KeyHasher::default());
            let builder = builder.items(32_768).scheme(scheme);
            let mut table = builder.build().unwrap();
            for i in 0..32_768u64 {
                table.insert(i, ());
            }
            check_reads(&table, 0..32_768);
            for i in 0..16_384u64 {
                table.remove(&i);
            }
            check_reads(&table, 16_384..32_768);
            for i in 32_768..60_000u64 {
                table.insert(i, ());
            }
            check_reads(&table, 16_384..60_000);
            table.rebalance();
            check_reads(&table, 16_384..60_000);
        }
    }

    fn check_reads(table: &Chained<u64, ()>, keys: core::ops::Range<u64>) {
        let stats = table.stats();
        let search = |key: u64| table.search(&key);
        let mut reads = 0;
        for key in keys.clone() {
            let found = search(key);
            assert!(found.place.is_some());
            reads += u64::from(found.reads);
        }
        let reads = reads as f64 / table.len() as f64;
        assert!((reads - stats.reads_hit.unwrap()).abs() < 1e-9);

        let (mut reads, mut compared) = (0, 0);
        const MISSES: u32 = 200_000;
        for key in (1 << 40..).take(MISSES as usize) {
            let found = search(key);
            assert!(found.place.is_none());
            reads += found.reads;
            for choice in 0..found.reads {
                let bucket = &table.buckets[table.bucket(found.hash, choice)];
                compared += bucket.entries.len() as u32;
            }
        }
        let reads = f64::from(reads) / f64::from(MISSES);
        let compared = f64::from(compared) / f64::from(MISSES);
        // 1 % is five standard errors: both are below 0.2 %.
        assert!((reads / stats.reads_miss - 1.0).abs() < 0.01, "{stats:?}");
        let off = compared / stats.compared_miss - 1.0;
        assert!(off.abs() < 0.01, "{compared} {stats:?}");
    }
}

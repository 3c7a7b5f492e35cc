//! The chained hash table of least variance.

mod bucket;
mod builder;

pub use builder::{ChainedBuilder, ChainedDesign};

use alloc::vec::Vec;
use core::borrow::Borrow;

use super::in_order;
use super::list::List;
use crate::error::{Error, Result};
use crate::key::{Key, KeyHasher};
use crate::placement::{MAX_CHOICES, Proposals, ticket};
use bucket::{Bucket, Rule};

/// A chained hash table whose buckets are filled as evenly as the reads
/// spent on insertion allow (Kanizo, Hay and Keslassy, Appendix C).
///
/// A bucket at its threshold refuses a key, which then goes to the next of
/// its buckets, and to a list if all refuse. No scheme with as many reads per
/// insertion and as many listed keys has a smaller variance of the occupancy,
/// and no bucket ever holds more than one key above the threshold.
///
/// Beyond the paper: every bucket remembers which of 64 classes of keys it
/// ever refused, in eight bytes, and a lookup goes on only where a key of its
/// class was refused. That nearly always ends a miss at its first bucket, and
/// it is right after removals too, where the load of a bucket no longer says
/// what it refused when it was full.
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
/// The last two columns are what a lookup costs, the first what the theory
/// makes small: the appendix takes one for the other. Beyond a = 1.2 the few
/// lookups that read a second bucket cost more than even loads save.
///
/// | | |
/// |---|---|
/// | memory | 32 bytes per bucket, the entries, and the listed ones in a tree |
/// | order of iteration | unspecified |
///
/// The list costs a tree search, for the listed keys and for the few misses
/// that every bucket sends on. Keys that are equal must have equal [`Key`]
/// bytes, as `Hash` and `Eq` must agree elsewhere; keys with equal bytes that
/// are *not* equal stay apart.
///
/// **It cannot promise**:
///
/// * the design's numbers for keys that come and go. Every answer stays
///   right, but a refused key does not return when there is room again:
///   replacing every key three times at the design load (a = 1.2) leaves
///   11 % in the list and 1.19 buckets read per miss.
///   [`rebalance`](Self::rebalance) restores the design.
/// * the design's numbers past the design items; it never adds buckets.
/// * anything against chosen keys, without [`KeyHasher::siphash`].
///
/// Like the collections of the standard library it aborts if there is no
/// memory for one more entry.
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
/// // Eight per bucket, where a plain chained table has a variance of 8.
/// assert!(stats.variance < 2.5);
/// assert!(stats.histogram.len() <= 10);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chained<K, V> {
    buckets: Vec<Bucket<K, V>>,
    /// Refused by every bucket.
    list: List<K, V>,
    proposals: Proposals,
    rule: Rule,
    hasher: KeyHasher,
    tally: Tally,
    design: ChainedDesign,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// Keys that a lookup finds at each choice.
    found_at: [usize; MAX_CHOICES],
    /// New keys inserted so far, and the buckets read for that.
    insertions: u64,
    insertion_reads: u64,
}

/// Where an entry is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Bucket { choice: u32, bucket: usize, at: usize },
    List { hash: u64, at: usize },
}

/// What a lookup came back with.
struct Search {
    place: Option<Place>,
    /// Buckets read.
    reads: u32,
}

/// How a table is filled, and what that costs.
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
    /// Buckets that hold 0, 1, 2, ... keys.
    pub histogram: Vec<u64>,
    /// Keys per bucket, those in the list not counted.
    pub mean: f64,
    /// The variance of the keys per bucket.
    pub variance: f64,
    /// Buckets read per insertion of a new key since the table was built,
    /// cleared or rebalanced (a); none before the first.
    pub accesses: Option<f64>,
    /// The share of keys in the list (gamma); none if the table is empty.
    pub overflow_fraction: Option<f64>,
    /// Buckets read by the lookup of a key in the table, on average; none if
    /// it is empty.
    pub reads_hit: Option<f64>,
    /// Buckets read by the lookup of a key not in the table, on average.
    pub reads_miss: f64,
    /// Keys compared by the lookup of a key not in the table, on average.
    pub compared_miss: f64,
    /// Whether it holds more keys than it was designed for.
    pub over_design: bool,
}

/// The types of a table are settled by [`ChainedBuilder::build`], so that
/// the builder needs none.
impl Chained<(), ()> {
    /// Starts building a table; see [`ChainedBuilder`].
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

impl<K, V> Chained<K, V> {
    fn with_design(
        design: ChainedDesign,
        proposals: Proposals,
        rule: Rule,
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
        Ok(Self {
            buckets,
            list: List::EMPTY,
            proposals,
            rule,
            hasher,
            tally: Tally::default(),
            design,
        })
    }

    /// What the table was built to do.
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

    /// How keys are hashed.
    ///
    /// ```
    /// use tamis::{KeyHasher, table::Chained};
    /// let table = Chained::builder().items(1000).build::<u64, ()>()?;
    /// assert_eq!(*table.hasher(), KeyHasher::default());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The number of buckets in each level; of the whole array for every
    /// choice unless the scheme is multilevel.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let table = Chained::builder().items(8192).build::<u64, ()>()?;
    /// assert_eq!(table.level_buckets(), [853, 146, 25]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn level_buckets(&self) -> Vec<u64> {
        let levels = self.proposals.levels().iter();
        levels.map(|level| level.blocks).collect()
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
        self.tally.found_at.iter().sum::<usize>() + self.list.len()
    }

    /// Whether there are no keys.
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

    /// All keys and values, in no particular order.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(10).build()?;
    /// table.insert(1u8, 10);
    /// table.insert(2u8, 20);
    /// assert_eq!(table.iter().map(|(_, value)| value).sum::<i32>(), 30);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        let buckets = self.buckets.iter().map(|bucket| &bucket.entries);
        let entries = buckets.flatten().chain(self.list.iter());
        entries.map(|(key, value)| (key, value))
    }

    /// Removes everything, and forgets what was refused.
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
        self.list = List::EMPTY;
        self.tally = Tally::default();
    }

    /// How the table is filled and what lookups cost, from what it holds
    /// now. Looks at every bucket.
    ///
    /// ```
    /// use tamis::table::Chained;
    /// let mut table = Chained::builder().items(8000).build()?;
    /// (0..8000u32).for_each(|i| assert!(table.insert(i, ()).is_none()));
    /// let (stats, design) = (table.stats(), table.design());
    /// assert!((stats.accesses.unwrap() - design.access_budget).abs() < 0.02);
    /// assert!(stats.reads_miss < 1.05);
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
        for level in self.proposals.levels() {
            let start = level.first as usize;
            let level = &self.buckets[start..start + level.blocks as usize];
            let (mut load, mut passes) = (0.0, 0.0);
            for bucket in level {
                load += bucket.entries.len() as f64;
                passes += bucket.passes();
            }
            reads_miss += reach;
            compared_miss += reach * load / level.len() as f64;
            reach *= passes / level.len() as f64;
        }
        let Tally { found_at, insertions, insertion_reads } = self.tally;
        let all = self.proposals.choices() as usize;
        let hit_reads = (1..)
            .zip(found_at)
            .map(|(reads, keys): (usize, _)| reads * keys)
            .sum::<usize>()
            + all * listed;
        let share = |part: f64, of: f64| (of > 0.0).then(|| part / of);
        ChainedStats {
            items,
            histogram,
            mean,
            variance: squares / buckets,
            accesses: share(insertion_reads as f64, insertions as f64),
            overflow_fraction: share(listed as f64, items as f64),
            reads_hit: share(hit_reads as f64, items as f64),
            reads_miss,
            compared_miss,
            over_design: items as u64 > self.design.items,
        }
    }

    /// The entry at a place that a search has found.
    fn entry(&self, place: Place) -> Option<&(K, V)> {
        match place {
            Place::Bucket { bucket, at, .. } => {
                self.buckets[bucket].entries.get(at)
            }
            Place::List { hash, at } => self.list.get(hash, at),
        }
    }

    fn entry_mut(&mut self, place: Place) -> Option<&mut (K, V)> {
        match place {
            Place::Bucket { bucket, at, .. } => {
                self.buckets[bucket].entries.get_mut(at)
            }
            Place::List { hash, at } => self.list.get_mut(hash, at),
        }
    }

    #[inline]
    fn bucket(&self, hash: u64, choice: u32) -> usize {
        self.proposals.block(hash, choice) as usize
    }
}

impl<K: Key + Eq, V> Chained<K, V> {
    /// Walks a key's buckets for as long as one may have refused it.
    #[inline]
    fn search<Q>(&self, hash: u64, key: &Q) -> Search
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let is_key = |(other, _): &(K, V)| other.borrow() == key;
        let choices = self.proposals.choices();
        for choice in 0..choices {
            let index = self.bucket(hash, choice);
            let bucket = &self.buckets[index];
            let reads = choice + 1;
            if let Some(at) = bucket.entries.iter().position(is_key) {
                let place = Place::Bucket { choice, bucket: index, at };
                return Search { place: Some(place), reads };
            }
            if !bucket.may_have_refused(ticket(hash, choice)) {
                return Search { place: None, reads };
            }
        }
        let at = self.list.find(hash, is_key);
        let place = at.map(|at| Place::List { hash, at });
        Search { place, reads: choices }
    }

    fn find<Q>(&self, key: &Q) -> Option<Place>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        self.search(self.hasher.hash(key), key).place
    }

    /// Inserts a key with its value. A key that is present keeps its place
    /// and gets the new value; the old one is returned.
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
        let hash = self.hasher.hash(&key);
        let Search { place, reads } = self.search(hash, &key);
        if let Some((_, old)) = place.and_then(|at| self.entry_mut(at)) {
            return Some(core::mem::replace(old, value));
        }
        let placing = self.place(hash, (key, value));
        self.tally.insertions += 1;
        // The search may have gone further: a bucket that has room now may
        // have refused the key before.
        self.tally.insertion_reads += u64::from(placing.max(reads));
        None
    }

    /// Puts a key that is absent into the first bucket that takes it; the
    /// buckets read for that.
    fn place(&mut self, hash: u64, entry: (K, V)) -> u32 {
        let choices = self.proposals.choices();
        for choice in 0..choices {
            let index = self.bucket(hash, choice);
            let ticket = ticket(hash, choice);
            let bucket = &mut self.buckets[index];
            if bucket.refuses(self.rule, ticket) {
                bucket.mark(ticket);
                continue;
            }
            bucket.push(self.rule, entry);
            // Choices of one array may coincide, and the coin differ.
            let found_at =
                (0..choice).find(|&before| self.bucket(hash, before) == index);
            let found_at = found_at.unwrap_or(choice) as usize;
            self.tally.found_at[found_at % MAX_CHOICES] += 1;
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
        let place = self.find(key)?;
        self.entry(place).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
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
        let place = self.find(key)?;
        self.entry_mut(place).map(|(_, value)| value)
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
        self.find(key).is_some()
    }

    /// Takes a key out and returns its value.
    ///
    /// Its bucket has room again, but keeps in mind what it refused: the
    /// refused keys stay where they are, and lookups still go on to them.
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
        let (_, value) = match self.find(key)? {
            Place::Bucket { choice, bucket, at } => {
                self.tally.found_at[choice as usize % MAX_CHOICES] -= 1;
                self.buckets[bucket].entries.swap_remove(at)
            }
            Place::List { hash, at } => self.list.remove(hash, at)?,
        };
        Some(value)
    }

    /// Takes everything out and puts it back: keys move up into the room
    /// that removals left, and lookups no longer follow refusals of the
    /// past. The outcome depends on the keys alone, not on their history.
    ///
    /// Worth it when [`ChainedStats::overflow_fraction`] or
    /// [`ChainedStats::reads_miss`] has risen. While it runs, entries need
    /// their memory twice or more.
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
        for (hash, entry) in in_order(&self.hasher, entries) {
            // They are all different: no need to look whether one is here.
            let reads = self.place(hash, entry);
            self.tally.insertions += 1;
            self.tally.insertion_reads += u64::from(reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scheme;

    /// What `stats` says about lookups is what lookups do, fresh and after
    /// removals.
    #[test]
    fn predicted_reads_are_made() {
        for scheme in Scheme::ALL {
            let builder = Chained::builder().items(32_768).scheme(scheme);
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
        let walk = |key: u64| table.search(table.hasher.hash(&key), &key);
        let mut reads = 0;
        for key in keys.clone() {
            let search = walk(key);
            assert!(search.place.is_some());
            reads += u64::from(search.reads);
        }
        let reads = reads as f64 / table.len() as f64;
        assert!((reads - stats.reads_hit.unwrap()).abs() < 1e-9);

        let (mut reads, mut compared) = (0, 0);
        const MISSES: u32 = 200_000;
        for key in (1 << 40..).take(MISSES as usize) {
            let search = walk(key);
            assert!(search.place.is_none());
            reads += search.reads;
            let hash = table.hasher.hash(&key);
            for choice in 0..search.reads {
                let bucket = &table.buckets[table.bucket(hash, choice)];
                compared += bucket.entries.len() as u32;
            }
        }
        let reads = f64::from(reads) / f64::from(MISSES);
        let compared = f64::from(compared) / f64::from(MISSES);
        // The standard errors are below 0.2 % each.
        assert!((reads / stats.reads_miss - 1.0).abs() < 0.01, "{stats:?}");
        let off = compared / stats.compared_miss - 1.0;
        assert!(off.abs() < 0.01, "{compared} {stats:?}");
    }
}

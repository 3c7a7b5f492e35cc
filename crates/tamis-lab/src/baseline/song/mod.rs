//! The fast hash table of Song, Dharmapurikar, Turner and Lockwood, *Fast
//! Hash Table Lookup Using Extended Bloom Filter: An Aid to Network
//! Processing* (SIGCOMM 2005).
//!
//! A key is hashed to k buckets, and each bucket has a small counter of the
//! keys hashed to it. The counters are the summary: a lookup selects the
//! bucket with the smallest counter, of equals the one with the lowest
//! address, and reads only that; it reads none if the counter is zero. An
//! absent key reads a bucket with probability `(1-(1-1/m)^(nk))^k`.
//!
//! [`FastHashTable`] is *pruned*: a key is stored only in the bucket that its
//! lookup selects. An insertion raises counters of k buckets, so keys stored
//! in these may move; no other key does. A removal lowers counters, so keys
//! stored elsewhere may move there. They are found in an unpruned copy of
//! the table, which [`FastHashTable::removable`] has in addition. Buckets
//! with several keys are spread by [`FastHashTable::balance`], the heuristic.
//!
//! [`SharedNodes`] is the unpruned table with linked lists that share their
//! nodes, which needs no copy for removals.
//!
//! Known, from Kirsch and Mitzenmacher's review and public implementations:
//! counters that count a key twice in a bucket that it is hashed to twice,
//! three bits per counter, the rule for equal counters, the relocations of
//! an insertion, the copy for removals, and the two cases of an insertion
//! into shared lists.
//!
//! Inferred, as only the abstract of the original was at hand: counters
//! saturate at seven and are recomputed from the copy at a removal; the
//! order of attempts and the criterion of the balancing heuristic; and how
//! shared lists remove a node.

mod balance;
mod shared;

use super::{Baseline, Error, Lines};
use crate::simulation::{mix, reduce};

pub use shared::SharedNodes;

/// Bits of a counter.
const COUNTER_BITS: u32 = 3;
/// Largest value of a counter, which also stands for all larger.
const MOST: u8 = (1 << COUNTER_BITS) - 1;

/// A pruned table of distinct keys.
///
/// ```
/// use tamis_lab::baseline::{Baseline, FastHashTable, Lookup};
///
/// let mut table = FastHashTable::new(100, 4);
/// table.insert(17)?;
/// assert_eq!(table.read(17), Lookup { found: true, reads: 1 });
/// assert_eq!(table.read(18), Lookup { found: false, reads: 0 });
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FastHashTable {
    choices: u64,
    /// The summary.
    counters: Vec<u8>,
    /// Part of each counter that balancing added.
    raised: Vec<u8>,
    /// Stored keys of each bucket.
    stored: Vec<Vec<u64>>,
    /// All keys hashed to each bucket, if keys can be removed.
    copy: Option<Vec<Vec<u64>>>,
    relocations: u64,
}

/// Result of a lookup in a table, and the number of reads.
///
/// ```
/// use tamis_lab::baseline::{FastHashTable, Lookup};
/// let nothing = Lookup { found: false, reads: 0 };
/// assert_eq!(FastHashTable::new(8, 2).read(1), nothing);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// Whether the key is in the table.
    pub found: bool,
    /// Buckets read, or list nodes of a bucket.
    pub reads: u32,
}

impl FastHashTable {
    /// An empty table whose keys are hashed to `choices` of its buckets.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, FastHashTable};
    /// assert_eq!(FastHashTable::new(100, 4).bits(), 300);
    /// ```
    pub fn new(buckets: u64, choices: u32) -> Self {
        let buckets = buckets.max(1) as usize;
        Self {
            choices: choices.into(),
            counters: vec![0; buckets],
            raised: vec![0; buckets],
            stored: vec![Vec::new(); buckets],
            copy: None,
            relocations: 0,
        }
    }

    /// An empty table with the unpruned copy that removals need.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, Error, FastHashTable};
    /// let [mut pruned, mut removable] =
    ///     [FastHashTable::new(8, 2), FastHashTable::removable(8, 2)];
    /// assert_eq!(pruned.remove(1), Err(Error::Unsupported));
    /// assert_eq!(removable.remove(1), Err(Error::Absent));
    /// ```
    pub fn removable(buckets: u64, choices: u32) -> Self {
        let table = Self::new(buckets, choices);
        let copy = Some(table.stored.clone());
        Self { copy, ..table }
    }

    /// The table of distinct `keys`, built at once: all are counted before
    /// any is stored.
    ///
    /// ```
    /// use tamis_lab::baseline::FastHashTable;
    /// let table = FastHashTable::built(&[1, 2, 3], 100, 4);
    /// assert!(table.read(2).found);
    /// ```
    pub fn built(keys: &[u64], buckets: u64, choices: u32) -> Self {
        let mut table = Self::new(buckets, choices);
        for key in keys {
            for bucket in table.buckets(*key) {
                table.count(bucket);
            }
        }
        for key in keys {
            let bucket = table.selected(*key);
            table.stored[bucket].push(*key);
        }
        table
    }

    /// Looks a key up in the bucket that the counters select.
    ///
    /// ```
    /// let table = tamis_lab::baseline::FastHashTable::built(&[5], 8, 2);
    /// assert_eq!(table.read(5).reads, 1);
    /// ```
    pub fn read(&self, key: u64) -> Lookup {
        let bucket = self.selected(key);
        let found = self.stored[bucket].contains(&key);
        Lookup { found, reads: u32::from(self.counters[bucket] > 0) }
    }

    /// Share of absent keys that read a bucket, in a table of `keys` keys.
    ///
    /// ```
    /// let table = tamis_lab::baseline::FastHashTable::new(131_072, 10);
    /// assert!((table.expected_rate(10_000) - 0.001_875).abs() < 1e-6);
    /// ```
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let throws = keys as f64 * self.choices as f64;
        let empty = throws * (-1.0 / self.counters.len() as f64).ln_1p();
        (-empty.exp_m1()).powi(self.choices as i32)
    }

    /// Keys beyond the first of their bucket. A bucket with one slot has no
    /// room for them.
    ///
    /// ```
    /// let table = tamis_lab::baseline::FastHashTable::built(&[1, 2], 1, 1);
    /// assert_eq!(table.collisions(), 1);
    /// ```
    pub fn collisions(&self) -> usize {
        self.stored.iter().map(|keys| keys.len().saturating_sub(1)).sum()
    }

    /// Stored keys that insertions, removals and balancing moved.
    ///
    /// ```
    /// let table = tamis_lab::baseline::FastHashTable::new(8, 2);
    /// assert_eq!(table.relocations(), 0);
    /// ```
    pub fn relocations(&self) -> u64 {
        self.relocations
    }

    /// The key's buckets, of which some may be equal.
    fn buckets(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        buckets(key, self.choices, self.counters.len())
    }

    /// The bucket with the smallest counter, of equals the lowest. Keys
    /// share a bucket more often than if equals were resolved by the order of
    /// the hashes, because all of them prefer low addresses.
    fn selected(&self, key: u64) -> usize {
        let counted = self.buckets(key).map(|i| (self.counters[i], i));
        counted.min().map_or(0, |(_, bucket)| bucket)
    }

    fn count(&mut self, bucket: usize) {
        self.counters[bucket] = (self.counters[bucket] + 1).min(MOST);
    }

    /// Moves a stored key to the bucket that is now selected.
    fn relocate(&mut self, key: u64, from: usize) {
        let to = self.selected(key);
        if to != from {
            self.stored[from].retain(|stored| *stored != key);
            self.stored[to].push(key);
            self.relocations += 1;
        }
    }
}

fn buckets(
    key: u64,
    choices: u64,
    count: usize,
) -> impl Iterator<Item = usize> {
    (0..choices).map(move |i| reduce(mix(key, i), count as u64) as usize)
}

/// The counters alone: a key is contained if its lookup reads a bucket.
impl Baseline for FastHashTable {
    fn name(&self) -> &'static str {
        "fast hash table"
    }

    /// A key that is in the table changes nothing.
    fn insert(&mut self, key: u64) -> Result<(), Error> {
        if self.read(key).found {
            return Ok(());
        }
        for bucket in self.buckets(key) {
            self.count(bucket);
            if let Some(copy) = &mut self.copy {
                copy[bucket].push(key);
            }
        }
        // Only these buckets became less attractive.
        for bucket in self.buckets(key) {
            for stored in self.stored[bucket].clone() {
                self.relocate(stored, bucket);
            }
        }
        let bucket = self.selected(key);
        self.stored[bucket].push(key);
        Ok(())
    }

    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        let width = u64::from(COUNTER_BITS);
        self.buckets(key).all(|bucket| {
            lines.read(bucket as u64 * width, width);
            self.counters[bucket] > 0
        })
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        let home = self.selected(key);
        let all: Vec<usize> = self.buckets(key).collect();
        let Some(copy) = &mut self.copy else {
            return Err(Error::Unsupported);
        };
        let Some(place) = self.stored[home].iter().position(|k| *k == key)
        else {
            return Err(Error::Absent);
        };
        self.stored[home].swap_remove(place);
        let mut attracted = Vec::new();
        for &bucket in &all {
            copy[bucket].retain(|hashed| *hashed != key);
            attracted.extend(&copy[bucket]);
        }
        attracted.sort_unstable();
        attracted.dedup();
        // Places under the counters before they change.
        let places: Vec<usize> =
            attracted.iter().map(|key| self.selected(*key)).collect();
        for bucket in all {
            self.recount(bucket);
        }
        for (key, place) in attracted.into_iter().zip(places) {
            self.relocate(key, place);
        }
        Ok(())
    }

    fn bits(&self) -> u64 {
        self.counters.len() as u64 * u64::from(COUNTER_BITS)
    }
}

impl FastHashTable {
    /// Sets a counter to the keys of the copy and to the part that balancing
    /// added. A bucket without keys has no such part: it would cause reads.
    fn recount(&mut self, bucket: usize) {
        let keys = self.copy.as_ref().map_or(0, |copy| copy[bucket].len());
        if keys == 0 {
            self.raised[bucket] = 0;
        }
        let counted = keys + usize::from(self.raised[bucket]);
        self.counters[bucket] = counted.min(MOST.into()) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Keys, Rate, fill};

    /// Every key is in the bucket with the smallest counter, of equals the
    /// lowest, and in no other.
    fn assert_selected(table: &FastHashTable, keys: &[u64]) {
        for key in keys {
            let mut buckets: Vec<usize> = table.buckets(*key).collect();
            buckets.sort_unstable();
            buckets.sort_by_key(|bucket| table.counters[*bucket]);
            assert!(table.stored[buckets[0]].contains(key));
        }
        let stored: usize = table.stored.iter().map(Vec::len).sum();
        assert_eq!(stored, keys.len());
    }

    fn sorted(table: &FastHashTable) -> Vec<Vec<u64>> {
        let mut stored = table.stored.clone();
        stored.iter_mut().for_each(|keys| keys.sort_unstable());
        stored
    }

    #[test]
    fn insertion_equals_rebuilding() {
        // In the small tables, counters saturate and keys share buckets.
        for (run, buckets) in [(1, 100), (2, 1000), (3, 30_000)] {
            let keys: Vec<u64> = Keys::new(run).members(3000).collect();
            let mut table = FastHashTable::new(buckets, 5);
            for (count, key) in (1..).zip(&keys) {
                table.insert(*key).unwrap();
                if count % 1000 == 0 {
                    let known = &keys[..count];
                    let built = FastHashTable::built(known, buckets, 5);
                    assert_eq!(table.counters, built.counters);
                    assert_eq!(sorted(&table), sorted(&built));
                    assert_selected(&table, known);
                }
            }
        }
    }

    #[test]
    fn removal_equals_rebuilding() {
        for (run, buckets) in [(1, 100), (2, 1000), (3, 10_000)] {
            let keys: Vec<u64> = Keys::new(run).members(1000).collect();
            let mut table = FastHashTable::removable(buckets, 5);
            fill(&mut table, keys.iter().copied()).unwrap();
            for (removed, key) in (1..).zip(&keys) {
                table.remove(*key).unwrap();
                assert_eq!(table.remove(*key), Err(Error::Absent));
                if removed % 100 == 0 {
                    let left = &keys[removed..];
                    let built = FastHashTable::built(left, buckets, 5);
                    assert_eq!(table.counters, built.counters);
                    assert_eq!(sorted(&table), sorted(&built));
                }
            }
        }
    }

    #[test]
    fn balanced_tables_insert_and_remove() {
        let keys: Vec<u64> = Keys::new(1).members(1500).collect();
        let mut table = FastHashTable::removable(4000, 5);
        for (count, key) in (1..).zip(&keys) {
            table.insert(*key).unwrap();
            if count % 100 == 0 {
                table.balance();
            }
            assert_selected(&table, &keys[..count]);
        }
        assert!(table.raised.iter().any(|raised| *raised > 0));
        for (removed, key) in (1..).zip(&keys) {
            table.remove(*key).unwrap();
            assert_selected(&table, &keys[removed..]);
        }
        assert!(table.counters.iter().all(|counter| *counter == 0));
    }

    #[test]
    fn an_insertion_moves_fewer_keys_than_it_finds() {
        let (keys, buckets, choices) = (20_000, 100_000, 8);
        let mut table = FastHashTable::new(buckets, choices);
        fill(&mut table, Keys::new(1).members(keys)).unwrap();
        // A bucket holds i/m of the first i keys, on average.
        let most = keys as f64 * f64::from(choices) / buckets as f64 / 2.0;
        let moved = table.relocations() as f64 / keys as f64;
        assert!((0.1..most).contains(&moved), "{moved} {most}");
    }

    #[test]
    fn strangers_read_and_are_not_found() {
        let keys = Keys::new(1);
        let mut table = FastHashTable::new(65_536, 6);
        fill(&mut table, keys.members(10_000)).unwrap();
        let mut rate = Rate::default();
        for key in keys.strangers(100_000) {
            let Lookup { found, reads } = table.read(key);
            assert!(!found);
            assert_eq!(table.contains(key), reads > 0);
            rate.trials += 1;
            rate.hits += u64::from(reads);
        }
        assert!(rate.agrees(table.expected_rate(10_000)), "{rate:?}");
        for key in keys.members(10_000) {
            let expected = Lookup { found: true, reads: 1 };
            assert_eq!(table.read(key), expected);
        }
    }
}

//! Maintenance: audits, refreshed summaries, rebuilt tables.

use alloc::vec;
use alloc::vec::Vec;

use super::Multilevel;
use crate::error::{Error, Result};
use crate::key::{Key, KeyHasher};
use crate::summary::{Levels, Summary};
use crate::table::place::TableCounts;
use crate::table::{in_reinsertion_order, reinsertion_rank};

impl<K: Key + Eq, V, S: Summary> Multilevel<K, V, S> {
    /// The hash and the level of every key that is in a level.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let levels = (0u32..).zip(self.proposals.ranges());
        levels.flat_map(move |(level, range)| {
            (range.first..range.first + range.blocks).flat_map(move |bucket| {
                let entries = self.buckets.entries(bucket as usize);
                entries.map(move |(key, _)| (self.hasher.hash(key), level))
            })
        })
    }

    /// Records the levels of the keys with this hash, read from the buckets,
    /// because the previous record may be out of date.
    pub(super) fn record_exception(&mut self, hash: u64) {
        let mut levels = Levels::NONE;
        for level in 0..self.proposals.choices() {
            let mut entries = self.buckets.entries(self.bucket(hash, level));
            if entries.any(|(key, _)| self.hasher.hash(key) == hash) {
                levels = levels.with(level);
            }
        }
        self.directory.record(hash, levels);
    }

    /// Records the true level of every key that the summary misnames; returns
    /// their number. Reads every key.
    ///
    /// An insertion can cause earlier keys to be misnamed without revealing
    /// which. Until the next audit, a lookup that does not find the key in the
    /// named bucket reads the other possible levels: one to d - 1 reads more
    /// for a misnamed key, and for an absent key that is located in a later
    /// level. After an audit every lookup reads at most one bucket (unless
    /// hashes collide), until the next insertion of that kind.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis::summary::Interpolation;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(100);
    /// let builder = builder.hasher(KeyHasher::xxh3(1));
    /// // Strings of 8 bits: many of the 100 keys have equal ones.
    /// let short = Interpolation::builder().bits(8);
    /// let mut table = builder.build_with(&short)?;
    /// for i in 0..100u32 {
    ///     table.insert(i, ())?;
    /// }
    /// assert!((0..100u32).any(|i| table.lookup(&i).reads == 2));
    /// assert!(table.audit() > 0);
    /// assert!((0..100u32).all(|i| table.lookup(&i).reads == 1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn audit(&mut self) -> u64 {
        let misnamed: Vec<u64> = self
            .placed()
            .filter(|&(hash, level)| self.directory.is_misnamed(hash, level))
            .map(|(hash, _)| hash)
            .collect();
        self.directory.clear_exceptions();
        for &hash in &misnamed {
            self.record_exception(hash);
        }
        self.directory.audited = true;
        misnamed.len() as u64
    }

    /// Clears the summary, fills it from the keys of the table, which drops
    /// the stale keys, and [audits](Self::audit) it. Returns the number of
    /// misnamed keys.
    ///
    /// ```
    /// use tamis::summary::{Deletion, TypeFilter};
    /// use tamis::table::Multilevel;
    /// let never = Deletion::Lazy { share: 1e9 };
    /// let summary =
    ///     TypeFilter::builder().cells(1000).probes(4).deletion(never);
    /// let mut table =
    ///     Multilevel::builder().levels(&[200, 100]).build_with(&summary)?;
    /// table.insert("apple", 3)?;
    /// table.remove("apple");
    /// assert_eq!(table.lookup("apple").reads, 1);
    /// table.refresh();
    /// assert_eq!(table.lookup("apple").reads, 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn refresh(&mut self) -> u64 {
        let placed: Vec<(u64, u32)> = self.placed().collect();
        self.directory.summary.clear();
        for (hash, level) in placed {
            self.directory.summary.insert(hash, level);
        }
        self.audit()
    }

    /// Removes and reinserts all keys, with another hasher if one is given,
    /// so that keys move up into the entries that removals freed, and slots of
    /// lazily deleted keys are free again. The result depends on the keys
    /// alone, not on their history. Then [audits](Self::audit) the table.
    ///
    /// Entries take twice their memory while this runs.
    ///
    /// # Errors
    ///
    /// [`Error::TableFull`] if the levels and the stash cannot hold all keys.
    /// The table is unchanged then; another seed may succeed.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().items(100).build()?;
    /// for i in 0..40u32 {
    ///     table.insert(i, ())?;
    /// }
    /// (0..30u32).for_each(|i| assert!(table.remove(&i).is_some()));
    /// table.rebuild(Some(KeyHasher::random()))?;
    /// assert!((30..40u32).all(|i| table.contains_key(&i)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn rebuild(&mut self, hasher: Option<KeyHasher>) -> Result<()> {
        let hasher = hasher.unwrap_or(self.hasher);
        self.check_room(&hasher)?;
        let entries: Vec<(K, V)> =
            self.buckets.take().chain(self.stash.take()).collect();
        self.hasher = hasher;
        self.directory.clear();
        self.deleted.clear(self.shape.items());
        self.counts = TableCounts::default();
        for (hash, entry) in in_reinsertion_order(&hasher, entries) {
            // All keys are distinct: no search for an equal one.
            let reads = self.place(hash, entry);
            self.counts.record_insertion(reads);
        }
        self.audit();
        Ok(())
    }

    /// Rebuilds the table for a removal. After a failure the next attempt is
    /// due after as many deleted keys again, instead of at every removal.
    pub(super) fn rebuild_after_removals(&mut self) {
        let count = self.deleted.count() as u64;
        match self.rebuild(None) {
            Ok(()) => self.deleted.rebuilds += 1,
            Err(_) => self.deleted.quota = Some(2 * count),
        }
    }

    /// Simulates a rebuild on bucket loads alone: keys taken out could not be
    /// put back into their old places after a failure.
    fn check_room(&self, hasher: &KeyHasher) -> Result<()> {
        let mut hashes: Vec<u64> =
            self.iter().map(|(key, _)| hasher.hash(key)).collect();
        hashes.sort_unstable_by_key(|&hash| reinsertion_rank(hash));
        let buckets: u64 = self.shape.levels().iter().sum();
        let mut loads = vec![0u32; buckets as usize];
        let mut stashed = 0;
        for hash in hashes {
            let bucket = (0..self.proposals.choices())
                .map(|level| self.bucket(hash, level))
                .find(|&bucket| loads[bucket] < self.shape.bucket_entries());
            match bucket {
                Some(bucket) => loads[bucket] += 1,
                None => stashed += 1,
            }
        }
        if stashed > self.stash_entries {
            return Err(Error::TableFull);
        }
        Ok(())
    }
}

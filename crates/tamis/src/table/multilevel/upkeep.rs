//! What keeps a table as good as new.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Multilevel, Tally};
use crate::error::{Error, Result};
use crate::key::{Key, KeyHasher};
use crate::summary::{Levels, Summary};
use crate::table::{in_order, order};

impl<K: Key + Eq, V, S: Summary> Multilevel<K, V, S> {
    /// Hash and level of every key that is in a level.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let levels = (0u32..).zip(self.proposals.levels());
        levels.flat_map(move |(level, range)| {
            (range.first..range.first + range.blocks).flat_map(move |bucket| {
                let entries = self.buckets.entries(bucket);
                entries.map(move |(key, _)| (self.hasher.hash(key), level))
            })
        })
    }

    /// After a key was put into a level: if the summary misnames it, or
    /// another one with the same hash, its levels are written down.
    pub(super) fn note_exception(&mut self, hash: u64, level: u32) {
        let named = self.summary.locate(hash).named;
        let misnamed = named.is_some_and(|named| named != level);
        if misnamed || self.exceptions.contains_key(&hash) {
            self.record_exception(hash);
        }
    }

    /// Writes down which levels really have keys with this hash. More than
    /// one if hashes collide, which is why it is a set, and why it is taken
    /// from the buckets and not from what was recorded before.
    pub(super) fn record_exception(&mut self, hash: u64) {
        let mut levels = Levels::NONE;
        for level in 0..self.proposals.choices() {
            let bucket = self.proposals.block(hash, level);
            let mut entries = self.buckets.entries(bucket);
            if entries.any(|(key, _)| self.hasher.hash(key) == hash) {
                levels = levels.with(level);
            }
        }
        match levels.is_empty() {
            true => self.exceptions.remove(&hash),
            false => self.exceptions.insert(hash, levels),
        };
    }

    /// Finds every key whose level the summary misnames and writes down
    /// where it really is; how many there are.
    ///
    /// A later key can make an earlier one misnamed, and nothing says which
    /// at that time. Lookups therefore read on where the named bucket has not
    /// the key: a misnamed key costs one to d - 1 reads more, and so does a
    /// key that is not there and is thought to be in a later level. After an
    /// audit every lookup reads one bucket at most (unless hashes collide),
    /// until a key is inserted that could change that again. Looks at every
    /// key.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(100);
    /// // So short strings that many keys have the same.
    /// let mut table = builder.build_with(&Interpolation::plan().bits(8))?;
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
            .filter(|&(hash, level)| {
                let named = self.summary.locate(hash).named;
                named.is_some_and(|named| named != level)
            })
            .map(|(hash, _)| hash)
            .collect();
        self.exceptions = BTreeMap::new();
        for &hash in &misnamed {
            self.record_exception(hash);
        }
        self.audited = true;
        misnamed.len() as u64
    }

    /// Makes the summary again from the keys there are, without those that
    /// were removed, and [audits](Self::audit) it; how many keys it misnames.
    ///
    /// ```
    /// use tamis::summary::{Deletion, TypeFilter};
    /// use tamis::table::Multilevel;
    /// let never = Deletion::Lazy { share: 1e9 };
    /// let plan = TypeFilter::plan().cells(1000).probes(4).deletion(never);
    /// let mut table =
    ///     Multilevel::builder().levels(&[200, 100]).build_with(&plan)?;
    /// table.insert("apple", 3)?;
    /// table.remove("apple");
    /// assert_eq!(table.lookup("apple").reads, 1);
    /// table.refresh();
    /// assert_eq!(table.lookup("apple").reads, 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn refresh(&mut self) -> u64 {
        let placed: Vec<(u64, u32)> = self.placed().collect();
        self.summary.clear();
        for (hash, level) in placed {
            self.summary.insert(hash, level);
        }
        self.audit()
    }

    /// Takes everything out and puts it back, hashed in another way if a
    /// hasher is given: keys move up into the room that removals left. The
    /// outcome depends on the keys alone, not on their history. Then the
    /// table is [audited](Self::audit).
    ///
    /// While it runs, entries need their memory twice.
    ///
    /// # Errors
    ///
    /// [`Error::Crisis`] if there would not be room for all. The table is as
    /// it was then; another seed may do better.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[90, 30, 10]).build()?;
    /// for i in 0..40u32 {
    ///     table.insert(i, ())?;
    /// }
    /// (0..30u32).for_each(|i| assert!(table.remove(&i).is_some()));
    /// table.rebuild(Some(KeyHasher::xxh3(7)))?;
    /// assert!((30..40u32).all(|i| table.contains_key(&i)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn rebuild(&mut self, hasher: Option<KeyHasher>) -> Result<()> {
        let hasher = hasher.unwrap_or(self.hasher);
        self.rehearse(&hasher)?;
        let entries: Vec<(K, V)> =
            self.buckets.take().chain(self.stash.take()).collect();
        self.hasher = hasher;
        self.summary.clear();
        self.exceptions = BTreeMap::new();
        self.tally = Tally::default();
        for (hash, entry) in in_order(&hasher, entries) {
            // They are all different: no need to look whether one is here.
            let reads = self.place(hash, entry);
            self.tally.insertions += 1;
            self.tally.insertion_reads += u64::from(reads);
        }
        self.audit();
        Ok(())
    }

    /// Whether everything would find a place, without moving anything: keys
    /// taken out could not be put back where they were.
    fn rehearse(&self, hasher: &KeyHasher) -> Result<()> {
        let mut hashes: Vec<u64> =
            self.iter().map(|(key, _)| hasher.hash(key)).collect();
        hashes.sort_unstable_by_key(|&hash| order(hash));
        let buckets: u64 = self.shape.levels().iter().sum();
        let mut loads = vec![0u32; buckets as usize];
        let mut stashed = 0;
        for hash in hashes {
            let bucket = (0..self.proposals.choices())
                .map(|level| self.proposals.block(hash, level) as usize)
                .find(|&bucket| loads[bucket] < self.shape.bucket_entries());
            match bucket {
                Some(bucket) => loads[bucket] += 1,
                None => stashed += 1,
            }
        }
        if stashed > self.stash_entries {
            return Err(Error::Crisis);
        }
        Ok(())
    }
}

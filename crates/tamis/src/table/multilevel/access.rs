//! Lookup, insertion and removal.

use core::borrow::Borrow;

use super::buckets::Found;
use super::{Multilevel, TableFull};
use crate::key::Key;
use crate::summary::Summary;

/// The result of a lookup and its cost.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
/// table.insert("apple", 3)?;
/// let lookup = table.lookup("apple");
/// assert_eq!((lookup.value, lookup.reads), (Some(&3), 1));
/// // Without a summary an absent key costs one read in every level.
/// assert_eq!(table.lookup("pear").reads, 2);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup<'a, V> {
    /// The value of the key; `None` if the key is absent.
    pub value: Option<&'a V>,
    /// Buckets read.
    pub reads: u32,
}

/// The position of a key.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Entry `at` of a bucket.
    Entry { level: u32, bucket: usize, at: usize },
    /// Slot `at` of a bucket, removed lazily.
    Deleted { level: u32, bucket: usize, at: usize },
    /// Entry `at` of the stashed entries with the key's hash.
    Stash { at: usize },
}

/// The result of a search.
struct Search {
    hash: u64,
    /// `None` if the key is absent and no slot has it as a deleted key.
    place: Option<Place>,
    /// Buckets read.
    reads: u32,
}

impl Search {
    fn is_present(&self) -> bool {
        matches!(self.place, Some(Place::Entry { .. } | Place::Stash { .. }))
    }
}

impl<K, V, S: Summary> Multilevel<K, V, S> {
    /// The bucket of a key in a level.
    #[inline]
    pub(super) fn bucket(&self, hash: u64, level: u32) -> usize {
        self.proposals.block(hash, level) as usize
    }
}

impl<K: Key + Eq, V, S: Summary> Multilevel<K, V, S> {
    #[inline]
    fn search<Q>(&self, key: &Q) -> Search
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let hash = self.hasher.hash(key);
        let mut reads = 0;
        if self.stash.len() > 0 {
            if let Some(at) = self.stash.find(hash, key) {
                let place = Some(Place::Stash { at });
                return Search { hash, place, reads };
            }
        }
        let mut place = None;
        for level in self.directory.route(hash) {
            reads += 1;
            let bucket = self.bucket(hash, level);
            match self.buckets.find(bucket, |other| other.borrow() == key) {
                Some(Found::Entry(at)) => {
                    let place = Some(Place::Entry { level, bucket, at });
                    return Search { hash, place, reads };
                }
                // The search goes on: a key that was inserted again while the
                // summary misnamed it has a second slot.
                Some(Found::Deleted(at)) => {
                    place = Some(Place::Deleted { level, bucket, at });
                }
                None => {}
            }
        }
        Search { hash, place, reads }
    }

    fn entry_mut(&mut self, search: &Search) -> Option<&mut (K, V)> {
        match search.place? {
            Place::Entry { bucket, at, .. } => {
                self.buckets.get_mut(bucket, at)
            }
            Place::Deleted { .. } => None,
            Place::Stash { at } => self.stash.get_mut(search.hash, at),
        }
    }

    /// Looks a key up and counts the buckets it reads.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(100);
    /// let mut table = builder.build_with(&Interpolation::builder())?;
    /// for i in 0..100u32 {
    ///     table.insert(i, i * i)?;
    /// }
    /// assert!((0..100u32).all(|i| table.lookup(&i).reads == 1));
    /// assert_eq!(table.lookup(&12).value, Some(&144));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn lookup<Q>(&self, key: &Q) -> Lookup<'_, V>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let Search { hash, place, reads } = self.search(key);
        let entry = place.and_then(|place| match place {
            Place::Entry { bucket, at, .. } => self.buckets.get(bucket, at),
            Place::Deleted { .. } => None,
            Place::Stash { at } => self.stash.get(hash, at),
        });
        Lookup { value: entry.map(|(_, value)| value), reads }
    }

    /// The value of a key.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert("apple".to_string(), 3)?;
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
        self.lookup(key).value
    }

    /// A mutable reference to the value of a key.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert("apple".to_string(), 3)?;
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
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert(5u64, ())?;
    /// assert!(table.contains_key(&5) && !table.contains_key(&6));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        self.search(key).is_present()
    }

    /// Inserts a key and its value into the first level that has room, or
    /// else into the stash. A present key keeps its place and gets the new
    /// value; the old value is returned.
    ///
    /// # Errors
    ///
    /// [`TableFull`], with the key and the value, if neither a level nor the
    /// stash has room. The table is unchanged then.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// assert_eq!(table.insert("apple", 3)?, None);
    /// assert_eq!(table.insert("apple", 4)?, Some(3));
    /// assert_eq!(table.get("apple"), Some(&4));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert(
        &mut self,
        key: K,
        value: V,
    ) -> Result<Option<V>, TableFull<K, V>> {
        let search = self.search(&key);
        if let Some((_, old)) = self.entry_mut(&search) {
            return Ok(Some(core::mem::replace(old, value)));
        }
        let Search { hash, place, reads } = search;
        if let Some(Place::Deleted { level, bucket, at }) = place {
            self.buckets.restore(bucket, at, value);
            *self.deleted.at_mut(level) -= 1;
            *self.counts.found_at_mut(level) += 1;
            if self.directory.restore(hash, level) {
                self.record_exception(hash);
            }
            self.counts.record_insertion(reads);
            return Ok(None);
        }
        if self.level_with_room(hash).is_none()
            && self.stash.len() >= self.stash_entries
        {
            return Err(TableFull { key, value });
        }
        let placing = self.place(hash, (key, value));
        self.counts.record_insertion(reads + placing);
        Ok(None)
    }

    /// The first level with room for a key, by the occupancy bits.
    fn level_with_room(&self, hash: u64) -> Option<u32> {
        (0..self.proposals.choices())
            .find(|&level| self.buckets.has_room(self.bucket(hash, level)))
    }

    /// Places an absent key in the first level with room, or else in the
    /// stash. Returns the number of buckets read.
    pub(super) fn place(&mut self, hash: u64, entry: (K, V)) -> u32 {
        let Some(level) = self.level_with_room(hash) else {
            self.stash.push(hash, entry);
            return 0;
        };
        self.buckets.push(self.bucket(hash, level), entry);
        *self.counts.found_at_mut(level) += 1;
        if self.directory.insert(hash, level) {
            self.record_exception(hash);
        }
        self.buckets.push_reads()
    }

    /// Removes a key and returns its value. Keys of later levels do not move
    /// into the free entry.
    ///
    /// With [`RemovalRule::Immediate`](super::RemovalRule::Immediate) the entry is free again, and the summary is
    /// [refreshed](Self::refresh) if its stale keys exceed their share. With
    /// [`RemovalRule::Lazy`](super::RemovalRule::Lazy) the key keeps its slot, and the table is
    /// [rebuilt](Self::rebuild) if the deleted keys exceed their share.
    ///
    /// ```
    /// use tamis::table::Multilevel;
    /// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
    /// table.insert("apple", 3)?;
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
        match place? {
            Place::Deleted { .. } => None,
            Place::Stash { at } => {
                self.stash.remove(hash, at).map(|(_, value)| value)
            }
            Place::Entry { level, bucket, at } => {
                let lazy = self.deleted.quota.is_some();
                let value = match lazy {
                    true => self.buckets.delete(bucket, at)?,
                    false => self.buckets.remove(bucket, at)?,
                };
                *self.counts.found_at_mut(level) -= 1;
                if lazy {
                    *self.deleted.at_mut(level) += 1;
                } else {
                    self.directory.summary.remove(hash, level);
                }
                if self.directory.is_exception(hash) {
                    self.record_exception(hash);
                }
                if self.deleted.exceed_quota() {
                    self.rebuild_after_removals();
                } else if self.directory.summary.needs_rebuild() {
                    self.refresh();
                }
                Some(value)
            }
        }
    }
}

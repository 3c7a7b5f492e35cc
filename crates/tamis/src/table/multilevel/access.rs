//! Lookup, insertion and removal.

use core::borrow::Borrow;

use super::{Multilevel, TableFull};
use crate::key::Key;
use crate::summary::{Levels, Located, Summary};
use crate::table::place::{Place, Search};

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

/// The levels to read for a key, in order.
pub(super) struct Route {
    /// The level to read before `others`.
    first: Option<u32>,
    others: Levels,
}

impl Iterator for Route {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let level = self.first.take().or_else(|| self.others.iter().next())?;
        self.others = self.others.without(level);
        Some(level)
    }
}

impl<K, V, S: Summary> Multilevel<K, V, S> {
    /// The recorded levels of an exception; otherwise the level that the
    /// summary names, followed, unless the table is audited, by the other
    /// possible levels.
    #[inline]
    pub(super) fn route(&self, hash: u64) -> Route {
        let Located { level, possible } = self.summary.locate(hash);
        if possible.is_empty() {
            return Route { first: None, others: possible };
        }
        if !self.exceptions.is_empty() {
            if let Some(&others) = self.exceptions.get(&hash) {
                return Route { first: None, others };
            }
        }
        match level {
            Some(_) if self.audited => {
                Route { first: level, others: Levels::NONE }
            }
            _ => Route { first: level, others: possible },
        }
    }

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
        let is_key = |(other, _): &(K, V)| other.borrow() == key;
        let mut reads = 0;
        if self.stash.len() > 0 {
            if let Some(at) = self.stash.find(hash, is_key) {
                let place = Some(Place::List { at });
                return Search { hash, place, reads };
            }
        }
        for level in self.route(hash) {
            reads += 1;
            let bucket = self.bucket(hash, level);
            if let Some(at) = self.buckets.find(bucket, is_key) {
                let place = Some(Place::Bucket { choice: level, bucket, at });
                return Search { hash, place, reads };
            }
        }
        Search { hash, place: None, reads }
    }

    fn entry_mut(&mut self, search: &Search) -> Option<&mut (K, V)> {
        match search.place? {
            Place::Bucket { bucket, at, .. } => {
                self.buckets.get_mut(bucket, at)
            }
            Place::List { at } => self.stash.get_mut(search.hash, at),
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
            Place::Bucket { bucket, at, .. } => self.buckets.get(bucket, at),
            Place::List { at } => self.stash.get(hash, at),
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
        self.search(key).place.is_some()
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
        let Search { hash, reads, .. } = search;
        if self.level_with_room(hash).is_none()
            && self.stash.len() >= self.stash_entries
        {
            return Err(TableFull { key, value });
        }
        let placing = self.place(hash, (key, value));
        self.counts.record_insertion(reads + placing);
        Ok(None)
    }

    /// The first level with room for a key.
    fn level_with_room(&self, hash: u64) -> Option<u32> {
        (0..self.proposals.choices())
            .find(|&level| self.buckets.has_room(self.bucket(hash, level)))
    }

    /// Places an absent key in the first level with room, or else in the
    /// stash. Returns the number of buckets read.
    pub(super) fn place(&mut self, hash: u64, entry: (K, V)) -> u32 {
        let Some(level) = self.level_with_room(hash) else {
            self.stash.push(hash, entry);
            return self.proposals.choices();
        };
        self.buckets.push(self.bucket(hash, level), entry);
        *self.counts.found_at_mut(level) += 1;
        if self.summary.insert(hash, level) {
            self.audited = false;
        }
        self.note_exception(hash, level);
        level + 1
    }

    /// Removes a key and returns its value. Keys of later levels do not move
    /// into the free entry.
    ///
    /// [Refreshes](Self::refresh) the summary if its stale keys then exceed
    /// their share.
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
        let (_, value) = match place? {
            Place::List { at } => self.stash.remove(hash, at)?,
            Place::Bucket { choice: level, bucket, at } => {
                let entry = self.buckets.remove(bucket, at)?;
                *self.counts.found_at_mut(level) -= 1;
                self.summary.remove(hash, level);
                if self.exceptions.contains_key(&hash) {
                    self.record_exception(hash);
                }
                if self.summary.needs_rebuild() {
                    self.refresh();
                }
                entry
            }
        };
        Some(value)
    }
}

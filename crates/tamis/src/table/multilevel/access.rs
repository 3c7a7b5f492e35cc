//! Finding, putting in and taking out.

use core::borrow::Borrow;

use super::{Crisis, Multilevel};
use crate::key::Key;
use crate::placement::MAX_CHOICES;
use crate::summary::{Levels, Located, Summary};

/// Where an entry is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Level { level: u32, slot: usize },
    Stash { at: usize },
}

/// What a search came back with.
struct Search {
    hash: u64,
    place: Option<Place>,
    reads: u32,
}

/// What a lookup found, and what it cost.
///
/// ```
/// use tamis::table::Multilevel;
///
/// let mut table = Multilevel::builder().levels(&[20, 10]).build()?;
/// table.insert("apple", 3)?;
/// let lookup = table.lookup("apple");
/// assert_eq!((lookup.value, lookup.reads), (Some(&3), 1));
/// // Without a summary a key that is not there costs all levels.
/// assert_eq!(table.lookup("pear").reads, 2);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup<'a, V> {
    /// The value of the key, if it is there.
    pub value: Option<&'a V>,
    /// Buckets read for it.
    pub reads: u32,
}

/// The levels to read for a key, in order.
pub(super) struct Route {
    /// Before all others.
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
    /// The level a summary names comes first, then every other one it does
    /// not rule out. Of keys it is known to misname the levels are known.
    #[inline]
    pub(super) fn route(&self, hash: u64) -> Route {
        let Located { named, possible } = self.summary.locate(hash);
        if possible.is_empty() {
            return Route { first: None, others: possible };
        }
        if !self.exceptions.is_empty() {
            if let Some(&others) = self.exceptions.get(&hash) {
                return Route { first: None, others };
            }
        }
        match named {
            Some(_) if self.audited => {
                Route { first: named, others: Levels::NONE }
            }
            _ => Route { first: named, others: possible },
        }
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
                let place = Some(Place::Stash { at });
                return Search { hash, place, reads };
            }
        }
        for level in self.route(hash) {
            reads += 1;
            let bucket = self.proposals.block(hash, level);
            if let Some(slot) = self.buckets.find(bucket, is_key) {
                let place = Some(Place::Level { level, slot });
                return Search { hash, place, reads };
            }
        }
        Search { hash, place: None, reads }
    }

    fn entry_mut(&mut self, search: &Search) -> Option<&mut (K, V)> {
        match search.place? {
            Place::Level { slot, .. } => self.buckets.get_mut(slot),
            Place::Stash { at } => self.stash.get_mut(search.hash, at),
        }
    }

    /// Looks a key up, and says how many buckets were read for it.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::Multilevel;
    /// let builder = Multilevel::builder().items(100);
    /// let mut table = builder.build_with(&Interpolation::plan())?;
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
            Place::Level { slot, .. } => self.buckets.get(slot),
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

    /// The value of a key, to be changed.
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

    /// Inserts a key with its value: into the first level that has room, or
    /// into the stash. A key that is present keeps its place and gets the
    /// new value; the old one is returned.
    ///
    /// # Errors
    ///
    /// [`Crisis`], with the key and the value, if there is no room. Nothing
    /// has changed then.
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
    ) -> Result<Option<V>, Crisis<K, V>> {
        let search = self.search(&key);
        if let Some((_, old)) = self.entry_mut(&search) {
            return Ok(Some(core::mem::replace(old, value)));
        }
        let Search { hash, reads, .. } = search;
        if self.level_with_room(hash).is_none()
            && self.stash.len() >= self.stash_entries
        {
            return Err(Crisis { key, value });
        }
        let placing = self.place(hash, (key, value));
        self.tally.insertions += 1;
        self.tally.insertion_reads += u64::from(reads + placing);
        Ok(None)
    }

    /// The first level with room for a key.
    fn level_with_room(&self, hash: u64) -> Option<u32> {
        (0..self.proposals.choices()).find(|&level| {
            self.buckets.has_room(self.proposals.block(hash, level))
        })
    }

    /// Puts a key that is absent into the first level with room, into the
    /// stash if there is none; the buckets read for that.
    pub(super) fn place(&mut self, hash: u64, entry: (K, V)) -> u32 {
        let Some(level) = self.level_with_room(hash) else {
            self.stash.push(hash, entry);
            return self.proposals.choices();
        };
        self.buckets.push(self.proposals.block(hash, level), entry);
        self.tally.level_items[level as usize % MAX_CHOICES] += 1;
        if self.summary.insert(hash, level) {
            self.audited = false;
        }
        self.note_exception(hash, level);
        level + 1
    }

    /// Takes a key out and returns its value. Nothing moves up into its
    /// place from a later level.
    ///
    /// If the summary then has more stale keys than it may, it is made again
    /// as by [`refresh`](Self::refresh).
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
            Place::Stash { at } => self.stash.remove(hash, at)?,
            Place::Level { level, slot } => {
                let entry = self.buckets.remove(slot)?;
                self.tally.level_items[level as usize % MAX_CHOICES] -= 1;
                self.summary.remove(hash, level);
                if self.exceptions.contains_key(&hash) {
                    self.record_exception(hash);
                }
                if self.summary.is_worn() {
                    self.refresh();
                }
                entry
            }
        };
        Some(value)
    }
}

//! The list of entries that every bucket refused.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::borrow::Borrow;

use crate::key::Key;

/// Entries with one hash that are compared one by one. More are ordered by
/// their bytes.
const COMPARED: usize = 8;

/// Entries by hash, and by their bytes where many share a hash.
///
/// Several entries share a hash only if hashes collide, by accident or because
/// a stranger chose the keys. A search compares at most [`COMPARED`] keys, or
/// descends in a tree of byte strings, and then compares the keys with equal
/// bytes, of which a type has one.
#[derive(Clone)]
pub(super) struct EntryList<K, V> {
    by_hash: BTreeMap<u64, SameHash<K, V>>,
    len: usize,
}

/// The entries with one hash.
#[derive(Clone)]
struct SameHash<K, V> {
    entries: Vec<(K, V)>,
    /// The indices in `entries` by the bytes of their keys; `None` while at
    /// most [`COMPARED`] entries were here.
    by_bytes: Option<BTreeMap<Box<[u8]>, Vec<usize>>>,
}

impl<K, V> EntryList<K, V> {
    pub(super) const EMPTY: Self = Self { by_hash: BTreeMap::new(), len: 0 };

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, hash: u64, at: usize) -> Option<&(K, V)> {
        self.by_hash.get(&hash)?.entries.get(at)
    }

    pub(super) fn get_mut(
        &mut self,
        hash: u64,
        at: usize,
    ) -> Option<&mut (K, V)> {
        self.by_hash.get_mut(&hash)?.entries.get_mut(at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.by_hash.values().flat_map(|same| &same.entries)
    }

    /// Removes and returns all entries.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let taken = core::mem::replace(self, Self::EMPTY);
        taken.by_hash.into_values().flat_map(|same| same.entries)
    }
}

impl<K: Key + Eq, V> EntryList<K, V> {
    /// The index of a key among those with this hash.
    #[inline]
    pub(super) fn find<Q>(&self, hash: u64, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
        Q: Key + Eq + ?Sized,
    {
        let SameHash { entries, by_bytes } = self.by_hash.get(&hash)?;
        let is_key = |at: usize| entries[at].0.borrow() == key;
        match by_bytes {
            None => (0..entries.len()).find(|&at| is_key(at)),
            Some(by_bytes) => {
                let same = key.with_bytes(|bytes| by_bytes.get(bytes))?;
                same.iter().copied().find(|&at| is_key(at))
            }
        }
    }

    pub(super) fn push(&mut self, hash: u64, entry: (K, V)) {
        let empty = || SameHash { entries: Vec::new(), by_bytes: None };
        self.by_hash.entry(hash).or_insert_with(empty).push(entry);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, at: usize) -> Option<(K, V)> {
        let same = self.by_hash.get_mut(&hash)?;
        let entry = same.remove(at)?;
        if same.entries.is_empty() {
            self.by_hash.remove(&hash);
        }
        self.len -= 1;
        Some(entry)
    }
}

impl<K: Key, V> SameHash<K, V> {
    fn push(&mut self, entry: (K, V)) {
        self.entries.push(entry);
        let first = match self.by_bytes {
            Some(_) => self.entries.len() - 1,
            None if self.entries.len() > COMPARED => 0,
            None => return,
        };
        let by_bytes = self.by_bytes.get_or_insert_default();
        for (at, (key, _)) in self.entries.iter().enumerate().skip(first) {
            by_bytes
                .entry(key.with_bytes(|bytes| bytes.into()))
                .or_default()
                .push(at);
        }
    }

    /// The last entry takes the place of the removed one.
    fn remove(&mut self, at: usize) -> Option<(K, V)> {
        let last = self.entries.len().checked_sub(1)?;
        if at > last {
            return None;
        }
        let removed = self.entries.swap_remove(at);
        if let Some(by_bytes) = &mut self.by_bytes {
            removed.0.with_bytes(|bytes| {
                if let Some(same) = by_bytes.get_mut(bytes) {
                    same.retain(|&other| other != at);
                    if same.is_empty() {
                        by_bytes.remove(bytes);
                    }
                }
            });
            if let Some((moved, _)) = self.entries.get(at) {
                let same = moved.with_bytes(|bytes| by_bytes.get_mut(bytes));
                let places = same.into_iter().flatten();
                places.filter(|place| **place == last).for_each(|p| *p = at);
            }
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The last byte is not among the bytes of the key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    struct Partial(u8, u8);

    impl Key for Partial {
        fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
            f(&[self.0])
        }
    }

    proptest! {
        #[test]
        fn histories_match_a_map(
            ops in proptest::collection::vec(
                (0u64..2, 0u8..40, 0u8..2, any::<bool>()), 0..300,
            ),
        ) {
            let mut list = EntryList::<Partial, usize>::EMPTY;
            let mut model = HashMap::new();
            for (step, (hash, byte, other, insert)) in (0..).zip(ops) {
                let key = Partial(byte, other);
                let hash = hash.min(u64::from(byte) % 2);
                let found = list.find(hash, &key);
                let at = found.and_then(|at| list.get(hash, at).copied());
                prop_assert_eq!(at, model.get(&(hash, key)).copied());
                match (insert, found) {
                    (true, None) => {
                        list.push(hash, (key, step));
                        model.insert((hash, key), (key, step));
                    }
                    (true, Some(at)) => {
                        list.get_mut(hash, at).unwrap().1 = step;
                        model.insert((hash, key), (key, step));
                    }
                    (false, Some(at)) => {
                        let removed = list.remove(hash, at);
                        prop_assert_eq!(removed, model.remove(&(hash, key)));
                    }
                    (false, None) => {
                        prop_assert_eq!(list.remove(hash, 1000), None);
                    }
                }
                prop_assert_eq!(list.len(), model.len());
                prop_assert_eq!(list.iter().count(), model.len());
                for (&(hash, key), entry) in &model {
                    let at = list.find(hash, &key).unwrap();
                    prop_assert_eq!(list.get(hash, at), Some(entry));
                }
            }
            prop_assert_eq!(list.take().count(), model.len());
            prop_assert_eq!(list.len(), 0);
        }
    }

    std::thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Clone)]
    struct Counted(u64);

    impl Key for Counted {
        fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
            self.0.with_bytes(f)
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    #[test]
    fn equal_hashes_cost_at_most_eight_comparisons() {
        let mut list = EntryList::EMPTY;
        for i in 0..5000 {
            let before = COMPARISONS.get();
            assert_eq!(list.find(7, &Counted(i)), None);
            list.push(7, (Counted(i), ()));
            assert!(COMPARISONS.get() - before <= COMPARED);
        }
        for i in (0..5000).rev() {
            let before = COMPARISONS.get();
            let at = list.find(7, &Counted(i)).unwrap();
            assert!(list.remove(7, at).is_some_and(|(key, ())| key.0 == i));
            assert!(COMPARISONS.get() - before <= COMPARED);
        }
        assert_eq!(list.len(), 0);
    }
}

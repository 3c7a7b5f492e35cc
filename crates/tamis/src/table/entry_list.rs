//! The list of entries that every bucket refused.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Entries by hash. Several entries share a hash only if hashes collide.
#[derive(Clone)]
pub(super) struct EntryList<K, V> {
    entries: BTreeMap<u64, Vec<(K, V)>>,
    len: usize,
}

impl<K, V> EntryList<K, V> {
    pub(super) const EMPTY: Self = Self { entries: BTreeMap::new(), len: 0 };

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The index of an entry among those with this hash.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        is_key: impl Fn(&(K, V)) -> bool,
    ) -> Option<usize> {
        self.entries.get(&hash)?.iter().position(is_key)
    }

    pub(super) fn get(&self, hash: u64, at: usize) -> Option<&(K, V)> {
        self.entries.get(&hash)?.get(at)
    }

    pub(super) fn get_mut(
        &mut self,
        hash: u64,
        at: usize,
    ) -> Option<&mut (K, V)> {
        self.entries.get_mut(&hash)?.get_mut(at)
    }

    pub(super) fn push(&mut self, hash: u64, entry: (K, V)) {
        self.entries.entry(hash).or_default().push(entry);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, at: usize) -> Option<(K, V)> {
        let entries = self.entries.get_mut(&hash)?;
        if at >= entries.len() {
            return None;
        }
        let entry = entries.swap_remove(at);
        if entries.is_empty() {
            self.entries.remove(&hash);
        }
        self.len -= 1;
        Some(entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.entries.values().flatten()
    }

    /// Removes and returns all entries.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let taken = core::mem::replace(self, Self::EMPTY);
        taken.entries.into_values().flatten()
    }
}

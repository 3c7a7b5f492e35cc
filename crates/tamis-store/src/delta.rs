//! The write buffer of a segment: its writes since it was built.
//!
//! Entries are appended to one arena; a hash table maps keys to the newest
//! entry, and entries link to older versions that a snapshot needs. The
//! memory held is the capacity of both, so that it can be counted exactly.

use hashbrown::HashTable;

use crate::batch::Kind;
use crate::codec::{u32_at, u64_at};
use crate::extents::Extent;
use crate::hash::filter_hash;
use crate::page::Place;

/// Length of an entry before its key: position 8, sequence 8, offset of the
/// older version 4, length of the key with the kind in the upper two bits 4,
/// length of the value 4.
const HEADER: usize = 28;

/// `older` of an entry without older versions.
const NONE: u32 = u32::MAX;

/// Largest step by which an arena grows.
pub(crate) const MAX_STEP: usize = 64 << 10;

/// Bits of the length of a key.
const KEY_BITS: u32 = 30;

/// An entry of a [`Delta`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) position: u64,
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    older: u32,
}

impl Entry<'_> {
    /// Bytes in the arena.
    fn len(&self) -> usize {
        HEADER + self.key.len() + self.value.len()
    }
}

/// The writes of a segment, newest version first.
#[derive(Debug, Default, Clone)]
pub(crate) struct Delta {
    arena: Vec<u8>,
    /// Offsets of the newest entries.
    table: HashTable<u32>,
    /// Bytes of entries that no lookup reaches.
    garbage: usize,
    /// Extents of all large values that were written here, also of those
    /// that were overwritten since.
    larges: Vec<Extent>,
}

impl Delta {
    /// Decodes the entry at `at`, an offset from `table` or `older`.
    pub(crate) fn entry(&self, at: u32) -> Entry<'_> {
        let entry = &self.arena[at as usize..];
        let key_word = u32_at(entry, 20);
        let key_len = (key_word & ((1 << KEY_BITS) - 1)) as usize;
        let value_len = u32_at(entry, 24) as usize;
        let (key, rest) = entry[HEADER..].split_at(key_len);
        Entry {
            position: u64_at(entry, 0),
            sequence: u64_at(entry, 8),
            kind: Kind::from_code((key_word >> KEY_BITS) as u8)
                .unwrap_or(Kind::Delete),
            key,
            value: &rest[..value_len],
            older: u32_at(entry, 16),
        }
    }

    /// Offset of the newest entry of a key.
    fn find(&self, position: u64, key: &[u8]) -> Option<u32> {
        let found = self.table.find(filter_hash(position), |&at| {
            let entry = self.entry(at);
            entry.position == position && entry.key == key
        });
        found.copied()
    }

    /// The newest entry of a key whose sequence number is at most `limit`.
    pub(crate) fn get(
        &self,
        position: u64,
        key: &[u8],
        limit: u64,
    ) -> Option<Entry<'_>> {
        if self.table.is_empty() {
            return None;
        }
        let at = self.visible(self.find(position, key)?, limit)?;
        Some(self.entry(at))
    }

    /// The newest version at most `limit` in the chain from `at`.
    fn visible(&self, mut at: u32, limit: u64) -> Option<u32> {
        while at != NONE {
            let entry = self.entry(at);
            if entry.sequence <= limit {
                return Some(at);
            }
            at = entry.older;
        }
        None
    }

    /// Adds a write. `newest_snapshot` is the largest sequence number that a
    /// snapshot reads: a version above it is replaced, one at or below it is
    /// kept.
    pub(crate) fn insert(
        &mut self,
        position: u64,
        sequence: u64,
        (kind, key, value): (Kind, &[u8], &[u8]),
        newest_snapshot: u64,
    ) {
        if kind == Kind::Large {
            self.larges.extend(Place::decode(value).map(|p| p.extent));
        }
        if let Some(at) = self.find(position, key) {
            let old = self.entry(at);
            let in_place = old.value.len() == value.len();
            if in_place && old.sequence > newest_snapshot {
                let older = old.older;
                self.write(at, position, sequence, older, kind, key, value);
                return;
            }
        }
        let len = HEADER + key.len() + value.len();
        self.reserve(len);
        let mut older = NONE;
        let found = self.find(position, key);
        if let Some(at) = found {
            let old = self.entry(at);
            older = at;
            if old.sequence > newest_snapshot {
                older = old.older;
                self.garbage += old.len();
            }
        }
        let at = self.arena.len() as u32;
        self.arena.resize(self.arena.len() + len, 0);
        self.write(at, position, sequence, older, kind, key, value);
        let hash = filter_hash(position);
        match found {
            Some(found) => {
                if let Some(slot) = self.table.find_mut(hash, |&o| o == found)
                {
                    *slot = at;
                }
            }
            None => {
                let arena = &self.arena;
                self.table.insert_unique(hash, at, |&at| {
                    filter_hash(u64_at(arena, at as usize))
                });
            }
        }
    }

    /// Writes an entry at `at`.
    #[expect(clippy::too_many_arguments, reason = "the fields of an entry")]
    fn write(
        &mut self,
        at: u32,
        position: u64,
        sequence: u64,
        older: u32,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) {
        let entry = &mut self.arena[at as usize..];
        let key_word = key.len() as u32 | (kind as u32) << KEY_BITS;
        entry[..8].copy_from_slice(&position.to_le_bytes());
        entry[8..16].copy_from_slice(&sequence.to_le_bytes());
        entry[16..20].copy_from_slice(&older.to_le_bytes());
        entry[20..24].copy_from_slice(&key_word.to_le_bytes());
        entry[24..28].copy_from_slice(&(value.len() as u32).to_le_bytes());
        entry[HEADER..][..key.len()].copy_from_slice(key);
        entry[HEADER + key.len()..][..value.len()].copy_from_slice(value);
    }

    /// Makes room for `len` bytes: frees garbage if it is half of the arena,
    /// else grows by a quarter. Growth by doubling would hold twice the
    /// memory needed.
    fn reserve(&mut self, len: usize) {
        if self.arena.capacity() - self.arena.len() >= len {
            return;
        }
        if self.garbage > self.arena.len() / 2 {
            self.collect();
        }
        if self.arena.capacity() - self.arena.len() < len {
            let step = (self.arena.len() / 4).clamp(512, MAX_STEP);
            self.arena.reserve_exact(len.max(step));
        }
    }

    /// Copies the entries that lookups reach to a new arena.
    fn collect(&mut self) {
        let live = self.bytes();
        let mut arena = Vec::with_capacity(live + live / 4);
        let mut table = std::mem::take(&mut self.table);
        for head in table.iter_mut() {
            let mut at = std::mem::replace(head, arena.len() as u32);
            while at != NONE {
                let (len, older) =
                    (self.entry(at).len(), self.entry(at).older);
                let new = arena.len();
                arena.extend_from_slice(&self.arena[at as usize..][..len]);
                if older != NONE {
                    let next = (arena.len() as u32).to_le_bytes();
                    arena[new + 16..new + 20].copy_from_slice(&next);
                }
                at = older;
            }
        }
        self.table = table;
        self.arena = arena;
        self.garbage = 0;
    }

    /// Room for `count` entries with `bytes` bytes of keys and values, which
    /// are added by [`append`](Self::append).
    pub(crate) fn with_room(bytes: usize, count: usize) -> Self {
        let arena = Vec::with_capacity(bytes + count * HEADER);
        Self { arena, ..Self::default() }
    }

    /// Adds an entry that is found by its offset alone, which is returned.
    pub(crate) fn append(
        &mut self,
        position: u64,
        (kind, key, value): (Kind, &[u8], &[u8]),
    ) -> u32 {
        let at = self.arena.len();
        self.arena.resize(at + HEADER + key.len() + value.len(), 0);
        self.write(at as u32, position, 0, NONE, kind, key, value);
        at as u32
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no write is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of memory held.
    pub(crate) fn ram(&self) -> usize {
        self.arena.capacity()
            + self.table.allocation_size()
            + self.larges.capacity() * size_of::<Extent>()
    }

    /// Bytes of the entries.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.len() - self.garbage
    }

    /// The newest entry of every key, in any order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.table.iter().map(|&at| self.entry(at))
    }

    /// The entry of every key that is visible at `limit`, in the order of
    /// positions and keys: position, and argument of [`entry`](Self::entry).
    pub(crate) fn sorted(&self, limit: u64) -> Vec<(u64, u32)> {
        let mut order = Vec::with_capacity(self.table.len());
        for &head in &self.table {
            if let Some(at) = self.visible(head, limit) {
                order.push((self.entry(at).position, at));
            }
        }
        order.sort_unstable_by(|a, b| {
            let keys = || self.entry(a.1).key.cmp(self.entry(b.1).key);
            a.0.cmp(&b.0).then_with(keys)
        });
        order
    }

    /// Adds the entries that are visible at `limit` to `other`.
    pub(crate) fn copy_to(&self, other: &mut Self, limit: u64) {
        for &head in &self.table {
            if let Some(at) = self.visible(head, limit) {
                let Entry { position, sequence, kind, key, value, .. } =
                    self.entry(at);
                other.insert(position, sequence, (kind, key, value), 0);
            }
        }
    }

    /// Extents of all large values that were written here.
    pub(crate) fn larges(&self) -> &[Extent] {
        &self.larges
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every snapshot reads the versions that were newest when it was taken.
        #[test]
        fn versions_are_kept_for_snapshots(
            ops in prop::collection::vec((0..12u8, 0..40usize, 0..9u8), 1..400)
        ) {
            let mut delta = Delta::default();
            let mut model: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
            let mut snapshots = vec![(0, model.clone())];
            for (i, &(key, len, act)) in ops.iter().enumerate() {
                let sequence = i as u64 + 1;
                let value = vec![i as u8; len];
                let position = u64::from(key / 2) << 60;
                let newest = snapshots.last().unwrap().0;
                delta.insert(
                    position, sequence, (Kind::Put, &[key], &value), newest,
                );
                model.insert(key, value);
                if act == 0 {
                    snapshots.push((sequence, model.clone()));
                }
            }
            snapshots.push((u64::MAX, model));
            for (limit, model) in &snapshots {
                for key in 0..12u8 {
                    let position = u64::from(key / 2) << 60;
                    let found = delta.get(position, &[key], *limit);
                    prop_assert_eq!(
                        found.map(|e| e.value), model.get(&key).map(|v| &v[..])
                    );
                }
                let sorted = delta.sorted(*limit);
                prop_assert_eq!(sorted.len(), model.len());
                let key = |i: usize| delta.entry(sorted[i].1).key;
                prop_assert!((1..sorted.len()).all(|i| key(i - 1) < key(i)));
            }
            prop_assert!(delta.bytes() <= delta.ram());
        }
    }

    /// A key that is overwritten with values of changing lengths.
    #[test]
    fn garbage_is_bounded() {
        let mut delta = Delta::default();
        for i in 0..100_000u64 {
            let value = vec![1; (i % 50) as usize];
            delta.insert(7, i + 1, (Kind::Put, b"key", &value), 0);
        }
        assert_eq!(delta.len(), 1);
        assert!(delta.ram() < 4096, "{}", delta.ram());
    }
}

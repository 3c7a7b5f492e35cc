//! Buckets of a fixed number of entries, and one bit for each that is full.

use alloc::vec::Vec;

use crate::error::{Error, Result};

/// The content of a slot.
#[derive(Clone)]
enum Slot<K, V> {
    Free,
    Entry((K, V)),
    /// A key removed lazily, which keeps its slot until the next rebuild.
    Deleted(K),
}

impl<K, V> Slot<K, V> {
    fn is_free(&self) -> bool {
        matches!(self, Self::Free)
    }

    fn entry(&self) -> Option<&(K, V)> {
        match self {
            Self::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    fn into_entry(self) -> Option<(K, V)> {
        match self {
            Self::Entry(entry) => Some(entry),
            _ => None,
        }
    }
}

/// A slot with the key of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Entry(usize),
    Deleted(usize),
}

/// All buckets in one allocation. The entries and the deleted keys of a bucket
/// fill its first slots, without gaps.
#[derive(Clone)]
pub(super) struct Buckets<K, V> {
    slots: Vec<Slot<K, V>>,
    /// Slots per bucket (h).
    size: usize,
    /// Bit i: bucket i has no free slot. In a slow memory with buckets these
    /// bits stay in the fast one: an insertion finds room without a read.
    full: Vec<u64>,
}

impl<K, V> Buckets<K, V> {
    pub(super) fn new(buckets: u64, size: u32) -> Result<Self> {
        let slots = buckets.saturating_mul(size.into());
        let bytes = slots.saturating_mul(size_of::<Slot<K, V>>() as u64);
        let no_memory = || Error::Allocation { bytes };
        let count = usize::try_from(slots).map_err(|_| no_memory())?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).map_err(|_| no_memory())?;
        slots.resize_with(count, || Slot::Free);
        let words = buckets.div_ceil(64) as usize;
        let mut full = Vec::new();
        full.try_reserve_exact(words).map_err(|_| no_memory())?;
        full.resize(words, 0);
        Ok(Self { slots, size: size as usize, full })
    }

    /// Bits of fast memory that mark the full buckets.
    pub(super) fn occupancy_bits(&self) -> u64 {
        64 * self.full.len() as u64
    }

    fn slots(&self, bucket: usize) -> &[Slot<K, V>] {
        let first = bucket * self.size;
        &self.slots[first..first + self.size]
    }

    fn slots_mut(&mut self, bucket: usize) -> &mut [Slot<K, V>] {
        let first = bucket * self.size;
        &mut self.slots[first..first + self.size]
    }

    /// The entries of a bucket.
    #[inline]
    pub(super) fn entries(
        &self,
        bucket: usize,
    ) -> impl Iterator<Item = &(K, V)> {
        let taken = self.slots(bucket).iter();
        taken.take_while(|slot| !slot.is_free()).filter_map(Slot::entry)
    }

    /// The slot of a key in a bucket; an entry rather than a deleted key, of
    /// which the bucket may have both.
    #[inline]
    pub(super) fn find(
        &self,
        bucket: usize,
        is_key: impl Fn(&K) -> bool,
    ) -> Option<Found> {
        let mut deleted = None;
        for (at, slot) in self.slots(bucket).iter().enumerate() {
            match slot {
                Slot::Entry((key, _)) if is_key(key) => {
                    return Some(Found::Entry(at));
                }
                Slot::Deleted(key) if is_key(key) => {
                    deleted = Some(Found::Deleted(at));
                }
                Slot::Free => break,
                _ => {}
            }
        }
        deleted
    }

    /// Whether a bucket has a free slot, by its bit.
    pub(super) fn has_room(&self, bucket: usize) -> bool {
        self.full[bucket / 64] >> (bucket % 64) & 1 == 0
    }

    /// Whether a push reads its bucket, to find the free slot: not if it has
    /// only one.
    pub(super) fn push_reads(&self) -> u32 {
        u32::from(self.size > 1)
    }

    /// Adds an entry to a bucket that has room.
    pub(super) fn push(&mut self, bucket: usize, entry: (K, V)) {
        let slots = self.slots_mut(bucket);
        let load = slots.partition_point(|slot| !slot.is_free());
        slots[load] = Slot::Entry(entry);
        if load + 1 == slots.len() {
            self.full[bucket / 64] |= 1 << (bucket % 64);
        }
    }

    pub(super) fn get(&self, bucket: usize, at: usize) -> Option<&(K, V)> {
        self.slots(bucket).get(at)?.entry()
    }

    pub(super) fn get_mut(
        &mut self,
        bucket: usize,
        at: usize,
    ) -> Option<&mut (K, V)> {
        match self.slots_mut(bucket).get_mut(at)? {
            Slot::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    /// Removes an entry; the last one of the bucket fills the gap.
    pub(super) fn remove(&mut self, bucket: usize, at: usize) -> Option<V> {
        let slots = self.slots_mut(bucket);
        let taken = slots.partition_point(|slot| !slot.is_free());
        let last = taken.checked_sub(1)?;
        slots.swap(at, last);
        let removed = core::mem::replace(&mut slots[last], Slot::Free);
        self.full[bucket / 64] &= !(1 << (bucket % 64));
        removed.into_entry().map(|(_, value)| value)
    }

    /// Marks an entry as deleted: its key keeps the slot.
    pub(super) fn delete(&mut self, bucket: usize, at: usize) -> Option<V> {
        let slot = self.slots_mut(bucket).get_mut(at)?;
        let (left, value) = match core::mem::replace(slot, Slot::Free) {
            Slot::Entry((key, value)) => (Slot::Deleted(key), Some(value)),
            other => (other, None),
        };
        *slot = left;
        value
    }

    /// Makes a deleted key an entry again.
    pub(super) fn restore(&mut self, bucket: usize, at: usize, value: V) {
        let Some(slot) = self.slots_mut(bucket).get_mut(at) else { return };
        *slot = match core::mem::replace(slot, Slot::Free) {
            Slot::Deleted(key) => Slot::Entry((key, value)),
            other => other,
        };
    }

    /// All entries, bucket by bucket.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.slots.iter().filter_map(Slot::entry)
    }

    /// Frees all slots and returns their entries.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.full.fill(0);
        let slots = self.slots.iter_mut();
        slots.filter_map(|slot| {
            core::mem::replace(slot, Slot::Free).into_entry()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_mark_the_full_buckets(
            size in 1u32..5,
            buckets in 1u64..150,
            ops in proptest::collection::vec(
                (any::<usize>(), any::<usize>(), 0..6u8), 0..300,
            ),
        ) {
            let mut table = Buckets::<u16, u16>::new(buckets, size).unwrap();
            for (bucket, at, op) in ops {
                let bucket = bucket % buckets as usize;
                let at = at % size as usize;
                match op {
                    0..=2 if table.has_room(bucket) => {
                        table.push(bucket, (at as u16, 7));
                    }
                    3 if table.get(bucket, at).is_some() => {
                        table.remove(bucket, at);
                    }
                    4 => {
                        table.delete(bucket, at);
                    }
                    5 => table.restore(bucket, at, 9),
                    _ => {}
                }
                for bucket in 0..buckets as usize {
                    let slots = table.slots(bucket);
                    let is_full = slots.iter().all(|slot| !slot.is_free());
                    prop_assert_eq!(table.has_room(bucket), !is_full);
                    let taken = slots.partition_point(|slot| !slot.is_free());
                    prop_assert!(slots[taken..].iter().all(Slot::is_free));
                }
            }
            table.take().for_each(drop);
            prop_assert!((0..buckets as usize).all(|b| table.has_room(b)));
        }
    }
}

//! Buckets of a fixed number of entries.

use alloc::vec::Vec;

use crate::error::{Error, Result};

/// All buckets in one piece of memory, each with its entries in front and
/// its empty slots behind.
#[derive(Debug, Clone)]
pub(super) struct Buckets<K, V> {
    slots: Vec<Option<(K, V)>>,
    /// Slots of one bucket (h).
    size: usize,
}

impl<K, V> Buckets<K, V> {
    pub(super) fn new(buckets: u64, size: u32) -> Result<Self> {
        let slots = buckets.saturating_mul(size.into());
        let bytes = slots.saturating_mul(size_of::<Option<(K, V)>>() as u64);
        let no_memory = || Error::Allocation { bytes };
        let count = usize::try_from(slots).map_err(|_| no_memory())?;
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).map_err(|_| no_memory())?;
        slots.resize_with(count, || None);
        Ok(Self { slots, size: size as usize })
    }

    fn bucket(&self, bucket: u64) -> &[Option<(K, V)>] {
        let first = bucket as usize * self.size;
        &self.slots[first..first + self.size]
    }

    /// The entries of a bucket.
    #[inline]
    pub(super) fn entries(
        &self,
        bucket: u64,
    ) -> impl Iterator<Item = &(K, V)> {
        self.bucket(bucket).iter().map_while(Option::as_ref)
    }

    /// The slot of an entry.
    #[inline]
    pub(super) fn find(
        &self,
        bucket: u64,
        is_key: impl Fn(&(K, V)) -> bool,
    ) -> Option<usize> {
        let at = self.entries(bucket).position(is_key)?;
        Some(bucket as usize * self.size + at)
    }

    pub(super) fn has_room(&self, bucket: u64) -> bool {
        self.bucket(bucket).last().is_some_and(Option::is_none)
    }

    /// Puts an entry into a bucket that has room.
    pub(super) fn push(&mut self, bucket: u64, entry: (K, V)) {
        let here = self.bucket(bucket);
        let load = here.partition_point(Option::is_some);
        self.slots[bucket as usize * self.size + load] = Some(entry);
    }

    pub(super) fn get(&self, slot: usize) -> Option<&(K, V)> {
        self.slots[slot].as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut (K, V)> {
        self.slots[slot].as_mut()
    }

    /// Takes an entry out; the last one of its bucket fills the gap.
    pub(super) fn remove(&mut self, slot: usize) -> Option<(K, V)> {
        let first = slot / self.size * self.size;
        let here = &mut self.slots[first..first + self.size];
        let load = here.partition_point(Option::is_some);
        here.swap(slot - first, load.saturating_sub(1));
        here[load.saturating_sub(1)].take()
    }

    /// All entries, bucket by bucket.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.slots.iter().flatten()
    }

    /// Takes everything out.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.slots.iter_mut().filter_map(Option::take)
    }
}

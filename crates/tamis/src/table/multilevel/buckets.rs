//! Buckets of a fixed number of entries.

use alloc::vec::Vec;

use crate::error::{Error, Result};

/// All buckets in one allocation. The entries of a bucket fill its first
/// slots, without gaps.
#[derive(Clone)]
pub(super) struct Buckets<K, V> {
    slots: Vec<Option<(K, V)>>,
    /// Slots per bucket (h).
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

    fn slots(&self, bucket: usize) -> &[Option<(K, V)>] {
        let first = bucket * self.size;
        &self.slots[first..first + self.size]
    }

    fn slots_mut(&mut self, bucket: usize) -> &mut [Option<(K, V)>] {
        let first = bucket * self.size;
        &mut self.slots[first..first + self.size]
    }

    /// The entries of a bucket.
    #[inline]
    pub(super) fn entries(
        &self,
        bucket: usize,
    ) -> impl Iterator<Item = &(K, V)> {
        self.slots(bucket).iter().map_while(Option::as_ref)
    }

    /// The index of an entry in its bucket.
    #[inline]
    pub(super) fn find(
        &self,
        bucket: usize,
        is_key: impl Fn(&(K, V)) -> bool,
    ) -> Option<usize> {
        self.entries(bucket).position(is_key)
    }

    pub(super) fn has_room(&self, bucket: usize) -> bool {
        self.slots(bucket).last().is_some_and(Option::is_none)
    }

    /// Adds an entry to a bucket that has room.
    pub(super) fn push(&mut self, bucket: usize, entry: (K, V)) {
        let slots = self.slots_mut(bucket);
        let load = slots.partition_point(Option::is_some);
        slots[load] = Some(entry);
    }

    pub(super) fn get(&self, bucket: usize, at: usize) -> Option<&(K, V)> {
        self.slots(bucket).get(at)?.as_ref()
    }

    pub(super) fn get_mut(
        &mut self,
        bucket: usize,
        at: usize,
    ) -> Option<&mut (K, V)> {
        self.slots_mut(bucket).get_mut(at)?.as_mut()
    }

    /// Removes an entry; the last entry of the bucket fills the gap.
    pub(super) fn remove(
        &mut self,
        bucket: usize,
        at: usize,
    ) -> Option<(K, V)> {
        let slots = self.slots_mut(bucket);
        let last = slots.partition_point(Option::is_some).checked_sub(1)?;
        slots.swap(at, last);
        slots[last].take()
    }

    /// All entries, bucket by bucket.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.slots.iter().flatten()
    }

    /// Removes and returns all entries.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.slots.iter_mut().filter_map(Option::take)
    }
}

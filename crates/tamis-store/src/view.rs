//! The directory: from a position to the slot of its segment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use crate::batch::Kind;
use crate::delta::{Delta, Entry};
use crate::ram::BufferBytes;
use crate::runs::Runs;
use crate::segment::Segment;

/// Memory of a write beyond those for which the memory of merging has room:
/// its place in the order, its part of a filter, and of a table that doubles.
const MERGE_PER_WRITE: usize = size_of::<(u64, u32)>() + 4 + 12;

/// The writes of a slot that its segment does not have.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Newest writes.
    pub(crate) active: Delta,
    /// Writes that a merge adds to the segment, and the sequence number up
    /// to which they are complete.
    pub(crate) frozen: Option<(Arc<Delta>, u64)>,
    /// Smallest sequence number in `active`, `u64::MAX` if it is empty.
    pub(crate) active_from: u64,
    /// Smallest sequence number in `frozen`.
    frozen_from: u64,
    /// Whether memory is reserved for copies of `active`: from the start of
    /// a merge until its new slots take them.
    copies: bool,
}

impl Buffer {
    /// The newest write of a key up to `limit`.
    #[inline]
    pub(crate) fn get(
        &self,
        position: u64,
        key: &[u8],
        limit: u64,
    ) -> Option<Entry<'_>> {
        self.active
            .get(position, key, limit)
            .or_else(|| self.frozen.as_ref()?.0.get(position, key, limit))
    }

    /// Bytes of memory held, those of merging more than `reserved` writes, and
    /// those of copies of the active ones. The arenas and tables of the copies
    /// have other steps: a writer's entry has 28 bytes or more in the arena,
    /// which may have a quarter more, and 6 to 12 in the table.
    fn ram(&self, reserved: u64) -> usize {
        let ram = |delta: &Delta| {
            let more = delta.len().saturating_sub(reserved as usize);
            delta.ram() + more * MERGE_PER_WRITE
        };
        let frozen = self.frozen.as_ref().map_or(0, |(delta, _)| ram(delta));
        let active = ram(&self.active);
        let copies = if self.copies { active + active / 2 } else { 0 };
        frozen + active + copies
    }
}

/// Lives as long as its slot. A weak reference detects that the last reader
/// of the slot has gone, without holding its memory.
#[derive(Debug)]
pub(crate) struct Pin;

/// A range of positions: its segment and the writes since.
///
/// A slot is replaced, never changed, when its segment is: readers and
/// snapshots that hold the old one keep a consistent state.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Smallest position.
    pub(crate) low: u64,
    /// Number of upper bits that all positions share.
    pub(crate) depth: u8,
    /// Writes up to this sequence number are in the segment.
    pub(crate) merged: u64,
    /// `None` if the segment has no records.
    pub(crate) segment: Option<Arc<Segment>>,
    /// Writes after those of the segment, up to `merged`.
    pub(crate) runs: Option<Arc<Runs>>,
    buffer: RwLock<Buffer>,
    /// Bytes of memory of `buffer`.
    ram: AtomicU64,
    /// Smallest sequence number in `buffer`, `u64::MAX` if it is empty.
    oldest: AtomicU64,
    pin: Arc<Pin>,
    /// Slots before this one that had readers when it was made: they may
    /// read the same large values.
    ancestors: Vec<Weak<Pin>>,
    /// Those of them that have the same segment.
    sharers: Vec<Weak<Pin>>,
    /// Sums of `ram` that this slot is part of.
    total: Arc<BufferBytes>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let ram = self.ram() + self.run_ram();
        self.total.held.fetch_sub(ram, Ordering::Relaxed);
    }
}

impl Slot {
    /// A slot without buffered writes.
    pub(crate) fn new(
        (low, depth): (u64, u8),
        merged: u64,
        segment: Option<Arc<Segment>>,
        total: &Arc<BufferBytes>,
    ) -> Self {
        let buffer = Buffer { active_from: u64::MAX, ..Buffer::default() };
        Self {
            low,
            depth,
            merged,
            segment,
            runs: None,
            buffer: RwLock::new(buffer),
            ram: AtomicU64::new(0),
            oldest: AtomicU64::new(u64::MAX),
            pin: Arc::new(Pin),
            ancestors: Vec::new(),
            sharers: Vec::new(),
            total: Arc::clone(total),
        }
    }

    /// The slot as a successor of others, with their [`readers`].
    ///
    /// [`readers`]: Self::readers
    pub(crate) fn after(mut self, ancestors: Vec<Weak<Pin>>) -> Self {
        self.ancestors = ancestors;
        self
    }

    /// The slot with runs.
    pub(crate) fn with_runs(mut self, runs: Arc<Runs>) -> Self {
        let ram = runs.ram();
        self.total.held.fetch_add(ram, Ordering::Relaxed);
        self.total.current.fetch_add(ram, Ordering::Relaxed);
        self.runs = Some(runs);
        self
    }

    /// The slot as a successor of one with the same segment.
    pub(crate) fn sharing(mut self, before: &Self) -> Self {
        self.sharers = before.pins();
        self
    }

    /// Bytes of memory of the runs.
    pub(crate) fn run_ram(&self) -> u64 {
        self.runs.as_ref().map_or(0, |runs| runs.ram())
    }

    /// Pages of the runs.
    pub(crate) fn run_pages(&self) -> u64 {
        self.runs.as_ref().map_or(0, |runs| runs.pages())
    }

    /// Number of runs.
    pub(crate) fn run_count(&self) -> usize {
        self.runs.as_ref().map_or(0, |runs| runs.iter().count())
    }

    /// Pages of large values that buffered writes name or have replaced.
    pub(crate) fn large_pages(&self) -> u64 {
        let buffer = self.buffer();
        let frozen = buffer.frozen.iter().flat_map(|f| f.0.larges());
        let all = buffer.active.larges().iter().chain(frozen);
        all.map(|extent| extent.pages).sum()
    }

    /// Number of buffered writes, one per key.
    pub(crate) fn buffered(&self) -> u64 {
        let buffer = self.buffer();
        let frozen = buffer.frozen.as_ref().map_or(0, |f| f.0.len());
        (buffer.active.len() + frozen) as u64
    }

    /// Whether a merge has writes to add to the segment.
    pub(crate) fn has_writes(&self) -> bool {
        self.runs.is_some() || self.oldest() < u64::MAX
    }

    /// Takes the slot's writes out of the sum for the newest view, which
    /// replaces the slot.
    pub(crate) fn leave(&self) {
        let ram = self.ram() + self.run_ram();
        self.total.current.fetch_sub(ram, Ordering::Relaxed);
    }

    /// The pin of the slot.
    fn pin(&self) -> Weak<Pin> {
        Arc::downgrade(&self.pin)
    }

    /// Pins of the slots that have the segment or a run of this one.
    pub(crate) fn pins(&self) -> Vec<Weak<Pin>> {
        let alive = |pin: &&Weak<Pin>| pin.strong_count() > 0;
        let sharers = self.sharers.iter().filter(alive).cloned();
        sharers.chain([self.pin()]).collect()
    }

    /// Pins of the slot and of those before it that have readers.
    pub(crate) fn readers(&self) -> impl Iterator<Item = Weak<Pin>> + '_ {
        let alive = |pin: &&Weak<Pin>| pin.strong_count() > 0;
        let ancestors = self.ancestors.iter().filter(alive).cloned();
        ancestors.chain([self.pin()])
    }

    /// The buffered writes.
    #[inline]
    pub(crate) fn buffer(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of memory of the buffered writes.
    pub(crate) fn ram(&self) -> u64 {
        self.ram.load(Ordering::Relaxed)
    }

    /// Smallest sequence number of the buffered writes.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest.load(Ordering::Relaxed)
    }

    /// Changes the buffered writes and keeps the counts.
    pub(crate) fn change<R>(
        &self,
        change: impl FnOnce(&mut Buffer) -> R,
    ) -> R {
        let mut buffer: RwLockWriteGuard<'_, _> =
            self.buffer.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut buffer);
        let ram = buffer.ram(self.total.sorted) as u64;
        let before = self.ram.swap(ram, Ordering::Relaxed);
        let grown = ram.wrapping_sub(before);
        self.total.held.fetch_add(grown, Ordering::Relaxed);
        self.total.current.fetch_add(grown, Ordering::Relaxed);
        let frozen = buffer.frozen.as_ref().map(|_| buffer.frozen_from);
        let oldest = buffer.active_from.min(frozen.unwrap_or(u64::MAX));
        self.oldest.store(oldest, Ordering::Relaxed);
        result
    }

    /// Adds a write; see [`Delta::insert`].
    pub(crate) fn insert(
        &self,
        position: u64,
        sequence: u64,
        write: (Kind, &[u8], &[u8]),
        newest_snapshot: u64,
    ) {
        self.change(|buffer| {
            buffer.active_from = buffer.active_from.min(sequence);
            buffer.active.insert(position, sequence, write, newest_snapshot);
        });
    }

    /// Gives the memory back that is reserved for copies of the active writes.
    /// The caller holds the writer, and makes the copies.
    pub(crate) fn take_copies(&self) {
        self.change(|buffer| {
            if std::mem::take(&mut buffer.copies) {
                self.total.copying.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }

    /// Whether a merge that failed has left its writes.
    pub(crate) fn has_frozen(&self) -> bool {
        let buffer = self.buffer();
        buffer.frozen.as_ref().is_some_and(|(delta, _)| !delta.is_empty())
    }

    /// Moves the writes, all up to sequence number `last`, to where a merge
    /// takes them from. Those of a merge that failed are taken first.
    pub(crate) fn freeze(&self, last: u64) -> (Arc<Delta>, u64) {
        self.change(|buffer| {
            if let Some((delta, merged)) = &buffer.frozen {
                if !delta.is_empty() {
                    return (Arc::clone(delta), *merged);
                }
            }
            let delta = Arc::new(std::mem::take(&mut buffer.active));
            buffer.frozen = Some((Arc::clone(&delta), last));
            buffer.frozen_from = buffer.active_from;
            if !std::mem::replace(&mut buffer.copies, true) {
                self.total.copying.fetch_add(1, Ordering::Relaxed);
            }
            buffer.active_from = u64::MAX;
            (delta, last)
        })
    }
}

/// Whether the range of all positions that share the first `depth` bits with
/// `low` has `position`.
#[inline]
pub(crate) fn has((low, depth): (u64, u8), position: u64) -> bool {
    let shift = 64 - u32::from(depth);
    (position ^ low).checked_shr(shift).unwrap_or(0) == 0
}

/// All slots, in the order of their ranges.
#[derive(Debug)]
pub(crate) struct View {
    slots: Vec<Arc<Slot>>,
    /// For each value of the `bits` upper bits, the slot of its smallest
    /// position.
    directory: Vec<u32>,
    bits: u32,
}

impl View {
    /// Largest number of bits of the directory.
    const MAX_BITS: u32 = 20;

    /// A view of `slots`, which cover all positions in order.
    pub(crate) fn new(slots: Vec<Arc<Slot>>) -> Self {
        let depth = slots.iter().map(|slot| u32::from(slot.depth)).max();
        let dense = (2 * slots.len()).next_power_of_two().trailing_zeros();
        let bits = depth.unwrap_or(0).min(dense).min(Self::MAX_BITS);
        let mut directory = Vec::with_capacity(1 << bits);
        let mut slot = 0;
        for prefix in 0..1u64 << bits {
            let position = prefix.checked_shl(64 - bits).unwrap_or(0);
            while slots.get(slot + 1).is_some_and(|s| s.low <= position) {
                slot += 1;
            }
            directory.push(slot as u32);
        }
        Self { slots, directory, bits }
    }

    /// The view with `new` in place of the slots `range`.
    pub(crate) fn replaced(
        &self,
        range: std::ops::Range<usize>,
        new: Vec<Arc<Slot>>,
    ) -> Self {
        let mut slots =
            Vec::with_capacity(self.slots.len() + new.len() - range.len());
        slots.extend_from_slice(&self.slots[..range.start]);
        slots.extend(new);
        slots.extend_from_slice(&self.slots[range.end..]);
        Self::new(slots)
    }

    /// Number of the slot whose range has `position`.
    #[inline]
    pub(crate) fn find(&self, position: u64) -> usize {
        let prefix = position.checked_shr(64 - self.bits).unwrap_or(0);
        let mut slot = self.directory[prefix as usize] as usize;
        // More than one step only where ranges are narrower than a prefix.
        while self.slots.get(slot + 1).is_some_and(|s| s.low <= position) {
            slot += 1;
        }
        slot
    }

    /// The slot whose range has `position`.
    #[inline]
    pub(crate) fn slot(&self, position: u64) -> &Arc<Slot> {
        &self.slots[self.find(position)]
    }

    /// All slots.
    pub(crate) fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    /// Bytes of memory of the directory and the slots, without segments and
    /// buffers.
    pub(crate) fn ram(&self) -> u64 {
        let slots = self.slots.len() * (size_of::<Slot>() + 16 + 8);
        (slots + self.directory.len() * 4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of a slot during a merge are counted with their copies, which hold
    /// no more.
    #[test]
    fn copies_are_reserved() {
        for count in [1, 10, 1000, 14_336, 14_337, 40_000u64] {
            let total = Arc::new(BufferBytes {
                sorted: 1 << 20,
                ..BufferBytes::default()
            });
            let old = Slot::new((0, 0), 0, None, &total);
            old.freeze(0);
            for i in 0..count {
                let write = (Kind::Put, &i.to_le_bytes()[..1], &[][..]);
                old.insert(i, i + 1, write, 0);
            }
            let reserved = old.ram();
            old.take_copies();
            let held = old.buffer().active.ram() as u64;
            assert_eq!(old.ram(), held);
            let new = Slot::new((0, 0), 0, None, &total);
            for entry in old.buffer().active.entries() {
                let write = (entry.kind, entry.key, entry.value);
                new.insert(entry.position, entry.sequence, write, 0);
            }
            assert!(new.ram() + held <= reserved, "{count} writes");
        }
    }

    /// A merge sorts the writes of a slot: 16 bytes each, of which the memory of
    /// merging has the first ones.
    #[test]
    fn the_order_of_many_writes_is_counted() {
        let total =
            Arc::new(BufferBytes { sorted: 64, ..BufferBytes::default() });
        let slot = Slot::new((0, 0), 0, None, &total);
        for i in 0..100u64 {
            let write = (Kind::Put, &i.to_le_bytes()[..], &[0; 20][..]);
            slot.insert(i, i + 1, write, 0);
        }
        let held = slot.buffer().active.ram() as u64;
        assert_eq!(slot.ram(), held + 36 * 32);
        assert_eq!(total.held.load(Ordering::Relaxed), slot.ram());
        slot.freeze(100);
        assert_eq!(slot.ram(), held + 36 * 32);
        drop(slot);
        assert_eq!(total.held.load(Ordering::Relaxed), 0);
    }
}

//! The directory: from a position to the slot of its segment.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::delta::Delta;

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
    buffer: RwLock<Delta>,
}

impl Slot {
    /// A slot without a segment.
    pub(crate) fn new(low: u64, depth: u8) -> Self {
        Self { low, depth, buffer: RwLock::default() }
    }

    /// The buffered writes, for reading.
    pub(crate) fn buffer(&self) -> RwLockReadGuard<'_, Delta> {
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffered writes, for the writer.
    pub(crate) fn buffer_mut(&self) -> RwLockWriteGuard<'_, Delta> {
        self.buffer.write().unwrap_or_else(PoisonError::into_inner)
    }
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
}

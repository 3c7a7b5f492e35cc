//! The memory budget: exact counts, and the part that is left for buffered
//! writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::delta::MAX_STEP;
use crate::error::{Error, Result};
use crate::extents::PAGE;
use crate::log;
use crate::options::Options;
use crate::segment::CHUNK;

/// Bytes of the handle itself.
const FIXED: u64 = 64 << 10;

/// Fewest bytes per record that a segment counts: it bounds the memory of a
/// merge, which is proportional to the number of records.
pub(crate) const RECORD_BYTES: u64 = 32;

/// Memory of a merge per record of the segment it writes: the hash for the
/// filter with the step in which the list grows, the filter of at most 30
/// bits as it is built and as it is written, and a place in the order of the
/// buffered writes.
const MERGE_PER_RECORD: u64 = 10 + 8 + 16;

/// See [`Ram::max_records`].
fn max_records(segment_bytes: u64) -> u64 {
    (segment_bytes / RECORD_BYTES).max(64)
}

/// Bytes of buffered writes.
#[derive(Debug, Default)]
pub(crate) struct BufferBytes {
    /// In all slots, also in those that only readers and snapshots hold.
    pub(crate) held: AtomicU64,
    /// In the slots of the newest view.
    pub(crate) current: AtomicU64,
    /// Slots that reserve memory for copies of their writes.
    pub(crate) copying: AtomicU64,
    /// Writes of a slot for whose order the memory of merging has room.
    pub(crate) sorted: u64,
}

/// Counts of the memory that a handle holds.
#[derive(Debug)]
pub(crate) struct Ram {
    budget: u64,
    /// Most bytes of buffered writes, if the budget has as many.
    buffer_bytes: u64,
    segment_bytes: u64,
    /// Bytes of the indexes of all segments, also of those that only readers
    /// hold.
    pub(crate) index: Arc<AtomicU64>,
    /// Bytes of the buffered writes.
    pub(crate) buffers: Arc<BufferBytes>,
    /// Bytes of the directory and the slots.
    pub(crate) directory: AtomicU64,
    /// Bytes of the queue of reads.
    pub(crate) queue: AtomicU64,
}

impl Ram {
    /// Counts for the budgets of a handle, and segments of this size.
    pub(crate) fn new(options: &Options, segment_bytes: u64) -> Self {
        Self {
            budget: options.ram,
            buffer_bytes: options.buffer_bytes,
            segment_bytes,
            index: Arc::default(),
            buffers: Arc::new(BufferBytes {
                sorted: max_records(segment_bytes),
                ..BufferBytes::default()
            }),
            directory: AtomicU64::new(0),
            queue: AtomicU64::new(0),
        }
    }

    /// The budget.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// Most bytes of buffered writes that were chosen.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    /// Bytes that a merge may hold.
    pub(crate) fn merge(&self) -> u64 {
        let records = self.max_records();
        4 * CHUNK as u64 + records * MERGE_PER_RECORD
    }

    /// Largest number of records of a segment that is not split.
    pub(crate) fn max_records(&self) -> u64 {
        max_records(self.segment_bytes)
    }

    /// Bytes of pages of a new segment that are collected in memory: all of
    /// nearly any segment, which is split at 1.4 times the size chosen, where
    /// the budget is large.
    pub(crate) fn most_collected(&self) -> usize {
        (self.segment_bytes * 3 / 2).min(self.budget / 16) as usize
    }

    /// Bytes of memory for the runs of a slot while they are merged.
    pub(crate) fn most_runs(&self) -> u64 {
        (self.segment_bytes / 2).min(self.budget / 16)
    }

    /// Bytes that are not for buffered writes. Two directories exist while
    /// one replaces the other.
    pub(crate) fn reserved(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
            + 2 * self.directory.load(Ordering::Relaxed)
            + self.working()
    }

    /// Bytes of these besides the index and the directory. Two tables of a
    /// buffer exist while it grows; a merge reads the runs of a slot.
    pub(crate) fn working(&self) -> u64 {
        self.merge()
            + 2 * log::BUFFER as u64
            + 2 * MAX_STEP as u64
            + self.segment_bytes / 16
            + self.most_runs()
            + self.most_collected() as u64
            + self.queue.load(Ordering::Relaxed)
            + FIXED
    }

    /// Bytes that the budget leaves for buffered writes.
    pub(crate) fn buffer_limit(&self) -> u64 {
        self.budget.saturating_sub(self.reserved())
    }

    /// Bytes by which one merge may enlarge the index and the directory before
    /// the writes that it takes are freed, and one write its buffer. No write
    /// is admitted to them.
    fn growth(&self) -> u64 {
        let filter = self.max_records() * 4;
        let fences = self.segment_bytes * 3 / 2 / PAGE * 4;
        // Each new segment has a slot.
        let slots = self.buffered() / self.segment_bytes * 1024;
        let directory = self.directory.load(Ordering::Relaxed);
        filter + fences + slots + directory / 4 + MAX_STEP as u64 + 4096
    }

    /// Bytes of buffered writes up to which others are admitted. A write holds
    /// 34 bytes or more. It adds 4 to a filter, and 6 to a table that doubles:
    /// those of more writes than a segment has records are counted with the
    /// buffer.
    pub(crate) fn admitted(&self) -> u64 {
        let left = self.buffer_limit().saturating_sub(self.growth());
        left - (self.max_records() * (4 + 6)).min(left / 4)
    }

    /// Bytes that the slots of the newest view may hold.
    fn current_limit(&self) -> u64 {
        let read = self.buffered().saturating_sub(self.current());
        self.admitted().saturating_sub(read).min(self.buffer_bytes)
    }

    /// Most bytes that writes of the newest view may hold.
    pub(crate) fn most_current(&self) -> u64 {
        self.current_limit()
    }

    /// Fails if `more` bytes do not fit the budget.
    pub(crate) fn check(&self, more: u64) -> Result<()> {
        let needed = self.reserved() + self.buffered() + more;
        match needed > self.budget {
            true => Err(Error::Ram { needed, budget: self.budget }),
            false => Ok(()),
        }
    }

    /// Bytes of buffered writes in one slot above which writers wait for its
    /// merge. Offsets in a buffer have 32 bits, and a merge may give the
    /// buffer of a slot the writes of two, each with this length and a part
    /// of a batch more.
    pub(crate) fn slot_limit(&self) -> u64 {
        (256 * self.segment_bytes).min(1 << 30)
    }

    /// Fewest bytes for buffered writes: with less, merges would cost too
    /// much.
    pub(crate) fn least_buffer(&self) -> u64 {
        self.budget / 64
    }

    /// Whether the buffers may grow by `needed` bytes. A batch may exceed the
    /// size that was chosen for the buffers, but not the budget.
    pub(crate) fn has_room(&self, needed: u64) -> bool {
        self.buffered() + needed <= self.admitted()
            && self.current() <= self.buffer_bytes
    }

    /// Whether a write may need memory for its copy: a merge runs or has
    /// failed. Constant while the writer is held.
    pub(crate) fn has_copies(&self) -> bool {
        self.buffers.copying.load(Ordering::Relaxed) > 0
    }

    /// Whether the buffers hold so much that merging is due.
    pub(crate) fn is_full(&self) -> bool {
        let limit = self.current_limit();
        self.current() > limit - limit / 5
    }

    /// Bytes of buffered writes held.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffers.held.load(Ordering::Relaxed)
    }

    /// Bytes of buffered writes in the newest view.
    fn current(&self) -> u64 {
        self.buffers.current.load(Ordering::Relaxed)
    }

    /// The most that buffered writes may hold with an empty index.
    fn most_buffered(&self) -> u64 {
        self.budget.min(self.buffer_bytes)
    }

    /// Length at which a log file ends. It is synced then, while writers
    /// wait: 8 MiB take about 10 ms.
    pub(crate) fn log_file_bytes(&self) -> u64 {
        (self.most_buffered() / 2).clamp(64 << 10, 8 << 20)
    }

    /// Length of all log files above which the oldest writes are merged.
    pub(crate) fn log_bytes(&self) -> u64 {
        3 * self.most_buffered() + (256 << 10)
    }

    /// Size at which a segment is split.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::MAX_BATCH;

    /// A slot may have the writes of two and of a batch for each.
    #[test]
    fn buffers_have_offsets_of_32_bits() {
        for segment_bytes in [16 << 10, 4 << 20, 64 << 20] {
            let options = Options::new().ram(1 << 40);
            let limit = Ram::new(&options, segment_bytes).slot_limit();
            assert!(limit >= 256 * (16 << 10));
            let steps = 2 * MAX_STEP as u64;
            assert!(2 * limit + MAX_BATCH + steps < u64::from(u32::MAX));
        }
    }
}

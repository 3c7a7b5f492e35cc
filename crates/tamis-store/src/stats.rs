//! Counts of a store: memory, disk space, reads and writes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::{Shared, lock};
use crate::error::{Error, Result};
use crate::extents::PAGE;
use crate::log;
use crate::manifest::DATA;

/// Result of [`Store::stats`](crate::Store::stats).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Records in segments. Buffered writes come on top: it is not known
    /// which of them are new keys.
    pub records: u64,
    /// Buffered writes, one per key.
    pub buffered: u64,
    /// Writes in runs: moved out of the buffer, and yet to be merged.
    pub spilled: u64,
    /// Segments with records.
    pub segments: u64,
    /// Memory.
    pub ram: RamStats,
    /// Space on the disk.
    pub disk: DiskStats,
    /// Reads and writes since the store was opened.
    pub io: IoStats,
    /// Predicted share of absent keys that cost a read.
    pub absent_reads: f64,
    /// Bits of filters and fences per record in segments; `None` without
    /// records.
    pub bits_per_key: Option<f64>,
    /// Whether batches of lookups read through a queue of the disk.
    pub queue: QueueState,
}

/// Whether [`Store::get_many`](crate::Store::get_many) reads through a queue
/// of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueState {
    /// It does.
    Open,
    /// It reads in threads, as chosen by
    /// [`Overlap::Threads`](crate::Overlap::Threads).
    NotWanted,
    /// It reads in threads, because the disk has no queue or the system
    /// refused one with this error: [`std::io::ErrorKind::Unsupported`]
    /// without the feature `io-uring`, or before Linux 5.6.
    Refused(std::io::ErrorKind),
}

/// Bytes of memory that a handle holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RamStats {
    /// The budget.
    pub budget: u64,
    /// Fences of all segments.
    pub fences: u64,
    /// Filters of all segments.
    pub filters: u64,
    /// Segments without fences and filters, also those that only readers
    /// hold; the directory, twice while it is replaced.
    pub directory: u64,
    /// Buffered writes, also those that only snapshots hold, the index of
    /// runs, and the memory of loaders.
    pub buffer: u64,
    /// The most that buffered writes may hold.
    pub buffer_limit: u64,
    /// Reserved for a merge, for the log, for a queue of reads and for the
    /// handle.
    pub reserved: u64,
}

impl RamStats {
    /// All of it; at most [`budget`](Self::budget).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::create(dir.path(), &Options::new().ram(8 << 20))?;
    /// let ram = store.stats()?.ram;
    /// assert!(ram.total() < 8 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn total(&self) -> u64 {
        self.fences
            + self.filters
            + self.directory
            + self.buffer
            + self.reserved
    }
}

/// Bytes on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskStats {
    /// Length of the data file.
    pub data: u64,
    /// Pages of records in segments.
    pub records: u64,
    /// Indexes of segments.
    pub indexes: u64,
    /// Runs, and their indexes.
    pub runs: u64,
    /// Large values in segments.
    pub large_values: u64,
    /// Free space in the data file.
    pub free: u64,
    /// Space that is free after the next commit, or when readers are done.
    pub waiting: u64,
    /// Length of the logs.
    pub logs: u64,
}

/// Counts of reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// Blocks read by lookups, one read each.
    pub block_reads: u64,
    /// Bytes of these blocks.
    pub block_bytes: u64,
    /// Blocks read through a queue of the disk, among
    /// [`block_reads`](Self::block_reads).
    pub queued_reads: u64,
    /// Blocks read for keys that are absent.
    pub absent_reads: u64,
    /// Large values read, one read each.
    pub large_reads: u64,
    /// Merges.
    pub merges: u64,
    /// Runs written.
    pub spills: u64,
    /// Bytes of segments and runs written.
    pub segment_bytes: u64,
    /// Bytes written to logs.
    pub log_bytes: u64,
    /// Manifests written.
    pub commits: u64,
    /// Bytes of manifests written.
    pub commit_bytes: u64,
}

impl Shared {
    /// See [`Store::stats`](crate::Store::stats).
    pub(crate) fn stats(&self) -> Result<Stats> {
        // Writers wait, so that the counts are of one moment: a merge only adds
        // to the index, which is read first, and frees buffers.
        let writer = self.writer.as_ref().map(lock);
        let view = self.view.load_full();
        let index = self.ram.index.load(Ordering::Relaxed);
        let directory = 2 * self.ram.directory.load(Ordering::Relaxed);
        let reserved = self.ram.working();
        let buffer = self.ram.buffered();
        let buffer_limit = self.ram.buffer_limit();
        drop(writer);
        let (mut records, mut segments, mut buffered) = (0, 0, 0);
        let (mut spilled, mut run_pages) = (0, 0);
        let (mut fences, mut filters) = (0, 0);
        let (mut pages, mut index_pages, mut large_pages) = (0, 0, 0);
        let mut absent = 0.0;
        for slot in view.slots() {
            let buffer = slot.buffer();
            let frozen =
                buffer.frozen.as_ref().map_or(0, |(delta, _)| delta.len());
            buffered += (buffer.active.len() + frozen) as u64;
            if let Some(runs) = &slot.runs {
                spilled += runs.writes();
                run_pages += runs.pages();
                let larges = runs.iter().flat_map(|run| run.larges());
                large_pages += larges.map(|extent| extent.pages).sum::<u64>();
            }
            let Some(segment) = &slot.segment else { continue };
            records += segment.entry.records;
            segments += 1;
            fences += segment.fences_ram();
            filters += segment.filter().bytes();
            let data = u64::from(segment.entry.data_pages);
            pages += data;
            index_pages += segment.entry.extent.pages - data;
            let larges = segment.larges().iter();
            large_pages += larges.map(|extent| extent.pages).sum::<u64>();
            let share = 0.5f64.powi(i32::from(slot.depth));
            absent += share * segment.filter().design_fpr();
        }
        let ram = RamStats {
            budget: self.ram.budget(),
            fences,
            filters,
            directory: index.saturating_sub(fences + filters) + directory,
            buffer,
            buffer_limit,
            reserved,
        };
        let data =
            self.data.len().map_err(|e| Error::io("measure", DATA, e))?;
        let logs = self.log_bytes()?;
        let space = lock(&self.space);
        let disk = DiskStats {
            data,
            records: pages * PAGE,
            indexes: index_pages * PAGE,
            runs: run_pages * PAGE,
            large_values: large_pages * PAGE,
            free: space.extents.free_pages() * PAGE,
            waiting: (space.retired_pages() + space.read_pages()) * PAGE,
            logs,
        };
        drop(space);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        Ok(Stats {
            records,
            buffered,
            spilled,
            segments,
            ram,
            disk,
            io: IoStats {
                block_reads: get(&counters.block_reads),
                block_bytes: get(&counters.block_reads) * PAGE
                    + get(&counters.more_bytes),
                queued_reads: get(&counters.queued_reads),
                absent_reads: get(&counters.absent_reads),
                large_reads: get(&counters.large_reads),
                merges: get(&counters.merges),
                spills: get(&counters.spills),
                segment_bytes: get(&counters.segment_bytes),
                log_bytes: get(&counters.log_bytes),
                commits: get(&counters.commits),
                commit_bytes: get(&counters.commit_bytes),
            },
            absent_reads: absent,
            bits_per_key: (records > 0)
                .then(|| 8.0 * (fences + filters) as f64 / records as f64),
            queue: self.readers.queue_state(),
        })
    }

    /// Bytes of all log files.
    fn log_bytes(&self) -> Result<u64> {
        if let Some(writer) = &self.writer {
            return Ok(lock(writer).log_bytes());
        }
        let names = self.disk.list().map_err(|e| Error::io("list", ".", e))?;
        let mut bytes = 0;
        for name in names.iter().filter(|name| log::number(name).is_some()) {
            // A log that the writer removed meanwhile has no bytes.
            if let Ok(file) = self.disk.open(name, crate::disk::Mode::Read) {
                bytes += file.len().unwrap_or(0);
            }
        }
        Ok(bytes)
    }
}

//! Settings of a store and of a handle.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::{Error, Result};

/// Longest key in bytes.
pub const MAX_KEY: usize = 65_535;

/// Longest value in bytes.
pub const MAX_VALUE: usize = 1 << 30;

/// Smallest memory budget in bytes, with segments of 256 KiB or less. Larger
/// segments need 2 bytes more for each byte.
pub const MIN_RAM: u64 = 4 << 20;

/// Smallest and largest size of segments.
pub(crate) const SEGMENT_BYTES: RangeInclusive<u64> = 16 << 10..=64 << 20;

/// When a write is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After [`Store::flush`](crate::Store::flush) and when the store is
    /// closed. A crash loses a suffix of the writes since.
    None,
    /// After this time at the latest. A crash loses a suffix of the writes
    /// in it.
    Interval(Duration),
    /// Before the call returns. Writers that call at the same time share a
    /// sync.
    Always,
}

/// How lookups read the data file. Merges, iterators and
/// [`Store::verify`](crate::Store::verify) always use the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// A system call per block, through the page cache. An error of the
    /// device is an [`Error::Io`].
    #[default]
    Buffered,
    /// A system call per block, past the page cache: a cache elsewhere, or
    /// other programs, keep the memory.
    Direct,
    /// A copy per block from a map of the file in memory, on Linux: about two
    /// thirds of the time of a lookup while the data is in the page cache.
    ///
    /// An error of the device, and a file that another program cuts, end the
    /// process with the signal `SIGBUS`. A writer of the store in another
    /// process does not: it cuts the file after the last reader has closed it.
    /// Checksums are verified as in the other modes.
    Mapped,
}

/// How [`Store::get_many`](crate::Store::get_many) reads several blocks at
/// the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// In a queue of the disk: io_uring on Linux, with the crate's feature
    /// `io-uring`. In threads where the system has none or refuses it:
    /// [`Stats::queue`](crate::Stats::queue) has the reason.
    #[default]
    Queue,
    /// In threads.
    Threads,
}

/// Settings of [`Store::create`](crate::Store::create) and
/// [`Store::open`](crate::Store::open).
///
/// ```
/// use tamis_store::{Durability, Options};
///
/// let options = Options::new()
///     .ram(64 << 20)
///     .absent_reads(0.001)
///     .durability(Durability::Always);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) ram: u64,
    pub(crate) filter: FilterSize,
    pub(crate) durability: Durability,
    pub(crate) background: bool,
    pub(crate) read_mode: ReadMode,
    pub(crate) seed: Option<u128>,
    pub(crate) segment_bytes: u64,
    pub(crate) buffer_bytes: u64,
    pub(crate) read_threads: usize,
    pub(crate) overlap: Overlap,
    pub(crate) spill_eagerly: bool,
}

/// Size of the filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FilterSize {
    /// Share of absent keys that cost a read.
    AbsentReads(f64),
    /// Bits of a filter per key.
    BitsPerKey(f64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ram: 256 << 20,
            filter: FilterSize::AbsentReads(0.01),
            durability: Durability::Interval(Duration::from_millis(100)),
            background: true,
            read_mode: ReadMode::default(),
            seed: None,
            segment_bytes: 4 << 20,
            buffer_bytes: u64::MAX,
            read_threads: 16,
            overlap: Overlap::default(),
            spill_eagerly: false,
        }
    }
}

impl Options {
    /// 256 MiB of memory, 1 % of reads for absent keys, a sync every 100 ms.
    ///
    /// ```
    /// let options = tamis_store::Options::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Memory for everything: the index of the data, the write buffer and
    /// the memory of merging. At least [`MIN_RAM`].
    ///
    /// ```
    /// let options = tamis_store::Options::new().ram(2 << 30);
    /// ```
    #[must_use]
    pub fn ram(mut self, bytes: u64) -> Self {
        self.ram = bytes;
        self
    }

    /// Share of absent keys that cost a read, between 0.00001 and 0.5. Used
    /// at creation.
    ///
    /// ```
    /// let options = tamis_store::Options::new().absent_reads(0.001);
    /// ```
    #[must_use]
    pub fn absent_reads(mut self, share: f64) -> Self {
        self.filter = FilterSize::AbsentReads(share);
        self
    }

    /// Bits of a filter per key, between 3 and 30. Used at creation.
    ///
    /// ```
    /// let options = tamis_store::Options::new().ram_bits_per_key(9.5);
    /// ```
    #[must_use]
    pub fn ram_bits_per_key(mut self, bits: f64) -> Self {
        self.filter = FilterSize::BitsPerKey(bits);
        self
    }

    /// When a write is durable.
    ///
    /// ```
    /// use tamis_store::{Durability, Options};
    /// let options = Options::new().durability(Durability::None);
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether a thread of the store's own merges the write buffer and syncs
    /// the log at intervals. Without one, writers do both: every operation
    /// then issues its system calls in a fixed order, as tests with a
    /// simulated disk need.
    ///
    /// ```
    /// let options = tamis_store::Options::new().background(false);
    /// ```
    #[must_use]
    pub fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// How lookups read the data file.
    ///
    /// ```
    /// use tamis_store::{Options, ReadMode, Store};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// store.compact()?;
    /// store.close()?;
    /// # #[cfg(target_os = "linux")] {
    /// let mapped = Options::new().read_mode(ReadMode::Mapped);
    /// let store = Store::open(dir.path(), &mapped)?;
    /// assert_eq!(store.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read_mode(mut self, mode: ReadMode) -> Self {
        self.read_mode = mode;
        self
    }

    /// Seed of the hash function, for reproducible files. Random without this
    /// call, and to be kept secret where keys may be chosen by an adversary.
    /// Used at creation.
    ///
    /// ```
    /// let options = tamis_store::Options::new().seed(42);
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u128) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Size at which the data is cut into segments, 4 MiB by default: between
    /// 16 KiB and 64 MiB. Used at creation.
    ///
    /// A merge rewrites a segment, and its memory is proportional to one.
    ///
    /// ```
    /// let options = tamis_store::Options::new().segment_bytes(1 << 20);
    /// ```
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Memory for buffered writes and the index of runs, at least 4 KiB; by default all of the
    /// budget that the index and merging leave. One batch may exceed it, as
    /// far as the budget allows.
    ///
    /// ```
    /// let options = tamis_store::Options::new().buffer_bytes(8 << 20);
    /// ```
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: u64) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// How [`Store::get_many`](crate::Store::get_many) reads several blocks
    /// at the same time. A queue takes memory of the budget: 64 pages and
    /// their entries, or a 64th of a budget below 17 MiB.
    ///
    /// ```
    /// use tamis_store::{Options, Overlap};
    /// let options = Options::new().overlap(Overlap::Threads);
    /// ```
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Pages that a queue of reads has.
    pub(crate) fn queue_depth(&self) -> usize {
        (self.ram / 64 / 4200).clamp(8, 64) as usize
    }

    /// Number of threads that read for
    /// [`Store::get_many`](crate::Store::get_many) where it has no queue, 16
    /// by default, at most 256. They start when a batch reads from the disk.
    ///
    /// ```
    /// let options = tamis_store::Options::new().read_threads(32);
    /// ```
    #[must_use]
    pub fn read_threads(mut self, threads: usize) -> Self {
        self.read_threads = threads.min(256);
        self
    }

    /// Whether buffers are spilled also where a merge costs less: tests with
    /// few records need it.
    #[doc(hidden)]
    #[must_use]
    pub fn spill_eagerly(mut self, eagerly: bool) -> Self {
        self.spill_eagerly = eagerly;
        self
    }

    /// Checks the ranges.
    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        if self.ram < MIN_RAM {
            return invalid("memory budget", "at least 4 MiB");
        }
        if self.buffer_bytes < 4096 {
            return invalid("write buffer", "at least 4 KiB");
        }
        if !SEGMENT_BYTES.contains(&self.segment_bytes) {
            return invalid("segment size", "16 KiB to 64 MiB");
        }
        match self.filter {
            FilterSize::AbsentReads(share)
                if !(0.00001..=0.5).contains(&share) =>
            {
                invalid("share of absent reads", "0.00001 to 0.5")
            }
            FilterSize::BitsPerKey(bits) if !(3.0..=30.0).contains(&bits) => {
                invalid("bits per key", "3 to 30")
            }
            _ => Ok(()),
        }
    }
}

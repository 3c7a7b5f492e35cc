//! A key-value store on disk: one read per present key, almost none per
//! absent key, a fixed amount of memory.
//!
//! ```
//! use tamis_store::{Options, Store};
//!
//! let dir = tempfile::tempdir()?;
//! let store = Store::create(dir.path(), &Options::new().ram(64 << 20))?;
//! store.put("apple", "red")?;
//! assert_eq!(store.get("apple")?.as_deref(), Some(&b"red"[..]));
//! assert_eq!(store.get("pear")?, None);
//! store.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! A write goes to a log and to a buffer in memory. Merging adds the buffered
//! writes to *segments*: immutable runs of pages of about 4 MiB in which
//! records are ordered by a hash of their keys. In memory a segment has a
//! filter (a [`tamis::TinySet`]) and 32 bits per page, its *fence*. The filter
//! excludes absent keys; the fences name the one page to read.
//!
//! ```text
//!  put, delete, write_batch            get, contains, get_many
//!        |                                   |
//!        v                                   v
//!  log     one frame per batch         view: directory, hash -> slot
//!        |                                   |
//!        v                                   v
//!  slot:   buffer (delta)  <--- first ---   slot
//!          runs            <--- second --   positions: one page
//!          segment         <--- third ---   filter, fences: one page
//!        |
//!        v
//!  spill:  buffer -> a run
//!  merge:  buffer + runs + segment -> new segments (split, joined), new slots
//!        |
//!        v
//!  commit: log synced, data synced, manifest slot written and synced
//!        |
//!        v
//!  space:  extents without a durable name and without readers are free
//! ```
//!
//! | module | concept |
//! |---|---|
//! | `store`, `core`, `many` | handle; shared state, lookups, writes; overlapping reads |
//! | `batch`, `log` | writes; their frames |
//! | `delta`, `view` | buffered writes of a slot; slots and directory |
//! | `page`, `segment` | blocks of records; runs of them with an index |
//! | `merge`, `compact` | new segments from old ones; the shortest file |
//! | `runs` | writes that wait for a merge on the disk |
//! | `load` | new segments from many records at once |
//! | `manifest`, `commit` | the durable state; how it changes |
//! | `extents`, `space` | free pages; when a page is free |
//! | `open`, `background` | creation, recovery; when merging happens |
//! | `ram`, `stats`, `verify`, `plan` | budget; counts; checks; costs before a store exists |
//! | `disk`, `files` | the traits for all I/O; a directory |
//! | `mapped`, `ring` | reads through maps; reads in flight together (io_uring) |
//!
//! A slot is replaced and never changed when its segment is, so that readers
//! take no latch while they read, and a snapshot is the view of its moment.
//! The format is in `docs/store-format.md`.
//!
//! # Promises
//!
//! * A present key outside the buffer costs one read, an absent one at most
//!   one: with the probability [`Stats::absent_reads`]. Values of more than
//!   65,536 bytes cost one read more.
//! * [`RamStats::total`] never exceeds the budget. Values that are returned,
//!   batches, iterators and stacks of threads come on top.
//! * After a crash the store has all writes that were durable, a prefix of the
//!   later ones, and no half batch.
//! * Damaged bytes are an [`Error::Corrupt`] with their place.

#[cfg(not(unix))]
compile_error!("tamis-store uses positional reads and file locks of Unix");

mod background;
mod batch;
mod codec;
mod commit;
mod compact;
mod core;
mod delta;
mod disk;
mod error;
mod extents;
mod files;
mod hash;
mod load;
mod log;
mod manifest;
mod many;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod mapped;
mod merge;
mod open;
mod options;
mod page;
mod plan;
mod ram;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod ring;
mod runs;
mod segment;
mod snapshot;
mod space;
mod stats;
mod store;
mod verify;
mod view;

pub use batch::Batch;
pub use disk::{Disk, DiskFile, Lock, LockKind, Mode, ReadDone, ReadQueue};
pub use error::{Error, Result};
pub use files::Files;
pub use load::Loader;
pub use options::{
    Durability, MAX_KEY, MAX_VALUE, MIN_RAM, Options, Overlap, ReadMode,
};
pub use plan::{Plan, plan};
pub use snapshot::{IntoIter, Iter, Snapshot};
pub use stats::{DiskStats, IoStats, QueueState, RamStats, Stats};
pub use store::Store;
pub use verify::Verified;

/// Runs the example of docs/store.md as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/store.md")]
struct Page;

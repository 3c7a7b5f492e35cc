//! A key-value store on disk: one read per present key, almost none per
//! absent key, a fixed amount of memory.

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
mod log;
mod manifest;
mod merge;
mod open;
mod options;
mod page;
mod ram;
mod segment;
mod snapshot;
mod space;
mod stats;
mod store;
mod verify;
mod view;

pub use batch::Batch;
pub use disk::{Disk, DiskFile, Lock, LockKind, Mode};
pub use error::{Error, Result};
pub use files::Files;
pub use options::{Durability, MAX_KEY, MAX_VALUE, MIN_RAM, Options};
pub use snapshot::{Iter, Snapshot};
pub use stats::{DiskStats, IoStats, RamStats, Stats};
pub use store::Store;
pub use verify::Verified;

//! A key-value store on disk: one read per present key, almost none per
//! absent key, a fixed amount of memory.

#![expect(dead_code, reason = "extents and limits serve merging")]

#[cfg(not(unix))]
compile_error!("tamis-store uses positional reads and file locks of Unix");

mod batch;
mod codec;
mod delta;
mod disk;
mod error;
mod extents;
mod files;
mod hash;
mod log;
mod manifest;
mod options;
mod snapshot;
mod store;
mod view;

pub use batch::Batch;
pub use disk::{Disk, DiskFile, Lock, LockKind, Mode};
pub use error::{Error, Result};
pub use files::Files;
pub use options::{Durability, MAX_KEY, MAX_VALUE, MIN_RAM, Options};
pub use snapshot::{Iter, Snapshot};
pub use store::Store;

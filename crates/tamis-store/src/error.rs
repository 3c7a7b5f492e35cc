//! The error type of the crate.

use std::fmt;
use std::io;

/// Result of an operation on a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An operation that failed.
///
/// A write that returned an error has not been applied. One exception: if the
/// system refused to write or to sync the log ([`Error::Io`]), the outcome is
/// known only after the store is opened again, as after a crash.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation on a file. A full disk is reported
    /// here: free some space and call again; nothing acknowledged is lost.
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// A sync failed earlier, so the content of the files is unknown. Drop
    /// the store and open it again.
    Poisoned,
    /// Another handle, in this process or another, writes to the store.
    /// Open it for reading, or wait.
    Locked,
    /// The directory has a store. Open it, or choose another directory.
    Exists,
    /// The directory has no store. Create one, or correct the path.
    NotFound,
    /// The store was written by a newer version of this crate. Use it.
    UnsupportedVersion {
        /// The version in the file.
        found: u16,
        /// The newest version that this build reads.
        supported: u16,
    },
    /// Bytes have changed since they were written. Restore the store from a
    /// copy.
    Corrupt {
        /// The file.
        file: String,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The contradiction.
        why: &'static str,
    },
    /// The store was opened for reading.
    ReadOnly,
    /// An argument is outside its range.
    InvalidArgument {
        /// Name of the argument.
        what: &'static str,
        /// The valid values.
        why: &'static str,
    },
    /// A key, a value, a batch or a log is too long.
    TooLong {
        /// `"key"`, `"value"`, `"batch"`, or `"log of a segment"` in a handle
        /// for reading.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        /// The greatest length.
        max: u64,
    },
    /// The memory budget has no room for the index of the data, or snapshots
    /// hold the memory of the write buffer. Open with a larger budget, or
    /// drop snapshots.
    Ram {
        /// Bytes that the operation needs in all.
        needed: u64,
        /// The budget in bytes.
        budget: u64,
    },
    /// A segment's filter cannot be built or read.
    Filter(tamis::Error),
}

impl Error {
    /// An I/O error of `operation` on `file`.
    pub(crate) fn io(
        operation: &'static str,
        file: impl Into<String>,
        source: io::Error,
    ) -> Self {
        Self::Io { operation, file: file.into(), source }
    }

    /// The error once more, for another caller.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Io { operation, file, source } => {
                let source = match source.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => source.kind().into(),
                };
                Self::Io { operation, file: file.clone(), source }
            }
            Self::Corrupt { file, offset, why } => {
                Self::Corrupt { file: file.clone(), offset: *offset, why }
            }
            &Self::Ram { needed, budget } => Self::Ram { needed, budget },
            Self::Filter(error) => Self::Io {
                operation: "build a filter for",
                file: "data".into(),
                source: io::Error::other(error.to_string()),
            },
            _ => Self::Poisoned,
        }
    }

    /// A contradiction at `offset` of `file`.
    pub(crate) fn corrupt(
        file: impl Into<String>,
        offset: u64,
        why: &'static str,
    ) -> Self {
        Self::Corrupt { file: file.into(), offset, why }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, file, source } => {
                write!(f, "cannot {operation} {file}: {source}")
            }
            Self::Poisoned => f.write_str(
                "a sync of this store failed earlier; open it again to learn \
                 what is on the disk",
            ),
            Self::Locked => {
                f.write_str("another process or handle writes to this store")
            }
            Self::Exists => f.write_str("the directory has a store already"),
            Self::NotFound => f.write_str("the directory has no store"),
            Self::UnsupportedVersion { found, supported } => write!(
                f,
                "the store has format version {found}; this build reads up \
                 to {supported}"
            ),
            Self::Corrupt { file, offset, why } => {
                write!(f, "{file} is damaged at byte {offset}: {why}")
            }
            Self::ReadOnly => f.write_str("the store is open for reading"),
            Self::InvalidArgument { what, why } => {
                write!(f, "invalid {what}: {why}")
            }
            Self::TooLong { what, len, max } => {
                write!(f, "the {what} has {len} bytes, the most is {max}")
            }
            Self::Ram { needed, budget } => write!(
                f,
                "{needed} bytes of memory are needed, the budget is {budget}"
            ),
            Self::Filter(error) => write!(f, "filter of a segment: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Filter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tamis::Error> for Error {
    fn from(error: tamis::Error) -> Self {
        Self::Filter(error)
    }
}

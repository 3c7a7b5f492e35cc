//! The error type of the crate: each variant holds the expected and the
//! found value, and its documentation names the next step.

use alloc::string::String;
use core::fmt;

/// An operation that failed. It has changed nothing, except for
/// [`Error::Journal`].
///
/// ```
/// use tamis::{Blocked, Error};
///
/// let error = Blocked::from_bytes(b"not a filter".as_slice()).unwrap_err();
/// assert!(matches!(error, Error::NotTamis { .. }));
/// ```
///
/// `Debug` writes the message as well: a program whose `main` returns the
/// error ends with it, and needs no other texts.
#[non_exhaustive]
pub enum Error {
    /// An argument is outside its range. Correct it and call again.
    InvalidArgument {
        /// Name of the argument.
        what: &'static str,
        /// The valid values.
        why: &'static str,
    },
    /// No design reaches the requested rate or size (a false-positive rate
    /// of 0, for example). Request a higher rate or more bits per key.
    Infeasible(tamis_theory::Error),
    /// The allocator has no `bytes` bytes. Request fewer items or bits.
    Allocation {
        /// Size of the failed allocation.
        bytes: u64,
    },
    /// No bucket of a table has room for a key, and neither has its stash or
    /// list. Rebuild the table with another seed, or build one with more
    /// buckets, more levels or a stash. In a table with fewer keys than its
    /// design items it is unlikely, unless the hasher is not keyed and the
    /// keys were chosen to collide: use [`KeyHasher::random`].
    ///
    /// [`KeyHasher::random`]: crate::KeyHasher::random
    TableFull,
    /// Every block of a balanced filter refuses the key, and the overflow list
    /// is full. Build the filter with a longer list or for more keys, or
    /// insert the key without the limit.
    ListFull {
        /// The most keys of the list.
        capacity: u64,
    },
    /// Two structures differ in the named field, so they cannot be merged.
    /// Build both with the same settings and the same seed.
    Mismatch {
        /// The field that differs.
        field: &'static str,
        /// Its value in the structure merged into.
        ours: String,
        /// Its value in the other.
        theirs: String,
    },
    /// This kind of structure has no such operation. Use another kind.
    Unsupported {
        /// The kind.
        kind: &'static str,
        /// The operation.
        operation: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// Folding halves the number of blocks, which must be even.
    NotFoldable {
        /// The number of blocks.
        blocks: u64,
    },
    /// Fewer bytes than the header needs. The file is of another program,
    /// or was cut.
    TooShort {
        /// Smallest valid length.
        expected: u64,
        /// Length found.
        found: u64,
    },
    /// The first bytes are not the magic of a tamis file.
    NotTamis {
        /// The bytes found in place of the magic.
        found: [u8; 8],
    },
    /// A format version newer than this build. Use a newer release.
    UnsupportedVersion {
        /// The version in the file.
        found: u16,
        /// The newest version this build reads.
        supported: u16,
    },
    /// A structure kind newer than this build. Use a newer release.
    UnknownKind {
        /// The code in the file.
        found: u16,
    },
    /// The file holds another kind of structure. Open it as that kind, or
    /// as [`AnyFilter`](crate::AnyFilter).
    WrongKind {
        /// The kind of the type that was opened.
        expected: &'static str,
        /// The kind in the file.
        found: &'static str,
    },
    /// A hash function newer than this build. Use a newer release.
    UnknownHash {
        /// The code in the file.
        found: u16,
    },
    /// More or fewer bytes than the length in the header. Fetch or build a
    /// file that was cut again; pass the bytes of one filter alone if others
    /// follow it.
    Length {
        /// The length in the header.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// A header field contradicts the others or the format. Fetch or build
    /// the file again.
    Corrupt {
        /// The field.
        field: &'static str,
        /// The contradiction.
        why: &'static str,
    },
    /// The bytes end with the journal of an update in place that was
    /// interrupted. Open the file by its path.
    Unfinished,
    /// Bytes have changed since they were written. Fetch or build the file
    /// again.
    Checksum {
        /// The part whose checksum is wrong.
        part: &'static str,
        /// The checksum stored in the file.
        expected: u64,
        /// The checksum of the bytes found.
        found: u64,
    },
    /// The checksums match but the content contradicts itself, so the
    /// program that wrote the file was faulty. Build the file again.
    Inconsistent(&'static str),
    /// Another process or thread uses the file and excludes this one. Call
    /// again later, or wait longer.
    #[cfg(feature = "std")]
    Busy {
        /// The other user: `"a writer"` or `"a reader"`.
        holder: &'static str,
        /// The time waited for it.
        waited: core::time::Duration,
    },
    /// Another program replaced or changed the file, without a lock, while
    /// this one prepared a change. Call again.
    #[cfg(feature = "std")]
    Replaced,
    /// The operating system returned an error during an update of a file in
    /// place, or while an interrupted one was finished. With `is_made`, the
    /// next writer of the file finishes the update; do not repeat it.
    #[cfg(feature = "std")]
    Journal {
        /// The step, such as `"sync the journal"`.
        step: &'static str,
        /// Whether readers find the update in the file. `None` if it is
        /// unknown, because the file could not be restored either.
        is_made: Option<bool>,
        /// The error.
        error: std::io::Error,
    },
    /// The operating system returned an error.
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

/// A result with this crate's [`Error`].
///
/// ```
/// fn smallest_header() -> tamis::Result<usize> {
///     Ok(128)
/// }
/// assert!(smallest_header().is_ok());
/// ```
pub type Result<T> = core::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArgument { what, why } => {
                write!(f, "invalid {what}: {why}")
            }
            Self::Infeasible(error) => fmt::Display::fmt(error, f),
            Self::Allocation { bytes } => {
                write!(f, "cannot allocate {bytes} bytes")
            }
            Self::TableFull => f.write_str(
                "no bucket of the table has room for the key, nor its \
                     stash or list; below its design items this is unlikely, \
                     unless the hasher is not keyed and the keys were chosen \
                     to collide",
            ),
            Self::ListFull { capacity } => write!(
                f,
                "the overflow list of {capacity} keys is full, and no block \
                 takes the key"
            ),
            Self::Mismatch { field, ours, theirs } => write!(
                f,
                "cannot merge: {field} differs ({ours} and {theirs})"
            ),
            Self::Unsupported { kind, operation, why } => {
                write!(f, "a {kind} filter cannot {operation}: {why}")
            }
            Self::NotFoldable { blocks } => write!(
                f,
                "cannot fold {blocks} blocks: only an even number halves"
            ),
            Self::TooShort { expected, found } => write!(
                f,
                "too short for a tamis file: {found} bytes, expected at \
                 least {expected}"
            ),
            Self::NotTamis { found } => {
                write!(f, "not a tamis file: it starts with {found:02x?}")
            }
            Self::UnsupportedVersion { found, supported } => write!(
                f,
                "format version {found} is newer than this build reads (up \
                 to {supported}): use a newer release of tamis"
            ),
            Self::UnknownKind { found } => write!(
                f,
                "unknown structure kind {found}: use a newer release of \
                 tamis"
            ),
            Self::WrongKind { expected, found } => write!(
                f,
                "the file holds a {found} filter, not a {expected} filter"
            ),
            Self::UnknownHash { found } => write!(
                f,
                "unknown hash id {found}: use a newer release of tamis"
            ),
            Self::Length { expected, found } if found < expected => write!(
                f,
                "{found} bytes of a filter of {expected}: the file was cut"
            ),
            Self::Length { expected, found } => write!(
                f,
                "{found} bytes, but the filter ends after {expected}: pass \
                 its bytes alone"
            ),
            Self::Unfinished => f.write_str(
                "the bytes end with the journal of an interrupted update in \
                 place: open the file by its path",
            ),
            Self::Corrupt { field, why } => {
                write!(f, "corrupt header: {field}: {why}")
            }
            Self::Checksum { part, expected, found } => write!(
                f,
                "checksum of the {part} is {found:#018x}, expected \
                 {expected:#018x}"
            ),
            Self::Inconsistent(why) => {
                write!(f, "inconsistent content: {why}")
            }
            #[cfg(feature = "std")]
            Self::Busy { holder, waited } => write!(
                f,
                "{holder} is using the file (waited {}.{:03} s); nothing was \
                 changed",
                waited.as_secs(),
                waited.subsec_millis()
            ),
            #[cfg(feature = "std")]
            Self::Replaced => f.write_str(
                "another program replaced the file in the meantime; nothing \
                 was changed",
            ),
            #[cfg(feature = "std")]
            Self::Journal { step, is_made, error } => {
                write!(f, "cannot {step}: {error}; ")?;
                f.write_str(match is_made {
                    Some(false) => "nothing was changed",
                    Some(true) => {
                        "the change is in the file's journal, and the next \
                         writer finishes it"
                    }
                    None => "the file may have the change or not",
                })
            }
            #[cfg(feature = "std")]
            Self::Io(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // `Display` prints these errors themselves, so the next in the
            // chain is their source.
            Self::Infeasible(error) => error.source(),
            #[cfg(feature = "std")]
            Self::Journal { error, .. } | Self::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<tamis_theory::Error> for Error {
    fn from(error: tamis_theory::Error) -> Self {
        Self::Infeasible(error)
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl PartialEq for Error {
    /// Compares variant and message: [`std::io::Error`] has no equality.
    fn eq(&self, other: &Self) -> bool {
        use alloc::string::ToString as _;
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.to_string() == other.to_string()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    #[test]
    fn messages_use_the_builder_words_and_few_digits() {
        let tiny = crate::Blocked::builder().items(9).fpr(f64::MIN_POSITIVE);
        let message = tiny.build().unwrap_err().to_string();
        assert!(message.starts_with("false-positive rate"), "{message}");
        assert!(message.len() < 100, "{message}");
    }
}

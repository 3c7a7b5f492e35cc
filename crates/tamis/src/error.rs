//! One error type; every variant says what was expected, what was found,
//! and its documentation what to do next.

use alloc::string::String;

/// What can go wrong. Nothing has been changed when an operation returns
/// one of these.
///
/// ```
/// use tamis::{Blocked, Error};
///
/// let error = Blocked::from_bytes(b"not a filter".as_slice()).unwrap_err();
/// assert!(matches!(error, Error::NotTamis { .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is outside its range. Correct it and call again.
    #[error("invalid {what}: {why}")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// What would be valid.
        why: &'static str,
    },
    /// The theory has no design for what was asked (a false-positive rate
    /// of 0, say). Ask for less, or for more bits per key.
    #[error(transparent)]
    Infeasible(#[from] tamis_theory::Error),
    /// The memory could not be had. Ask for fewer items or bits.
    #[error("cannot allocate {bytes} bytes")]
    Allocation {
        /// How much was asked for.
        bytes: u64,
    },
    /// No level of a table has room for a key, and neither has its stash.
    /// Rebuild the table with another seed, or build one with more buckets,
    /// more levels or a stash.
    #[error("no level of the table has room for the key")]
    Crisis,
    /// Two structures differ in the named field, so they cannot be merged.
    /// Build both with the same settings (and the same seed).
    #[error("cannot merge: {field} differs ({ours} and {theirs})")]
    Mismatch {
        /// The field that differs.
        field: &'static str,
        /// Its value in the structure merged into.
        ours: String,
        /// Its value in the other.
        theirs: String,
    },
    /// This kind of structure cannot do that, for a reason that lies in it.
    #[error("a {kind} filter cannot {operation}: {why}")]
    Unsupported {
        /// The kind.
        kind: &'static str,
        /// What was asked.
        operation: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// Folding halves the number of blocks, which must be even.
    #[error("cannot fold {blocks} blocks: only an even number halves")]
    NotFoldable {
        /// The number of blocks.
        blocks: u64,
    },
    /// Fewer bytes than the smallest header. The file is not one of ours,
    /// or was cut.
    #[error(
        "too short for a tamis file: {found} bytes, expected at least {expected}"
    )]
    TooShort {
        /// The least that could be valid.
        expected: u64,
        /// What was there.
        found: u64,
    },
    /// The first eight bytes are not the magic of a tamis file.
    #[error("not a tamis file: it starts with {found:02x?}")]
    NotTamis {
        /// The bytes found in place of the magic.
        found: [u8; 8],
    },
    /// A format version this build does not know. Use a newer release.
    #[error(
        "format version {found} is newer than this build understands \
         (up to {supported}): use a newer release of tamis"
    )]
    UnsupportedVersion {
        /// The version in the file.
        found: u16,
        /// The newest version this build reads.
        supported: u16,
    },
    /// A structure kind this build does not know. Use a newer release.
    #[error("unknown structure kind {found}: use a newer release of tamis")]
    UnknownKind {
        /// The code in the file.
        found: u16,
    },
    /// The file holds another kind of structure. Open it as that kind, or
    /// as [`AnyFilter`](crate::AnyFilter).
    #[error("the file holds a {found} filter, not a {expected} filter")]
    WrongKind {
        /// The kind asked for.
        expected: &'static str,
        /// The kind in the file.
        found: &'static str,
    },
    /// A hash id this build does not know. Use a newer release.
    #[error("unknown hash id {found}: use a newer release of tamis")]
    UnknownHash {
        /// The code in the file.
        found: u16,
    },
    /// The file is longer or shorter than its header says: it was cut or
    /// something was appended. Fetch or build it again.
    #[error("the header promises {expected} bytes, the file has {found}")]
    Length {
        /// The length in the header.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// A header field contradicts the others or the format. Fetch or build
    /// the file again.
    #[error("corrupt header: {field}: {why}")]
    Corrupt {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Bytes have changed since they were written. Fetch or build the file
    /// again.
    #[error(
        "checksum of the {part} is {found:#018x}, expected {expected:#018x}"
    )]
    Checksum {
        /// The part whose checksum is wrong.
        part: &'static str,
        /// The checksum stored in the file.
        expected: u64,
        /// The checksum of the bytes found.
        found: u64,
    },
    /// The checksums hold but the content contradicts itself, so the file
    /// was not written by a correct program.
    #[error("inconsistent content: {0}")]
    Inconsistent(&'static str),
    /// The operating system refused.
    #[cfg(feature = "std")]
    #[error(transparent)]
    Io(#[from] std::io::Error),
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

impl PartialEq for Error {
    /// Errors are compared by what they say: an [`std::io::Error`] has no
    /// equality of its own.
    fn eq(&self, other: &Self) -> bool {
        use alloc::string::ToString as _;
        core::mem::discriminant(self) == core::mem::discriminant(other)
            && self.to_string() == other.to_string()
    }
}

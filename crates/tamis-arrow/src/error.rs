//! Errors: a column without keys, or with keys of another type.

use std::fmt;

use crate::{Digest, KeyFormat, KeyType};

/// A column or value that this crate refuses. Nothing was inserted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The type has no keys.
    UnsupportedType {
        /// The type.
        found: String,
        /// The conversion that gives keys.
        hint: &'static str,
    },
    /// The keys of the filter have another type.
    OtherKeys {
        /// The record of the filter.
        format: KeyFormat,
        /// Type of the keys passed.
        found: KeyType,
    },
    /// The keys of the filter are digests, and those passed are not.
    NoDigests {
        /// The digest function.
        digest: Digest,
        /// Type of the keys passed, or `Binary` for another length.
        found: KeyType,
    },
    /// Two filters have keys of different types.
    DifferentKeys {
        /// The record of the first.
        ours: String,
        /// The record of the second.
        theirs: String,
    },
    /// The record has a value that this version does not know.
    UnknownRecord {
        /// Name of the metadata entry.
        entry: &'static str,
        /// Its value.
        value: String,
    },
    /// An error of the filter.
    Filter(tamis::Error),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedType { found, hint } => {
                write!(f, "{found} values are not keys: {hint}")
            }
            Self::OtherKeys { format: KeyFormat::Hex, found } => write!(
                f,
                "the keys of the filter are bytes that users write in \
                 hexadecimal, not {found}: pass bytes.fromhex(text)"
            ),
            Self::OtherKeys { format: KeyFormat::U64le, found } => {
                write!(f, "the keys of the filter are integers, not {found}")
            }
            Self::OtherKeys { found, .. } => write!(
                f,
                "the keys of the filter are strings or bytes, not {found}"
            ),
            Self::NoDigests { digest, found } => write!(
                f,
                "the keys of the filter are {digest} digests: expected {} \
                 bytes each, found {found}{}",
                digest.len(),
                match found {
                    KeyType::Binary => " of another length",
                    _ => "",
                }
            ),
            Self::DifferentKeys { ours, theirs } => write!(
                f,
                "the keys of the first filter are {ours}, of the second \
                 {theirs}"
            ),
            Self::UnknownRecord { entry, value } => {
                write!(f, "this version of tamis has no {entry} {value:?}")
            }
            Self::Filter(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Filter(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<tamis::Error> for Error {
    fn from(error: tamis::Error) -> Self {
        Self::Filter(error)
    }
}

//! One byte format for every structure: see `docs/format.md` for the
//! specification this module implements, constant by constant.
//!
//! Parsing allocates nothing, is free of `unsafe` and panics on no input. The
//! one `unsafe` block is the call that maps a file into memory.

mod compact;
#[cfg(feature = "std")]
mod file;
mod header;
mod image;
#[cfg(feature = "std")]
mod journal;
#[cfg(feature = "std")]
mod lock;
mod metadata;
#[cfg(feature = "std")]
mod patch;
#[cfg(feature = "std")]
mod writer;

#[cfg(feature = "std")]
pub(crate) use compact::is_compact;
#[cfg(feature = "std")]
pub use file::Mapped;
#[cfg(feature = "std")]
pub(crate) use file::{ExclusiveFile, PrivateMap};
pub(crate) use header::{
    Counts, GeometryBytes, ImageHeader, Reader, check_length, image_len,
};
pub(crate) use image::{
    Image, Persist, SectionTag, Sections, metadata_bytes, verify,
};
#[cfg(feature = "std")]
pub(crate) use lock::{WAIT, WriterLock};
pub use metadata::Metadata;
#[cfg(feature = "std")]
pub(crate) use patch::patch;
#[cfg(feature = "std")]
pub(crate) use writer::{Overwrite, replace, resolve};

use crate::error::{Error, Result};
use crate::named::named_enum;

/// The first eight bytes of every file. A transfer that treats the file as
/// text changes the high bit or the line end.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TAMIS\r\n";

/// See [`Header::FORMAT_VERSION`](crate::Header::FORMAT_VERSION).
pub(crate) const FORMAT_VERSION: u16 = 1;

/// Kinds of structures in a file.
///
/// ```
/// use tamis::Kind;
///
/// assert_eq!("blocked".parse(), Ok(Kind::Blocked));
/// assert_eq!(Kind::Split.to_string(), "split");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Bloom`](crate::Bloom)
    Bloom,
    /// [`Blocked`](crate::Blocked)
    Blocked,
    /// [`Split`](crate::Split)
    Split,
    /// [`Balanced`](crate::Balanced)
    Balanced,
    /// [`TinySet`](crate::TinySet)
    TinySet,
}

named_enum!(Kind, "kind", {
    Bloom => "bloom",
    Blocked => "blocked",
    Split => "split",
    Balanced => "balanced",
    TinySet => "tinyset",
});

impl Kind {
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Bloom => 1,
            Self::Blocked => 2,
            Self::Split => 3,
            Self::Balanced => 4,
            Self::TinySet => 5,
        }
    }

    pub(crate) fn from_code(code: u16) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or(Error::UnknownKind { found: code })
    }
}

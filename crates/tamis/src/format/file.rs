//! Memory maps of files.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::writer::irregular;
use crate::error::{Error, Result};

/// A read-only memory map of a file or a region of it: opening costs the
/// same for a kilobyte and for 100 GB, and processes share the pages. Clones
/// share the map.
///
/// The file must not be truncated or rewritten in place while it is mapped:
/// an access behind a new end is a signal (`SIGBUS`), not an error. `save`
/// does neither; it replaces the directory entry, and mapped readers keep
/// the old content.
///
/// ```no_run
/// use tamis::{Blocked, Mapped};
///
/// let filter: Blocked<Mapped> = Blocked::open("keys.tamis")?;
/// assert!(filter.contains("apple"));
///
/// // A filter inside the file of another program.
/// let bytes = Mapped::open_region("runs.dat", 4096, 106_688)?;
/// let filter = Blocked::from_bytes(bytes.clone())?;
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mapped(Arc<memmap2::Mmap>);

impl Mapped {
    /// Maps the whole file at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or mapped.
    ///
    /// ```
    /// assert!(tamis::Mapped::open("no such file").is_err());
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_file(&open_regular(path.as_ref())?)
    }

    /// Maps `len` bytes of the file at `path`, from byte `offset` on.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or mapped, or ends before
    /// the region does.
    ///
    /// ```
    /// assert!(tamis::Mapped::open_region("no such file", 0, 1).is_err());
    /// ```
    pub fn open_region(
        path: impl AsRef<Path>,
        offset: u64,
        len: usize,
    ) -> Result<Self> {
        Self::region(&open_regular(path.as_ref())?, offset, len)
    }

    /// Maps a whole open file. The map outlives `file`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be mapped.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join("tamis-doc-from-file");
    /// # std::fs::write(&path, b"bytes")?;
    /// let file = std::fs::File::open(&path)?;
    /// assert_eq!(tamis::Mapped::from_file(&file)?[..], *b"bytes");
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn from_file(file: &File) -> Result<Self> {
        let len = regular(file.metadata()?)?.len();
        // A file too large for the address space fails to map.
        Self::map(file, 0, usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// Maps `len` bytes of an open file, from byte `offset` on; `offset` need
    /// not be a multiple of a page. The map outlives `file`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be mapped, or ends before the region
    /// does.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join("tamis-doc-region");
    /// # std::fs::write(&path, b"some bytes")?;
    /// let file = std::fs::File::open(&path)?;
    /// assert_eq!(tamis::Mapped::region(&file, 5, 5)?[..], *b"bytes");
    /// assert!(tamis::Mapped::region(&file, 5, 6).is_err());
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn region(file: &File, offset: u64, len: usize) -> Result<Self> {
        let end = offset.checked_add(len as u64);
        let file_len = regular(file.metadata()?)?.len();
        if end.is_none_or(|end| end > file_len) {
            return Err(Error::Io(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "the file has {file_len} bytes: too few for {len} bytes \
                     at offset {offset}"
                ),
            )));
        }
        Self::map(file, offset, len)
    }

    #[expect(unsafe_code, reason = "a memory map is a promise about a file")]
    fn map(file: &File, offset: u64, len: usize) -> Result<Self> {
        let mut options = memmap2::MmapOptions::new();
        options.offset(offset).len(len);
        // SAFETY: the map is read-only and nothing in this crate writes to a
        // file in place. The caller ensures that no process truncates or
        // rewrites the file while it is mapped, as the documentation of
        // `Mapped` requires. Bytes that change nevertheless change answers
        // alone: every byte pattern is a valid `u8`, and no offset is read
        // from the map without a check against its length.
        let map = unsafe { options.map(file) }?;
        Ok(Self(Arc::new(map)))
    }
}

/// Opens a regular file. The check precedes the opening, which would wait
/// for the writer of a pipe.
fn open_regular(path: &Path) -> Result<File> {
    regular(path.metadata()?)?;
    Ok(File::open(path)?)
}

/// Refuses a directory, a pipe or a device.
fn regular(metadata: Metadata) -> Result<Metadata> {
    match metadata.is_file() {
        true => Ok(metadata),
        false => Err(irregular()),
    }
}

impl AsRef<[u8]> for Mapped {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for Mapped {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

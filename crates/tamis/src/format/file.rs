//! Memory maps of files, and copies of files in memory.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::image_len;
use super::journal::{self, Pending};
use super::lock::{Access, WAIT, is_at, retry, try_lock};
use super::writer::irregular;
use crate::error::{Error, Result};

/// A read-only memory map of a file or a region of it: opening costs the
/// same for a kilobyte and for 100 GB, and processes share the pages. Clones
/// share the map.
///
/// # Files that change while they are mapped
///
/// Other programs must neither truncate nor rewrite the file in place
/// meanwhile. `save` does neither: it replaces the directory entry, and mapped
/// readers keep the old content.
///
/// * After a truncation, an access behind the new end is a signal (`SIGBUS`)
///   that ends the process, not an error.
/// * The map is a `&[u8]`, whose bytes may not change by the rules of Rust. No
///   operating system enforces that, so the functions that make a map are safe
///   only as long as no program breaks it; if one does, the behaviour is
///   undefined by these rules. This crate is written so that changed bytes
///   change answers alone: it checks each number from the file against the
///   length of the map where it uses it. The compiler need not keep it so: it
///   may read a byte twice.
/// * Checksums that were right may be wrong afterwards.
///
/// [`read`](Self::read) copies a file of which another program may do so, and
/// a file of strangers.
///
/// # Locks
///
/// A map by path holds a shared lock of the file, without an open file on
/// Linux. [`insert_batch_in_place`](crate::FileLock::insert_batch_in_place)
/// and [`remove_batch_in_place`](crate::FileLock::remove_batch_in_place) wait
/// until all these maps are dropped. Copies and maps of regions and of
/// open files hold no lock: the file may have locks of another program.
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
pub struct Mapped {
    map: Arc<memmap2::Mmap>,
    /// Holds the lock. Linux maps keep the open file, and so its lock, until
    /// they end; elsewhere a closed file has no lock.
    #[cfg(not(target_os = "linux"))]
    _locked: Option<Arc<File>>,
}

impl Mapped {
    /// Maps the whole file at `path`.
    ///
    /// Waits, up to a minute, while another process updates the file in
    /// place. An update that was interrupted is part of the map if it was
    /// recorded completely, and otherwise not.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or mapped, [`Error::Busy`]
    /// if an update takes longer.
    ///
    /// ```
    /// assert!(tamis::Mapped::open("no such file").is_err());
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = open_shared(path.as_ref())?;
        let mapped = Self::from_file(&file)?;
        let mapped = match image_len(&mapped) {
            Ok(bytes) if bytes == mapped.len() as u64 => mapped,
            _ => match Pending::find(&file)? {
                Some(pending) => Self::replayed(&file, &pending)?,
                None => mapped,
            },
        };
        Ok(mapped.with_lock(file))
    }

    /// Copies the image in the file at `path` into memory of the process: no
    /// other program can change or shorten the copy, as it can a map.
    ///
    /// Takes the time and the memory of the whole file. Waits for updates in
    /// place as [`open`](Self::open) does, and holds no lock afterwards.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); [`Error::Io`] if the file becomes
    /// shorter meanwhile or exceeds the memory; that of
    /// [`Header::image_len`](crate::Header::image_len), before anything else is read, for a
    /// file of another format.
    ///
    /// ```
    /// use tamis::{Blocked, Mapped};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// let mut filter = Blocked::builder().items(9).fpr(0.1).build()?;
    /// filter.insert("apple");
    /// filter.save(&path)?;
    ///
    /// let copy = Blocked::from_bytes(Mapped::read(&path)?)?;
    /// std::fs::write(&path, "")?;
    /// assert!(copy.contains("apple"));
    /// assert!(Mapped::read(&path).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let file = open_shared(path.as_ref())?;
        let bytes = regular(file.metadata()?)?.len();
        let header = image_len(&journal::read_header(&file, bytes)?);
        let pending = match header {
            Ok(image_bytes) if image_bytes == bytes => None,
            _ => Pending::find(&file)?,
        };
        let image_bytes = match &pending {
            Some(pending) => pending.image_bytes,
            None => header.map(|_| bytes)?,
        };
        let room = usize::try_from(image_bytes).unwrap_or(usize::MAX);
        let mut copy = memmap2::MmapOptions::new().len(room).map_anon()?;
        journal::read_into(&file, &mut copy)?;
        if let Some(pending) = &pending {
            pending.replay(&mut copy)?;
        }
        Ok(Self::of(copy.make_read_only()?))
    }

    /// Maps an image with the changes of its journal.
    fn replayed(file: &File, pending: &Pending) -> Result<Self> {
        let mut map = PrivateMap::new(file, pending.image_bytes)?;
        pending.replay(&mut map)?;
        Ok(Self::of(map.0.make_read_only()?))
    }

    fn of(map: memmap2::Mmap) -> Self {
        Self {
            map: Arc::new(map),
            #[cfg(not(target_os = "linux"))]
            _locked: None,
        }
    }

    /// Keeps the lock of an open file until the map is dropped.
    fn with_lock(self, file: File) -> Self {
        #[cfg(target_os = "linux")]
        drop(file);
        Self {
            #[cfg(not(target_os = "linux"))]
            _locked: Some(Arc::new(file)),
            ..self
        }
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
        // SAFETY: the map is read-only, and every byte pattern is a `u8`.
        // Missing: proof that no other program changes or truncates the file
        // while it is mapped, which no library can give. This crate writes to
        // a file in place with an exclusive lock only, and `open` holds a
        // shared one; the documentation of `Mapped` requires the rest of the
        // user and states the consequence.
        let map = unsafe { options.map(file) }?;
        Ok(Self::of(map))
    }
}

/// A map of a file whose changes stay private: a page that is written to is
/// copied first.
pub(crate) struct PrivateMap(memmap2::MmapMut);

impl PrivateMap {
    /// Maps the first `bytes` bytes of a file.
    #[expect(unsafe_code, reason = "a memory map is a promise about a file")]
    pub(crate) fn new(file: &File, bytes: u64) -> Result<Self> {
        let mut options = memmap2::MmapOptions::new();
        options.len(usize::try_from(bytes).unwrap_or(usize::MAX));
        // Few pages are written to, and the file may exceed the memory.
        options.no_reserve_swap();
        // SAFETY: as in `Mapped::map`; the pages that are written to are
        // private.
        Ok(Self(unsafe { options.map_copy(file) }?))
    }
}

impl Deref for PrivateMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for PrivateMap {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A file without other readers or writers, for a change in place.
pub(crate) struct ExclusiveFile(pub(crate) File);

impl ExclusiveFile {
    /// Opens the file and waits at most `wait` for its readers. Finishes an
    /// update that was interrupted.
    pub(crate) fn open(path: &Path, wait: Duration) -> Result<Self> {
        regular(path.metadata()?)?;
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        retry("a reader", wait, || {
            let locked = try_lock(&file, Access::Exclusive)?;
            Ok(locked.then_some(()))
        })?;
        if !is_at(&file, path)? {
            return Err(Error::Replaced);
        }
        journal::settle(&file)?;
        Ok(Self(file))
    }
}

/// Opens a regular file and waits for updates in place, up to a minute. They
/// wait until the lock, a shared one, is released.
fn open_shared(path: &Path) -> Result<File> {
    let file = open_regular(path)?;
    retry("a writer", WAIT, || match try_lock(&file, Access::Shared) {
        Ok(true) => Ok(Some(())),
        Ok(false) => Ok(None),
        // A file system without locks has no updates in place.
        Err(_) => Ok(Some(())),
    })?;
    Ok(file)
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
        &self.map
    }
}

impl Deref for Mapped {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

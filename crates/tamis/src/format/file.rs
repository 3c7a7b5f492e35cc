//! Files: memory maps for reading, atomic replacement for writing.

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Writes to a temporary file beside `path`, syncs it, and renames it over
/// `path`.
///
/// A new file has the mode that the umask gives, or 0600 if `private`; a
/// file that replaces another has the mode of the old one.
pub(super) fn replace(
    path: &Path,
    overwrite: bool,
    private: bool,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    // The target of a symbolic link is replaced, and not the link. Absolute
    // paths stay valid if the working directory changes meanwhile.
    let path =
        std::fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
    // The root directory, which has no parent, fails below as irregular.
    let directory = path.parent().unwrap_or(&path);
    let old = path.metadata().ok();
    // Checked before the work as well as by the final link, which has no
    // race: a refusal costs no write.
    if !overwrite && old.is_some() {
        return Err(exists());
    }
    // A rename would put a file in the place of a pipe or a device.
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(irregular());
    }
    // Opened before the rename: a writable directory may be unreadable, and
    // a failure after the rename could not be undone.
    #[cfg(unix)]
    let directory_file = File::open(directory).ok();
    let mut temporary = Temporary::create(directory, old.as_ref(), private)?;
    if let Some(old) = old {
        // The umask may have cleared bits of the old mode; and a file that
        // holds the key of a keyed hash must not become readable for all.
        temporary.file.set_permissions(old.permissions())?;
    }
    write(&mut temporary.file)?;
    temporary.file.sync_all()?;
    if overwrite {
        temporary.rename(&path)?;
    } else {
        temporary.link(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(),
            _ => Error::Io(error),
        })?;
    }
    // The sync makes the rename survive a power cut. Some file systems
    // cannot sync a directory; the data is complete under the old or the new
    // name, so the failure is not an error.
    #[cfg(unix)]
    if let Some(directory) = directory_file {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// A file with a random name, removed on drop unless it was renamed.
struct Temporary {
    file: File,
    path: PathBuf,
}

/// Random names tried before `create` gives up.
const ATTEMPTS: u32 = 1000;

impl Temporary {
    /// Creates `.tamis-XXXXXXXX` in `directory`, with the mode of `old` or
    /// of a new file.
    fn create(
        directory: &Path,
        old: Option<&Metadata>,
        private: bool,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // `create_new` neither opens a file nor follows a link that another
        // program has placed there.
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::{
                OpenOptionsExt as _, PermissionsExt as _,
            };
            let new = if private { 0o600 } else { 0o666 };
            let mode = old.map_or(new, |old| old.permissions().mode());
            options.mode(mode);
        }
        #[cfg(not(unix))]
        let _ = (old, private);
        let mut attempts = 0..ATTEMPTS;
        loop {
            // `RandomState` is the source of random bits that std has.
            let random = RandomState::new().build_hasher().finish() as u32;
            let path = directory.join(format!(".tamis-{random:08x}"));
            match options.open(&path) {
                Ok(file) => return Ok(Self { file, path }),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && attempts.next().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Renames to `path`, replacing a file of that name.
    fn rename(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.path = PathBuf::new();
        Ok(())
    }

    /// Gives the file the name `path` unless a file of that name exists.
    fn link(self, path: &Path) -> io::Result<()> {
        match std::fs::hard_link(&self.path, path) {
            // `drop` removes the temporary name.
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(error);
            }
            Err(_) => {}
        }
        // A file system without hard links. `create_new` claims the name;
        // readers can find an empty file there until the rename.
        OpenOptions::new().write(true).create_new(true).open(path)?;
        self.rename(path).inspect_err(|_| {
            let _ = std::fs::remove_file(path);
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn irregular() -> Error {
    Error::Io(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

fn exists() -> Error {
    Error::Io(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists"))
}

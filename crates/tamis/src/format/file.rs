//! Files: memory maps for reading, atomic replacement for writing.

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A read-only memory map of a whole file: opening costs the same for a
/// kilobyte and for 100 GB, and processes share the pages.
///
/// The file must not be truncated or rewritten in place while it is mapped:
/// the operating system answers an access behind a new end with a signal, not
/// an error. [`Persist::save`](crate::Persist::save) does neither; it
/// replaces the directory entry and leaves mapped readers with the old
/// content.
///
/// ```no_run
/// use tamis::{Blocked, Filter, Mapped};
///
/// let filter: Blocked<Mapped> = Blocked::open("keys.tamis")?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Mapped(memmap2::Mmap);

impl Mapped {
    /// Maps a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or mapped.
    ///
    /// ```
    /// assert!(tamis::Mapped::open("no such file").is_err());
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        // Before opening: that would wait for the writer of a pipe, and
        // mapping a directory fails with a riddle.
        if !path.as_ref().metadata()?.is_file() {
            return Err(irregular());
        }
        map(&File::open(path)?).map(Self)
    }
}

#[expect(unsafe_code, reason = "a memory map is a promise about the file")]
fn map(file: &File) -> Result<memmap2::Mmap> {
    // SAFETY: the map is read-only and nothing in this crate writes to a
    // file in place. That no other process truncates or rewrites the file
    // while it is mapped is the caller's promise, stated in the
    // documentation of `Mapped`; a change of bytes within the file can only
    // change answers: every byte pattern is a valid `u8`, and no offset is
    // taken from the map without being checked against its length.
    Ok(unsafe { memmap2::Mmap::map(file) }?)
}

impl AsRef<[u8]> for Mapped {
    #[inline]
    fn as_ref(&self) -> &[u8] {
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

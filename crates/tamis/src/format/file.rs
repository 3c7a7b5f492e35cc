//! Files: memory maps for reading, atomic replacement for writing.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

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

/// Writes next to `path`, syncs, and renames over it.
///
/// A new file follows the umask, or is for its owner alone if `private`; one
/// that is replaced keeps its mode.
pub(super) fn replace(
    path: &Path,
    overwrite: bool,
    private: bool,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    // A bare file name has the empty parent; a path through a symbolic link
    // to a file must replace that file, not the link.
    let resolved = std::fs::canonicalize(path);
    let path = resolved.as_deref().unwrap_or(path);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    #[cfg(not(unix))]
    let _ = private;
    let old = path.metadata().ok();
    // Before the work, so that nobody waits for a refusal; the final
    // rename checks again, without a race.
    if !overwrite && old.is_some() {
        return Err(exists());
    }
    // A rename would put a file in the place of a pipe or a device.
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(irregular());
    }
    // Opened now: a directory that may be written need not be readable, and
    // after the rename there is nothing left to refuse.
    #[cfg(unix)]
    let directory_file = File::open(directory).ok();
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tamis-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask applies, as it does to every file a program creates.
        let bits = if private { 0o600 } else { 0o666 };
        let new = || std::fs::Permissions::from_mode(bits);
        let mode =
            old.as_ref().map_or_else(new, std::fs::Metadata::permissions);
        builder.permissions(mode);
    }
    let mut temporary = builder.tempfile_in(directory)?;
    if let Some(old) = old {
        // The mode of the old file: it may hold the key of a keyed hash,
        // and must not become readable for everyone.
        temporary.as_file().set_permissions(old.permissions())?;
    }
    write(temporary.as_file_mut())?;
    temporary.flush()?;
    temporary.as_file().sync_all()?;
    if overwrite {
        temporary.persist(path).map_err(|error| error.error)?;
    } else {
        temporary.persist_noclobber(path).map_err(|error| {
            match error.error.kind() {
                std::io::ErrorKind::AlreadyExists => exists(),
                _ => Error::Io(error.error),
            }
        })?;
    }
    // The rename itself should survive a power cut. Not every file system
    // can sync a directory; the data is whole under one name or the other,
    // and the new file is in place, so this is no longer an error.
    #[cfg(unix)]
    if let Some(directory) = directory_file {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn irregular() -> Error {
    Error::Io(std::io::Error::new(
        std::io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

fn exists() -> Error {
    Error::Io(std::io::Error::new(
        std::io::ErrorKind::AlreadyExists,
        "the file exists",
    ))
}

//! Atomic replacement of files.

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lock::{
    Access, LOCK_PREFIX, WriterLock, is_at, no_follow, try_lock,
};
use crate::error::{Error, Result};

/// Conditions under which a file is replaced.
#[derive(Clone, Copy)]
pub(crate) enum Overwrite {
    /// Fails if the file exists.
    Never,
    /// Waits at most this long for a lock of the file.
    Within(Duration),
    /// Needs a lock that the caller has.
    Locked,
}

/// The absolute path of a file that may not exist. The target of a symbolic
/// link is replaced, and not the link; and an absolute path stays valid if
/// the working directory changes.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path))
}

/// Writes to a temporary file, syncs it, and gives it the name `path`, which
/// is the result of [`resolve`].
///
/// A new file has the mode that the umask gives, or 0600 if `private`. A
/// file that replaces another has the mode of the old one, and its owner and
/// group if the process may set them.
pub(crate) fn replace(
    path: &Path,
    overwrite: Overwrite,
    private: bool,
    write: &mut dyn FnMut(&mut File) -> Result<()>,
) -> Result<()> {
    // The root directory, which has no parent, fails below as irregular.
    let directory = path.parent().unwrap_or(path);
    let old = path.metadata().ok();
    let is_new = matches!(overwrite, Overwrite::Never);
    // Checked before the work as well as by the final link, which has no
    // race: a refusal costs no write.
    if is_new && old.is_some() {
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
    remove_stale(directory);
    // Others can read a file that replaces another only once it has the
    // group of the old one.
    let private = private || old.is_some();
    let mut temporary = Temporary::create(directory, private)?;
    if let Some(old) = old {
        imitate(&temporary.file, &old)?;
    }
    write(&mut temporary.file)?;
    temporary.file.sync_all()?;
    match overwrite {
        Overwrite::Never => {
            temporary.link(path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => exists(),
                _ => Error::Io(error),
            })?;
        }
        Overwrite::Within(wait) => {
            let lock = match WriterLock::acquire(path, wait) {
                // A file system without locks.
                Err(Error::Io(error)) if is_unsupported(&error) => None,
                result => Some(result?),
            };
            temporary.rename(path)?;
            drop(lock);
        }
        Overwrite::Locked => temporary.rename(path)?,
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

/// Gives a new file the mode of an old one, and its owner and group if
/// permitted.
fn imitate(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::{
            MetadataExt as _, PermissionsExt as _, fchown,
        };
        let new = file.metadata()?;
        let mut mode = old.permissions().mode() & 0o777;
        if new.gid() != old.gid()
            && fchown(file, None, Some(old.gid())).is_err()
        {
            // Another group has the permissions of all others.
            mode = mode & !0o070 | (mode & 0o007) << 3;
        }
        if new.uid() != old.uid() {
            // Only a privileged process may, and the data matters more.
            let _ = fchown(file, Some(old.uid()), None);
        }
        // Last, because the umask has cleared bits, and because the new
        // owner could set the mode.
        file.set_permissions(Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    file.set_permissions(old.permissions())
}

/// A file without a name, or with a random one until it is published.
///
/// A shared lock marks it as in use: [`remove_stale`] removes files that it
/// can lock. The lock is shared because that of readers is, who can open the
/// file as soon as it is renamed.
struct Temporary {
    file: File,
    /// Removed on drop.
    path: Option<PathBuf>,
}

/// Random names tried before giving up.
const ATTEMPTS: u32 = 1000;

/// Prefix of the names of temporary files, and of lock files.
const PREFIX: &str = ".tamis-";

impl Temporary {
    /// Creates a file in `directory`, of mode 0600 or the usual one.
    fn create(directory: &Path, private: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(if private { 0o600 } else { 0o666 });
        }
        #[cfg(not(unix))]
        let _ = private;
        match unnamed(directory, &options) {
            Some(file) => Ok(Self { file, path: None }),
            None => Self::create_named(directory, &options),
        }
    }

    fn create_named(
        directory: &Path,
        options: &OpenOptions,
    ) -> io::Result<Self> {
        // `create_new` neither opens a file nor follows a link that another
        // program has placed there.
        let mut options = options.clone();
        options.create_new(true);
        let (file, path) = with_random_name(directory, |path| {
            let file = options.open(path)?;
            mark(&file);
            // Another process may have removed the file before it was
            // locked.
            match is_at(&file, path)? {
                true => Ok(file),
                false => Err(io::ErrorKind::AlreadyExists.into()),
            }
        })?;
        Ok(Self { file, path: Some(path) })
    }

    /// Renames to `path`, replacing a file of that name.
    fn rename(mut self, path: &Path) -> io::Result<()> {
        let name = match self.path.take() {
            Some(name) => name,
            // No system call replaces a file by an unnamed one.
            None => {
                let directory = path.parent().unwrap_or(path);
                let link = |name: &Path| link_unnamed(&self.file, name);
                with_random_name(directory, link)?.1
            }
        };
        let renamed = std::fs::rename(&name, path);
        if renamed.is_err() {
            self.path = Some(name);
        }
        renamed
    }

    /// Gives the file the name `path` unless a file of that name exists.
    fn link(self, path: &Path) -> io::Result<()> {
        let Some(name) = &self.path else {
            return link_unnamed(&self.file, path);
        };
        match std::fs::hard_link(name, path) {
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
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Locks a temporary file. It stays usable where locks are unsupported,
/// because no other process can lock it there either.
fn mark(file: &File) {
    let _ = try_lock(file, Access::Shared);
}

/// Opens a file without a name, which the system removes with the process.
/// `None` if the file system has none, or no link to it can be made.
fn unnamed(directory: &Path, options: &OpenOptions) -> Option<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        if !Path::new(OPEN_FILES).exists() {
            return None;
        }
        let flag = rustix::fs::OFlags::TMPFILE.bits() as i32;
        let file = options.clone().custom_flags(flag).open(directory).ok()?;
        mark(&file);
        Some(file)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (directory, options);
        None
    }
}

/// Gives an unnamed file a name that no file has.
fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, linkat};
        use std::os::fd::AsRawFd as _;
        let link = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        linkat(CWD, &*link, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, path);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Directory of links to the open files of the process.
#[cfg(target_os = "linux")]
const OPEN_FILES: &str = "/proc/self/fd";

/// Calls `create` with random names in `directory` until it finds none that
/// exists.
fn with_random_name<T>(
    directory: &Path,
    mut create: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut attempts = 0..ATTEMPTS;
    loop {
        // `RandomState` is the source of random bits that std has.
        let random = RandomState::new().build_hasher().finish() as u32;
        let path = directory.join(format!("{PREFIX}{random:08x}"));
        match create(&path) {
            Ok(value) => return Ok((value, path)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && attempts.next().is_some() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes the temporary files and lock files of killed processes: those
/// without a lock. Reads the directory, which takes 3 ms for 10,000
/// files.
fn remove_stale(directory: &Path) {
    let Ok(entries) = directory.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_temporary);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // A failure leaves the file to a later writer.
            let _ = remove_unlocked(&entry.path());
        }
    }
}

/// Whether a name is one that this module gives.
fn is_temporary(name: &str) -> bool {
    let digits = match name.strip_prefix(LOCK_PREFIX) {
        Some(hash) => (hash, 16),
        None => (name.strip_prefix(PREFIX).unwrap_or_default(), 8),
    };
    digits.0.len() == digits.1
        && digits.0.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn remove_unlocked(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true);
    no_follow(&mut options);
    let file = options.open(path)?;
    if try_lock(&file, Access::Exclusive)? && is_at(&file, path)? {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Whether an error means that the file system has no locks.
fn is_unsupported(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let none = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP];
        none.map(|errno| Some(errno.raw_os_error()))
            .contains(&error.raw_os_error())
    }
    #[cfg(not(unix))]
    {
        error.kind() == io::ErrorKind::Unsupported
    }
}

pub(super) fn irregular() -> Error {
    Error::Io(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

fn exists() -> Error {
    Error::Io(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn named(directory: &Path) -> Temporary {
        let mut options = OpenOptions::new();
        options.write(true);
        Temporary::create_named(directory, &options).unwrap()
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = directory.read_dir().unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    /// File systems without unnamed files.
    #[test]
    fn named_temporary_files_are_published_or_removed() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        drop(named(directory));
        assert!(names(directory).is_empty());
        named(directory).link(&directory.join("a")).unwrap();
        let exists = named(directory).link(&directory.join("a")).unwrap_err();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
        named(directory).rename(&directory.join("a")).unwrap();
        named(directory).rename(&directory.join("b")).unwrap();
        let nowhere = directory.join("no/such");
        assert!(named(directory).rename(&nowhere).is_err());
        assert_eq!(names(directory), ["a", "b"]);
    }

    #[test]
    fn stale_files_are_removed_and_those_in_use_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let stale = [".tamis-0123abcd", ".tamis-lock-0123456789abcdef"];
        let others = [
            ".tamis-",
            ".tamis-0123abc",
            ".tamis-0123abcd.bak",
            ".tamis-lock-0123abcd",
            ".tamis-notes.x",
            "tamis-0123abcd",
        ];
        for name in stale.iter().chain(&others) {
            std::fs::write(directory.join(name), "bytes").unwrap();
        }
        // A link is not ours, and its target even less.
        let link = directory.join(".tamis-fedcba98");
        std::os::unix::fs::symlink(directory.join(others[0]), &link).unwrap();
        let mut temporary = named(directory);
        let lock = WriterLock::acquire(&directory.join("f"), Duration::ZERO);
        remove_stale(directory);
        let mut left = names(directory);
        left.retain(|name| !others.contains(&name.as_str()));
        // The link, the temporary file and the lock.
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(link.is_symlink() && directory.join(others[0]).exists());
        assert!(lock.is_ok());
        // A process that is killed closes its files and removes none.
        let path = temporary.path.take().unwrap();
        drop(temporary);
        assert!(path.exists());
        remove_stale(directory);
        assert!(!path.exists());
    }
}

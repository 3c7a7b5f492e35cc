//! Advisory locks on files: one writer at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::writer::irregular;
use crate::error::{Error, Result};

/// Time for which writers wait for each other by default.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// Longest pause between two attempts to lock a file.
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// Prefix of the names of lock files.
pub(super) const LOCK_PREFIX: &str = ".tamis-lock-";

/// The exclusive right to replace a file, released on drop.
///
/// The lock is on a file of its own beside the target. The target itself
/// cannot hold it: a replacement has another inode, and a shared lock of
/// mapped readers, for which replacement need not wait, is on the old one.
/// The holder removes the lock file; if it is killed, the next writer in the
/// directory does.
#[derive(Debug)]
pub(crate) struct WriterLock {
    /// Locked until it is closed.
    _file: File,
    path: PathBuf,
}

impl WriterLock {
    /// Locks the file at `target`, an absolute path without symbolic links,
    /// whether or not it exists.
    pub(crate) fn acquire(target: &Path, wait: Duration) -> Result<Self> {
        let name = target.file_name().ok_or_else(irregular)?;
        // A hash, because the name may have the greatest length allowed.
        let name = xxh3_64(name.as_encoded_bytes());
        let path = target.with_file_name(format!("{LOCK_PREFIX}{name:016x}"));
        retry("a writer", wait, || {
            loop {
                let file = open(&path)?;
                if !try_lock(&file, Access::Exclusive)? {
                    return Ok(None);
                }
                // The last holder removes the file after others open it.
                if is_at(&file, &path)? {
                    let path = path.clone();
                    return Ok(Some(Self { _file: file, path }));
                }
            }
        })
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Elsewhere, a removed file that is open blocks its name.
        if cfg!(unix) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens a lock file, creating it if necessary.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    no_follow(&mut options);
    let created = options.clone().write(true).create(true).open(path);
    match created {
        // The lock file of another user.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            options.open(path).map_err(|_| error)
        }
        result => result,
    }
}

/// Refuses symbolic links, with which another user could choose the file
/// that is created or removed.
pub(super) fn no_follow(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// Access that a lock grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Shared,
    Exclusive,
}

/// Locks an open file until it is closed; `false` if another open file has
/// a lock that excludes this one.
#[cfg(unix)]
pub(super) fn try_lock(file: &File, access: Access) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;
    let operation = match access {
        Access::Shared => FlockOperation::NonBlockingLockShared,
        Access::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    match rustix::io::retry_on_intr(|| flock(file, operation)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(all(not(unix), rustc_1_89))]
pub(super) fn try_lock(file: &File, access: Access) -> io::Result<bool> {
    let result = match access {
        Access::Shared => file.try_lock_shared(),
        Access::Exclusive => file.try_lock(),
    };
    match result {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(all(not(unix), not(rustc_1_89)))]
pub(super) fn try_lock(_: &File, _: Access) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether `path` names the open file.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |of: std::fs::Metadata| (of.dev(), of.ino());
        match path.symlink_metadata() {
            Ok(found) => Ok(identity(found) == identity(file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        Ok(true)
    }
}

/// Repeats `attempt` until it has a value, for at most `wait`. A lock that
/// the kernel waits for would have no time limit.
pub(super) fn retry<T>(
    holder: &'static str,
    wait: Duration,
    mut attempt: impl FnMut() -> io::Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        let waited = start.elapsed();
        if waited >= wait {
            return Err(Error::Busy { holder, waited: wait });
        }
        thread::sleep(pause.min(wait - waited));
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

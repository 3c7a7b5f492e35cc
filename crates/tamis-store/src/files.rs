//! The disk of a real store: a directory of files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::{Advice, fadvise};
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};

use crate::disk::{Disk, DiskFile, Lock, LockKind, Mode, ReadQueue};
use crate::manifest::DATA;

/// A directory of the file system as a [`Disk`].
///
/// ```
/// use tamis_store::{Disk, Files, Mode};
///
/// let dir = tempfile::tempdir()?;
/// let disk = Files::new(dir.path());
/// let file = disk.open("name", Mode::Create)?;
/// assert_eq!(file.write_at(b"content", 0)?, 7);
/// file.sync()?;
/// disk.sync_dir()?;
/// assert_eq!(disk.list()?, ["name"]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// The files of the directory `dir`.
    #[must_use]
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self { dir: dir.as_ref().into() }
    }

    /// Permissions of new files: those of the data file, so that readers which
    /// were given the right to it can read the logs. The data file is for its
    /// owner alone, because the manifest has the key of the hash.
    fn mode(&self) -> u32 {
        let data = fs::metadata(self.dir.join(DATA));
        data.map_or(0o600, |data| data.mode() & 0o666)
    }
}

impl Disk for Files {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            Mode::Read | Mode::ReadRandom | Mode::ReadMapped => {}
            Mode::ReadDirect => {
                options.custom_flags(OFlags::DIRECT.bits() as i32);
            }
            Mode::Write => {
                options.write(true);
            }
            Mode::Create => {
                options.write(true).create_new(true).mode(self.mode());
            }
        }
        let file = options.open(self.dir.join(name))?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if matches!(mode, Mode::ReadRandom | Mode::ReadMapped) {
            // A file system without advice reads as it did.
            let _ = fadvise(&file, 0, None, Advice::Random);
        }
        match mode {
            Mode::ReadMapped => map(file),
            _ => Ok(Arc::new(OpenFile(file))),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn lock(
        &self,
        name: &str,
        kind: LockKind,
    ) -> io::Result<Option<Box<dyn Lock>>> {
        let path = self.dir.join(name);
        // A reader may lack the right to write to the directory.
        let file = match OpenOptions::new().read(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                OpenOptions::new().append(true).create(true).open(&path)?
            }
            opened => opened?,
        };
        let operation = match kind {
            LockKind::Shared => FlockOperation::NonBlockingLockShared,
            LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        match rustix::fs::flock(&file, operation) {
            Ok(()) => Ok(Some(Box::new(HeldLock { _file: file }))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A file that is read through maps.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn map(file: File) -> io::Result<Arc<dyn DiskFile>> {
    Ok(Arc::new(crate::mapped::MappedFile::new(file)?))
}

/// Elsewhere the part of a map after the end of its file need not follow the
/// file as it grows.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn map(_: File) -> io::Result<Arc<dyn DiskFile>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A queue of reads of `file`.
#[cfg(all(target_os = "linux", feature = "io-uring"))]
pub(crate) fn queue(
    file: &File,
    depth: usize,
) -> io::Result<Box<dyn ReadQueue>> {
    Ok(Box::new(crate::ring::Ring::new(file.try_clone()?, depth)?))
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
pub(crate) fn queue(_: &File, _: usize) -> io::Result<Box<dyn ReadQueue>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file of [`Files`].
#[derive(Debug)]
struct OpenFile(File);

impl DiskFile for OpenFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.0, flags, offset, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            result => Ok(result?),
        }
    }

    fn queue(&self, depth: usize) -> io::Result<Box<dyn ReadQueue>> {
        queue(&self.0, depth)
    }
}

/// An advisory lock on a file, released when the file is closed.
#[derive(Debug)]
struct HeldLock {
    _file: File,
}

impl Lock for HeldLock {}

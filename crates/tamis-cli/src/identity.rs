//! Files by identity, whatever their names, and by state.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::{Failure, Result};

/// Identity of an existing file: equal for all its links and names.
#[derive(Debug, PartialEq)]
pub(crate) struct FileIdentity(
    #[cfg(unix)] (u64, u64),
    #[cfg(not(unix))] PathBuf,
);

#[cfg(unix)]
impl FileIdentity {
    /// `None` if the file does not exist or cannot be examined.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Some(Self::new(&path.metadata().ok()?))
    }

    /// The file that standard input reads.
    pub(crate) fn of_stdin() -> Option<Self> {
        use std::os::fd::AsFd as _;
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
        Some(Self::new(&File::from(stdin).metadata().ok()?))
    }

    fn new(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self((metadata.dev(), metadata.ino()))
    }
}

#[cfg(not(unix))]
impl FileIdentity {
    /// `None` if the file does not exist or cannot be examined.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        path.canonicalize().ok().map(Self)
    }

    /// Unknown: std has no identity of open files on this system.
    pub(crate) fn of_stdin() -> Option<Self> {
        None
    }
}

/// State of a mapped file, which no program should change.
pub(crate) struct FileWatch {
    path: PathBuf,
    file: File,
    state: Option<(u64, Option<SystemTime>)>,
}

impl FileWatch {
    /// Watches the file at `path`; `None` if it cannot be opened.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let state = state(&file);
        Some(Self { path: path.into(), file, state })
    }

    /// Fails if the file has been shortened or overwritten.
    pub(crate) fn check(&self) -> Result<()> {
        if state(&self.file) == self.state {
            return Ok(());
        }
        Err(Failure::new(format_args!(
            "{}: another program changed the filter while it was used (run \
             the command again; --no-mmap reads the filter before the keys)",
            self.path.display()
        )))
    }
}

/// Length and time of the last change; `None` if they cannot be read.
fn state(file: &File) -> Option<(u64, Option<SystemTime>)> {
    let metadata = file.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

//! Files by identity, whatever their names.

use std::path::Path;

/// Identity of an existing file: equal for all its links and names.
#[derive(Debug, PartialEq)]
pub(crate) struct FileIdentity(
    #[cfg(unix)] (u64, u64),
    #[cfg(not(unix))] std::path::PathBuf,
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
        Some(Self::new(&std::fs::File::from(stdin).metadata().ok()?))
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

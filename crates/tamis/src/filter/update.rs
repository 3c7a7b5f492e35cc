//! Changes of filter files that other processes change too.

use alloc::borrow::Cow;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{AnyFilter, Window, in_place};
use crate::block::fingerprint::Removal;
use crate::error::{Error, Result};
use crate::format::{
    Mapped, Overwrite, Persist as _, WAIT, WriterLock, resolve,
};
use crate::key::Key;

impl AnyFilter {
    /// Changes a filter file: reads and verifies it, passes the filter to
    /// `change`, and replaces the file by the result.
    ///
    /// Any number of processes and threads may update the same file at the same
    /// time; each waits for the others, up to a minute (a [`FileLock`] has other
    /// limits), and no change is lost. A reader of `path` sees the old content
    /// or the new. If `change` returns an error, the file is unchanged.
    ///
    /// `change` must not save to the same file, for which it would wait in vain.
    ///
    /// # Errors
    ///
    /// The error of `change`; [`Error::Busy`], [`Error::Replaced`],
    /// [`Error::Io`], or an error of opening or [`verify`](AnyFilter::verify).
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked, Error};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// Blocked::builder().items(1000).fpr(0.01).build()?.save(&path)?;
    ///
    /// let new = AnyFilter::update(&path, |filter| {
    ///     Ok::<_, Error>(filter.insert("apple"))
    /// })?;
    /// assert!(new && AnyFilter::open(&path)?.contains("apple"));
    ///
    /// // Another kind of result is another filter.
    /// let failed = AnyFilter::update(&path, |filter| {
    ///     *filter = filter.doubled()?;
    ///     Ok::<_, Error>(())
    /// });
    /// assert!(matches!(failed, Err(Error::Unsupported { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn update<T, E: From<Error>>(
        path: impl AsRef<Path>,
        change: impl FnOnce(&mut AnyFilter) -> core::result::Result<T, E>,
    ) -> core::result::Result<T, E> {
        let mut lock = FileLock::acquire(path)?;
        let mut filter = lock.load()?;
        let value = change(&mut filter)?;
        lock.save(&filter)?;
        Ok(value)
    }
}

/// The exclusive right to change a filter file, until it is dropped.
///
/// [`AnyFilter::update`] is the simple form. A lock is for a file that may not exist
/// yet, for several saves without a change by others between them, and for
/// another time limit.
///
/// The lock is advisory: this library and the program `tamis` obey it.
/// Readers need none. A process that is killed has no lock any more. The
/// lock is a file `.tamis-lock-…` in the same directory while it is held.
///
/// ```
/// use tamis::{AnyFilter, FileLock, Kind};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("keys.tamis");
/// let mut lock = FileLock::acquire(&path)?;
/// let mut filter = match path.exists() {
///     true => lock.load()?,
///     false => AnyFilter::builder(Kind::TinySet)
///         .items(1000)
///         .fpr(0.01)
///         .build()?,
/// };
/// for batch in [["apple", "pear"], ["plum", "quince"]] {
///     filter.insert_batch(&batch);
///     lock.save(&filter)?;
/// }
/// drop(lock);
/// assert_eq!(AnyFilter::open(&path)?.len(), 4);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct FileLock {
    /// Held until drop.
    _lock: WriterLock,
    path: PathBuf,
    /// Limit on the time to wait for readers.
    wait: Duration,
    /// The file as loaded or saved.
    version: Option<Version>,
}

impl FileLock {
    /// Waits up to a minute for other writers of the file.
    ///
    /// # Errors
    ///
    /// Those of [`acquire_within`](Self::acquire_within).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let lock = tamis::FileLock::acquire(directory.path().join("new"))?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self> {
        Self::acquire_within(path, WAIT)
    }

    /// Waits at most `wait` for other writers of the file, which need not
    /// exist.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if another writer has the lock for longer;
    /// [`Error::Io`] if the directory cannot be written, or if the file
    /// system has no locks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Error, FileLock};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// let lock = FileLock::acquire(&path)?;
    /// let second = FileLock::acquire_within(&path, Duration::ZERO);
    /// assert!(matches!(second, Err(Error::Busy { .. })));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn acquire_within(
        path: impl AsRef<Path>,
        wait: Duration,
    ) -> Result<Self> {
        let path = resolve(path.as_ref())?;
        let _lock = WriterLock::acquire(&path, wait)?;
        Ok(Self { _lock, path, wait, version: None })
    }

    /// Reads and verifies the filter. An unverified filter that is changed
    /// and saved would give damaged bytes valid checksums.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], an error of the format, or that of
    /// [`verify`](AnyFilter::verify).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("no such file");
    /// assert!(tamis::FileLock::acquire(path)?.load().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn load(&mut self) -> Result<AnyFilter> {
        self.version = Version::of(&self.path);
        let file = Mapped::open(&self.path)?;
        let filter = AnyFilter::from_bytes(&file[..])?;
        filter.verify()?;
        filter.into_owned()
    }

    /// [`load`](Self::load) of a file that has a window.
    ///
    /// # Errors
    ///
    /// That of [`Window::open`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("no such file");
    /// assert!(tamis::FileLock::acquire(path)?.load_window().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn load_window(&mut self) -> Result<Window> {
        self.version = Version::of(&self.path);
        Window::open(&self.path)
    }

    /// Replaces the file, or creates it. A program that ignores locks may
    /// have replaced the file since the last [`load`](Self::load) or `save`;
    /// then nothing is written.
    ///
    /// # Errors
    ///
    /// Those of [`AnyFilter::save`], and [`Error::Replaced`].
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, FileLock};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// FileLock::acquire(&path)?.save(&filter.into())?;
    /// assert!(AnyFilter::open(&path)?.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn save(&mut self, filter: &AnyFilter) -> Result<()> {
        self.replace(|path| filter.replace(path, Overwrite::Locked))
    }

    /// [`save`](Self::save) of a window.
    ///
    /// # Errors
    ///
    /// Those of [`save`](Self::save).
    ///
    /// ```
    /// use tamis::{FileLock, TinySet, Window};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("seen.tamis");
    /// let mut lock = FileLock::acquire(&path)?;
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// seen.insert("apple");
    /// lock.save_window(&seen)?;
    /// assert!(lock.load_window()?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn save_window(&mut self, window: &Window) -> Result<()> {
        self.replace(|path| window.replace(path, Overwrite::Locked))
    }

    fn replace(
        &mut self,
        replace: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        if self.version.is_some() && self.version != Version::of(&self.path) {
            return Err(Error::Replaced);
        }
        replace(&self.path)?;
        self.version = Version::of(&self.path);
        Ok(())
    }
}

impl FileLock {
    /// Inserts keys into the file itself, without reading or writing the
    /// rest of it: the cost depends on the number of keys. Each key takes up
    /// to 4 KiB of memory per block that it changes, and 8 KiB of reading
    /// and writing.
    ///
    /// The change is atomic, even if the process is killed or the machine
    /// stops: it is first written to a journal at the end of the file.
    ///
    /// Waits for readers that have mapped the file, for as long as the lock
    /// was waited for: no reader sees a block change.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if a reader has the file open for longer,
    /// [`Error::Checksum`] if a part of the file that changes is damaged,
    /// [`Error::Unsupported`] for the compact form and for a balanced filter
    /// whose overflow list would grow, [`Error::Io`] if the file cannot be
    /// opened or the file system has no locks, [`Error::Journal`] if it
    /// cannot be written.
    ///
    /// ```
    /// use tamis::{AnyFilter, FileLock, TinySet};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// let builder = TinySet::builder().items(1_000_000).fpr(0.01);
    /// builder.build()?.save(&path)?;
    ///
    /// FileLock::acquire(&path)?.insert_batch_in_place(&["apple", "pear"])?;
    /// assert!(AnyFilter::open(&path)?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_batch_in_place<K: Key>(&mut self, keys: &[K]) -> Result<()> {
        in_place::insert(&self.path, self.wait, |hasher| {
            keys.iter().map(|key| hasher.hash(key)).collect()
        })?;
        Ok(())
    }

    /// [`insert_batch_in_place`](Self::insert_batch_in_place) by hash.
    ///
    /// # Errors
    ///
    /// Those of [`insert_batch_in_place`](Self::insert_batch_in_place).
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, FileLock};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// Bloom::builder().items(9).fpr(0.1).build()?.save(&path)?;
    /// let mut lock = FileLock::acquire(&path)?;
    /// lock.insert_hash_batch_in_place(&[1 << 60])?;
    /// assert!(AnyFilter::open(&path)?.contains_hash(1 << 60));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_hash_batch_in_place(
        &mut self,
        hashes: &[u64],
    ) -> Result<()> {
        // The version stays that of a filter loaded before, which lacks the
        // keys: `save` refuses it.
        in_place::insert(&self.path, self.wait, |_| Cow::Borrowed(hashes))?;
        Ok(())
    }

    /// Removes one occurrence of each key from the file itself, as
    /// [`insert_batch_in_place`](Self::insert_batch_in_place) inserts: at a
    /// cost that depends on the number of keys, all of them or none; the
    /// removal of the last key reads the whole file. Returns one result per
    /// key. Without keys it checks that the filter supports removal.
    ///
    /// # Errors
    ///
    /// Those of [`insert_batch_in_place`](Self::insert_batch_in_place), and
    /// [`Error::Unsupported`] for a filter that is not
    /// [`removable`](crate::Builder::removable).
    ///
    /// ```
    /// use tamis::{AnyFilter, FileLock, Removal, TinySet};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// let builder = TinySet::builder().items(1_000_000).fpr(0.01);
    /// builder.removable().build_from(["apple", "pear"])?.save(&path)?;
    ///
    /// let mut lock = FileLock::acquire(&path)?;
    /// let removals = lock.remove_batch_in_place(&["apple", "plum"])?;
    /// assert_eq!(removals, [Removal::Removed, Removal::Absent]);
    /// assert!(!AnyFilter::open(&path)?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove_batch_in_place<K: Key>(
        &mut self,
        keys: &[K],
    ) -> Result<Vec<Removal>> {
        in_place::remove(&self.path, self.wait, |hasher| {
            keys.iter().map(|key| hasher.hash(key)).collect()
        })
    }

    /// [`remove_batch_in_place`](Self::remove_batch_in_place) by hash.
    ///
    /// # Errors
    ///
    /// Those of [`remove_batch_in_place`](Self::remove_batch_in_place).
    ///
    /// ```
    /// use tamis::{FileLock, Removal, TinySet};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("keys.tamis");
    /// let builder = TinySet::builder().items(9).fpr(0.1).removable();
    /// builder.build()?.save(&path)?;
    /// let mut lock = FileLock::acquire(&path)?;
    /// lock.insert_hash_batch_in_place(&[1 << 60])?;
    /// let removals = lock.remove_hash_batch_in_place(&[1 << 60, 1 << 60])?;
    /// assert_eq!(removals, [Removal::Removed, Removal::Absent]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove_hash_batch_in_place(
        &mut self,
        hashes: &[u64],
    ) -> Result<Vec<Removal>> {
        in_place::remove(&self.path, self.wait, |_| Cow::Borrowed(hashes))
    }
}

/// A state of a file.
#[derive(Debug, PartialEq)]
struct Version {
    bytes: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    identity: (u64, u64),
}

impl Version {
    fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|found: Metadata| Self {
            bytes: found.len(),
            modified: found.modified().ok(),
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt as _;
                (found.dev(), found.ino())
            },
        })
    }
}

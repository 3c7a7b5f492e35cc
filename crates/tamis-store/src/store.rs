//! The handle of a store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::batch::Batch;
use crate::core::{Shared, lock};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::load::Loader;
use crate::open;
use crate::options::Options;
use crate::snapshot::{IntoIter, Snapshot};
use crate::stats::Stats;
use crate::verify::Verified;

/// A key-value store in a directory.
///
/// A handle is used by any number of threads: all methods take `&self`.
///
/// ```
/// use tamis_store::{Options, Store};
///
/// let dir = tempfile::tempdir()?;
/// let store = Store::create(dir.path(), &Options::new())?;
/// store.put("apple", "red")?;
/// assert_eq!(store.get("apple")?.as_deref(), Some(&b"red"[..]));
/// assert_eq!(store.get("pear")?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    /// Merges and syncs.
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Creates a store in `dir`, a directory that is created if needed.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`], [`Error::Locked`], [`Error::InvalidArgument`],
    /// [`Error::Io`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// let dir = tempfile::tempdir()?;
    /// let store = Store::create(dir.path().join("new"), &Options::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(dir: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let dir = dir.as_ref();
        std::fs::create_dir_all(dir)
            .map_err(|e| Error::io("create", dir.display().to_string(), e))?;
        Self::create_on(Arc::new(Files::new(dir)), options)
    }

    /// Opens the store in `dir` for reading and writing.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::Corrupt`],
    /// [`Error::UnsupportedVersion`], [`Error::Io`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// let dir = tempfile::tempdir()?;
    /// Store::create(dir.path(), &Options::new())?.put("apple", "red")?;
    /// let store = Store::open(dir.path(), &Options::new())?;
    /// assert!(store.contains("apple")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(dir: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Self::open_on(Arc::new(Files::new(dir)), options)
    }

    /// [`create`](Self::create) on another disk than a directory.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    ///
    /// ```
    /// # use tamis_store::{Files, Options, Store};
    /// # use std::sync::Arc;
    /// let dir = tempfile::tempdir()?;
    /// let disk = Arc::new(Files::new(dir.path()));
    /// let store = Store::create_on(disk, &Options::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_on(disk: Arc<dyn Disk>, options: &Options) -> Result<Self> {
        open::create(&*disk, options)?;
        Self::open_on(disk, options)
    }

    /// [`open`](Self::open) on another disk than a directory.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// ```
    /// # use tamis_store::{Files, Options, Store};
    /// # use std::sync::Arc;
    /// # let dir = tempfile::tempdir()?;
    /// # drop(Store::create(dir.path(), &Options::new())?);
    /// let disk = Arc::new(Files::new(dir.path()));
    /// let store = Store::open_on(disk, &Options::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_on(disk: Arc<dyn Disk>, options: &Options) -> Result<Self> {
        Self::start(open::open(disk, options)?)
    }

    /// Opens the store in `dir` for reading, while another process may write.
    /// The handle sees the writes that reached the system before.
    ///
    /// While it is open, the writer keeps the space of the data that it
    /// replaces.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), except [`Error::Locked`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// let dir = tempfile::tempdir()?;
    /// let writer = Store::create(dir.path(), &Options::new())?;
    /// writer.put("apple", "red")?;
    /// writer.flush()?;
    /// let reader = Store::open_read_only(dir.path(), &Options::new())?;
    /// assert!(reader.contains("apple")?);
    /// assert!(reader.put("pear", "green").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_read_only(
        dir: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Self> {
        Self::open_read_only_on(Arc::new(Files::new(dir)), options)
    }

    /// [`open_read_only`](Self::open_read_only) on another disk than a
    /// directory.
    ///
    /// # Errors
    ///
    /// As [`open_read_only`](Self::open_read_only).
    ///
    /// ```
    /// # use tamis_store::{Files, Options, Store};
    /// # use std::sync::Arc;
    /// # let dir = tempfile::tempdir()?;
    /// # drop(Store::create(dir.path(), &Options::new())?);
    /// let disk = Arc::new(Files::new(dir.path()));
    /// let store = Store::open_read_only_on(disk, &Options::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_read_only_on(
        disk: Arc<dyn Disk>,
        options: &Options,
    ) -> Result<Self> {
        Self::start(open::open_read_only(disk, options)?)
    }

    /// Makes all writes durable and closes the store. Dropping it does the
    /// same, without a report of errors.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// let dir = tempfile::tempdir()?;
    /// let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// store.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(self) -> Result<()> {
        self.flush()
    }

    /// A handle, with its thread if it needs one.
    fn start(shared: Shared) -> Result<Self> {
        let shared = Arc::new(shared);
        let wanted = shared.settings.background && shared.writer.is_some();
        let thread = match wanted {
            true => Some(shared.start()?),
            false => None,
        };
        Ok(Self { shared, thread })
    }

    /// The value of `key`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Corrupt`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put([1, 2], [3])?;
    /// assert_eq!(store.get([1, 2])?, Some(vec![3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let view = self.shared.view.load();
        self.shared.lookup(&view, key.as_ref(), u64::MAX)
    }

    /// The value of each key. Reads from the disk overlap, in threads of the
    /// store.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// let values = store.get_many(&["apple", "pear"])?;
    /// assert_eq!(values, [Some(b"red".to_vec()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.shared.lookup_many(keys)
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// assert!(!store.contains("apple")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Gives `key` a value. Does not read: a value it had is replaced.
    ///
    /// A reader may see the value before the call returns.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`], [`Error::ReadOnly`], [`Error::Poisoned`],
    /// [`Error::Io`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(key, value)?;
        self.write_batch(&batch)
    }

    /// Removes `key` and its value. Does not read: it may be absent.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// store.delete("apple")?;
    /// assert!(!store.contains("apple")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(key)?;
        self.write_batch(&batch)
    }

    /// Applies all writes of `batch`, or none. A snapshot and a crash see all
    /// or none of them.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    ///
    /// ```
    /// # use tamis_store::{Batch, Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// let mut batch = Batch::new();
    /// batch.put("apple", "red")?;
    /// batch.delete("pear")?;
    /// store.write_batch(&batch)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_batch(&self, batch: &Batch) -> Result<()> {
        self.shared.write(batch)
    }

    /// Loads many records at once, without the log and the write buffer: for a
    /// store that is empty, or that has less data than is to be loaded. The
    /// records are sorted in at most half of the memory for buffered writes
    /// and in a temporary file, and are seen when the loader is
    /// [finished](Loader::finish).
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`], [`Error::Poisoned`], [`Error::Ram`].
    ///
    /// ```
    /// use tamis_store::{Options, Store};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let store = Store::create(dir.path(), &Options::new())?;
    /// let mut loader = store.loader()?;
    /// loader.put("apple", "red")?;
    /// loader.put("apple", "green")?;
    /// loader.finish()?;
    /// assert_eq!(store.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn loader(&self) -> Result<Loader> {
        Loader::new(Arc::clone(&self.shared))
    }

    /// The state of the store now, for reading while writing goes on.
    ///
    /// # Errors
    ///
    /// None yet: the result leaves room for them.
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// let snapshot = store.snapshot()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot> {
        let shared = &self.shared;
        let writer = shared.writer.as_ref().map(lock);
        let limit = writer.as_ref().map_or(u64::MAX, |writer| writer.next - 1);
        let view = shared.view.load_full();
        Ok(Snapshot::new(Arc::clone(shared), view, limit))
    }

    /// Merges all writes before the call, joins small segments, and moves
    /// segments to free space before them, until at most 1 % of the data file
    /// is free, or a tenth where no segment fits the free space. Space that
    /// readers and snapshots use stays.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`], [`Error::Poisoned`], [`Error::Io`],
    /// [`Error::Corrupt`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// store.compact()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.shared.compact()
    }

    /// All keys and values of a snapshot that is taken now, in the order of a
    /// hash of the keys.
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// let records = store.iter()?.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(records, [(b"apple".to_vec(), b"red".to_vec())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self) -> Result<IntoIter> {
        Ok(self.snapshot()?.into_iter())
    }

    /// Memory, disk space, and counts of reads and writes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// let stats = store.stats()?;
    /// assert!(stats.ram.total() <= stats.ram.budget);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> Result<Stats> {
        self.shared.stats()
    }

    /// Reads all segments and checks every checksum, the order of all keys,
    /// the indexes and the large values.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] with the place of the first contradiction,
    /// [`Error::Io`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// store.compact()?;
    /// assert_eq!(store.verify()?.records, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<Verified> {
        self.shared.verify()
    }

    /// Makes all writes durable, whatever the durability.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Poisoned`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// store.flush()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.shared.sync_log(u64::MAX)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.work.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.readers.stop();
        // `flush` reports errors; the log has all durable writes.
        let _ = self.shared.sync_log(u64::MAX);
    }
}

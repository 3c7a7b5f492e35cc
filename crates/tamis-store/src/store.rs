//! The handle of a store.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::batch::{Batch, Kind, Ops};
use crate::disk::{Disk, Lock, LockKind, Mode};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::files::Files;
use crate::hash::KeyHash;
use crate::log;
use crate::manifest::{DATA, Manifest, SLOTS, SegmentEntry};
use crate::options::{Durability, FilterSize, Options};
use crate::snapshot::{Snapshot, Snapshots};
use crate::view::{Slot, View};

/// Name of the file whose lock the writer holds.
const WRITER_LOCK: &str = "lock";

/// Name of the data file before the store exists.
const NEW_DATA: &str = "data.new";

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
}

/// The state that handles, snapshots and threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    disk: Arc<dyn Disk>,
    hash: KeyHash,
    view: ArcSwap<View>,
    pub(crate) snapshots: Snapshots,
    durability: Durability,
    /// `None` if the store is open for reading.
    writer: Option<Mutex<Writer>>,
    /// Held during a sync of the log.
    syncing: Mutex<()>,
    /// Largest sequence number that is durable.
    durable: AtomicU64,
    /// Whether a sync failed.
    poisoned: AtomicBool,
    _lock: Option<Box<dyn Lock>>,
}

/// The state of writers.
#[derive(Debug)]
struct Writer {
    log: log::Writer,
    /// Sequence number of the next write.
    next: u64,
}

/// Waits for a mutex; a panic of a holder leaves the data consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        options.check()?;
        let held = lock_writer(&*disk)?;
        let names = disk.list().map_err(|e| Error::io("list", ".", e))?;
        if names.iter().any(|name| name == DATA) {
            return Err(Error::Exists);
        }
        // Remains of a creation that was interrupted.
        for name in names {
            if name == NEW_DATA || log::number(&name).is_some() {
                disk.remove(&name)
                    .map_err(|e| Error::io("remove", &name, e))?;
            }
        }
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|e| {
            let error = std::io::Error::other(e.to_string());
            Error::io("read", "the random generator", error)
        })?;
        let seed = crate::codec::u128_at(&random, 0);
        let manifest = Manifest {
            generation: 1,
            hash_seed: options.seed.unwrap_or(seed),
            log_seed: crate::codec::u64_at(&random, 16),
            bits_per_key: bits_per_key(options.filter)?,
            next_segment: 1,
            first_log: 1,
            first_sequence: 1,
            segments: vec![SegmentEntry {
                low: 0,
                depth: 0,
                id: 0,
                extent: Extent { start: 0, pages: 0 },
                data_pages: 0,
                index_len: 0,
                records: 0,
                merged: 0,
            }],
        };
        drop(log::Writer::create(&*disk, 1, manifest.log_seed, 1)?);
        let body = manifest.body();
        let pages = (body.len() as u64).div_ceil(PAGE);
        let extent = Extent { start: SLOTS, pages };
        let io = |e| Error::io("create", DATA, e);
        let data = disk.open(NEW_DATA, Mode::Create).map_err(io)?;
        crate::disk::write_all_at(&*data, &body, extent.offset())
            .map_err(io)?;
        manifest.write_slot(&*data, extent, &body)?;
        data.sync().map_err(io)?;
        disk.rename(NEW_DATA, DATA).map_err(io)?;
        disk.sync_dir().map_err(io)?;
        drop(held);
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
        options.check()?;
        let data = match disk.open(DATA, Mode::Write) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NotFound);
            }
            opened => opened.map_err(|e| Error::io("open", DATA, e))?,
        };
        let held = lock_writer(&*disk)?;
        let (manifest, _) = Manifest::read(&*data)?;
        let hash = KeyHash::new(manifest.hash_seed);
        let slots = manifest
            .segments
            .iter()
            .map(|segment| Arc::new(Slot::new(segment.low, segment.depth)))
            .collect();
        let view = View::new(slots);
        let mut next = manifest.first_sequence;
        let mut number = manifest.first_log;
        let names = disk.list().map_err(|e| Error::io("list", ".", e))?;
        let last = names.iter().filter_map(|name| log::number(name)).max();
        loop {
            let replayed = log::replay(
                &*disk,
                number,
                manifest.log_seed,
                next,
                |sequence, op| {
                    let position = hash.position(op.key);
                    let slot = view.slot(position);
                    slot.buffer_mut().insert(
                        position,
                        sequence,
                        (op.kind, op.key, op.value),
                        0,
                    );
                    Ok(())
                },
            )?;
            let name = log::name(number);
            let io = |e| Error::io("repair", &name, e);
            let file = disk.open(&name, Mode::Write).map_err(io)?;
            if replayed.end < replayed.len {
                file.set_len(replayed.end).map_err(io)?;
            }
            file.sync().map_err(io)?;
            next = replayed.next;
            if replayed.end == 0 {
                disk.remove(&name).map_err(io)?;
                break;
            }
            number += 1;
            if last.is_none_or(|last| number > last) {
                break;
            }
        }
        let log =
            log::Writer::create(&*disk, number, manifest.log_seed, next)?;
        Ok(Self {
            shared: Arc::new(Shared {
                disk,
                hash,
                view: ArcSwap::from_pointee(view),
                snapshots: Snapshots::default(),
                durability: options.durability,
                writer: Some(Mutex::new(Writer { log, next })),
                syncing: Mutex::new(()),
                durable: AtomicU64::new(next - 1),
                poisoned: AtomicBool::new(false),
                _lock: Some(held),
            }),
        })
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

    /// The value of each key.
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
        keys.iter().map(|key| self.get(key)).collect()
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
        // An error is reported by `flush`; the log has what was durable.
        let _ = self.shared.sync_log(u64::MAX);
    }
}

impl Shared {
    /// The value of `key` in `view`, as of sequence number `limit`.
    pub(crate) fn lookup(
        &self,
        view: &View,
        key: &[u8],
        limit: u64,
    ) -> Result<Option<Vec<u8>>> {
        let position = self.hash.position(key);
        let buffer = view.slot(position).buffer();
        Ok(buffer
            .get(position, key, limit)
            .filter(|entry| entry.kind == Kind::Put)
            .map(|entry| entry.value.to_vec()))
    }

    /// Appends a batch to the log and applies it.
    fn write(&self, batch: &Batch) -> Result<()> {
        let writer = self.writer.as_ref().ok_or(Error::ReadOnly)?;
        if batch.is_empty() {
            return Ok(());
        }
        let always = self.durability == Durability::Always;
        let last = {
            let mut writer = lock(writer);
            if self.poisoned.load(Ordering::Acquire) {
                return Err(Error::Poisoned);
            }
            let first = writer.next;
            let durable = self.durable.load(Ordering::Acquire);
            let count = batch.len() as u32;
            writer.log.append(first, count, durable, batch.bytes(), always)?;
            let view = self.view.load();
            let newest = self.snapshots.newest();
            for (op, sequence) in Ops::new(batch.bytes()).zip(first..) {
                let position = self.hash.position(op.key);
                view.slot(position).buffer_mut().insert(
                    position,
                    sequence,
                    (op.kind, op.key, op.value),
                    newest,
                );
            }
            writer.next = first + u64::from(count);
            writer.next - 1
        };
        match always {
            true => self.sync_log(last),
            false => Ok(()),
        }
    }

    /// Makes the log durable up to sequence number `wanted`, or up to the
    /// last write. The first caller syncs for all that wait.
    fn sync_log(&self, wanted: u64) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let _syncing = lock(&self.syncing);
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned);
        }
        if self.durable.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let ((file, name), last) = {
            let mut writer = lock(writer);
            writer.log.write_out()?;
            (writer.log.file(), writer.next - 1)
        };
        if let Err(error) = file.sync() {
            self.poisoned.store(true, Ordering::Release);
            return Err(Error::io("sync", name, error));
        }
        self.durable.store(last, Ordering::Release);
        Ok(())
    }
}

/// Takes the lock of the writer.
fn lock_writer(disk: &dyn Disk) -> Result<Box<dyn Lock>> {
    disk.lock(WRITER_LOCK, LockKind::Exclusive)
        .map_err(|e| Error::io("lock", WRITER_LOCK, e))?
        .ok_or(Error::Locked)
}

/// Bits per key of a filter with this size.
fn bits_per_key(size: FilterSize) -> Result<f64> {
    match size {
        FilterSize::BitsPerKey(bits) => Ok(bits),
        FilterSize::AbsentReads(share) => {
            let predicted = tamis::TinySet::builder()
                .items(1 << 15)
                .fpr(share)
                .predict()?;
            Ok(predicted.bits_per_key)
        }
    }
}

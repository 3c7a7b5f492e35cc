//! The state that handles, snapshots and the background thread share, with
//! lookups and writes.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tamis::{Builder, TinySet};

use crate::batch::{Batch, Kind, MAX_INLINE, Ops};
use crate::codec::checksum;
use crate::disk::{Disk, DiskFile, Lock, read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::hash::KeyHash;
use crate::log;
use crate::manifest::DATA;
use crate::many::Readers;
use crate::options::Durability;
use crate::page::Place;
use crate::ram::Ram;
use crate::runs::Known;
use crate::segment::Segment;
use crate::snapshot::Snapshots;
use crate::space::Space;
use crate::view::{Slot, View};

/// Locks are taken in this order: `merging`, `syncing`, `writer`, buffer of a
/// slot, `space`.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    /// The data file.
    pub(crate) data: Arc<dyn DiskFile>,
    /// The data file for lookups.
    lookups: Arc<dyn DiskFile>,
    pub(crate) hash: KeyHash,
    pub(crate) settings: Settings,
    /// Design of the segments' filters.
    pub(crate) filter: Builder<TinySet>,
    pub(crate) view: ArcSwap<View>,
    pub(crate) snapshots: Snapshots,
    pub(crate) ram: Ram,
    pub(crate) counters: Counters,
    /// `None` if the store is open for reading.
    pub(crate) writer: Option<Mutex<Writer>>,
    /// Held by the merge or the commit that runs.
    pub(crate) merging: Mutex<()>,
    pub(crate) space: Mutex<Space>,
    /// Held during a sync of the log.
    syncing: Mutex<()>,
    /// Largest sequence number that is durable.
    pub(crate) durable: AtomicU64,
    /// Whether a sync failed.
    pub(crate) poisoned: AtomicBool,
    /// Whether a slot's writes exceed a segment.
    pub(crate) full: AtomicBool,
    /// Whether a slot's writes exceeded [`Ram::slot_limit`] after a write;
    /// merges may have changed that since.
    pub(crate) overfull: AtomicBool,
    /// Whether the logs exceed their limit.
    long: AtomicBool,
    /// Pages of large values that buffered writes name or have replaced, and
    /// the number above which a merge is due: only a merge lets those be freed
    /// that were replaced.
    pub(crate) large_pages: AtomicU64,
    pub(crate) large_limit: AtomicU64,
    /// Error of the last merge in the background.
    pub(crate) failed: Mutex<Option<Error>>,
    /// Time of the last sync of the log.
    pub(crate) synced_at: Mutex<Instant>,
    /// Notified when the background thread has work, or is to stop.
    pub(crate) work: Signal,
    /// Notified when memory of the write buffer was freed.
    pub(crate) room: Signal,
    pub(crate) stopping: AtomicBool,
    pub(crate) readers: Readers,
    /// Number of the next loader.
    pub(crate) loaders: AtomicU64,
    pub(crate) _lock: Option<Box<dyn Lock>>,
}

/// What [`Shared`] is made of when a store is opened.
pub(crate) struct Parts {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) data: Arc<dyn DiskFile>,
    pub(crate) lookups: Arc<dyn DiskFile>,
    pub(crate) hash: KeyHash,
    pub(crate) settings: Settings,
    pub(crate) filter: Builder<TinySet>,
    pub(crate) view: View,
    pub(crate) ram: Ram,
    pub(crate) writer: Option<Writer>,
    pub(crate) space: Space,
    pub(crate) durable: u64,
    pub(crate) lock: Option<Box<dyn Lock>>,
    pub(crate) readers: Readers,
}

/// Settings of the store and of this handle.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) durability: Durability,
    pub(crate) background: bool,
    pub(crate) spill_eagerly: bool,
    pub(crate) hash_seed: u128,
    pub(crate) log_seed: u64,
    pub(crate) bits_per_key: f64,
    pub(crate) segment_bytes: u64,
}

/// The state of writers.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) log: log::Writer,
    /// Sequence number of the next write.
    pub(crate) next: u64,
    /// Log files that are needed: number, and first sequence number. The
    /// last one is `log`.
    pub(crate) logs: Vec<(u64, u64)>,
    /// Bytes of all log files but the last.
    pub(crate) older_bytes: u64,
    /// Identity of the next segment.
    pub(crate) next_segment: u64,
}

impl Writer {
    /// Bytes of all log files.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.older_bytes + self.log.len()
    }
}

/// Counts of reads and writes since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Blocks read by lookups.
    pub(crate) block_reads: AtomicU64,
    /// Bytes of these blocks beyond a page each.
    pub(crate) more_bytes: AtomicU64,
    /// Blocks read through a queue.
    pub(crate) queued_reads: AtomicU64,
    /// Blocks read that had no record of the key.
    pub(crate) absent_reads: AtomicU64,
    /// Large values read.
    pub(crate) large_reads: AtomicU64,
    /// Runs written.
    pub(crate) spills: AtomicU64,
    /// Merges.
    pub(crate) merges: AtomicU64,
    /// Bytes of segments written.
    pub(crate) segment_bytes: AtomicU64,
    /// Bytes written to logs.
    pub(crate) log_bytes: AtomicU64,
    /// Manifests written.
    pub(crate) commits: AtomicU64,
    /// Bytes of manifests written.
    pub(crate) commit_bytes: AtomicU64,
}

impl Counters {
    /// Adds to a counter.
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// A condition that threads wait for with a timeout.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    mutex: Mutex<()>,
    condition: Condvar,
}

impl Signal {
    /// Wakes all that wait.
    pub(crate) fn notify(&self) {
        drop(lock(&self.mutex));
        self.condition.notify_all();
    }

    /// Waits at most `timeout` unless `ready`.
    pub(crate) fn wait(&self, timeout: Duration, ready: impl Fn() -> bool) {
        let guard = lock(&self.mutex);
        let waited =
            self.condition.wait_timeout_while(guard, timeout, |()| !ready());
        drop(waited);
    }
}

/// Waits for a mutex; a panic of a holder leaves the data consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page in memory at an address that direct I/O accepts.
#[repr(C, align(4096))]
struct AlignedPage([u8; PAGE as usize]);

thread_local! {
    /// The page that the thread's last lookup read: clearing a new one costs
    /// 40 ns. Empty while a lookup uses it, because a disk may look up in
    /// another store.
    static SPARE: Cell<Option<Box<AlignedPage>>> = const { Cell::new(None) };
}

/// Where the value of a key is. `S` refers to a segment, `R` to a slot.
#[derive(Debug)]
pub(crate) enum Found<S, R> {
    /// In memory, or absent.
    Known(Option<Vec<u8>>),
    /// In the block of a segment, if anywhere.
    Block { segment: S, page: u32, pages: u32 },
    /// In the block of a run: the number of its write.
    Run { slot: R, at: u32 },
    /// In an extent of its own.
    Large(Place),
}

/// A place in a view.
pub(crate) type FoundIn<'v> = Found<&'v Arc<Segment>, &'v Arc<Slot>>;

/// A place for another thread.
pub(crate) type FoundFor = Found<Arc<Segment>, Arc<Slot>>;

impl FoundIn<'_> {
    /// The place for another thread.
    pub(crate) fn shared(self) -> FoundFor {
        match self {
            Self::Known(value) => Found::Known(value),
            Self::Block { segment, page, pages } => {
                Found::Block { segment: Arc::clone(segment), page, pages }
            }
            Self::Run { slot, at } => {
                Found::Run { slot: Arc::clone(slot), at }
            }
            Self::Large(place) => Found::Large(place),
        }
    }
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            disk: parts.disk,
            data: parts.data,
            lookups: parts.lookups,
            hash: parts.hash,
            settings: parts.settings,
            filter: parts.filter,
            view: ArcSwap::from_pointee(parts.view),
            snapshots: Snapshots::default(),
            ram: parts.ram,
            counters: Counters::default(),
            writer: parts.writer.map(Mutex::new),
            merging: Mutex::new(()),
            space: Mutex::new(parts.space),
            syncing: Mutex::new(()),
            durable: AtomicU64::new(parts.durable),
            poisoned: AtomicBool::new(false),
            full: AtomicBool::new(false),
            overfull: AtomicBool::new(false),
            long: AtomicBool::new(false),
            large_pages: AtomicU64::new(0),
            large_limit: AtomicU64::new(1024),
            failed: Mutex::new(None),
            synced_at: Mutex::new(Instant::now()),
            work: Signal::default(),
            room: Signal::default(),
            stopping: AtomicBool::new(false),
            readers: parts.readers,
            loaders: AtomicU64::new(1),
            _lock: parts.lock,
        }
    }

    /// Fails if a sync failed.
    pub(crate) fn check_poison(&self) -> Result<()> {
        match self.poisoned.load(Ordering::Acquire) {
            true => Err(Error::Poisoned),
            false => Ok(()),
        }
    }

    /// Syncs a file; a failure poisons the handle.
    pub(crate) fn sync(&self, file: &dyn DiskFile, name: &str) -> Result<()> {
        self.check_poison()?;
        file.sync().map_err(|error| {
            self.poisoned.store(true, Ordering::Release);
            Error::io("sync", name, error)
        })
    }

    /// The value of `key` in `view`, as of sequence number `limit`.
    pub(crate) fn lookup(
        &self,
        view: &View,
        key: &[u8],
        limit: u64,
    ) -> Result<Option<Vec<u8>>> {
        match self.find(view, key, limit)? {
            Found::Known(value) => Ok(value),
            found => self.fetch(key, &found),
        }
    }

    /// Finds the place of a value without reading.
    pub(crate) fn find<'v>(
        &self,
        view: &'v View,
        key: &[u8],
        limit: u64,
    ) -> Result<FoundIn<'v>> {
        let position = self.hash.position(key);
        let slot = view.slot(position);
        if slot.ram() > 0 {
            let buffer = slot.buffer();
            if let Some(entry) = buffer.get(position, key, limit) {
                return Ok(match entry.kind {
                    Kind::Put => Found::Known(Some(entry.value.to_vec())),
                    Kind::Delete => Found::Known(None),
                    Kind::Large => Found::Large(
                        Place::decode(entry.value)
                            .ok_or_else(|| self.bad_place())?,
                    ),
                });
            }
        }
        if let Some(runs) = &slot.runs {
            if let Some(at) = runs.find(position) {
                match runs.look(at, position, key) {
                    Known::Nothing => {}
                    Known::Deleted => return Ok(Found::Known(None)),
                    Known::Block(at) => {
                        return Ok(Found::Run { slot, at });
                    }
                }
            }
        }
        let Some(segment) = &slot.segment else {
            return Ok(Found::Known(None));
        };
        Ok(match segment.locate(position) {
            None => Found::Known(None),
            Some((page, pages)) => Found::Block { segment, page, pages },
        })
    }

    /// Reads the value of `key` from its place.
    pub(crate) fn fetch<S: AsRef<Segment>, R: AsRef<Slot>>(
        &self,
        key: &[u8],
        found: &Found<S, R>,
    ) -> Result<Option<Vec<u8>>> {
        let (segment, page, pages) = match found {
            Found::Known(value) => return Ok(value.clone()),
            Found::Large(place) => return self.read_large(*place).map(Some),
            Found::Run { slot, at } => {
                return self.fetch_run(key, slot.as_ref(), *at);
            }
            Found::Block { segment, page, pages } => {
                (segment.as_ref(), *page, *pages)
            }
        };
        self.fetch_block(key, segment, (page, pages))
    }

    /// Reads the value of `key` from a block of a segment, if it is there.
    pub(crate) fn fetch_block(
        &self,
        key: &[u8],
        segment: &Segment,
        (page, pages): (u32, u32),
    ) -> Result<Option<Vec<u8>>> {
        self.with_block(pages, |bytes| {
            self.read_block(bytes, segment.offset(page))?;
            self.value_in(key, segment, page, bytes)
        })
    }

    /// Calls `read` with memory for a block, at an address that direct I/O
    /// accepts.
    pub(crate) fn with_block<T>(
        &self,
        pages: u32,
        read: impl FnOnce(&mut [u8]) -> Result<T>,
    ) -> Result<T> {
        if pages == 1 {
            let spare = SPARE.try_with(Cell::take).ok().flatten();
            let mut page = spare
                .unwrap_or_else(|| Box::new(AlignedPage([0; PAGE as usize])));
            let result = read(&mut page.0);
            let _ = SPARE.try_with(|spare| spare.set(Some(page)));
            return result;
        }
        let len = pages as usize * PAGE as usize;
        let mut bytes = vec![0; len + PAGE as usize];
        let skip = bytes.as_ptr().align_offset(PAGE as usize);
        read(&mut bytes[skip..skip + len])
    }

    /// Reads a block with one read.
    pub(crate) fn read_block(
        &self,
        bytes: &mut [u8],
        offset: u64,
    ) -> Result<()> {
        let read = self.lookups.read_at(bytes, offset);
        self.finish_read(bytes, offset, read)
    }

    /// Counts the read of a block with this result, and reads the rest.
    pub(crate) fn finish_read(
        &self,
        bytes: &mut [u8],
        offset: u64,
        read: std::io::Result<usize>,
    ) -> Result<()> {
        Counters::add(&self.counters.block_reads, 1);
        if bytes.len() as u64 > PAGE {
            let more = bytes.len() as u64 - PAGE;
            Counters::add(&self.counters.more_bytes, more);
        }
        let read = match read {
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(e) => return Err(Error::io("read", DATA, e)),
        };
        // A direct read cannot go on from an offset inside a page.
        read_exact_at(&*self.data, &mut bytes[read..], offset + read as u64)
            .map_err(|e| Error::io("read", DATA, e))
    }

    /// The value of `key` in a block that was read.
    pub(crate) fn value_in(
        &self,
        key: &[u8],
        segment: &Segment,
        page: u32,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let block = segment.parse(bytes, page)?;
        let corrupt = |why| segment.corrupt(page, why);
        let Some(record) = block.find(key).map_err(corrupt)? else {
            Counters::add(&self.counters.absent_reads, 1);
            return Ok(None);
        };
        if !record.large {
            return Ok(Some(record.value.to_vec()));
        }
        let place = Place::decode(record.value);
        let place = place.ok_or_else(|| corrupt(BAD_PLACE))?;
        self.read_large(place).map(Some)
    }

    /// A record of a place that cannot be one.
    #[cold]
    pub(crate) fn bad_place(&self) -> Error {
        Error::corrupt(DATA, 0, BAD_PLACE)
    }

    /// Reads a value from its extent.
    pub(crate) fn read_large(&self, place: Place) -> Result<Vec<u8>> {
        Counters::add(&self.counters.large_reads, 1);
        let offset = place.extent.offset();
        let io = |e| Error::io("read", DATA, e);
        let len = u64::from(place.len);
        let end = self.data.len().map_err(io)?;
        if offset.checked_add(len).is_none_or(|last| last > end) {
            return Err(Error::corrupt(DATA, offset, BAD_PLACE));
        }
        let mut value = vec![0; place.len as usize];
        read_exact_at(&*self.data, &mut value, offset).map_err(io)?;
        if checksum(&value, place.extent.start) != place.sum {
            let why = "the checksum of a large value is wrong";
            return Err(Error::corrupt(DATA, offset, why));
        }
        Ok(value)
    }

    /// Appends a batch to the log and applies it.
    pub(crate) fn write(&self, batch: &Batch) -> Result<()> {
        let writer = self.writer.as_ref().ok_or(Error::ReadOnly)?;
        if batch.is_empty() {
            return Ok(());
        }
        let large = batch.ops().any(|op| op.value.len() > MAX_INLINE);
        let mut taken = Vec::new();
        let rewritten;
        let batch = match large {
            false => batch,
            true => {
                self.check_poison()?;
                let moved = self.move_large(batch, &mut taken);
                rewritten = moved.inspect_err(|_| self.give_back(&taken))?;
                &rewritten
            }
        };
        let always = self.settings.durability == Durability::Always;
        let last = self.apply_with_room(writer, batch, always, &taken)?;
        if always {
            self.sync_log(last)?;
        }
        self.after_write()
    }

    /// [`apply`](Self::apply) once the buffers have room for the batch, whose
    /// large values are in the extents `taken`.
    fn apply_with_room(
        &self,
        writer: &Mutex<Writer>,
        batch: &Batch,
        always: bool,
        taken: &[Extent],
    ) -> Result<u64> {
        let needed = batch_ram(batch.bytes().len() as u64, batch.len() as u64)
            .inspect_err(|_| self.give_back(taken))?;
        loop {
            {
                let mut writer = lock(writer);
                if self.has_room(needed) {
                    self.overfull.store(false, Ordering::Relaxed);
                    let first = writer.next;
                    let applied = self.apply(&mut writer, batch, always);
                    return applied.inspect_err(|_| {
                        lock(&self.space).doubt(first, taken);
                    });
                }
            }
            self.make_room(needed).inspect_err(|_| self.give_back(taken))?;
        }
    }

    /// Writes values longer than [`MAX_INLINE`] to extents, and returns the
    /// batch with their places. They are durable before the log names them.
    fn move_large(
        &self,
        batch: &Batch,
        taken: &mut Vec<Extent>,
    ) -> Result<Batch> {
        let mut moved = Batch::new();
        for op in batch.ops() {
            if op.value.len() <= MAX_INLINE {
                moved.push(op.kind, op.key, op.value)?;
                continue;
            }
            let place = self.write_large(op.value)?;
            taken.push(place.extent);
            let place = place.encode();
            moved.push(Kind::Large, op.key, &place)?;
        }
        self.sync(&*self.data, DATA)?;
        Ok(moved)
    }

    /// Writes a value to an extent of its own, which is released after an
    /// error.
    pub(crate) fn write_large(&self, value: &[u8]) -> Result<Place> {
        let pages = (value.len() as u64).div_ceil(PAGE);
        let extent = lock(&self.space).extents.allocate(pages);
        // Whole pages, so that the file has all of the extent.
        let rest = pages * PAGE - value.len() as u64;
        let offset = extent.offset() + value.len() as u64;
        write_all_at(&*self.data, value, extent.offset())
            .and_then(|()| {
                let zeros = [0; PAGE as usize];
                write_all_at(&*self.data, &zeros[..rest as usize], offset)
            })
            .map_err(|e| {
                self.give_back(&[extent]);
                Error::io("write", DATA, e)
            })?;
        Ok(Place::of(extent, value))
    }

    /// Releases extents of a write that failed before it was in the log.
    pub(crate) fn give_back(&self, taken: &[Extent]) {
        let mut space = lock(&self.space);
        for &extent in taken {
            space.extents.release(extent);
        }
    }

    /// Appends a batch to the log and adds it to the buffers. Returns the
    /// last sequence number.
    fn apply(
        &self,
        writer: &mut Writer,
        batch: &Batch,
        always: bool,
    ) -> Result<u64> {
        self.check_poison()?;
        let first = writer.next;
        let durable = self.durable.load(Ordering::Acquire);
        let count = batch.len() as u32;
        let before = writer.log.len();
        writer.log.append(first, count, durable, batch.bytes(), always)?;
        let written = writer.log.len() - before;
        Counters::add(&self.counters.log_bytes, written);
        let view = self.view.load();
        let newest = self.snapshots.newest();
        for (op, sequence) in Ops::new(batch.bytes()).zip(first..) {
            let position = self.hash.position(op.key);
            let write = (op.kind, op.key, op.value);
            let slot = view.slot(position);
            slot.insert(position, sequence, write, newest);
            if op.kind == Kind::Large {
                let place = Place::decode(op.value);
                let pages = place.map_or(0, |place| place.extent.pages);
                self.large_pages.fetch_add(pages, Ordering::Relaxed);
            }
            if slot.ram() > self.ram.segment_bytes() {
                self.full.store(true, Ordering::Relaxed);
                if slot.ram() > self.ram.slot_limit() {
                    self.overfull.store(true, Ordering::Relaxed);
                }
            }
        }
        writer.next = first + u64::from(count);
        // The log that is full stays in use; the next write tries again.
        let _ = self.rotate_log(writer);
        self.note_log_length(writer);
        Ok(first + u64::from(count) - 1)
    }

    /// Makes the log durable up to sequence number `wanted`, or up to the
    /// last write. The first caller syncs for all that wait.
    pub(crate) fn sync_log(&self, wanted: u64) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let _syncing = lock(&self.syncing);
        self.check_poison()?;
        if self.durable.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let ((file, name), last) = {
            let mut writer = lock(writer);
            writer.log.write_out()?;
            (writer.log.file(), writer.next - 1)
        };
        if self.durable.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        self.sync(&*file, &name)?;
        self.set_durable(last);
        *lock(&self.synced_at) = Instant::now();
        Ok(())
    }

    /// The log is durable up to sequence number `last`.
    fn set_durable(&self, last: u64) {
        self.durable.fetch_max(last, Ordering::AcqRel);
        lock(&self.space).settle(last);
    }

    /// Keeps whether the logs exceed their limit.
    pub(crate) fn note_log_length(&self, writer: &Writer) {
        let long = writer.log_bytes() > self.ram.log_bytes();
        self.long.store(long && writer.logs.len() > 1, Ordering::Relaxed);
    }

    /// Whether the logs exceed their limit.
    pub(crate) fn is_log_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// Replaces the log file by a new one if it is long. The caller holds
    /// the writer.
    pub(crate) fn rotate_log(&self, writer: &mut Writer) -> Result<()> {
        if writer.log.len() < self.ram.log_file_bytes() {
            return Ok(());
        }
        writer.log.write_out()?;
        let (file, name) = writer.log.file();
        // A later file proves that this one is complete.
        self.sync(&*file, &name)?;
        self.set_durable(writer.next - 1);
        let number = writer.log.number() + 1;
        let log = log::Writer::create(
            &*self.disk,
            number,
            self.settings.log_seed,
            writer.next,
        )
        .inspect_err(|error| {
            // The file may be durable, and would contradict later frames.
            if matches!(error, Error::Io { operation: log::SYNC, .. }) {
                self.poisoned.store(true, Ordering::Release);
            }
        })?;
        writer.older_bytes += writer.log.len();
        writer.log = log;
        writer.logs.push((number, writer.next));
        Ok(())
    }
}

/// Memory of a batch in the buffers: `count` writes in `bytes` encoded bytes.
fn batch_ram(bytes: u64, count: u64) -> Result<u64> {
    let len = bytes + bytes / 4 + count * ENTRY_RAM;
    let (what, max) = ("batch", MAX_BATCH);
    match len > max {
        true => Err(Error::TooLong { what, len, max }),
        false => Ok(len),
    }
}

/// Most bytes of a batch in memory: offsets in a buffer have 32 bits.
pub(crate) const MAX_BATCH: u64 = 1 << 30;

/// Memory of a buffered write besides its key and value: the header of its
/// entry, its share of a table, and of the step in which an arena grows.
const ENTRY_RAM: u64 = 64;

/// A place that cannot be one.
const BAD_PLACE: &str = "the place of a large value is not in the file";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_gigabytes_are_refused() {
        assert_eq!(batch_ram(800, 10).unwrap(), 1640);
        assert!(batch_ram(858_993_459, 0).is_ok());
        for (bytes, count) in
            [(858_993_462, 0), (0, (1 << 24) + 1), (u64::from(u32::MAX), 1)]
        {
            let refused = batch_ram(bytes, count);
            assert!(matches!(refused, Err(Error::TooLong { .. })));
        }
    }
}

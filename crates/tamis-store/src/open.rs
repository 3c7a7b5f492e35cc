//! Creation, opening and recovery.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tamis::TinySet;

use crate::batch::Kind;
use crate::codec::{u64_at, u128_at};
use crate::core::{Parts, Settings, Shared, Writer, lock};
use crate::disk::{Disk, DiskFile, Lock, LockKind, Mode, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, Extents, PAGE};
use crate::hash::KeyHash;
use crate::load;
use crate::log;
use crate::manifest::{DATA, Manifest, SLOTS, SegmentEntry};
use crate::many::Readers;
use crate::options::{FilterSize, Options, ReadMode};
use crate::page::Place;
use crate::ram::Ram;
use crate::runs::Runs;
use crate::segment::Segment;
use crate::space::{READERS_LOCK, Space};
use crate::view::{Slot, View};

/// Name of the file whose lock the writer holds.
const WRITER_LOCK: &str = "lock";

/// Name of the data file before the store exists.
const NEW_DATA: &str = "data.new";

/// Attempts of a reader to open a store that a writer changes meanwhile.
const ATTEMPTS: u32 = 20;

/// Most bytes of buffered writes of a slot in a handle that cannot merge
/// them: offsets in a buffer have 32 bits.
const MAX_UNMERGED: u64 = 3 << 30;

/// Fails if a slot has more than [`MAX_UNMERGED`] bytes of buffered writes.
fn check_unmerged(len: u64) -> Result<()> {
    let (what, max) = ("log of a segment", MAX_UNMERGED);
    match len > max {
        true => Err(Error::TooLong { what, len, max }),
        false => Ok(()),
    }
}

/// Creates a store, which is durable after [`open`].
pub(crate) fn create(disk: &dyn Disk, options: &Options) -> Result<()> {
    options.check()?;
    let _lock = lock_writer(disk)?;
    let names = disk.list().map_err(|e| Error::io("list", ".", e))?;
    if names.iter().any(|name| name == DATA) {
        return Err(Error::Exists);
    }
    // Remains of a creation that was interrupted.
    for name in names {
        if name == NEW_DATA || log::number(&name).is_some() {
            disk.remove(&name).map_err(|e| Error::io("remove", &name, e))?;
        }
    }
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(|e| {
        let error = std::io::Error::other(e.to_string());
        Error::io("read", "the random generator", error)
    })?;
    let manifest = Manifest {
        generation: 1,
        hash_seed: options.seed.unwrap_or(u128_at(&random, 0)),
        log_seed: match options.seed {
            Some(seed) => seed as u64,
            None => u64_at(&random, 16),
        },
        bits_per_key: bits_per_key(options.filter)?,
        segment_bytes: options.segment_bytes,
        next_segment: 1,
        first_log: 1,
        first_sequence: 1,
        segments: vec![SegmentEntry::default()],
        runs: Vec::new(),
    };
    drop(log::Writer::create(disk, 1, manifest.log_seed, 1)?);
    let mut body = manifest.body();
    let len = body.len();
    body.resize(len.next_multiple_of(PAGE as usize), 0);
    let extent = Extent { start: SLOTS, pages: body.len() as u64 / PAGE };
    let io = |e| Error::io("create", DATA, e);
    let data = disk.open(NEW_DATA, Mode::Create).map_err(io)?;
    write_all_at(&*data, &body, extent.offset()).map_err(io)?;
    manifest.write_slot(&*data, extent, &body[..len])?;
    data.sync().map_err(io)?;
    // The directory is synced when the store is opened, with its second log.
    disk.rename(NEW_DATA, DATA).map_err(io)
}

/// Opens a store for reading and writing.
pub(crate) fn open(disk: Arc<dyn Disk>, options: &Options) -> Result<Shared> {
    options.check()?;
    let data = open_data(&*disk, Mode::Write)?;
    let lock = lock_writer(&*disk)?;
    load(disk, data, options, Some(lock), true)
}

/// Opens a store for reading.
pub(crate) fn open_read_only(
    disk: Arc<dyn Disk>,
    options: &Options,
) -> Result<Shared> {
    options.check()?;
    let data = open_data(&*disk, Mode::Read)?;
    for _ in 1..ATTEMPTS {
        match read(Arc::clone(&disk), Arc::clone(&data), options) {
            // A slot or a log may have been read while it was written.
            Err(Error::Locked | Error::Corrupt { .. }) => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            loaded => return loaded,
        }
    }
    read(disk, data, options)
}

/// One attempt of [`open_read_only`].
fn read(
    disk: Arc<dyn Disk>,
    data: Arc<dyn DiskFile>,
    options: &Options,
) -> Result<Shared> {
    let lock = disk
        .lock(READERS_LOCK, LockKind::Shared)
        .map_err(|e| Error::io("lock", READERS_LOCK, e))?
        // The writer holds the lock for an instant, to find readers.
        .ok_or(Error::Locked)?;
    load(disk, data, options, Some(lock), false)
}

/// Opens the data file.
fn open_data(disk: &dyn Disk, mode: Mode) -> Result<Arc<dyn DiskFile>> {
    disk.open(DATA, mode).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound,
        _ => Error::io("open", DATA, e),
    })
}

/// Takes the lock of the writer.
fn lock_writer(disk: &dyn Disk) -> Result<Box<dyn Lock>> {
    disk.lock(WRITER_LOCK, LockKind::Exclusive)
        .map_err(|e| Error::io("lock", WRITER_LOCK, e))?
        .ok_or(Error::Locked)
}

/// Bits per key of a filter with this size.
pub(crate) fn bits_per_key(size: FilterSize) -> Result<f64> {
    match size {
        FilterSize::BitsPerKey(bits) => Ok(bits),
        FilterSize::AbsentReads(share) => {
            Ok(TinySet::builder().fpr(share).predict()?.bits_per_key)
        }
    }
}

/// Reads the manifest, the indexes and the logs. With `write`, the end of
/// the log is repaired, and a new log file begins.
fn load(
    disk: Arc<dyn Disk>,
    data: Arc<dyn DiskFile>,
    options: &Options,
    lock: Option<Box<dyn Lock>>,
    write: bool,
) -> Result<Shared> {
    let (manifest, body) = Manifest::read(&*data, options.ram)?;
    if write {
        // A writer that was killed may have left the manifest and the names
        // of logs in the page cache alone. Logs and extents are freed because
        // of the manifest, and later logs continue these.
        data.sync().map_err(|e| Error::io("sync", DATA, e))?;
        disk.sync_dir().map_err(|e| Error::io("sync", ".", e))?;
    }
    let hash = KeyHash::new(manifest.hash_seed);
    let ram = Ram::new(options, manifest.segment_bytes);
    let mut used = vec![body];
    let mut slots = Vec::with_capacity(manifest.segments.len());
    let mut runs = &manifest.runs[..];
    for &entry in &manifest.segments {
        let segment = match entry.data_pages {
            0 => None,
            _ => {
                // Before it is read: a changed length, or a budget that is
                // too small, must not take the memory.
                let len = u64::from(entry.index_len).saturating_sub(PAGE);
                ram.check(len)?;
                Some(Arc::new(Segment::read(&*data, entry, &ram.index)?))
            }
        };
        if let Some(segment) = &segment {
            used.push(entry.extent);
            used.extend_from_slice(segment.larges());
        }
        let range = (entry.low, entry.depth);
        let own = runs.iter().take_while(|run| run.low == entry.low).count();
        let (own, others) = runs.split_at(own);
        runs = others;
        let len: u64 = own.iter().map(|run| u64::from(run.index_len)).sum();
        ram.check(len)?;
        let mut slot = Slot::new(range, entry.merged, segment, &ram.buffers);
        if let Some(own) = Runs::read(&*data, own, hash)? {
            used.extend(own.extents());
            for run in own.iter() {
                used.extend_from_slice(run.larges());
            }
            slot = slot.with_runs(own);
        }
        slots.push(Arc::new(slot));
    }
    let view = View::new(slots);
    ram.directory.store(view.ram(), Ordering::Relaxed);
    let logs = scan(&*disk, &manifest, hash, &view, write)?;
    used.extend_from_slice(&logs.larges);
    let extents = Extents::new(SLOTS, used).ok_or_else(|| {
        Error::corrupt(DATA, body.offset(), "two extents overlap")
    })?;
    let writer = match write {
        false => None,
        true => {
            let number = logs.next_number;
            let seed = manifest.log_seed;
            let log = log::Writer::create(&*disk, number, seed, logs.next)?;
            let mut kept = logs.kept.clone();
            kept.push((number, logs.next));
            Some(Writer {
                log,
                next: manifest.first_sequence,
                logs: kept,
                older_bytes: logs.bytes,
                next_segment: manifest.next_segment,
            })
        }
    };
    let mut space = Space::new(extents, manifest.generation, body);
    if write {
        let unread = disk
            .lock(READERS_LOCK, LockKind::Exclusive)
            .map_err(|e| Error::io("lock", READERS_LOCK, e))?;
        if unread.is_none() {
            let len = data.len().map_err(|e| Error::io("measure", DATA, e))?;
            space.hold_free(len.div_ceil(PAGE));
        }
    }
    // A file of its own: merges and iterators read ahead, lookups do not.
    let mode = match options.read_mode {
        ReadMode::Buffered => Mode::ReadRandom,
        ReadMode::Direct => Mode::ReadDirect,
        ReadMode::Mapped => Mode::ReadMapped,
    };
    let lookups = open_data(&*disk, mode)?;
    let readers = Readers::new(options, &*lookups);
    ram.queue.store(readers.ram(), Ordering::Relaxed);
    let shared = Shared::new(Parts {
        disk,
        data,
        lookups,
        hash,
        settings: Settings {
            durability: options.durability,
            background: options.background,
            spill_eagerly: options.spill_eagerly,
            hash_seed: manifest.hash_seed,
            log_seed: manifest.log_seed,
            bits_per_key: manifest.bits_per_key,
            segment_bytes: manifest.segment_bytes,
        },
        filter: TinySet::builder()
            .bits_per_key(manifest.bits_per_key)
            .resolve()?,
        view,
        ram,
        writer,
        space,
        durable: logs.next - 1,
        lock,
        readers,
    });
    let ends = logs.kept.iter().map(|&(_, first)| first).skip(1);
    for (&(number, first), end) in
        logs.kept.iter().zip(ends.chain([logs.next]))
    {
        // A commit during the replay may have removed a log without writes.
        if first < end {
            shared.replay(number, first)?;
        }
    }
    shared.ram.check(0)?;
    Ok(shared)
}

impl Shared {
    /// Adds the writes of a log to the slots that do not have them. Merges
    /// where the buffers have no room: a log may have more writes than they
    /// hold, because a commit follows several merges.
    fn replay(&self, number: u64, first: u64) -> Result<()> {
        let seed = self.settings.log_seed;
        log::replay(&*self.disk, number, seed, first, |sequence, op| {
            let position = self.hash.position(op.key);
            let view = self.view.load();
            let slot = view.slot(position);
            if sequence > slot.merged {
                let write = (op.kind, op.key, op.value);
                slot.insert(position, sequence, write, 0);
            }
            let len = slot.ram();
            let overfull = len > self.ram.slot_limit();
            self.overfull.fetch_or(overfull, Ordering::Relaxed);
            drop(view);
            let Some(writer) = &self.writer else {
                check_unmerged(len)?;
                return self.ram.check(0);
            };
            lock(writer).next = sequence + 1;
            while !self.has_room(0) {
                let _merging = lock(&self.merging);
                if !self.relieve()? {
                    break;
                }
                self.commit_if_due()?;
            }
            self.overfull.store(false, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(())
    }
}

/// The logs of a store.
struct Logs {
    /// Sequence number of the next write.
    next: u64,
    /// Number of the next file.
    next_number: u64,
    /// Number and first sequence number of each file.
    kept: Vec<(u64, u64)>,
    /// Length of these files.
    bytes: u64,
    /// Extents of large values that no segment has. None of them was freed:
    /// that needs a manifest in which the write is merged.
    larges: Vec<Extent>,
}

/// Checks the logs and finds their end. With `repair`, cuts a torn end and
/// makes the rest durable.
fn scan(
    disk: &dyn Disk,
    manifest: &Manifest,
    hash: KeyHash,
    view: &View,
    repair: bool,
) -> Result<Logs> {
    let names = disk.list().map_err(|e| Error::io("list", ".", e))?;
    let numbers = names.iter().filter_map(|name| log::number(name));
    let last = numbers.max().unwrap_or(0);
    let mut logs = Logs {
        next: manifest.first_sequence,
        next_number: manifest.first_log,
        kept: Vec::new(),
        bytes: 0,
        larges: Vec::new(),
    };
    while logs.next_number <= last.max(manifest.first_log) {
        let number = logs.next_number;
        let first = logs.next;
        let seed = manifest.log_seed;
        let larges = &mut logs.larges;
        let replayed =
            log::replay(disk, number, seed, first, |sequence, op| {
                let position = hash.position(op.key);
                let slot = view.slot(position);
                if op.kind == Kind::Large && sequence > slot.merged {
                    let place = Place::decode(op.value).ok_or_else(|| {
                        let why = "the place of a large value is bad";
                        Error::corrupt(log::name(number), 0, why)
                    })?;
                    larges.push(place.extent);
                }
                Ok(())
            })?;
        let name = log::name(number);
        let io = |e| Error::io("repair", &name, e);
        if replayed.end == 0 {
            // A crash came before the header was durable.
            if number < last || number == manifest.first_log {
                let why = "the header of a log is damaged";
                return Err(Error::corrupt(name, 0, why));
            }
            if repair {
                disk.remove(&name).map_err(io)?;
            }
            break;
        }
        if repair {
            let file = disk.open(&name, Mode::Write).map_err(io)?;
            if replayed.end < replayed.len {
                file.set_len(replayed.end).map_err(io)?;
            }
            // The next file continues this one: it must not lose its end.
            file.sync().map_err(io)?;
        }
        logs.next = replayed.next;
        logs.kept.push((number, first));
        logs.bytes += replayed.end;
        logs.next_number += 1;
    }
    // A commit follows the sync of the log.
    let merged = manifest.segments.iter().map(|entry| entry.merged).max();
    if merged >= Some(logs.next) {
        let name = log::name(logs.next_number - 1);
        let why = "a durable frame of the log is damaged";
        return Err(Error::corrupt(name, 0, why));
    }
    if repair {
        for name in names {
            let old = log::number(&name)
                .is_some_and(|number| number < manifest.first_log);
            if old || load::is_temporary(&name) {
                disk.remove(&name)
                    .map_err(|e| Error::io("remove", &name, e))?;
            }
        }
    }
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::MAX_INLINE;
    use crate::options::MAX_KEY;

    #[test]
    fn buffers_that_cannot_be_merged_have_offsets_of_32_bits() {
        assert!(check_unmerged(MAX_UNMERGED).is_ok());
        let refused = check_unmerged(MAX_UNMERGED + 1);
        assert!(matches!(refused, Err(Error::TooLong { .. })));
        // One write more, and its step, still have offsets.
        let write = (MAX_KEY + MAX_INLINE + (128 << 10)) as u64;
        assert!(MAX_UNMERGED + write < u64::from(u32::MAX));
    }
}

//! Bulk loading: many records become segments without the log and the buffers.
//!
//! Records are collected in memory. When it is full they are sorted by
//! position and written to a temporary file, as a *chunk*: a *piece* for each
//! value of the upper bits of the positions, then a table of the pieces. At
//! the end the pieces of a part of all positions are read from every chunk,
//! sorted, and merged with the slots of these positions. One commit makes all
//! new segments the store.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use xxhash_rust::xxh3::Xxh3;

use crate::batch::MAX_INLINE;
use crate::codec::{checksum, u32_at, u64_at};
use crate::core::{Counters, Shared, lock};
use crate::disk::{Disk, DiskFile, Mode, read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::merge::{Build, Input, Merged, Step};
use crate::options::{MAX_KEY, MAX_VALUE};
use crate::page::{Block, Place, Record};
use crate::segment::{CHUNK, SegmentWriter};
use crate::space::LOAD_SLACK;
use crate::view::{Slot, has};

/// Bytes of records for which a chunk has a piece of its own.
const PIECE: u64 = 1 << 10;

/// Length of a piece in a table: length, number of records, checksum.
const ENTRY: usize = 16;

/// The longest record besides its value of [`MAX_INLINE`] bytes, and rounding.
const SLACK: u64 = 192 << 10;

/// Memory of a record besides its bytes: its place in an order.
const ORDER: u64 = 16;

/// Fewest bytes for records: with less, one long record could fill a part.
const LEAST: u64 = 512 << 10;

/// Most memory of a loader: offsets have 32 bits.
const MAX_MEMORY: u64 = 2 << 30;

/// Bytes of an index, a directory and a slot besides filters and fences.
const PER_SEGMENT: u64 = 1024;

/// Name of the temporary file of loader `number`.
fn name(number: u64) -> String {
    format!("load-{number:016x}")
}

/// Whether this is the name of a loader's temporary file.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_prefix("load-").is_some_and(|digits| {
        digits.len() == 16 && u64::from_str_radix(digits, 16).is_ok()
    })
}

/// Loads many records at once; see [`Store::loader`](crate::Store::loader).
#[derive(Debug)]
pub struct Loader {
    shared: Arc<Shared>,
    memory: Held,
    /// Bytes for records and their order.
    room: u64,
    /// Number of upper bits of a position that choose its piece.
    bits: u32,
    records: Records,
    chunks: Option<Chunks>,
    /// Bytes and number of the records of each piece, in all chunks.
    totals: Vec<(u64, u64)>,
    /// Extents of large values.
    larges: Vec<Extent>,
    count: u64,
}

/// Memory that is counted as a part of the buffers.
#[derive(Debug)]
struct Held {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Held {
    fn set(&mut self, bytes: u64) {
        let held = &self.shared.ram.buffers.held;
        held.fetch_add(bytes.wrapping_sub(self.bytes), Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.give_back(&self.larges);
    }
}

/// Records in memory, each after its position.
#[derive(Debug, Default)]
struct Records {
    arena: Vec<u8>,
    /// Number of records in the arena.
    count: usize,
    /// Positions and offsets; empty until the records are sorted.
    order: Vec<(u64, u32)>,
}

impl Records {
    /// Appends a record. Grows by `step` bytes.
    fn push(&mut self, position: u64, record: &Record<'_>, step: usize) {
        let len = 8 + record.len();
        if self.arena.capacity() - self.arena.len() < len {
            self.arena.reserve_exact(len.max(step));
        }
        self.arena.extend_from_slice(&position.to_le_bytes());
        record.encode(&mut self.arena);
        self.count += 1;
    }

    /// The record at an offset, and the offset after it.
    fn at(&self, at: u32) -> Result<(Record<'_>, usize)> {
        let mut records = Block::resume(&self.arena, at as usize + 8);
        match records.next() {
            Ok(Some(record)) => Ok((record, records.at())),
            _ => Err(damaged()),
        }
    }

    /// Bytes of the records and of their order.
    fn used(&self) -> u64 {
        self.arena.len() as u64 + self.count as u64 * ORDER
    }

    /// Frees the bytes of records that later ones replace.
    fn compact(&mut self) -> Result<()> {
        self.sort()?;
        let mut kept = std::mem::take(&mut self.order);
        kept.sort_unstable_by_key(|&(_, at)| at);
        let mut len = 0;
        for &(_, at) in &kept {
            let end = self.at(at)?.1;
            self.arena.copy_within(at as usize..end, len);
            len += end - at as usize;
        }
        self.arena.truncate(len);
        self.count = kept.len();
        Ok(())
    }

    /// Sorts the records and drops those that later ones replace.
    fn sort(&mut self) -> Result<()> {
        let mut order = Vec::with_capacity(self.count);
        let mut at = 0;
        while at < self.arena.len() {
            order.push((u64_at(&self.arena, at), at as u32));
            at = self.at(at as u32)?.1;
        }
        order.sort_unstable();
        let mut kept = 0;
        let mut start = 0;
        let mut group: Vec<u32> = Vec::new();
        while start < order.len() {
            let position = order[start].0;
            let same = order[start..].iter().take_while(|o| o.0 == position);
            let end = start + same.count();
            if end - start == 1 {
                order[kept] = order[start];
                kept += 1;
                start = end;
                continue;
            }
            // The last record of each key. Two keys seldom have one position.
            group.clear();
            for &(_, at) in order[start..end].iter().rev() {
                let key = self.at(at)?.0.key;
                let mut known = false;
                for &other in &group {
                    known |= self.at(other)?.0.key == key;
                }
                if !known {
                    group.push(at);
                }
            }
            group.sort_by_cached_key(|&at| {
                self.at(at).map(|(record, _)| record.key.to_vec()).ok()
            });
            for &at in &group {
                order[kept] = (position, at);
                kept += 1;
            }
            start = end;
        }
        order.truncate(kept);
        self.order = order;
        Ok(())
    }
}

/// A temporary file that changed.
#[cold]
fn damaged() -> Error {
    Error::corrupt("load", 0, "a temporary file of a load is damaged")
}

/// The temporary file of a loader.
#[derive(Debug)]
struct Chunks {
    disk: Arc<dyn Disk>,
    name: String,
    file: Arc<dyn DiskFile>,
    len: u64,
    /// Offsets of the pieces and of the table of each chunk.
    chunks: Vec<(u64, u64)>,
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // A file that stays is removed when the store is opened.
        let _ = self.disk.remove(&self.name);
    }
}

impl Chunks {
    /// Writes at the end of the file.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        write_all_at(&*self.file, bytes, self.len)
            .map_err(|e| Error::io("write", &self.name, e))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&*self.file, bytes, offset)
            .map_err(|e| Error::io("read", &self.name, e))
    }
}

impl Loader {
    /// A loader whose memory is a part of that for buffered writes.
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self> {
        if shared.writer.is_none() {
            return Err(Error::ReadOnly);
        }
        shared.check_poison()?;
        let limit = shared.ram.buffer_limit() / 2;
        if limit < LEAST + SLACK {
            let needed = shared.ram.reserved() + 2 * (LEAST + SLACK);
            return Err(Error::Ram { needed, budget: shared.ram.budget() });
        }
        let chosen =
            shared.ram.buffer_bytes().clamp(LEAST, MAX_MEMORY) + SLACK;
        let bytes = limit.min(chosen);
        let mut memory = Held { shared: Arc::clone(&shared), bytes: 0 };
        loop {
            {
                let _writer = shared.writer.as_ref().map(lock);
                if shared.ram.has_room(bytes) {
                    memory.set(bytes);
                    break;
                }
            }
            shared.make_room(bytes)?;
        }
        let bits = ((bytes - SLACK) / PIECE).max(2).ilog2().min(16);
        // Totals, and a table that is written or read.
        let tables = (16 + ENTRY as u64) << bits;
        let room = (bytes - SLACK).saturating_sub(tables) * 7 / 8;
        Ok(Self {
            shared,
            memory,
            room,
            bits,
            records: Records::default(),
            chunks: None,
            totals: vec![(0, 0); 1 << bits],
            larges: Vec::new(),
            count: 0,
        })
    }

    /// Adds a record. It replaces an earlier one of the same key, in the
    /// loader or in the store.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`], [`Error::Poisoned`], [`Error::Io`]. The record is
    /// not added then, and others may follow.
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// let mut loader = store.loader()?;
    /// loader.put("apple", "red")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        for (what, len, max) in
            [("key", key.len(), MAX_KEY), ("value", value.len(), MAX_VALUE)]
        {
            if len > max {
                let (len, max) = (len as u64, max as u64);
                return Err(Error::TooLong { what, len, max });
            }
        }
        if value.len() <= MAX_INLINE {
            return self.add(Record { key, value, large: false });
        }
        self.shared.check_poison()?;
        let place = self.shared.write_large(value)?;
        self.larges.push(place.extent);
        let value = place.encode();
        self.add(Record { key, value: &value, large: true })
    }

    /// Number of records added.
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// assert_eq!(store.loader()?.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether no record was added.
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// assert!(store.loader()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a record whose value is its place if it is large.
    fn add(&mut self, record: Record<'_>) -> Result<()> {
        let position = self.shared.hash.position(record.key);
        let records = &self.records;
        let len = 8 + record.len() as u64 + ORDER;
        if records.used() + len > self.room && records.count > 0 {
            self.write_chunk()?;
        }
        let used = self.records.count as u64 * ORDER;
        let most = self.room.saturating_sub(used) as usize;
        let step = (self.room / 32) as usize;
        let left = most.saturating_sub(self.records.arena.len());
        self.records.push(position, &record, step.min(left));
        self.count += 1;
        Ok(())
    }

    /// Counts the sorted records in the totals of their pieces.
    fn count_records(&mut self) -> Result<()> {
        for &(position, at) in &self.records.order {
            let len = self.records.at(at)?.1 - at as usize;
            let total =
                &mut self.totals[(position >> (64 - self.bits)) as usize];
            total.0 += len as u64;
            total.1 += 1;
        }
        Ok(())
    }

    /// Sorts the records and moves them to the temporary file.
    fn write_chunk(&mut self) -> Result<()> {
        if self.chunks.is_none() {
            let number = self.shared.next_loader();
            let name = name(number);
            let file = self
                .shared
                .disk
                .open(&name, Mode::Create)
                .map_err(|e| Error::io("create", &name, e))?;
            let (disk, chunks) = (Arc::clone(&self.shared.disk), Vec::new());
            self.chunks = Some(Chunks { disk, name, file, len: 0, chunks });
        }
        self.records.sort()?;
        let Some(chunks) = &mut self.chunks else { return Ok(()) };
        let start = chunks.len;
        let written =
            write_pieces(chunks, &self.records, self.bits, self.room);
        if let Err(error) = written {
            chunks.len = start;
            self.records.order = Vec::new();
            return Err(error);
        }
        self.count_records()?;
        self.records.order = Vec::new();
        self.records.arena.clear();
        self.records.count = 0;
        Ok(())
    }
}

impl Loader {
    /// Makes all records part of the store, durable, at once: a crash or an
    /// error before leaves the store without any of them. Returns the number
    /// of records added.
    ///
    /// Every segment of the store is written again, and the file has room for
    /// both until the end: for a few records,
    /// [`write_batch`](crate::Store::write_batch) costs less. Other threads
    /// may write meanwhile, until the memory for buffered writes is full.
    ///
    /// # Errors
    ///
    /// [`Error::Ram`] if the budget has no room for the index of all data, or
    /// if the records exceed about *m*² / 2 KiB for *m* bytes of memory of the
    /// loader (8 GiB for 4 MiB);
    /// [`Error::Poisoned`], [`Error::Io`], [`Error::Corrupt`].
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// let mut loader = store.loader()?;
    /// for i in 0..1000u32 {
    ///     loader.put(i.to_le_bytes(), "value")?;
    /// }
    /// assert_eq!(loader.finish()?, 1000);
    /// assert_eq!(store.stats()?.records, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(mut self) -> Result<u64> {
        if self.count == 0 {
            return Ok(0);
        }
        if self.chunks.is_some() {
            self.write_chunk()?;
        } else {
            self.records.sort()?;
            self.count_records()?;
        }
        let shared = Arc::clone(&self.shared);
        let _merging = lock(&shared.merging);
        let sum = |sum: (u64, u64), t: &(u64, u64)| (sum.0 + t.0, sum.1 + t.1);
        let (bytes, records) = self.totals.iter().fold((0, 0), sum);
        let index = shared.index_bytes(bytes, records);
        let budget = shared.ram.budget();
        let needed = index + shared.ram.reserved() + shared.ram.buffered();
        if needed > budget && self.chunks.is_none() {
            self.totals.fill((0, 0));
            self.write_chunk()?;
        }
        if self.chunks.is_some() {
            self.records = Records::default();
            // The new index takes a part of the memory.
            let over = needed.saturating_sub(budget);
            let kept = self.memory.bytes.saturating_sub(over);
            if kept < LEAST + SLACK && over > 0 {
                return Err(Error::Ram { needed, budget });
            }
            self.room = self.room.min((kept - SLACK) * 3 / 4);
            self.memory.set(kept);
        }
        let part = std::mem::take(&mut self.records);
        let mut stream = Stream {
            bits: self.bits,
            chunks: self.chunks.as_ref(),
            offsets: Vec::new(),
            totals: &self.totals,
            room: self.room,
            next: 0,
            part,
            at: 0,
        };
        shared.load(&mut stream, &self.larges)?;
        drop(stream);
        self.larges = Vec::new();
        // Frees the replaced extents; after an error a later commit frees them.
        let _ = shared.commit();
        Ok(self.count)
    }
}

/// Writes a chunk of sorted records.
fn write_pieces(
    chunks: &mut Chunks,
    records: &Records,
    bits: u32,
    room: u64,
) -> Result<()> {
    let start = chunks.len;
    let most = CHUNK.min(room as usize / 8);
    let mut out = Vec::with_capacity(most);
    let mut table = Vec::with_capacity(ENTRY << bits);
    let mut order = records.order.iter().peekable();
    for piece in 0..1u64 << bits {
        let mut sum = Xxh3::with_seed(piece);
        let (mut len, mut count) = (0, 0);
        while let Some(&(_, at)) =
            order.next_if(|&&(position, _)| position >> (64 - bits) == piece)
        {
            let at = at as usize;
            let bytes = &records.arena[at..records.at(at as u32)?.1];
            sum.update(bytes);
            len += bytes.len() as u32;
            count += 1u32;
            out.extend_from_slice(bytes);
            if out.len() >= most {
                chunks.append(&out)?;
                out.clear();
            }
        }
        table.extend_from_slice(&len.to_le_bytes());
        table.extend_from_slice(&count.to_le_bytes());
        table.extend_from_slice(&sum.digest().to_le_bytes());
    }
    chunks.append(&out)?;
    let place = (start, chunks.len);
    chunks.append(&table)?;
    chunks.chunks.push(place);
    Ok(())
}

/// All records of a loader in the order of positions and keys.
struct Stream<'a> {
    bits: u32,
    chunks: Option<&'a Chunks>,
    /// For each chunk the offset of its next piece.
    offsets: Vec<u64>,
    totals: &'a [(u64, u64)],
    /// Bytes for the records of a part and their order.
    room: u64,
    /// The next piece that is not in `part`.
    next: usize,
    part: Records,
    /// Number of the next record of `part`.
    at: usize,
}

impl Stream<'_> {
    /// Begins again.
    fn restart(&mut self) {
        self.at = 0;
        if let Some(chunks) = self.chunks {
            self.offsets = chunks.chunks.iter().map(|c| c.0).collect();
            self.part = Records::default();
            self.next = 0;
        }
    }

    /// The next record.
    fn peek(&mut self) -> Result<Option<(u64, Record<'_>)>> {
        while self.at == self.part.order.len() {
            if !self.read_part()? {
                return Ok(None);
            }
        }
        let (position, at) = self.part.order[self.at];
        Ok(Some((position, self.part.at(at)?.0)))
    }

    /// Reads and sorts the pieces of the next part; `false` at the end.
    fn read_part(&mut self) -> Result<bool> {
        let Some(chunks) = self.chunks else { return Ok(false) };
        if self.next == self.totals.len() {
            return Ok(false);
        }
        let first = self.next;
        let (mut bytes, mut count) = (0, 0);
        let mut end = first;
        while let Some(&(more, records)) = self.totals.get(end) {
            let used = bytes + more + (count + records) * ORDER;
            if used > self.room && end > first {
                break;
            }
            (bytes, count) = (bytes + more, count + records);
            end += 1;
        }
        let fits = bytes + count * ORDER <= self.room;
        self.part.order = Vec::new();
        self.part.arena.clear();
        self.part.count = 0;
        let arena = &mut self.part.arena;
        let most = match fits {
            true => bytes,
            false => self.room,
        };
        arena.reserve_exact(most as usize);
        arena.shrink_to(most as usize);
        let mut table = vec![0; ENTRY * (end - first)];
        for (chunk, offset) in chunks.chunks.iter().zip(&mut self.offsets) {
            chunks.read(&mut table, chunk.1 + (ENTRY * first) as u64)?;
            let (mut len, mut count) = (0, 0);
            for entry in table.chunks_exact(ENTRY) {
                len += u64::from(u32_at(entry, 0));
                count += u32_at(entry, 4) as usize;
            }
            let part = &mut self.part;
            if part.used() + len + count as u64 * ORDER > self.room {
                part.compact()?;
                let needed = part.used() + len + count as u64 * ORDER;
                if needed > self.room && !fits {
                    return Err(Error::Ram { needed, budget: self.room });
                }
            }
            let mut at = part.arena.len();
            part.arena.resize(at + len as usize, 0);
            chunks.read(&mut part.arena[at..], *offset)?;
            *offset += len;
            part.count += count;
            for (piece, entry) in table.chunks_exact(ENTRY).enumerate() {
                let end = at + u32_at(entry, 0) as usize;
                let seed = (first + piece) as u64;
                if checksum(&part.arena[at..end], seed) != u64_at(entry, 8) {
                    return Err(damaged());
                }
                at = end;
            }
        }
        self.part.sort()?;
        self.next = end;
        self.at = 0;
        Ok(true)
    }

    /// Bytes and records of the pieces of a range of positions, about.
    fn size(&self, low: u64, depth: u8) -> (u64, u64) {
        let depth = u32::from(depth);
        let piece = (low >> (64 - self.bits)) as usize;
        let more = depth.saturating_sub(self.bits);
        let pieces = 1usize << self.bits.saturating_sub(depth);
        let totals = self.totals[piece..piece + pieces].iter();
        let sum = totals.fold((0, 0), |sum, t| (sum.0 + t.0, sum.1 + t.1));
        (sum.0 >> more, sum.1 >> more)
    }
}

impl Shared {
    /// Number of a new loader.
    fn next_loader(&self) -> u64 {
        self.loaders.fetch_add(1, Relaxed)
    }

    /// Memory that the index of the store's data and of `records` records of
    /// `bytes` bytes takes besides the present one, about.
    fn index_bytes(&self, bytes: u64, records: u64) -> u64 {
        let old = self.ram.index.load(Relaxed);
        let pages = bytes / PAGE + bytes / (16 * PAGE) + 1;
        let segments = 2 * bytes / self.ram.segment_bytes() + 1;
        let filters = records as f64 * self.settings.bits_per_key / 8.0;
        old + pages * 4 + filters as u64 + segments * PER_SEGMENT
    }

    /// Replaces all slots by new ones that have the records of `stream`. The
    /// caller holds `merging`.
    fn load(&self, stream: &mut Stream<'_>, larges: &[Extent]) -> Result<()> {
        self.check_poison()?;
        let Some(writer) = &self.writer else { return Err(Error::ReadOnly) };
        // Writes of a merge that failed come before all others.
        while let Some(low) = self
            .view
            .load()
            .slots()
            .iter()
            .find_map(|slot| slot.has_frozen().then_some(slot.low))
        {
            self.merge_at(low)?;
        }
        let (inputs, first_id) = {
            let writer = lock(writer);
            let last = writer.next - 1;
            let view = self.view.load();
            let inputs: Vec<_> = view
                .slots()
                .iter()
                .map(|slot| Input::freeze(slot, last))
                .collect();
            (inputs, writer.next_segment)
        };
        let mut build = Build::new(self, LOAD_SLACK);
        // Records of several pages fill their blocks badly.
        let mut factor = 2;
        let (slots, next_id) = loop {
            let mut next_id = first_id;
            stream.restart();
            match self.load_slots(
                &mut build,
                &inputs,
                stream,
                factor,
                &mut next_id,
            ) {
                Ok(Some(slots)) => break (slots, next_id),
                Ok(None) => factor *= 2,
                Err(error) => {
                    build.undo();
                    return Err(error);
                }
            }
            build.undo();
        };
        let mut kept: Vec<Extent> = slots
            .iter()
            .filter_map(|slot| slot.segment.as_ref())
            .flat_map(|segment| segment.larges().iter().copied())
            .collect();
        kept.sort_unstable();
        // Durable before they are seen: a later write must not survive a
        // crash that the load does not.
        if let Err(error) = self.commit_instead(Some((&slots, next_id))) {
            build.undo();
            return Err(error);
        }
        self.publish(&inputs, slots, next_id);
        Counters::add(&self.counters.merges, 1);
        let mut space = lock(&self.space);
        for &extent in larges {
            if kept.binary_search(&extent).is_err() {
                space.extents.release(extent);
            }
        }
        Ok(())
    }

    /// Builds the slots that replace those of `inputs`. `None` if a segment
    /// needs more than `factor` times the expected pages.
    fn load_slots(
        &self,
        build: &mut Build<'_>,
        inputs: &[Input],
        stream: &mut Stream<'_>,
        factor: u64,
        next_id: &mut u64,
    ) -> Result<Option<Vec<Arc<Slot>>>> {
        let mut slots = Vec::new();
        for input in inputs {
            let Slot { low, depth, .. } = *input.slot;
            let (bytes, records) = stream.size(low, depth);
            let (pages, old) = input.size();
            let pages = pages + bytes.div_ceil(PAGE);
            let records = records + old;
            let targets = self.targets((low, depth), pages, records);
            let share = pages / targets.len() as u64;
            let room = factor * share + records / 1000 + 64;
            let mut merged = input.records(self)?;
            for target in targets {
                let slot = build.slot(
                    target,
                    (share + 16, room),
                    input.merged,
                    next_id,
                    |writer| load_range(&mut merged, stream, target, writer),
                )?;
                let Some(slot) = slot else { return Ok(None) };
                let readers = input.slot.readers().collect();
                slots.push(Arc::new(slot.after(readers)));
                let needed = self.ram.reserved() + self.ram.buffered();
                if needed > self.ram.budget() {
                    let budget = self.ram.budget();
                    return Err(Error::Ram { needed, budget });
                }
            }
        }
        Ok(Some(slots))
    }
}

/// Writes the records of a range: those of the store, and those that are
/// loaded, which replace them.
fn load_range(
    merged: &mut Merged,
    stream: &mut Stream<'_>,
    range: (u64, u8),
    writer: &mut SegmentWriter<'_>,
) -> Result<()> {
    loop {
        let step = merged.next(
            |position| has(range, position),
            |position, record, large| {
                while let Some((at, new)) = stream.peek()? {
                    match (at, new.key).cmp(&(position, record.key)) {
                        Ordering::Greater => break,
                        order => {
                            push(writer, at, &new)?;
                            stream.at += 1;
                            if order == Ordering::Equal {
                                return Ok(());
                            }
                        }
                    }
                }
                writer.push(position, record, large)
            },
        )?;
        if !matches!(step, Step::Written) {
            break;
        }
    }
    while let Some((at, new)) = stream.peek()? {
        if !has(range, at) {
            break;
        }
        push(writer, at, &new)?;
        stream.at += 1;
    }
    Ok(())
}

/// Writes a record that is loaded.
fn push(
    writer: &mut SegmentWriter<'_>,
    position: u64,
    record: &Record<'_>,
) -> Result<()> {
    let large = match record.large {
        false => None,
        true => Some(Place::decode(record.value).ok_or_else(damaged)?.extent),
    };
    writer.push(position, record, large)
}

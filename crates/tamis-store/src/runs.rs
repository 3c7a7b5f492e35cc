//! Runs: writes of a slot that are on the disk, but not in its segment.
//!
//! Where the buffers hold a small share of the data, merging rewrites much
//! for few writes. A buffer is then spilled: its records are written in the
//! order of their positions, as in a segment, and memory keeps the position of
//! each, 9 bytes instead of the record. A merge takes all runs of a slot.
//! The whole position names one record: a lookup reads the block that has it,
//! and none for other keys.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::Kind;
use crate::codec::{checksum, put_varint, u32_at, u64_at, varint};
use crate::core::{Counters, Shared, lock};
use crate::delta::Delta;
use crate::disk::{DiskFile, read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::hash::KeyHash;
use crate::manifest::{DATA, SegmentEntry};
use crate::options::MAX_KEY;
use crate::page::{Block, Blocks, Place, Record};
use crate::segment::{
    CHUNK, LARGE, decode_fences, decode_larges, prefix, read_index,
};
use crate::view::{Slot, has};

/// Most runs of a slot.
pub(crate) const MAX_RUNS: usize = 100;

/// Length of the header of an index.
const HEADER: usize = 32;

/// Share of the data's pages that runs may have: 1 / 8. The slot with the
/// longest runs is merged first, and it has twice the average.
pub(crate) const SPACE: u64 = 8;

/// Positions of writes, ascending, and whether each is a deletion.
type Positions = Vec<(u64, bool)>;

/// Writes that were spilled together.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) entry: SegmentEntry,
    /// For each page the prefix of the first record of its block.
    fences: Box<[u32]>,
    larges: Box<[Extent]>,
    /// Positions of deleted keys, ascending, and the offset of each key.
    deleted: Box<[(u64, u32)]>,
    /// Lengths and bytes of deleted keys.
    keys: Box<[u8]>,
}

impl Run {
    /// Extents of the large values that records name.
    pub(crate) fn larges(&self) -> &[Extent] {
        &self.larges
    }

    /// Bytes of memory held.
    fn ram(&self) -> u64 {
        let parts = size_of_val(&*self.fences)
            + size_of_val(&*self.larges)
            + size_of_val(&*self.deleted)
            + self.keys.len();
        (size_of::<Self>() + 16 + parts) as u64
    }

    /// Offset in the file of a page.
    pub(crate) fn offset(&self, page: u32) -> u64 {
        self.entry.extent.offset() + u64::from(page) * PAGE
    }

    fn corrupt(&self, page: u32, why: &'static str) -> Error {
        Error::corrupt(DATA, self.offset(page), why)
    }

    /// Checks a block that was read.
    fn parse<'a>(&self, bytes: &'a [u8], page: u32) -> Result<Block<'a>> {
        Block::parse(bytes, self.entry.id, page)
            .map_err(|why| self.corrupt(page, why))
    }

    /// Pages of the block that begins with page `page`.
    fn block_pages(&self, page: usize) -> usize {
        let fence = self.fences[page];
        self.fences[page..].iter().take_while(|&&f| f == fence).count()
    }

    /// First page and pages of the block for a position.
    fn locate(&self, position: u64) -> Option<(u32, u32)> {
        let prefix = prefix(position, self.entry.depth);
        let end = self.fences.partition_point(|&fence| fence <= prefix);
        let fence = *self.fences[..end].last()?;
        let pages = self.fences[..end].iter().rev();
        let pages = pages.take_while(|&&other| other == fence).count();
        Some(((end - pages) as u32, pages as u32))
    }

    /// The deleted key at an offset.
    fn deleted_key(&self, at: u32) -> &[u8] {
        let mut at = at as usize;
        let len = varint(&self.keys, &mut at).unwrap_or(0) as usize;
        self.keys.get(at..at + len).unwrap_or_default()
    }

    /// Whether `key` at `position` is one of the deleted keys.
    fn deletes(&self, position: u64, key: &[u8]) -> bool {
        let start = self.deleted.partition_point(|d| d.0 < position);
        self.deleted[start..]
            .iter()
            .take_while(|d| d.0 == position)
            .any(|d| self.deleted_key(d.1) == key)
    }

    /// A run of the entries of `delta`, their positions, and its pages, which
    /// are yet to be written.
    fn build(
        delta: &Delta,
        (low, depth): (u64, u8),
        id: u64,
    ) -> (Self, Positions, Vec<u8>) {
        let mut blocks = Blocks::new(id);
        let mut larges = Vec::new();
        let mut deleted = Vec::new();
        let mut keys = Vec::new();
        let order = delta.sorted(u64::MAX);
        let mut positions = Vec::with_capacity(order.len());
        for (position, at) in order {
            let entry = delta.entry(at);
            positions.push((position, entry.kind == Kind::Delete));
            if entry.kind == Kind::Delete {
                deleted.push((position, keys.len() as u32));
                put_varint(&mut keys, entry.key.len() as u32);
                keys.extend_from_slice(entry.key);
                continue;
            }
            let large = entry.kind == Kind::Large;
            if large {
                larges.extend(Place::decode(entry.value).map(|p| p.extent));
            }
            let record = Record { key: entry.key, value: entry.value, large };
            blocks.push(prefix(position, depth), &record);
        }
        blocks.finish();
        let mut bytes = std::mem::take(blocks.done());
        larges.sort_unstable();
        let fences = std::mem::take(&mut blocks.fences);
        let records = (positions.len() - deleted.len()) as u64;
        let mut index = vec![0; 8];
        index.extend_from_slice(&id.to_le_bytes());
        for count in [
            fences.len(),
            larges.len(),
            positions.len() - deleted.len(),
            deleted.len(),
        ] {
            index.extend_from_slice(&(count as u32).to_le_bytes());
        }
        for fence in &fences {
            index.extend_from_slice(&fence.to_le_bytes());
        }
        for large in &larges {
            index.extend_from_slice(&large.start.to_le_bytes());
            index.extend_from_slice(&large.pages.to_le_bytes());
        }
        for (position, _) in positions.iter().filter(|p| !p.1) {
            index.extend_from_slice(&position.to_le_bytes());
        }
        index.extend_from_slice(&keys);
        let sum = checksum(&index[8..], id);
        index[..8].copy_from_slice(&sum.to_le_bytes());
        let index_len = index.len() as u32;
        index.resize(index.len().next_multiple_of(PAGE as usize), 0);
        bytes.append(&mut index);
        let entry = SegmentEntry {
            low,
            depth,
            id,
            extent: Extent { start: 0, pages: bytes.len() as u64 / PAGE },
            data_pages: fences.len() as u32,
            index_len,
            records,
            merged: 0,
        };
        let run = Self {
            entry,
            fences: fences.into(),
            larges: larges.into(),
            deleted: deleted.into(),
            keys: keys.into(),
        };
        (run, positions, bytes)
    }

    /// Reads the index of a run of a manifest, and its positions.
    fn read(
        file: &dyn DiskFile,
        entry: SegmentEntry,
        hash: KeyHash,
    ) -> Result<(Self, Positions)> {
        let outside = "a run lies outside the file";
        let (bytes, offset) = read_index(file, &entry, outside)?;
        let corrupt = |why| Error::corrupt(DATA, offset, why);
        Self::parse_index(&bytes, entry, hash).map_err(corrupt)
    }

    /// Decodes an index. The error is the contradiction.
    fn parse_index(
        bytes: &[u8],
        entry: SegmentEntry,
        hash: KeyHash,
    ) -> Result<(Self, Positions), &'static str> {
        if bytes.len() < HEADER
            || checksum(&bytes[8..], entry.id) != u64_at(bytes, 0)
        {
            return Err("the checksum of a run is wrong");
        }
        if u64_at(bytes, 8) != entry.id {
            return Err("an index belongs to another run");
        }
        let count = |at| u64::from(u32_at(bytes, at));
        let (pages, larges, records, deletions) =
            (count(16), count(20), count(24), count(28));
        let fences_end = HEADER as u64 + pages * 4;
        let larges_end = fences_end + larges * LARGE as u64;
        let records_end = larges_end + records * 8;
        if pages != u64::from(entry.data_pages)
            || records != entry.records
            || records_end + deletions > bytes.len() as u64
        {
            return Err("the length of a run's index is wrong");
        }
        let part = |from: u64, to: u64| &bytes[from as usize..to as usize];
        let fences = decode_fences(part(HEADER as u64, fences_end))
            .ok_or("the fences of a run are not in order")?;
        let larges = decode_larges(part(fences_end, larges_end))?;
        let keys = &bytes[records_end as usize..];
        let mut deleted = Vec::with_capacity(deletions as usize);
        let mut at = 0;
        for _ in 0..deletions {
            let start = at as u32;
            let len = varint(keys, &mut at).map(|len| len as usize);
            let len = len.filter(|&len| len <= MAX_KEY);
            let key = len.and_then(|len| keys.get(at..at + len));
            let key = key.ok_or("a deleted key exceeds its run")?;
            at += key.len();
            deleted.push((hash.position(key), start));
        }
        if at != keys.len() {
            return Err("a run has more bytes than keys");
        }
        let mut positions: Positions = part(larges_end, records_end)
            .chunks_exact(8)
            .map(|position| (u64_at(position, 0), false))
            .collect();
        let in_order = positions.windows(2).all(|p| p[0].0 <= p[1].0)
            && deleted.windows(2).all(|p| p[0].0 <= p[1].0);
        positions.extend(deleted.iter().map(|d| (d.0, true)));
        let range = (entry.low, entry.depth);
        if !in_order || positions.iter().any(|p| !has(range, p.0)) {
            return Err("the positions of a run are not in order");
        }
        positions.sort_unstable();
        let run = Self {
            entry,
            fences: fences.into(),
            larges: larges.into(),
            deleted: deleted.into(),
            keys: keys.into(),
        };
        Ok((run, positions))
    }
}

/// The runs of a slot.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The oldest first.
    runs: Vec<Arc<Run>>,
    /// Positions of all writes, ascending; of equal ones the newest first.
    positions: Vec<u64>,
    /// For each position the number of its run times 2, plus 1 for a
    /// deletion.
    places: Vec<u8>,
}

impl Runs {
    /// The runs of `old` and a newer one with these positions, ascending.
    fn with(old: Option<&Self>, run: Run, new: &[(u64, bool)]) -> Self {
        let held = old.map_or(0, |old| old.positions.len());
        let mut runs = old.map_or(Vec::new(), |old| old.runs.clone());
        let number = (runs.len() as u8) << 1;
        runs.push(Arc::new(run));
        let mut positions = Vec::with_capacity(held + new.len());
        let mut places = Vec::with_capacity(held + new.len());
        let mut at = 0;
        let mut take = |until: Option<u64>,
                        positions: &mut Vec<u64>,
                        places: &mut Vec<u8>| {
            let Some(old) = old else { return };
            while old
                .positions
                .get(at)
                .is_some_and(|&p| until.is_none_or(|until| p < until))
            {
                positions.push(old.positions[at]);
                places.push(old.places[at]);
                at += 1;
            }
        };
        for &(position, deleted) in new {
            take(Some(position), &mut positions, &mut places);
            positions.push(position);
            places.push(number | u8::from(deleted));
        }
        take(None, &mut positions, &mut places);
        Self { runs, positions, places }
    }

    /// Reads the runs of a slot that a manifest names, the oldest first.
    pub(crate) fn read(
        file: &dyn DiskFile,
        entries: &[SegmentEntry],
        hash: KeyHash,
    ) -> Result<Option<Arc<Self>>> {
        let mut all = None;
        for &entry in entries {
            let (run, positions) = Run::read(file, entry, hash)?;
            all = Some(Self::with(all.as_ref(), run, &positions));
        }
        Ok(all.map(Arc::new))
    }

    /// The runs, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter()
    }

    /// Extents of the runs.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Extent> {
        self.runs.iter().map(|run| run.entry.extent)
    }

    /// Bytes of memory held.
    pub(crate) fn ram(&self) -> u64 {
        let index = self.positions.capacity() * 8 + self.places.capacity();
        let runs: u64 = self.runs.iter().map(|run| run.ram()).sum();
        (size_of::<Self>() + index) as u64 + runs
    }

    /// Number of writes.
    pub(crate) fn writes(&self) -> u64 {
        self.positions.len() as u64
    }

    /// Number of pages.
    pub(crate) fn pages(&self) -> u64 {
        self.extents().map(|extent| extent.pages).sum()
    }

    /// Number of the newest write at `position`.
    #[inline]
    pub(crate) fn find(&self, position: u64) -> Option<u32> {
        let at = self.positions.partition_point(|&p| p < position);
        (self.positions.get(at) == Some(&position)).then_some(at as u32)
    }

    /// The writes at `position` from number `at` on, newest first: the run,
    /// and whether it is a deletion.
    fn writes_at(
        &self,
        at: u32,
        position: u64,
    ) -> impl Iterator<Item = (u32, &Run, bool)> {
        let at = at as usize;
        let same = self.positions[at..].iter().zip(&self.places[at..]);
        same.take_while(move |(p, _)| **p == position).enumerate().map(
            move |(i, (_, &place))| {
                let run = &*self.runs[usize::from(place >> 1)];
                ((at + i) as u32, run, place & 1 == 1)
            },
        )
    }

    /// The newest write of `key` in the runs, without a read.
    pub(crate) fn look(&self, at: u32, position: u64, key: &[u8]) -> Known {
        for (at, run, deleted) in self.writes_at(at, position) {
            match deleted {
                false => return Known::Block(at),
                true if run.deletes(position, key) => return Known::Deleted,
                true => {}
            }
        }
        Known::Nothing
    }

    /// The block of write `at`, which is not a deletion: its run, first page
    /// and pages.
    pub(crate) fn block(
        &self,
        at: u32,
        position: u64,
    ) -> Option<(&Run, (u32, u32))> {
        let run =
            self.runs.get(usize::from(*self.places.get(at as usize)? >> 1))?;
        Some((run, run.locate(position)?))
    }

    /// Reads all writes: their entries, and the order of their positions and
    /// keys, with the newest of each key.
    pub(crate) fn load(
        &self,
        file: &dyn DiskFile,
        hash: KeyHash,
    ) -> Result<(Delta, Vec<(u64, u32)>)> {
        let bytes: u64 = self
            .runs
            .iter()
            .map(|run| {
                u64::from(run.entry.data_pages) * PAGE + run.keys.len() as u64
            })
            .sum();
        let mut entries =
            Delta::with_room(bytes as usize, self.positions.len());
        let mut order = Vec::with_capacity(self.positions.len());
        let mut chunk = Vec::new();
        for run in &self.runs {
            let mut page = 0;
            let mut count = 0;
            let data_pages = run.entry.data_pages as usize;
            let mut first = 0;
            chunk.clear();
            while page < data_pages {
                let pages = run.block_pages(page);
                if (page + pages - first) * PAGE as usize > chunk.len() {
                    let most = (CHUNK / PAGE as usize).max(pages);
                    let len = most.min(data_pages - page) * PAGE as usize;
                    chunk.resize(len, 0);
                    first = page;
                    read_exact_at(file, &mut chunk, run.offset(page as u32))
                        .map_err(|e| Error::io("read", DATA, e))?;
                }
                let start = (page - first) * PAGE as usize;
                let bytes = &chunk[start..start + pages * PAGE as usize];
                let block = run.parse(bytes, page as u32)?;
                let corrupt = |why| run.corrupt(page as u32, why);
                let mut records = block.records();
                while let Some(record) = records.next().map_err(corrupt)? {
                    let position = hash.position(record.key);
                    if !has((run.entry.low, run.entry.depth), position) {
                        return Err(corrupt("a key belongs to another run"));
                    }
                    let kind = match record.large {
                        true => Kind::Large,
                        false => Kind::Put,
                    };
                    let write = (kind, record.key, record.value);
                    order.push((position, entries.append(position, write)));
                    count += 1;
                }
                page += pages;
            }
            if count != run.entry.records {
                return Err(run.corrupt(0, "the number of records is wrong"));
            }
            for &(position, at) in &run.deleted {
                let write = (Kind::Delete, run.deleted_key(at), &[][..]);
                order.push((position, entries.append(position, write)));
            }
        }
        // Later entries are newer.
        order.sort_unstable_by(|a, b| {
            let keys = || entries.entry(a.1).key.cmp(entries.entry(b.1).key);
            a.0.cmp(&b.0).then_with(keys).then(b.1.cmp(&a.1))
        });
        order.dedup_by(|a, b| {
            a.0 == b.0 && entries.entry(a.1).key == entries.entry(b.1).key
        });
        Ok((entries, order))
    }
}

impl Runs {
    /// Number of pages of records.
    pub(crate) fn data_pages(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.entry.data_pages)).sum()
    }

    /// Reads all writes and checks that the index finds each.
    pub(crate) fn verify(&self, shared: &Shared) -> Result<()> {
        let (entries, order) = self.load(&*shared.data, shared.hash)?;
        for &(position, at) in &order {
            let entry = entries.entry(at);
            let found = self.find(position).map_or(Known::Nothing, |at| {
                self.look(at, position, entry.key)
            });
            match (found, entry.kind) {
                (Known::Block(_), Kind::Put)
                | (Known::Deleted, Kind::Delete) => {}
                (Known::Block(_), Kind::Large) => {
                    let place = Place::decode(entry.value);
                    let place = place.ok_or_else(|| shared.bad_place())?;
                    shared.read_large(place)?;
                }
                _ => {
                    let why = "the index does not find a write";
                    return Err(self.runs[0].corrupt(0, why));
                }
            }
        }
        Ok(())
    }
}

/// Result of [`Runs::look`].
pub(crate) enum Known {
    /// The runs have no write of the key.
    Nothing,
    /// The key is deleted.
    Deleted,
    /// The block of this write has the key, if its position is not also that
    /// of another key.
    Block(u32),
}

impl Shared {
    /// Reads the value of `key` from the runs of `slot`, from write `at` on,
    /// or from the segment if they have another key at the position.
    pub(crate) fn fetch_run(
        &self,
        key: &[u8],
        slot: &Slot,
        at: u32,
    ) -> Result<Option<Vec<u8>>> {
        let position = self.hash.position(key);
        let runs = slot.runs.as_ref();
        for (_, run, deleted) in
            runs.iter().flat_map(|runs| runs.writes_at(at, position))
        {
            if deleted {
                if run.deletes(position, key) {
                    return Ok(None);
                }
                continue;
            }
            let Some((page, pages)) = run.locate(position) else {
                return Err(run.corrupt(0, "a record is before its run"));
            };
            let read = |bytes: &mut [u8]| {
                self.read_block(bytes, run.offset(page))?;
                self.value_in_run(key, run, page, bytes)
            };
            if let Some(value) = self.with_block(pages, read)? {
                return Ok(Some(value));
            }
        }
        match slot
            .segment
            .as_ref()
            .and_then(|segment| Some((segment, segment.locate(position)?)))
        {
            None => Ok(None),
            Some((segment, block)) => self.fetch_block(key, segment, block),
        }
    }

    /// The value of `key` in a block of a run that was read; `None` if the
    /// block has another key at its position.
    pub(crate) fn value_in_run(
        &self,
        key: &[u8],
        run: &Run,
        page: u32,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let block = run.parse(bytes, page)?;
        let corrupt = |why| run.corrupt(page, why);
        let Some(record) = block.find(key).map_err(corrupt)? else {
            return Ok(None);
        };
        if !record.large {
            return Ok(Some(record.value.to_vec()));
        }
        let place = Place::decode(record.value);
        let place = place.ok_or_else(|| self.bad_place())?;
        self.read_large(place).map(Some)
    }

    /// Makes memory free or logs short: spills or merges a slot, and returns
    /// `false` if none has writes. The caller holds `merging`.
    ///
    /// A slot is spilled unless its writes are a quarter of its segment, or
    /// runs exceed an eighth of the data or half of the memory for writes.
    pub(crate) fn relieve(&self) -> Result<bool> {
        self.full.store(false, Ordering::Relaxed);
        if self.has_large_values() {
            return self.merge_large_values();
        }
        let view = self.view.load_full();
        let held = || view.slots().iter().filter(|s| s.oldest() < u64::MAX);
        let slot = match self.is_log_long() {
            true => held().min_by_key(|slot| slot.oldest()),
            false => held().max_by_key(|slot| slot.ram()),
        };
        let longest = view
            .slots()
            .iter()
            .filter(|slot| slot.runs.is_some())
            .max_by_key(|slot| slot.run_pages());
        let Some(slot) = slot.or(longest) else { return Ok(false) };
        let pages = slot.ram().div_ceil(PAGE);
        let data = slot.segment.as_ref();
        let data = data.map_or(0, |s| u64::from(s.entry.data_pages));
        let total: u64 = view
            .slots()
            .iter()
            .filter_map(|slot| slot.segment.as_ref())
            .map(|s| u64::from(s.entry.data_pages))
            .sum();
        let runs = |f: fn(&Slot) -> u64| -> u64 {
            view.slots().iter().map(|slot| f(slot)).sum()
        };
        let writes = slot.runs.as_ref().map_or(0, |runs| runs.writes());
        let eagerly = self.settings.spill_eagerly
            && slot.oldest() < u64::MAX
            && slot.run_count() < 4
            && (pages + slot.run_pages()) * PAGE <= self.ram.slot_limit();
        let merged = if eagerly {
            None
        } else if slot.oldest() == u64::MAX
            || (pages + slot.run_pages()) * 4 >= data
            || (pages + slot.run_pages()) * PAGE > self.ram.most_runs() * 3 / 4
            || slot.run_count() >= MAX_RUNS
            || writes + slot.buffered() > self.ram.most_runs() / 128
        {
            Some(slot)
        } else if (runs(Slot::run_pages) + pages) * SPACE > total
            || runs(Slot::run_ram) * 2 > self.ram.most_current()
        {
            Some(longest.unwrap_or(slot))
        } else {
            None
        };
        match merged {
            Some(slot) => {
                let position = slot.low;
                drop(view);
                self.merge_at(position)?;
            }
            None => {
                let slot = Arc::clone(slot);
                drop(view);
                self.spill(&slot)?;
            }
        }
        Ok(true)
    }

    /// Merges the slot whose buffered writes have most large values. Those that
    /// were replaced are free after the next commit.
    fn merge_large_values(&self) -> Result<bool> {
        let view = self.view.load_full();
        let slots = view.slots().iter().map(|slot| (slot.large_pages(), slot));
        let total: u64 = slots.clone().map(|(pages, _)| pages).sum();
        let most = slots.max_by_key(|&(pages, _)| pages);
        let most = most.map(|(pages, slot)| (pages, slot.low));
        drop(view);
        let (pages, position) = most.unwrap_or_default();
        if pages > 0 {
            self.merge_at(position)?;
        }
        let end = lock(&self.space).extents.end();
        let least = 4 * self.ram.segment_bytes() / PAGE;
        self.large_limit.store(least.max(end / 8), Ordering::Relaxed);
        self.large_pages.store(total - pages, Ordering::Relaxed);
        Ok(pages > 0)
    }

    /// Moves the buffered writes of a slot to a new run.
    fn spill(&self, slot: &Arc<Slot>) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        self.check_poison()?;
        let (delta, merged, id) = {
            let mut writer = lock(writer);
            let (delta, merged) = slot.freeze(writer.next - 1);
            let id = writer.next_segment;
            writer.next_segment += 1;
            (delta, merged, id)
        };
        let range = (slot.low, slot.depth);
        let (mut run, positions, bytes) = Run::build(&delta, range, id);
        let pages = run.entry.extent.pages;
        let extent = lock(&self.space).extents.allocate(pages);
        run.entry.extent = extent;
        write_all_at(&*self.data, &bytes, extent.offset()).map_err(|e| {
            self.give_back(&[extent]);
            Error::io("write", DATA, e)
        })?;
        drop(bytes);
        let bytes = run.entry.extent.pages * PAGE;
        Counters::add(&self.counters.segment_bytes, bytes);
        Counters::add(&self.counters.spills, 1);
        let runs = Runs::with(slot.runs.as_deref(), run, &positions);
        let new =
            Slot::new(range, merged, slot.segment.clone(), &self.ram.buffers)
                .with_runs(Arc::new(runs))
                .after(slot.readers().collect())
                .sharing(slot);
        self.publish_spilled(slot, delta, new);
        Ok(())
    }
}

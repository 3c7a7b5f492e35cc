//! Segments: immutable extents of blocks, with an index in memory.
//!
//! The index has a fence per page (32 bits of the position of the first
//! record of its block, after the bits that the segment's range shares) and a
//! filter. A lookup reads at most one block.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tamis::{Builder, TinySet};

use crate::codec::{checksum, u32_at, u64_at};
use crate::core::{Shared, lock};
use crate::disk::{DiskFile, read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::hash::filter_hash;
use crate::manifest::{DATA, MAX_PAGE, SegmentEntry};
use crate::page::{self, Block, Blocks, Record};
use crate::space::{Space, kept};

/// Length of the header of an index.
const HEADER: usize = 32;

/// Length of a large value's extent in an index.
pub(crate) const LARGE: usize = 16;

/// Bytes that a merge reads or writes at a time.
pub(crate) const CHUNK: usize = 256 << 10;

/// Largest depth of a range: the fence needs 32 more bits.
pub(crate) const MAX_DEPTH: u8 = 32;

/// Bits of `position` after the first `depth`.
#[inline]
pub(crate) fn prefix(position: u64, depth: u8) -> u32 {
    ((position << depth) >> 32) as u32
}

/// The index of a segment, in memory.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) entry: SegmentEntry,
    /// Pages of its place: those of its extent, and pages after it that are not
    /// given to others.
    taken: AtomicU64,
    fences: Box<[u32]>,
    filter: TinySet,
    /// Extents of the large values that records name, in order.
    larges: Box<[Extent]>,
    /// Sum of `ram` over all segments, which this one is part of.
    total: Arc<AtomicU64>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.total.fetch_sub(self.ram(), Ordering::Relaxed);
    }
}

impl Segment {
    fn new(
        entry: SegmentEntry,
        fences: Vec<u32>,
        filter: TinySet,
        larges: Vec<Extent>,
        total: &Arc<AtomicU64>,
    ) -> Self {
        let segment = Self {
            taken: entry.extent.pages.into(),
            entry,
            fences: fences.into(),
            filter,
            larges: larges.into(),
            total: Arc::clone(total),
        };
        total.fetch_add(segment.ram(), Ordering::Relaxed);
        segment
    }

    /// Bytes of memory held.
    pub(crate) fn ram(&self) -> u64 {
        size_of::<Self>() as u64
            + self.fences_ram()
            + self.filter.bytes()
            + size_of_val(&*self.larges) as u64
    }

    /// Bytes of the fences.
    pub(crate) fn fences_ram(&self) -> u64 {
        size_of_val(&*self.fences) as u64
    }

    /// The filter.
    pub(crate) fn filter(&self) -> &TinySet {
        &self.filter
    }

    /// The extent to release with the segment.
    pub(crate) fn taken(&self) -> Extent {
        let pages = self.taken.load(Ordering::Relaxed);
        Extent { start: self.entry.extent.start, pages }
    }

    /// Makes the place as long as the segment. Returns the pages after it,
    /// which the caller releases. The caller holds the space.
    pub(crate) fn trim(&self) -> Extent {
        let extent = self.entry.extent;
        let taken = self.taken.swap(extent.pages, Ordering::Relaxed);
        Extent { start: extent.end(), pages: taken - extent.pages }
    }

    /// Extents of large values.
    pub(crate) fn larges(&self) -> &[Extent] {
        &self.larges
    }

    /// The block that has the records at `position` if the segment has any:
    /// the number of its first page, and its pages.
    #[inline]
    pub(crate) fn locate(&self, position: u64) -> Option<(u32, u32)> {
        if !self.filter.contains_hash(filter_hash(position)) {
            return None;
        }
        let prefix = prefix(position, self.entry.depth);
        let end = self.fences.partition_point(|&fence| fence <= prefix);
        // Before the first fence the segment has no records.
        let fence = *self.fences[..end].last()?;
        let pages = self.fences[..end].iter().rev();
        let pages = pages.take_while(|&&other| other == fence).count();
        Some(((end - pages) as u32, pages as u32))
    }

    /// Pages of the block that begins with page `page`.
    fn block_pages(&self, page: usize) -> usize {
        let fence = self.fences[page];
        self.fences[page..].iter().take_while(|&&f| f == fence).count()
    }

    /// Offset in the file of a page.
    pub(crate) fn offset(&self, page: u32) -> u64 {
        self.entry.extent.offset() + u64::from(page) * PAGE
    }

    /// Checks a block that was read.
    #[inline]
    pub(crate) fn parse<'a>(
        &self,
        bytes: &'a [u8],
        page: u32,
    ) -> Result<Block<'a>> {
        Block::parse(bytes, self.entry.id, page)
            .map_err(|why| self.corrupt(page, why))
    }

    /// A contradiction in page `page`.
    pub(crate) fn corrupt(&self, page: u32, why: &'static str) -> Error {
        Error::corrupt(DATA, self.offset(page), why)
    }

    /// Reads the index of the segment of a manifest.
    pub(crate) fn read(
        file: &dyn DiskFile,
        entry: SegmentEntry,
        total: &Arc<AtomicU64>,
    ) -> Result<Self> {
        let outside = "a segment lies outside the file";
        let (bytes, offset) = read_index(file, &entry, outside)?;
        let corrupt = |why| Error::corrupt(DATA, offset, why);
        Self::parse_index(&bytes, entry, total).map_err(corrupt)
    }

    /// Decodes an index. The error is the contradiction.
    pub(crate) fn parse_index(
        bytes: &[u8],
        entry: SegmentEntry,
        total: &Arc<AtomicU64>,
    ) -> Result<Self, &'static str> {
        if bytes.len() < HEADER
            || checksum(&bytes[8..], entry.id) != u64_at(bytes, 0)
        {
            return Err("the checksum of an index is wrong");
        }
        if u64_at(bytes, 8) != entry.id {
            return Err("an index belongs to another segment");
        }
        let pages = u32_at(bytes, 16);
        let larges = u64::from(u32_at(bytes, 20));
        let fences_end = HEADER as u64 + u64::from(pages) * 4;
        let larges_end = fences_end + larges * LARGE as u64;
        if pages != entry.data_pages || larges_end > bytes.len() as u64 {
            return Err("the length of an index is wrong");
        }
        let (fences_end, larges_end) =
            (fences_end as usize, larges_end as usize);
        let fences = decode_fences(&bytes[HEADER..fences_end])
            .ok_or("the fences of an index are not in order")?;
        let larges = decode_larges(&bytes[fences_end..larges_end])?;
        let filter = TinySet::from_bytes(&bytes[larges_end..])
            .and_then(TinySet::into_owned)
            .map_err(|_| "the filter of an index is damaged")?;
        Ok(Self::new(entry, fences, filter, larges, total))
    }
}

/// Reads the index of a segment or a run, and returns its offset with it. The
/// error of one after the end of the file is `outside`.
pub(crate) fn read_index(
    file: &dyn DiskFile,
    entry: &SegmentEntry,
    outside: &'static str,
) -> Result<(Vec<u8>, u64)> {
    let io = |e| Error::io("read", DATA, e);
    let offset = entry.extent.offset() + u64::from(entry.data_pages) * PAGE;
    let len = u64::from(entry.index_len);
    let end = offset.checked_add(len);
    if end.is_none() || end > Some(file.len().map_err(io)?) {
        return Err(Error::corrupt(DATA, offset, outside));
    }
    let mut bytes = vec![0; len as usize];
    read_exact_at(file, &mut bytes, offset).map_err(io)?;
    Ok((bytes, offset))
}

/// Decodes fences; `None` if they are not in order.
pub(crate) fn decode_fences(bytes: &[u8]) -> Option<Vec<u32>> {
    let fences = bytes.chunks_exact(4).map(|fence| u32_at(fence, 0));
    let fences: Vec<_> = fences.collect();
    fences.is_sorted().then_some(fences)
}

/// Decodes extents of large values. The error is the contradiction.
pub(crate) fn decode_larges(
    bytes: &[u8],
) -> Result<Vec<Extent>, &'static str> {
    let larges: Vec<_> = bytes
        .chunks_exact(LARGE)
        .map(|at| Extent { start: u64_at(at, 0), pages: u64_at(at, 8) })
        .collect();
    match larges.iter().any(|e| e.start.max(e.pages) >= MAX_PAGE) {
        true => Err("a large value lies outside the file"),
        false => Ok(larges),
    }
}

/// The range and the identity of a segment that is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) low: u64,
    pub(crate) depth: u8,
    pub(crate) id: u64,
    pub(crate) merged: u64,
    /// Most pages, if they exceed those that are collected in memory.
    pub(crate) room: u64,
    /// The segment may leave the share `1 / slack` of its place unused.
    pub(crate) slack: u64,
}

/// Result of a [`SegmentWriter`].
#[derive(Debug)]
pub(crate) enum Written {
    /// The segment.
    Segment(Arc<Segment>),
    /// No record was added.
    Empty,
    /// More pages are needed than the target has room for.
    Full,
}

/// Writes a segment from records in order.
///
/// Pages are collected in memory, so that the segment takes an extent of its
/// own length: where the old segment was, a longer one would not fit.
#[derive(Debug)]
pub(crate) struct SegmentWriter<'a> {
    file: &'a dyn DiskFile,
    space: &'a Mutex<Space>,
    filter: &'a Builder<TinySet>,
    target: Target,
    blocks: Blocks,
    hashes: Vec<u64>,
    larges: Vec<Extent>,
    /// Most bytes that are collected.
    most: usize,
    /// Where pages are written, once they exceed that.
    extent: Option<Extent>,
    /// Pages written.
    written: u64,
    full: bool,
}

impl Drop for SegmentWriter<'_> {
    fn drop(&mut self) {
        if let Some(extent) = self.extent {
            lock(self.space).extents.release(extent);
        }
    }
}

impl<'a> SegmentWriter<'a> {
    /// A writer of `target` that collects `most` bytes of pages. `expected` is
    /// the probable number of pages.
    pub(crate) fn new(
        shared: &'a Shared,
        target: Target,
        most: usize,
        expected: u64,
    ) -> Self {
        let mut blocks = Blocks::new(target.id);
        let expected = (expected * PAGE) as usize;
        blocks.done().reserve_exact(expected.min(most));
        Self {
            file: &*shared.data,
            space: &shared.space,
            filter: &shared.filter,
            target,
            blocks,
            hashes: Vec::new(),
            larges: Vec::new(),
            most,
            extent: None,
            written: 0,
            full: false,
        }
    }

    /// Adds a record; `large` is the extent of its value, if it has one.
    pub(crate) fn push(
        &mut self,
        position: u64,
        record: &Record<'_>,
        large: Option<Extent>,
    ) -> Result<()> {
        self.blocks.push(prefix(position, self.target.depth), record);
        if self.hashes.len() == self.hashes.capacity() {
            self.hashes.reserve_exact((self.hashes.len() / 4).max(1 << 10));
        }
        self.hashes.push(filter_hash(position));
        self.larges.extend(large);
        let most = match self.extent {
            None => self.most,
            Some(_) => CHUNK.min(self.most),
        };
        match self.blocks.done().len() >= most {
            true => self.write_out(self.target.room),
            false => Ok(()),
        }
    }

    /// Writes finished blocks, to an extent of `pages` pages if there is none
    /// yet.
    fn write_out(&mut self, pages: u64) -> Result<()> {
        let (space, slack) = (self.space, self.target.slack);
        let extent = self.extent.get_or_insert_with(|| {
            lock(space).extents.allocate_place(pages, slack)
        });
        let extent = *extent;
        let done = self.blocks.done();
        let pages = done.len() as u64 / PAGE;
        self.full |= self.written + pages > extent.pages;
        if !self.full {
            let offset = extent.offset() + self.written * PAGE;
            write_all_at(self.file, done, offset)
                .map_err(|e| Error::io("write", DATA, e))?;
            self.written += pages;
        }
        done.clear();
        Ok(())
    }

    /// Writes the remaining pages and the index.
    pub(crate) fn finish(mut self, total: &Arc<AtomicU64>) -> Result<Written> {
        if self.hashes.is_empty() {
            return Ok(Written::Empty);
        }
        self.blocks.finish();
        let records = self.hashes.len() as u64;
        let mut filter = self.filter.items(records).build()?;
        filter.insert_hash_batch(&self.hashes);
        self.hashes = Vec::new();
        self.larges.sort_unstable();
        let Target { low, depth, id, merged, room, slack } = self.target;
        let fences = std::mem::take(&mut self.blocks.fences);
        let mut index = Vec::with_capacity(
            HEADER
                + fences.len() * 4
                + self.larges.len() * LARGE
                + filter.bytes() as usize,
        );
        index.extend_from_slice(&[0; 8]);
        index.extend_from_slice(&id.to_le_bytes());
        index.extend_from_slice(&(fences.len() as u32).to_le_bytes());
        index.extend_from_slice(&(self.larges.len() as u32).to_le_bytes());
        index.resize(HEADER, 0);
        for fence in &fences {
            index.extend_from_slice(&fence.to_le_bytes());
        }
        for large in &self.larges {
            index.extend_from_slice(&large.start.to_le_bytes());
            index.extend_from_slice(&large.pages.to_le_bytes());
        }
        let mut image = filter.to_bytes();
        index.append(&mut image);
        let sum = checksum(&index[8..], id);
        index[..8].copy_from_slice(&sum.to_le_bytes());
        let index_len = index.len() as u32;
        let data_pages = fences.len() as u32;
        index.resize(index.len().next_multiple_of(PAGE as usize), 0);
        let pages = (self.blocks.done().len() + index.len()) as u64 / PAGE;
        self.write_out(pages)?;
        *self.blocks.done() = index;
        self.write_out(room)?;
        let Some(taken) = self.extent.filter(|_| !self.full) else {
            return Ok(Written::Full);
        };
        self.extent = None;
        let (start, pages) = (taken.start, self.written);
        let extent = Extent { start, pages };
        let kept = kept(pages, taken.pages, slack);
        let rest = Extent { start: start + kept, pages: taken.pages - kept };
        lock(self.space).extents.release(rest);
        let entry = SegmentEntry {
            low,
            depth,
            id,
            extent,
            data_pages,
            index_len,
            records,
            merged,
        };
        let larges = std::mem::take(&mut self.larges);
        let segment = Segment::new(entry, fences, filter, larges, total);
        segment.taken.store(kept, Ordering::Relaxed);
        Ok(Written::Segment(Arc::new(segment)))
    }
}

/// Reads all records of a segment in order.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    /// The chunk read last, and its first page.
    chunk: Vec<u8>,
    first: usize,
    /// The current block: page, pages, offsets of the current record, of the
    /// next one, and of the end.
    page: usize,
    pages: usize,
    at: usize,
    next: usize,
    used: usize,
}

impl SegmentReader {
    /// A reader of `segment`.
    pub(crate) fn new(segment: Arc<Segment>, file: Arc<dyn DiskFile>) -> Self {
        Self {
            segment,
            file,
            chunk: Vec::new(),
            first: 0,
            page: 0,
            pages: 0,
            at: 0,
            next: 0,
            used: 0,
        }
    }

    /// First page of the current block.
    pub(crate) fn page(&self) -> u32 {
        self.page as u32
    }

    /// Moves to the next record; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.at = self.next;
        while self.at == self.used {
            if !self.next_block()? {
                return Ok(false);
            }
        }
        self.next = self.decode()?.1;
        Ok(true)
    }

    /// The record that [`advance`](Self::advance) moved to.
    pub(crate) fn record(&self) -> Result<Record<'_>> {
        Ok(self.decode()?.0)
    }

    /// The record at `at`, and the offset after it.
    fn decode(&self) -> Result<(Record<'_>, usize)> {
        let start = (self.page - self.first) * PAGE as usize;
        let block = &self.chunk[start..start + self.pages * PAGE as usize];
        // The block was checked when it was read.
        let mut records = Block::resume(block, self.at);
        match records.next() {
            Ok(Some(record)) => Ok((record, records.at())),
            _ => Err(self.corrupt("a block has too few records")),
        }
    }

    /// A contradiction in the current block.
    pub(crate) fn corrupt(&self, why: &'static str) -> Error {
        self.segment.corrupt(self.page as u32, why)
    }

    /// Reads and checks the next block; `false` at the end.
    fn next_block(&mut self) -> Result<bool> {
        let page = self.page + self.pages;
        let data_pages = self.segment.entry.data_pages as usize;
        if page == data_pages {
            return Ok(false);
        }
        let pages = self.segment.block_pages(page);
        let end = (page + pages - self.first) * PAGE as usize;
        if end > self.chunk.len() {
            let len = (CHUNK / PAGE as usize).max(pages);
            let len = len.min(data_pages - page) * PAGE as usize;
            self.chunk.resize(len, 0);
            self.first = page;
            let offset = self.segment.offset(page as u32);
            read_exact_at(&*self.file, &mut self.chunk, offset)
                .map_err(|e| Error::io("read", DATA, e))?;
        }
        let start = (page - self.first) * PAGE as usize;
        let bytes = &self.chunk[start..start + pages * PAGE as usize];
        let block = self.segment.parse(bytes, page as u32)?;
        let corrupt = |why| self.segment.corrupt(page as u32, why);
        let mut records = block.records();
        while records.next().map_err(corrupt)?.is_some() {}
        self.used = page::HEADER + block.len();
        self.at = page::HEADER;
        (self.page, self.pages) = (page, pages);
        Ok(true)
    }
}

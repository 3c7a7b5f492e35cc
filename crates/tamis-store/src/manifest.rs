//! The manifest: which segments, extents and logs are the store.
//!
//! The data file begins with two slots, a page each, that are written in
//! turn. A slot names a body, which has an extent of its own; both have
//! checksums. The valid slot with the greater generation counts.

use crate::codec::{checksum, u16_at, u32_at, u64_at, u128_at};
use crate::disk::{DiskFile, read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::options::SEGMENT_BYTES;
use crate::segment::MAX_DEPTH;

/// First bytes of a slot.
const MAGIC: [u8; 8] = *b"\x89TAMSTO\n";

/// Version of the store format.
pub(crate) const VERSION: u16 = 2;

/// Version of manifests without runs, which older programs read.
const WITHOUT_RUNS: u16 = 1;

/// Pages of the two slots.
pub(crate) const SLOTS: u64 = 2;

/// Bytes of a slot that are used.
const SLOT: usize = 64;

/// Length of a body before its segments.
const BODY: usize = 96;

/// Length of a segment in a body.
const SEGMENT: usize = 64;

/// Largest number that is counted up from.
const MAX: u64 = 1 << 62;

/// First page that no file has.
pub(crate) const MAX_PAGE: u64 = 1 << 50;

/// Name of the data file.
pub(crate) const DATA: &str = "data";

/// A segment in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentEntry {
    /// Smallest position of the range.
    pub(crate) low: u64,
    /// Number of upper bits that all positions of the range share.
    pub(crate) depth: u8,
    /// Identity, stored in every page.
    pub(crate) id: u64,
    /// Pages of records, then pages of the index. Empty segments have none.
    pub(crate) extent: Extent,
    /// Pages of records.
    pub(crate) data_pages: u32,
    /// Length of the index in bytes.
    pub(crate) index_len: u32,
    /// Number of records.
    pub(crate) records: u64,
    /// Writes up to this sequence number are in the segment.
    pub(crate) merged: u64,
}

/// The state of a store at a moment, without its logs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) generation: u64,
    /// Key of the hash of keys.
    pub(crate) hash_seed: u128,
    /// Secret that checksums of logs depend on.
    pub(crate) log_seed: u64,
    /// Bits of a filter per key.
    pub(crate) bits_per_key: f64,
    /// Size at which segments are split.
    pub(crate) segment_bytes: u64,
    /// Identity of the next segment.
    pub(crate) next_segment: u64,
    /// First log file that counts.
    pub(crate) first_log: u64,
    /// Sequence number of the first write of that log.
    pub(crate) first_sequence: u64,
    /// In the order of their ranges, which cover all positions.
    pub(crate) segments: Vec<SegmentEntry>,
    /// In the order of their ranges, and of their age, oldest first.
    pub(crate) runs: Vec<SegmentEntry>,
}

impl Manifest {
    /// Length of the body.
    pub(crate) fn body_len(segments: usize) -> usize {
        BODY + segments * SEGMENT
    }

    /// Encodes the body.
    pub(crate) fn body(&self) -> Vec<u8> {
        let count = self.segments.len() + self.runs.len();
        let mut out = Vec::with_capacity(Self::body_len(count));
        out.extend_from_slice(&self.hash_seed.to_le_bytes());
        out.extend_from_slice(&self.log_seed.to_le_bytes());
        out.extend_from_slice(&self.bits_per_key.to_bits().to_le_bytes());
        out.extend_from_slice(&self.next_segment.to_le_bytes());
        out.extend_from_slice(&self.first_log.to_le_bytes());
        out.extend_from_slice(&self.first_sequence.to_le_bytes());
        out.extend_from_slice(&(self.segments.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.segment_bytes.to_le_bytes());
        out.extend_from_slice(&(self.runs.len() as u64).to_le_bytes());
        out.resize(BODY, 0);
        for segment in self.segments.iter().chain(&self.runs) {
            let start = out.len();
            out.extend_from_slice(&segment.low.to_le_bytes());
            out.extend_from_slice(&segment.id.to_le_bytes());
            out.extend_from_slice(&segment.extent.start.to_le_bytes());
            let pages = segment.extent.pages as u32;
            out.extend_from_slice(&pages.to_le_bytes());
            out.extend_from_slice(&segment.data_pages.to_le_bytes());
            out.extend_from_slice(&segment.index_len.to_le_bytes());
            out.extend_from_slice(&u32::from(segment.depth).to_le_bytes());
            out.extend_from_slice(&segment.records.to_le_bytes());
            out.extend_from_slice(&segment.merged.to_le_bytes());
            out.resize(start + SEGMENT, 0);
        }
        out
    }

    /// Decodes a body of generation `generation`.
    fn parse(generation: u64, body: &[u8]) -> Result<Self, &'static str> {
        let runs = u64_at(body, 72);
        let count = u64_at(body, 56).checked_add(runs);
        let fits = count
            .and_then(|count| usize::try_from(count).ok())
            .and_then(|count| count.checked_mul(SEGMENT)?.checked_add(BODY));
        if body.len() < BODY || fits != Some(body.len()) {
            return Err("the manifest's length is not that of its segments");
        }
        let mut segments: Vec<_> = body[BODY..]
            .chunks_exact(SEGMENT)
            .map(|entry| SegmentEntry {
                low: u64_at(entry, 0),
                id: u64_at(entry, 8),
                extent: Extent {
                    start: u64_at(entry, 16),
                    pages: u32_at(entry, 24).into(),
                },
                data_pages: u32_at(entry, 28),
                index_len: u32_at(entry, 32),
                depth: u32_at(entry, 36).min(65) as u8,
                records: u64_at(entry, 40),
                merged: u64_at(entry, 48),
            })
            .collect();
        let runs = segments.split_off(segments.len() - runs as usize);
        let mut low = 0u128;
        for segment in &segments {
            let width = 1u128 << 64u32.saturating_sub(segment.depth.into());
            if segment.depth > MAX_DEPTH
                || u128::from(segment.low) != low
                || low % width != 0
            {
                return Err("the segments do not cover all positions");
            }
            low += width;
            let index_pages = u64::from(segment.index_len).div_ceil(PAGE);
            let pages = u64::from(segment.data_pages) + index_pages;
            if segment.extent.start >= MAX_PAGE
                || segment.records > u64::from(segment.data_pages) * PAGE
            {
                return Err("a segment is larger than a file can be");
            }
            if segment.extent.pages != pages
                || (segment.data_pages == 0) != (segment.records == 0)
                || (segment.data_pages == 0) != (segment.index_len == 0)
            {
                return Err("a segment's pages are not those of its parts");
            }
        }
        if low != 1 << 64 {
            return Err("the segments do not cover all positions");
        }
        let mut at = 0;
        for run in &runs {
            while segments.get(at).is_some_and(|s| s.low < run.low) {
                at += 1;
            }
            let slot = segments.get(at).map(|s| (s.low, s.depth));
            let index_pages = u64::from(run.index_len).div_ceil(PAGE);
            let pages = u64::from(run.data_pages) + index_pages;
            if slot != Some((run.low, run.depth))
                || run.extent.start >= MAX_PAGE
                || run.extent.pages != pages
                || run.index_len == 0
                || (run.data_pages == 0) != (run.records == 0)
                || run.records > u64::from(run.data_pages) * PAGE
            {
                return Err("a run does not belong to a segment");
            }
        }
        let most = crate::runs::MAX_RUNS;
        if runs.windows(most + 1).any(|w| w[0].low == w[most].low) {
            return Err("a segment has too many runs");
        }
        let bits_per_key = f64::from_bits(u64_at(body, 24));
        if !(1.0..=64.0).contains(&bits_per_key) {
            return Err("the bits per key are not between 1 and 64");
        }
        // Identity, log, sequence number and generation: they are counted
        // up, and never reach the limit.
        let counted = [u64_at(body, 32), u64_at(body, 40), u64_at(body, 48)];
        if counted.iter().chain([&generation]).any(|&n| n == 0 || n > MAX) {
            return Err("a number is out of range");
        }
        let segment_bytes = u64_at(body, 64);
        if !SEGMENT_BYTES.contains(&segment_bytes) {
            return Err("the size of segments is out of range");
        }
        Ok(Self {
            generation,
            segment_bytes,
            hash_seed: u128_at(body, 0),
            log_seed: u64_at(body, 16),
            bits_per_key,
            next_segment: u64_at(body, 32),
            first_log: u64_at(body, 40),
            first_sequence: u64_at(body, 48),
            segments,
            runs,
        })
    }

    /// Writes the slot that names the body at `at`.
    pub(crate) fn write_slot(
        &self,
        file: &dyn DiskFile,
        at: Extent,
        body: &[u8],
    ) -> Result<()> {
        let mut slot = [0; PAGE as usize];
        slot[..8].copy_from_slice(&MAGIC);
        let version = match self.runs.is_empty() {
            true => WITHOUT_RUNS,
            false => VERSION,
        };
        slot[8..10].copy_from_slice(&version.to_le_bytes());
        slot[16..24].copy_from_slice(&self.generation.to_le_bytes());
        slot[24..32].copy_from_slice(&at.offset().to_le_bytes());
        slot[32..40].copy_from_slice(&(body.len() as u64).to_le_bytes());
        let sum = checksum(body, self.generation);
        slot[40..48].copy_from_slice(&sum.to_le_bytes());
        let sum = checksum(&slot[..SLOT - 8], 0);
        slot[SLOT - 8..SLOT].copy_from_slice(&sum.to_le_bytes());
        let offset = self.generation % SLOTS * PAGE;
        write_all_at(file, &slot, offset)
            .map_err(|e| Error::io("write", DATA, e))
    }

    /// Reads the manifest of a data file, and the extent of its body. The
    /// directory of its segments needs more memory than the body, which may
    /// therefore not exceed the budget `ram`.
    pub(crate) fn read(
        file: &dyn DiskFile,
        ram: u64,
    ) -> Result<(Self, Extent)> {
        let io = |e| Error::io("read", DATA, e);
        let len = file.len().map_err(io)?;
        let mut slots = Vec::new();
        let mut newer = None;
        for i in 0..SLOTS {
            let mut slot = [0; SLOT];
            if len < i * PAGE + SLOT as u64 {
                continue;
            }
            read_exact_at(file, &mut slot, i * PAGE).map_err(io)?;
            let sum = checksum(&slot[..SLOT - 8], 0);
            if slot[..8] != MAGIC || u64_at(&slot, SLOT - 8) != sum {
                continue;
            }
            match u16_at(&slot, 8) {
                WITHOUT_RUNS..=VERSION => slots.push(slot),
                version => newer = Some(version),
            }
        }
        if let Some(found) = newer {
            return Err(Error::UnsupportedVersion {
                found,
                supported: VERSION,
            });
        }
        slots.sort_by_key(|slot| u64_at(slot, 16));
        let Some(slot) = slots.pop() else {
            let why = "neither slot of the manifest is valid";
            return Err(Error::corrupt(DATA, 0, why));
        };
        let (generation, offset) = (u64_at(&slot, 16), u64_at(&slot, 24));
        let body_len = u64_at(&slot, 32);
        let corrupt = |why| Error::corrupt(DATA, offset, why);
        if offset % PAGE != 0
            || offset < SLOTS * PAGE
            || offset.checked_add(body_len).is_none_or(|end| end > len)
        {
            return Err(corrupt("the manifest lies outside the file"));
        }
        if body_len > ram {
            return Err(Error::Ram { needed: body_len, budget: ram });
        }
        let mut body = vec![0; body_len as usize];
        read_exact_at(file, &mut body, offset).map_err(io)?;
        if checksum(&body, generation) != u64_at(&slot, 40) {
            return Err(corrupt("the checksum of the manifest is wrong"));
        }
        let manifest = Self::parse(generation, &body).map_err(corrupt)?;
        let extent =
            Extent { start: offset / PAGE, pages: body_len.div_ceil(PAGE) };
        Ok((manifest, extent))
    }
}

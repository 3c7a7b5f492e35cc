//! Costs of a store before it exists.

use std::sync::atomic::Ordering;

use tamis::TinySet;

use crate::codec::varint_len;
use crate::error::{Error, Result};
use crate::extents::PAGE;
use crate::many;
use crate::open::bits_per_key;
use crate::options::{FilterSize, MAX_KEY, MAX_VALUE, Options};
use crate::page;
use crate::ram::Ram;
use crate::runs;

/// Memory of a buffered write besides its key and its value: header of the
/// entry, and five bytes of a hash table that is between 7/16 and 7/8 full.
const ENTRY: f64 = 28.0 + 5.0 / 0.66;

/// Bytes of a filter besides its bits: the header of its file, and half a
/// block.
const FILTER: f64 = 192.0 + 32.0;

/// Share of an arena that its entries use: it grows in small steps.
const ARENA_FILL: f64 = 0.94;

/// Share of the buffer that is full while merging keeps up: merging begins
/// there.
const BUFFER_FILL: f64 = 0.8;

/// Result of [`plan`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// Records of a page; below 1 for records that need several.
    pub records_per_page: f64,
    /// Length of the data file after compaction.
    pub file_bytes: u64,
    /// Bytes of fences in memory.
    pub fences: u64,
    /// Bytes of filters in memory.
    pub filters: u64,
    /// Bytes of memory for the directory, for merging and for the log.
    pub reserved: u64,
    /// Bytes of memory that are left for buffered writes.
    pub buffer: u64,
    /// Bits of fences and filters per key.
    pub bits_per_key: f64,
    /// Reads for a key that is present and not buffered.
    pub reads_present: f64,
    /// Reads for a key that is absent.
    pub reads_absent: f64,
    /// Buffered records as a share of all records.
    pub buffered_share: f64,
    /// Records in runs as a share of all records, where the buffer is too
    /// small for merging alone.
    pub spilled_share: f64,
    /// Bytes written per put that replaces a record, the log included: the
    /// frame of the put, its share of a run, and the file divided by the
    /// buffered records and twice those in runs. The slot with most is merged
    /// first, and it has twice the average. Without runs the file is divided
    /// by twice the buffered records.
    pub written_per_put: f64,
}

/// The cost of a store of `items` keys of `key` bytes with values of `value`
/// bytes.
///
/// # Errors
///
/// [`Error::Ram`] if the budget has no room for the index, and
/// [`Error::InvalidArgument`], [`Error::TooLong`].
///
/// ```
/// use tamis_store::{Options, plan};
///
/// let options = Options::new().ram(64 << 20).absent_reads(0.01);
/// let plan = plan(10_000_000, 16, 100, &options)?;
/// assert_eq!(plan.reads_present, 1.0);
/// assert!(plan.reads_absent <= 0.01 && plan.bits_per_key < 10.0);
/// # Ok::<(), tamis_store::Error>(())
/// ```
pub fn plan(
    items: u64,
    key: usize,
    value: usize,
    options: &Options,
) -> Result<Plan> {
    options.check()?;
    for (what, len, max) in
        [("key", key, MAX_KEY), ("value", value, MAX_VALUE)]
    {
        if len > max {
            let (len, max) = (len as u64, max as u64);
            return Err(Error::TooLong { what, len, max });
        }
    }
    let (inline, large) = match value > crate::batch::MAX_INLINE {
        true => (page::Place::LEN, (value as u64).div_ceil(PAGE) * PAGE),
        false => (value, 0),
    };
    let lengths = varint_len((key as u32) << 1) + varint_len(inline as u32);
    let record = lengths + key + inline;
    let room = PAGE as usize - page::HEADER;
    let records_per_page = match record <= room {
        true => (room / record) as f64,
        false => 1.0 / (record + page::HEADER).div_ceil(PAGE as usize) as f64,
    };
    let bits = bits_per_key(options.filter)?;
    let reads_absent = match options.filter {
        FilterSize::AbsentReads(share) => TinySet::builder().fpr(share),
        FilterSize::BitsPerKey(bits) => TinySet::builder().bits_per_key(bits),
    }
    .predict()?
    .fpr;
    let n = items as f64;
    let pages = (n / records_per_page).ceil();
    let fences = 4.0 * pages;
    let data = pages * PAGE as f64;
    let segments = (data / options.segment_bytes as f64).ceil().max(1.0);
    let filters = n * bits / 8.0 + segments * FILTER;
    // Half a page per segment is lost where its index ends.
    let index_file = fences + filters + segments * PAGE as f64 / 2.0;
    let file = data + index_file + n * large as f64;
    let ram = Ram::new(options, options.segment_bytes);
    ram.queue.store(many::queue_ram(options), Ordering::Relaxed);
    // Directory, slots and segments, without fences and filters.
    let per_segment = 600.0;
    let reserved = ram.reserved() + (segments * per_segment) as u64;
    let index = reserved + (fences + filters) as u64;
    let left = options.ram.saturating_sub(index);
    if left < ram.least_buffer() {
        let needed = index + ram.least_buffer();
        return Err(Error::Ram { needed, budget: options.ram });
    }
    let left = left.min(options.buffer_bytes);
    let entry = (key + inline) as f64 + ENTRY;
    let buffered = (left as f64 * BUFFER_FILL * ARENA_FILL / entry).min(n);
    let frame = (40 + 1 + lengths + key + inline).next_multiple_of(8) as f64;
    let file_share = data + index_file;
    let (mut spilled, mut buffered) = (0.0, buffered);
    let mut merged = file_share / (2.0 * buffered.max(1.0));
    // The fullest slot has less than a quarter of its segment.
    let held = left as f64 * BUFFER_FILL;
    if 2.0 * held < data / 4.0 {
        let run_ram = 9.0 + 4.0 / records_per_page;
        let record = PAGE as f64 / records_per_page + 8.0;
        let in_ram = left as f64 / 2.0 / run_ram;
        let most = (data / runs::SPACE as f64).min(in_ram * record);
        let free =
            |spilled: f64| (held - spilled * run_ram) * ARENA_FILL / entry;
        // A run ends with a part of a page of records, and one of index.
        let size = 2.0 * free(most / record) / segments;
        let bytes = record + PAGE as f64 / size.max(1.0);
        spilled = (most / bytes).min(n);
        buffered = free(spilled).min(n);
        merged = (2.0 * spilled * bytes + file_share)
            / (2.0 * spilled + buffered).max(1.0);
    }
    Ok(Plan {
        records_per_page,
        file_bytes: file as u64,
        fences: fences as u64,
        filters: filters as u64,
        reserved,
        buffer: left,
        bits_per_key: 8.0 * (fences + filters) / n.max(1.0),
        reads_present: 1.0 + f64::from(u8::from(large > 0)),
        reads_absent,
        buffered_share: buffered / n.max(1.0),
        spilled_share: spilled / n.max(1.0),
        written_per_put: frame + merged + large as f64,
    })
}

//! Buckets of fixed-size records in a file, and counts of its reads and
//! writes.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::key::{HashId, KeyHasher};
use crate::placement::MAX_CHOICES;
use crate::summary::TableShape;

/// First bytes of a file.
const MAGIC: [u8; 8] = *b"\x89TAMTBL\n";
/// Bytes before the first bucket.
const HEADER: u64 = 4096;
/// Bytes of the header that are used: magic, hash id, key and value bytes,
/// records per bucket, levels, items, seed, 8 level sizes, checksum.
const USED: usize = 8 + 4 * 4 + 4 + 8 + 16 + 8 * MAX_CHOICES + 8;
/// Most bytes of a record.
const MAX_RECORD: usize = 1 << 16;
/// Bytes of a read in order.
const SCAN: usize = 1 << 20;

/// States of a record, its first byte.
const FREE: u8 = 0;
const TAKEN: u8 = 1;

/// Reads and writes of a table's file.
///
/// ```
/// assert_eq!(tamis::table::IoCounts::default().reads, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IoCounts {
    /// Reads of one bucket (`pread`).
    pub reads: u64,
    /// Reads of the whole file in order, in parts of a mebibyte: by opening,
    /// audits and refreshed summaries.
    pub scan_reads: u64,
    /// Writes of one record (`pwrite`).
    pub writes: u64,
    /// Bytes written.
    pub written: u64,
}

/// The sizes of records and buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    /// Records per bucket (h).
    pub(super) records: usize,
    buckets: u64,
}

/// A record in a bucket; `key` is `None` if it is free.
pub(super) struct Record<'a> {
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: &'a [u8],
}

impl Layout {
    pub(super) fn new(
        key_bytes: usize,
        value_bytes: usize,
        shape: &TableShape,
    ) -> Result<Self> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        let record = key_bytes.saturating_add(value_bytes);
        if key_bytes == 0 || record > MAX_RECORD {
            return invalid(
                "record",
                "expected at least one byte of key, and at most 64 KiB",
            );
        }
        let records = shape.bucket_entries() as usize;
        if records.saturating_mul(1 + record) > SCAN {
            return invalid("bucket entries", "expected at most 1 MiB");
        }
        let buckets = shape.levels().iter().sum();
        let layout = Self { key_bytes, value_bytes, records, buckets };
        match layout.file_bytes() {
            Some(_) => Ok(layout),
            None => invalid("levels", "expected a file below 2^63 bytes"),
        }
    }

    fn record_bytes(&self) -> usize {
        1 + self.key_bytes + self.value_bytes
    }

    pub(super) fn bucket_bytes(&self) -> usize {
        self.records * self.record_bytes()
    }

    fn file_bytes(&self) -> Option<u64> {
        let bytes = self.buckets.checked_mul(self.bucket_bytes() as u64)?;
        bytes.checked_add(HEADER).filter(|&bytes| bytes < 1 << 63)
    }

    /// `file_bytes` fits, so this does for every bucket.
    fn offset(&self, bucket: u64) -> u64 {
        HEADER + bucket * self.bucket_bytes() as u64
    }

    /// The records of a bucket.
    pub(super) fn records<'a>(
        &self,
        bucket: &'a [u8],
    ) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let key_bytes = self.key_bytes;
        bucket.chunks_exact(self.record_bytes()).map(move |record| {
            let (key, value) = record[1..].split_at(key_bytes);
            Record { key: (record[0] != FREE).then_some(key), value }
        })
    }
}

/// An open file, locked for this table alone.
pub(super) struct BucketFile {
    file: File,
    pub(super) layout: Layout,
    reads: AtomicU64,
    scan_reads: AtomicU64,
    writes: AtomicU64,
    written: AtomicU64,
}

impl BucketFile {
    pub(super) fn create(
        path: &Path,
        layout: Layout,
        shape: &TableShape,
        hasher: &KeyHasher,
    ) -> Result<Self> {
        let mut options = OpenOptions::new();
        if hasher.id() == HashId::SipHash13 {
            // The header contains the key of the hash.
            options.mode(0o600);
        }
        let file =
            options.read(true).write(true).create_new(true).open(path)?;
        lock(&file)?;
        let bytes = layout.file_bytes().unwrap_or(u64::MAX);
        file.set_len(bytes)?;
        file.write_all_at(&header(&layout, shape, hasher), 0)?;
        Ok(Self::new(file, layout))
    }

    pub(super) fn open(path: &Path) -> Result<(Self, TableShape, KeyHasher)> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        lock(&file)?;
        let found = file.metadata()?.len();
        if found < HEADER {
            return Err(Error::TooShort { expected: HEADER, found });
        }
        let mut bytes = [0; USED];
        file.read_exact_at(&mut bytes, 0)?;
        let (layout, shape, hasher) = parse(&bytes)?;
        let expected = layout.file_bytes().unwrap_or(u64::MAX);
        if found != expected {
            return Err(Error::Length { expected, found });
        }
        Ok((Self::new(file, layout), shape, hasher))
    }

    fn new(file: File, layout: Layout) -> Self {
        Self {
            file,
            layout,
            reads: AtomicU64::new(0),
            scan_reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    pub(super) fn counts(&self) -> IoCounts {
        let [reads, scan_reads, writes, written] =
            [&self.reads, &self.scan_reads, &self.writes, &self.written]
                .map(|count| count.load(Ordering::Relaxed));
        IoCounts { reads, scan_reads, writes, written }
    }

    pub(super) fn sync(&self) -> Result<()> {
        Ok(self.file.sync_data()?)
    }

    /// Reads a bucket.
    pub(super) fn read(&self, bucket: u64, buffer: &mut [u8]) -> Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.file.read_exact_at(buffer, self.layout.offset(bucket))?)
    }

    /// Writes a record of a bucket.
    pub(super) fn write_record(
        &self,
        bucket: u64,
        at: usize,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.write(bucket, at, &[&[TAKEN], key, value].concat())
    }

    /// Frees a record of a bucket.
    pub(super) fn free_record(&self, bucket: u64, at: usize) -> Result<()> {
        self.write(bucket, at, &[FREE])
    }

    fn write(&self, bucket: u64, at: usize, bytes: &[u8]) -> Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let within = (at * self.layout.record_bytes()) as u64;
        let offset = self.layout.offset(bucket) + within;
        Ok(self.file.write_all_at(bytes, offset)?)
    }

    /// Reads all buckets in order.
    pub(super) fn scan(
        &self,
        mut each: impl FnMut(u64, &mut dyn Iterator<Item = Record<'_>>),
    ) -> Result<()> {
        let size = self.layout.bucket_bytes();
        // `Layout::new` ensured that a bucket fits.
        let at_once = (SCAN / size) as u64;
        let mut buffer = vec![0; at_once as usize * size];
        let mut first = 0;
        while first < self.layout.buckets {
            let count = at_once.min(self.layout.buckets - first);
            let part = &mut buffer[..count as usize * size];
            self.scan_reads.fetch_add(1, Ordering::Relaxed);
            self.file.read_exact_at(part, self.layout.offset(first))?;
            for (bucket, bytes) in (first..).zip(part.chunks_exact(size)) {
                let states = bytes.chunks_exact(self.layout.record_bytes());
                if states.clone().any(|record| record[0] > TAKEN) {
                    return Err(Error::Inconsistent(
                        "a record of the table has no valid state",
                    ));
                }
                each(bucket, &mut self.layout.records(bytes));
            }
            first += count;
        }
        Ok(())
    }
}

/// Locks a file for this table alone, until it is closed.
fn lock(file: &File) -> Result<()> {
    let operation = FlockOperation::NonBlockingLockExclusive;
    match rustix::io::retry_on_intr(|| flock(file, operation)) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err(Error::Busy { holder: "a writer", waited: Duration::ZERO })
        }
        Err(error) => Err(Error::Io(error.into())),
    }
}

fn header(layout: &Layout, shape: &TableShape, hasher: &KeyHasher) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for word in [
        u32::from(hasher.id().code()),
        layout.key_bytes as u32,
        layout.value_bytes as u32,
        shape.bucket_entries(),
        shape.levels().len() as u32,
    ] {
        out.extend(word.to_le_bytes());
    }
    out.extend(shape.items().to_le_bytes());
    out.extend(hasher.seed().to_le_bytes());
    for level in 0..MAX_CHOICES {
        let buckets = shape.levels().get(level).copied().unwrap_or(0);
        out.extend(buckets.to_le_bytes());
    }
    let checksum = xxh3_64(&out);
    out.extend(checksum.to_le_bytes());
    out
}

fn parse(bytes: &[u8; USED]) -> Result<(Layout, TableShape, KeyHasher)> {
    let u32_at = |at: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(word)
    };
    let u64_at =
        |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    if bytes[..8] != MAGIC {
        let mut found = [0; 8];
        found.copy_from_slice(&bytes[..8]);
        return Err(Error::NotTamis { found });
    }
    let (content, _) = bytes.split_at(USED - 8);
    let (expected, found) = (u64_at(USED - 8), xxh3_64(content));
    if expected != found {
        return Err(Error::Checksum { part: "header", expected, found });
    }
    let corrupt = |error: Error| match error {
        Error::InvalidArgument { what, why } => {
            Error::Corrupt { field: what, why }
        }
        other => other,
    };
    let code = u16::try_from(u32_at(8)).unwrap_or(u16::MAX);
    let seed = u128::from(u64_at(36)) | u128::from(u64_at(44)) << 64;
    let hasher =
        KeyHasher::new(HashId::from_code(code)?, seed).map_err(corrupt)?;
    let count = (u32_at(24) as usize).min(MAX_CHOICES + 1);
    let levels: Vec<u64> =
        (0..count.min(MAX_CHOICES)).map(|i| u64_at(52 + 8 * i)).collect();
    if count > MAX_CHOICES {
        return Err(Error::Corrupt {
            field: "levels",
            why: "expected 1 to 8",
        });
    }
    let shape =
        TableShape::new(u64_at(28), &levels, u32_at(20)).map_err(corrupt)?;
    let layout = Layout::new(u32_at(12) as usize, u32_at(16) as usize, &shape)
        .map_err(corrupt)?;
    Ok((layout, shape, hasher))
}

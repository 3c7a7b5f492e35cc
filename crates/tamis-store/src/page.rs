//! Blocks of records: one page, or several where a record or a group of
//! equal prefixes exceeds a page.
//!
//! A block is read and checked as a whole. Records are ordered by position,
//! then by key, and never cross the end of a block.

use crate::batch::MAX_INLINE;
use crate::codec::{checksum, put_varint, u32_at, u64_at, varint, varint_len};
use crate::extents::{Extent, PAGE};
use crate::manifest::MAX_PAGE;
use crate::options::{MAX_KEY, MAX_VALUE};

/// Length of the header of a block.
pub(crate) const HEADER: usize = 32;

/// Place and checksum of a large value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Pages of the value.
    pub(crate) extent: Extent,
    /// Length of the value.
    pub(crate) len: u32,
    /// Checksum of the value, with its first page as the seed.
    pub(crate) sum: u64,
}

impl Place {
    /// Length of the encoding.
    pub(crate) const LEN: usize = 24;

    /// A place at `extent` for `value`.
    pub(crate) fn of(extent: Extent, value: &[u8]) -> Self {
        let sum = checksum(value, extent.start);
        Self { extent, len: value.len() as u32, sum }
    }

    /// Encodes the place.
    pub(crate) fn encode(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.extent.start.to_le_bytes());
        out[8..12].copy_from_slice(&self.len.to_le_bytes());
        out[16..].copy_from_slice(&self.sum.to_le_bytes());
        out
    }

    /// Decodes a place; `None` if the bytes are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (start, len) = (u64_at(bytes, 0), u32_at(bytes, 8));
        let valid = bytes.len() == Self::LEN
            && len as usize <= MAX_VALUE
            && start < MAX_PAGE
            && u32_at(bytes, 12) == 0;
        valid.then(|| Self {
            extent: Extent { start, pages: u64::from(len).div_ceil(PAGE) },
            len,
            sum: u64_at(bytes, 16),
        })
    }
}

/// A record of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    /// The value, or the encoding of its place.
    pub(crate) value: &'a [u8],
    /// Whether the value is elsewhere.
    pub(crate) large: bool,
}

impl Record<'_> {
    /// Length of the encoding.
    pub(crate) fn len(&self) -> usize {
        varint_len((self.key.len() as u32) << 1)
            + varint_len(self.value.len() as u32)
            + self.key.len()
            + self.value.len()
    }

    /// Appends the encoding.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let tag = (self.key.len() as u32) << 1 | u32::from(self.large);
        put_varint(out, tag);
        put_varint(out, self.value.len() as u32);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }
}

/// A block whose checksum and identity are those expected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// The encoded records.
    records: &'a [u8],
    count: u32,
}

impl<'a> Block<'a> {
    /// Checks the block of segment `id` whose first page is number `page` of
    /// its segment. The error is the contradiction.
    pub(crate) fn parse(
        bytes: &'a [u8],
        id: u64,
        page: u32,
    ) -> Result<Self, &'static str> {
        let pages = bytes.len() as u64 / PAGE;
        if bytes.len() < HEADER || bytes.len() as u64 % PAGE != 0 {
            return Err("a block is not a whole number of pages");
        }
        if checksum(&bytes[8..], 0) != u64_at(bytes, 0) {
            return Err("the checksum of a block is wrong");
        }
        if u64_at(bytes, 8) != id {
            return Err("a block belongs to another segment");
        }
        if u32_at(bytes, 16) != page || u64::from(u32_at(bytes, 20)) != pages {
            return Err("a block belongs to another place of its segment");
        }
        let used = u32_at(bytes, 28) as usize;
        let records = bytes.get(HEADER..used);
        let records = records.ok_or("a block is shorter than its records")?;
        Ok(Self { records, count: u32_at(bytes, 24) })
    }

    /// The record of `key`. The error is a contradiction in the records.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &[u8],
    ) -> Result<Option<Record<'a>>, &'static str> {
        let mut records = self.records();
        loop {
            records.skip_others(key);
            match records.next()? {
                Some(record) if record.key != key => {}
                found => return Ok(found),
            }
        }
    }

    /// Bytes of the records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The records from offset `at` on, of the bytes of a checked block.
    pub(crate) fn resume(bytes: &'a [u8], at: usize) -> Records<'a> {
        Records { bytes, at, left: u32::MAX }
    }

    /// The records in order.
    pub(crate) fn records(&self) -> Records<'a> {
        Records { bytes: self.records, at: 0, left: self.count }
    }
}

/// Decoder of the records of a block.
#[derive(Debug, Clone)]
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Records<'a> {
    /// Offset of the next record.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Passes records that are not that of `key`, up to one with a length of
    /// two bytes or more, or one that exceeds the block.
    #[inline]
    fn skip_others(&mut self, key: &[u8]) {
        while self.left > 0 {
            let Some(&[tag, value_len]) = self.bytes.get(self.at..self.at + 2)
            else {
                return;
            };
            let key_len = usize::from(tag >> 1);
            let key_end = self.at + 2 + key_len;
            let end = key_end + usize::from(value_len);
            if (tag | value_len) >= 0x80 || end > self.bytes.len() {
                return;
            }
            // Keys often begin alike: the last byte is compared first.
            let ends_alike = || {
                key.last().is_none_or(|&last| self.bytes[key_end - 1] == last)
            };
            if key_len == key.len() && ends_alike() {
                return;
            }
            self.at = end;
            self.left -= 1;
        }
    }

    /// The next record. The error is a contradiction.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Record<'a>>, &'static str> {
        if self.left == 0 {
            return match self.at == self.bytes.len() {
                true => Ok(None),
                false => Err("a block has more bytes than records"),
            };
        }
        self.left -= 1;
        let record = self.decode();
        record.map(Some).ok_or("a record exceeds its block")
    }

    /// Decodes the record at `at`.
    #[inline]
    fn decode(&mut self) -> Option<Record<'a>> {
        let mut at = self.at;
        let tag = varint(self.bytes, &mut at)?;
        let value_len = varint(self.bytes, &mut at)? as usize;
        let (key_len, large) = ((tag >> 1) as usize, tag & 1 == 1);
        if key_len > MAX_KEY
            || value_len > MAX_INLINE
            || large && value_len != Place::LEN
        {
            return None;
        }
        let key = self.bytes.get(at..at + key_len)?;
        at += key_len;
        let value = self.bytes.get(at..at + value_len)?;
        self.at = at + value_len;
        Some(Record { key, value, large })
    }
}

/// Encoder of the blocks of a segment.
///
/// Records are added in order. A block ends only between two records whose
/// prefixes differ, so that a prefix belongs to one block.
#[derive(Debug)]
pub(crate) struct Blocks {
    id: u64,
    /// The block being filled, with room for its header.
    bytes: Vec<u8>,
    count: u32,
    /// Offset in `bytes` of the first record with the prefix of the last.
    group: usize,
    /// Records before `group`.
    before: u32,
    first_prefix: u32,
    last_prefix: u32,
    /// Finished blocks not yet taken.
    done: Vec<u8>,
    /// For each finished page the prefix of its block's first record.
    pub(crate) fences: Vec<u32>,
}

impl Blocks {
    /// Blocks of segment `id`.
    pub(crate) fn new(id: u64) -> Self {
        Self {
            id,
            bytes: vec![0; HEADER],
            count: 0,
            group: HEADER,
            before: 0,
            first_prefix: 0,
            last_prefix: 0,
            done: Vec::new(),
            fences: Vec::new(),
        }
    }

    /// Pages of the block being filled.
    fn pages(&self) -> usize {
        self.bytes.len().div_ceil(PAGE as usize)
    }

    /// Adds a record with this prefix, which is at least that of the last.
    pub(crate) fn push(&mut self, prefix: u32, record: &Record<'_>) {
        let new_group = self.count == 0 || prefix != self.last_prefix;
        let room = self.pages() * PAGE as usize - self.bytes.len();
        if self.count > 0 && room < record.len() {
            if new_group {
                self.finish();
            } else if self.before > 0 {
                let rest = self.bytes.split_off(self.group);
                let (count, prefix) = (self.count, self.last_prefix);
                let moved = count - self.before;
                self.count = self.before;
                self.finish();
                self.bytes.extend_from_slice(&rest);
                self.count = moved;
                self.first_prefix = prefix;
                self.last_prefix = prefix;
            }
        }
        if self.count == 0 {
            self.first_prefix = prefix;
        }
        if self.count == 0 || prefix != self.last_prefix {
            self.group = self.bytes.len();
            self.before = self.count;
        }
        self.last_prefix = prefix;
        record.encode(&mut self.bytes);
        self.count += 1;
    }

    /// Ends the block being filled.
    pub(crate) fn finish(&mut self) {
        if self.count == 0 {
            return;
        }
        let (pages, page) = (self.pages(), self.fences.len() as u32);
        let used = self.bytes.len() as u32;
        self.bytes.resize(pages * PAGE as usize, 0);
        let bytes = &mut self.bytes;
        bytes[8..16].copy_from_slice(&self.id.to_le_bytes());
        bytes[16..20].copy_from_slice(&page.to_le_bytes());
        bytes[20..24].copy_from_slice(&(pages as u32).to_le_bytes());
        bytes[24..28].copy_from_slice(&self.count.to_le_bytes());
        bytes[28..32].copy_from_slice(&used.to_le_bytes());
        let sum = checksum(&bytes[8..], 0);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        self.done.extend_from_slice(bytes);
        for _ in 0..pages {
            self.fences.push(self.first_prefix);
        }
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        self.count = 0;
        self.group = HEADER;
        self.before = 0;
    }

    /// Finished blocks. The caller writes and clears them.
    pub(crate) fn done(&mut self) -> &mut Vec<u8> {
        &mut self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Blocks hold all records in order, a prefix is in one block, and a
        /// block exceeds a page only for one prefix or one record.
        #[test]
        fn blocks_are_read_as_written(
            records in prop::collection::vec(
                (0..60u32, 0..40usize, prop_oneof![
                    9 => 0..300usize, 1 => 3000..20000usize
                ]),
                1..300,
            )
        ) {
            let mut records = records;
            records.sort();
            let mut blocks = Blocks::new(9);
            let filler = vec![7; 20000];
            for &(prefix, key, value) in &records {
                let record = Record {
                    key: &filler[..key], value: &filler[..value], large: false,
                };
                blocks.push(prefix, &record);
            }
            blocks.finish();
            let bytes = std::mem::take(blocks.done());
            let fences = blocks.fences;
            prop_assert_eq!(bytes.len(), fences.len() * PAGE as usize);
            let mut read = Vec::new();
            let mut start = 0;
            while start < fences.len() {
                let pages =
                    fences[start..].iter().take_while(|&&f| f == fences[start]);
                let end = start + pages.count();
                let block = &bytes[start * 4096..end * 4096];
                let block = Block::parse(block, 9, start as u32).unwrap();
                let mut records = block.records();
                let before = read.len();
                while let Some(record) = records.next().unwrap() {
                    read.push((record.key.len(), record.value.len()));
                }
                prop_assert!(read.len() > before);
                start = end;
            }
            let written: Vec<_> =
                records.iter().map(|&(_, key, value)| (key, value)).collect();
            prop_assert_eq!(read, written);
            prop_assert!(fences.windows(2).all(|w| w[0] <= w[1]));
        }

        #[test]
        fn changed_bytes_are_detected(at in 0..4096usize, bit in 0..8u8) {
            let mut blocks = Blocks::new(1);
            let record = Record { key: b"key", value: b"v", large: false };
            blocks.push(0, &record);
            blocks.finish();
            let mut bytes = blocks.done().clone();
            bytes[at] ^= 1 << bit;
            prop_assert!(Block::parse(&bytes, 1, 0).is_err());
        }
    }

    #[test]
    fn blocks_of_other_places_are_refused() {
        let mut blocks = Blocks::new(1);
        let record = Record { key: b"key", value: b"v", large: false };
        blocks.push(0, &record);
        blocks.finish();
        let bytes = blocks.done().clone();
        let block = Block::parse(&bytes, 1, 0).unwrap();
        assert_eq!(block.find(b"key").unwrap(), Some(record));
        assert_eq!(block.find(b"kex").unwrap(), None);
        assert!(Block::parse(&bytes, 2, 0).is_err());
        assert!(Block::parse(&bytes, 1, 1).is_err());
        assert!(Block::parse(&bytes[..100], 1, 0).is_err());
        let twice = [&bytes[..], &bytes[..]].concat();
        assert!(Block::parse(&twice, 1, 0).is_err());
    }
}

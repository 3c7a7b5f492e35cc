//! The header: fixed fields, geometry, section table, checksum.

use alloc::vec;
use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::{FORMAT_VERSION, Kind, MAGIC};
use crate::error::{Error, Result};
use crate::key::{HashId, KeyHasher};

/// Bytes before the geometry.
const FIXED: usize = 72;
/// Bytes of one entry in the section table.
const ENTRY: usize = 32;
/// Bytes of the checksum that ends the header.
const CHECKSUM: usize = 8;
/// Everything starts at a multiple of this.
pub(super) const ALIGN: usize = 64;

/// What every structure counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counts {
    pub(crate) items: u64,
    pub(crate) design_items: u64,
    pub(crate) design_fpr: f64,
}

impl Counts {
    /// For an empty structure.
    ///
    /// The predicted rate is kept to seven digits: it is shown to people,
    /// and the last bits of a better computation must not make two builds of
    /// the same filter differ.
    pub(crate) fn empty(design_items: u64, design_fpr: f64) -> Self {
        let near = design_fpr as f32;
        // Downwards: a rate that was asked for must not look missed.
        let down = match f64::from(near) > design_fpr {
            true => f32::from_bits(near.to_bits() - 1),
            false => near,
        };
        let design_fpr = f64::from(down);
        Self { items: 0, design_items, design_fpr }
    }
}

/// Where a section lies and what its bytes sum to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) tag: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: u64,
}

/// A parsed header. Its sections are inside the file, aligned, in order and
/// do not overlap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) hasher: KeyHasher,
    pub(crate) counts: Counts,
    pub(crate) geometry: Vec<u8>,
    pub(crate) sections: Vec<Section>,
    pub(crate) file_bytes: u64,
}

/// Bytes the header takes with this much geometry and this many sections.
pub(crate) fn header_bytes(geometry: usize, sections: usize) -> usize {
    (FIXED + geometry + sections * ENTRY + CHECKSUM).next_multiple_of(ALIGN)
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let len = header_bytes(self.geometry.len(), self.sections.len());
        let mut out = vec![0; len];
        let mut at = Writer { bytes: &mut out, at: 0 };
        at.put(&MAGIC);
        at.put(&FORMAT_VERSION.to_le_bytes());
        at.put(&self.kind.code().to_le_bytes());
        at.put(&self.hasher.id().code().to_le_bytes());
        at.put(&0u16.to_le_bytes());
        at.put(&self.hasher.seed().to_le_bytes());
        at.put(&self.file_bytes.to_le_bytes());
        at.put(&self.counts.items.to_le_bytes());
        at.put(&self.counts.design_items.to_le_bytes());
        at.put(&self.counts.design_fpr.to_bits().to_le_bytes());
        // Headers are a few hundred bytes: these lengths fit by far.
        at.put(&(len as u16).to_le_bytes());
        at.put(&(self.geometry.len() as u16).to_le_bytes());
        at.put(&(self.sections.len() as u16).to_le_bytes());
        at.put(&0u16.to_le_bytes());
        at.put(&self.geometry);
        for section in &self.sections {
            at.put(&section.tag.to_le_bytes());
            at.put(&0u32.to_le_bytes());
            at.put(&section.offset.to_le_bytes());
            at.put(&section.bytes.to_le_bytes());
            at.put(&section.checksum.to_le_bytes());
        }
        let checksum = xxh3_64(&out[..len - CHECKSUM]);
        out[len - CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads and checks a header in time independent of the payload.
    ///
    /// Sees every change to a header byte (it is covered by a checksum) and
    /// every missing or extra byte; does not see changes to the payload.
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let smallest = header_bytes(0, 0);
        if file.len() < smallest {
            // A short file of another kind deserves the better message.
            match file.first_chunk() {
                Some(start) if *start != MAGIC => {
                    return Err(Error::NotTamis { found: *start });
                }
                _ => {}
            }
            return Err(Error::TooShort {
                expected: smallest as u64,
                found: file.len() as u64,
            });
        }
        let mut at = Reader { bytes: file };
        let magic = at.take()?;
        if magic != MAGIC {
            return Err(Error::NotTamis { found: magic });
        }
        let version = at.u16()?;
        if version != FORMAT_VERSION {
            return Err(Error::UnsupportedVersion {
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        let kind = at.u16()?;
        let hash = at.u16()?;
        let flags = at.u16()?;
        let seed = u128::from_le_bytes(at.take()?);
        let file_bytes = at.u64()?;
        let items = at.u64()?;
        let design_items = at.u64()?;
        let design_fpr = f64::from_bits(at.u64()?);
        let len = usize::from(at.u16()?);
        let geometry_bytes = usize::from(at.u16()?);
        let section_count = usize::from(at.u16()?);
        let reserved = at.u16()?;

        if len != header_bytes(geometry_bytes, section_count) {
            return Err(corrupt("header length", "does not fit its parts"));
        }
        let Some(header) = file.get(..len) else {
            return Err(Error::TooShort {
                expected: len as u64,
                found: file.len() as u64,
            });
        };
        let (covered, stored) = header.split_at(len - CHECKSUM);
        let expected = Reader { bytes: stored }.u64()?;
        let found = xxh3_64(covered);
        if found != expected {
            return Err(Error::Checksum { part: "header", expected, found });
        }
        // From here on a fault means that the writer was wrong, not that a
        // bit has flipped.
        if file_bytes != file.len() as u64 {
            return Err(Error::Length {
                expected: file_bytes,
                found: file.len() as u64,
            });
        }
        let kind = Kind::from_code(kind)?;
        let hasher = KeyHasher::new(HashId::from_code(hash)?, seed)
            .map_err(|_| corrupt("seed", "wider than its hash takes"))?;
        if flags != 0 || reserved != 0 {
            return Err(corrupt("flags", "bits this version does not define"));
        }
        if !(0.0..=1.0).contains(&design_fpr) {
            return Err(corrupt("design_fpr", "not a probability"));
        }
        let geometry = at.slice(geometry_bytes)?.to_vec();
        let mut sections = Vec::with_capacity(section_count);
        let mut end = len as u64;
        for _ in 0..section_count {
            let section = at.section()?;
            // Sections lie one behind the other, each at the next aligned
            // offset: there is one valid place for every byte.
            if section.offset != end.next_multiple_of(ALIGN as u64) {
                return Err(corrupt("section", "not at its place"));
            }
            end = section
                .offset
                .checked_add(section.bytes)
                .filter(|&end| end <= file_bytes)
                .ok_or(corrupt("section", "ends behind the file"))?;
            sections.push(section);
        }
        // `at` has been moved to the end of the table.
        let table_end = file.len() - at.bytes.len();
        if covered[table_end..].iter().any(|&byte| byte != 0) {
            return Err(corrupt("padding", "bits this version leaves zero"));
        }
        if end != file_bytes {
            return Err(corrupt("file length", "bytes behind the sections"));
        }
        let counts = Counts { items, design_items, design_fpr };
        Ok(Self { kind, hasher, counts, geometry, sections, file_bytes })
    }
}

pub(crate) fn corrupt(field: &'static str, why: &'static str) -> Error {
    Error::Corrupt { field, why }
}

/// Appends little-endian fields to a buffer that is long enough.
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }
}

/// Takes little-endian fields off the front of a slice.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8]> {
        let short = Error::TooShort {
            expected: len as u64,
            found: self.bytes.len() as u64,
        };
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(short)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut field = [0; N];
        field.copy_from_slice(self.slice(N)?);
        Ok(field)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn section(&mut self) -> Result<Section> {
        let tag = self.u32()?;
        if self.u32()? != 0 {
            return Err(corrupt("section", "bits this version leaves zero"));
        }
        let [offset, bytes, checksum] =
            [self.u64()?, self.u64()?, self.u64()?];
        Ok(Section { tag, offset, bytes, checksum })
    }
}

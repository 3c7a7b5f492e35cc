//! The header of an image: fixed fields, geometry, section table, checksum.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut, Range};

use xxhash_rust::xxh3::xxh3_64;

use super::{FORMAT_VERSION, Kind, MAGIC, SectionTag, compact};
use crate::error::{Error, Result};
use crate::key::{HashId, KeyHasher};

/// Bytes before the geometry.
const FIXED: usize = 72;
/// Bytes of one entry in the section table.
const ENTRY: usize = 32;
/// Bytes of the checksum that ends the header.
const CHECKSUM: usize = 8;
/// Alignment of the header's end and of every section.
pub(super) const ALIGN: usize = 64;
/// Longest geometry of a kind: `balanced` with eight choices.
const MAX_GEOMETRY: usize = 168;
/// Most sections of a kind: blocks and list of `balanced`, and metadata.
const MAX_SECTIONS: usize = 3;

/// Number of keys in a structure, and the design it was sized for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counts {
    pub(crate) items: u64,
    pub(crate) design_items: u64,
    pub(crate) design_fpr: f64,
}

impl Counts {
    /// Counts of an empty structure.
    ///
    /// `design_fpr` is rounded down to 24 significant bits. A more precise
    /// computation of the same rate then gives the same bytes; and a rate
    /// rounded up could exceed the requested one.
    pub(crate) fn empty(design_items: u64, design_fpr: f64) -> Self {
        let near = design_fpr as f32;
        let down = match f64::from(near) > design_fpr {
            true => f32::from_bits(near.to_bits() - 1),
            false => near,
        };
        let design_fpr = f64::from(down);
        Self { items: 0, design_items, design_fpr }
    }

    /// Refuses a `design_fpr` outside [0, 1].
    pub(super) fn check(&self) -> Result<()> {
        match (0.0..=1.0).contains(&self.design_fpr) {
            true => Ok(()),
            false => Err(corrupt("design_fpr", "not a probability")),
        }
    }
}

/// Bytes of a section that have a checksum of their own.
pub(crate) const CHUNK: u64 = 1 << 16;
/// Longest image. Offsets in it do not overflow.
const MAX_IMAGE: u64 = i64::MAX as u64;

/// Place and checksum of a section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(super) tag: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// That of the only chunk, or of the list of their checksums.
    pub(crate) checksum: u64,
}

impl Section {
    /// Range in the image of the checksums of the section's chunks, 8 bytes
    /// each; empty for a section of one chunk, and in the compact form.
    pub(crate) fn chunk_sums(&self) -> Range<u64> {
        let end = self.offset + self.bytes;
        match self.bytes <= CHUNK {
            true => end..end,
            false => {
                let start = end.next_multiple_of(ALIGN as u64);
                start..start + 8 * self.bytes.div_ceil(CHUNK)
            }
        }
    }
}

/// A slice of at most `N` elements, stored by value: parsing allocates
/// nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inline<T, const N: usize> {
    /// Elements from `len` on are padding.
    all: [T; N],
    /// At most `N`: checked by `extend`.
    len: u8,
}

/// Bytes of a kind's geometry.
pub(crate) type GeometryBytes = Inline<u8, MAX_GEOMETRY>;

/// The section table.
pub(crate) type SectionTable = Inline<Section, MAX_SECTIONS>;

impl<T: Copy + Default, const N: usize> Default for Inline<T, N> {
    #[inline(always)]
    fn default() -> Self {
        const { assert!(N <= u8::MAX as usize) };
        Self { all: [T::default(); N], len: 0 }
    }
}

impl<T: Copy, const N: usize> Inline<T, N> {
    /// Appends elements that fit: those of a valid structure.
    pub(crate) fn put(&mut self, elements: &[T]) {
        let fits = self.extend(elements);
        debug_assert!(fits.is_some(), "more elements than any kind has");
    }

    /// Appends elements; `None` if more than `N` elements result.
    #[inline(always)]
    pub(super) fn extend(&mut self, elements: &[T]) -> Option<()> {
        let len = usize::from(self.len);
        self.all.get_mut(len..len + elements.len())?.copy_from_slice(elements);
        self.len += elements.len() as u8;
        Some(())
    }
}

impl<T, const N: usize> Deref for Inline<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.all[..usize::from(self.len)]
    }
}

impl<T, const N: usize> DerefMut for Inline<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all[..usize::from(self.len)]
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Inline<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// The parsed and checked header of an image.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct ImageHeader {
    pub(crate) kind: Kind,
    pub(crate) hasher: KeyHasher,
    pub(crate) counts: Counts,
    pub(crate) geometry: GeometryBytes,
    /// In order, without overlap, inside the image.
    pub(crate) sections: SectionTable,
    /// Length of the image.
    pub(crate) bytes: u64,
    /// Length of the header itself.
    pub(super) header_bytes: u16,
}

/// Length of the image at the start of `bytes`; see
/// [`Header::image_len`](crate::Header::image_len).
pub(crate) fn image_len(bytes: &[u8]) -> Result<u64> {
    Ok(ImageHeader::parse_prefix(bytes, false)?.bytes)
}

/// Bytes of the header of `geometry` bytes of geometry and `sections`
/// sections.
#[inline(always)]
pub(super) fn header_bytes(geometry: usize, sections: usize) -> usize {
    (FIXED + geometry + sections * ENTRY + CHECKSUM).next_multiple_of(ALIGN)
}

/// `N` bytes from `at` on. Inlined, so that constant arguments leave no
/// bounds check.
#[inline(always)]
pub(super) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

impl ImageHeader {
    /// Parses the header of the image that `image` holds, and checks it, in
    /// time independent of the payload and without allocation.
    ///
    /// Finds every changed header byte (by the checksum) and every missing
    /// or extra byte; does not read the payload.
    pub(crate) fn parse(image: &[u8]) -> Result<Self> {
        Self::parse_prefix(image, true)
    }

    /// Lays out an image with sections of these tags and lengths. Their
    /// checksums are 0.
    pub(crate) fn layout(
        (kind, hasher, counts): (Kind, KeyHasher, Counts),
        geometry: GeometryBytes,
        sections: impl Iterator<Item = (SectionTag, u64)>,
    ) -> Self {
        let mut table = SectionTable::default();
        for (tag, bytes) in sections {
            table.put(&[Section { tag: tag.0, bytes, ..Section::default() }]);
        }
        let header_bytes = header_bytes(geometry.len(), table.len());
        let mut bytes = header_bytes as u64;
        for section in table.iter_mut() {
            section.offset = bytes.next_multiple_of(ALIGN as u64);
            bytes = section.chunk_sums().end;
        }
        // At most 384, so 16 bits.
        let header_bytes = header_bytes as u16;
        let sections = table;
        Self { kind, hasher, counts, geometry, sections, bytes, header_bytes }
    }

    /// The header as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let len = usize::from(self.header_bytes);
        let mut out = vec![0; len];
        let mut at = Writer { bytes: &mut out, at: 0 };
        at.put(&MAGIC);
        at.put(&FORMAT_VERSION.to_le_bytes());
        at.put(&self.kind.code().to_le_bytes());
        at.put(&self.hasher.id().code().to_le_bytes());
        at.put(&0u16.to_le_bytes());
        at.put(&self.hasher.seed().to_le_bytes());
        at.put(&self.bytes.to_le_bytes());
        at.put(&self.counts.items.to_le_bytes());
        at.put(&self.counts.design_items.to_le_bytes());
        at.put(&self.counts.design_fpr.to_bits().to_le_bytes());
        at.put(&self.header_bytes.to_le_bytes());
        at.put(&(self.geometry.len() as u16).to_le_bytes());
        at.put(&(self.sections.len() as u16).to_le_bytes());
        at.put(&0u16.to_le_bytes());
        at.put(&self.geometry);
        for section in self.sections.iter() {
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

    /// The geometry of a header of this kind.
    pub(crate) fn geometry(&self, expected: Kind) -> Result<&[u8]> {
        match self.kind == expected {
            true => Ok(&self.geometry),
            false => Err(Error::WrongKind {
                expected: expected.name(),
                found: self.kind.name(),
            }),
        }
    }

    /// [`parse`](Self::parse), for an image that other bytes may follow
    /// unless `exact`.
    #[inline(always)]
    fn parse_prefix(image: &[u8], exact: bool) -> Result<Self> {
        if compact::is_compact(image) {
            return compact::parse(image, exact);
        }
        let Some(fixed) = image.first_chunk::<FIXED>() else {
            return Err(short(image, header_bytes(0, 0)));
        };
        let magic = field(fixed, 0);
        if magic != MAGIC {
            return Err(Error::NotTamis { found: magic });
        }
        let u16_at = |at| u16::from_le_bytes(field(fixed, at));
        let u64_at = |at| u64::from_le_bytes(field(fixed, at));
        let version = u16_at(8);
        if version != FORMAT_VERSION {
            return Err(Error::UnsupportedVersion {
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        let len = usize::from(u16_at(64));
        let geometry_bytes = usize::from(u16_at(66));
        let section_count = usize::from(u16_at(68));
        if len != header_bytes(geometry_bytes, section_count) {
            return Err(corrupt("header length", "does not fit its parts"));
        }
        let Some(header) = image.get(..len) else {
            return Err(short(image, len));
        };
        let (covered, stored) = header.split_at(len - CHECKSUM);
        let expected = u64::from_le_bytes(field(stored, 0));
        let found = xxh3_64(covered);
        if found != expected {
            return Err(Error::Checksum { part: "header", expected, found });
        }
        // The checksum is right: every fault below is one of the writer, and
        // not a changed bit.
        let bytes = u64_at(32);
        if exact {
            check_length(bytes, image)?;
        }
        if bytes > MAX_IMAGE {
            return Err(corrupt("file length", "above 2^63 - 1"));
        }
        let kind = Kind::from_code(u16_at(10))?;
        let id = HashId::from_code(u16_at(12))?;
        let seed = u128::from_le_bytes(field(fixed, 16));
        let Ok(hasher) = KeyHasher::new(id, seed) else {
            return Err(corrupt("seed", "wider than the seed of its hash"));
        };
        if u16_at(14) != 0 || u16_at(70) != 0 {
            return Err(corrupt("flags", "bits this version does not define"));
        }
        let counts = Counts {
            items: u64_at(40),
            design_items: u64_at(48),
            design_fpr: f64::from_bits(u64_at(56)),
        };
        counts.check()?;
        // Filled in place: a copy of its 350 bytes costs as much as the
        // checksum.
        let mut parsed = Self {
            kind,
            hasher,
            counts,
            geometry: Inline::default(),
            sections: SectionTable::default(),
            bytes,
            header_bytes: len as u16,
        };
        let table = FIXED + geometry_bytes;
        let geometry = &header[FIXED..table];
        // Constant lengths are copied without a call.
        let fits = match geometry_bytes {
            16 => parsed.geometry.extend(&field::<16>(geometry, 0)),
            40 => parsed.geometry.extend(&field::<40>(geometry, 0)),
            _ => parsed.geometry.extend(geometry),
        };
        if fits.is_none() {
            return Err(corrupt("geometry", "longer than that of any kind"));
        }
        let mut end = len as u64;
        for i in 0..section_count {
            let entry: [u8; ENTRY] = field(header, table + i * ENTRY);
            let section = parse_section(&entry)?;
            // One valid offset for each section: the next aligned one.
            if section.offset != end.next_multiple_of(ALIGN as u64) {
                return Err(corrupt("section", "not at its place"));
            }
            let longest = bytes.saturating_sub(section.offset);
            end = match section.bytes <= longest {
                true => section.chunk_sums().end,
                false => u64::MAX,
            };
            if end > bytes {
                return Err(corrupt("section", "ends behind the file"));
            }
            if parsed.sections.extend(&[section]).is_none() {
                let why = "more sections than a kind has";
                return Err(corrupt("section table", why));
            }
        }
        let padding = &covered[table + section_count * ENTRY..];
        // Without an early exit, so that the loop is vectorised.
        if padding.iter().fold(0, |bits, byte| bits | byte) != 0 {
            return Err(corrupt("padding", "bits this version leaves zero"));
        }
        if end != bytes {
            return Err(corrupt("file length", "bytes behind the sections"));
        }
        Ok(parsed)
    }
}

/// Refuses an image whose length is not `expected`.
#[inline]
pub(crate) fn check_length(expected: u64, image: &[u8]) -> Result<()> {
    let found = image.len() as u64;
    match found == expected {
        true => Ok(()),
        false => Err(wrong_length(expected, image)),
    }
}

/// First bytes of the journal that can follow an image in a file.
pub(super) const JOURNAL_START: [u8; 8] = *b"\x89TAMIJ\r\n";

#[cold]
fn wrong_length(expected: u64, image: &[u8]) -> Error {
    let end = usize::try_from(expected).ok();
    match end.and_then(|end| image.get(end..)) {
        Some(rest) if rest.starts_with(&JOURNAL_START) => Error::Unfinished,
        _ => Error::Length { expected, found: image.len() as u64 },
    }
}

/// The error for an image that ends inside its header of `expected` bytes.
pub(super) fn short(image: &[u8], expected: usize) -> Error {
    match image.first_chunk() {
        // A short file of another program.
        Some(&start) if start != MAGIC && !compact::is_compact(image) => {
            Error::NotTamis { found: start }
        }
        _ => Error::TooShort {
            expected: expected as u64,
            found: image.len() as u64,
        },
    }
}

pub(crate) fn corrupt(field: &'static str, why: &'static str) -> Error {
    Error::Corrupt { field, why }
}

#[inline(always)]
fn parse_section(entry: &[u8; ENTRY]) -> Result<Section> {
    let u32_at = |at| u32::from_le_bytes(field(entry, at));
    let u64_at = |at| u64::from_le_bytes(field(entry, at));
    if u32_at(4) != 0 {
        return Err(corrupt("section", "bits this version leaves zero"));
    }
    Ok(Section {
        tag: u32_at(0),
        offset: u64_at(8),
        bytes: u64_at(16),
        checksum: u64_at(24),
    })
}

/// Appends fields to a buffer that has room for them.
pub(super) struct Writer<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) at: usize,
}

impl Writer<'_> {
    pub(super) fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }
}

/// Reads little-endian fields from the front of a geometry.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
}

impl Reader<'_> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((&field, rest)) = self.bytes.split_first_chunk() else {
            return Err(corrupt("geometry", "wrong length"));
        };
        self.bytes = rest;
        Ok(field)
    }

    /// Refuses bytes after the last field.
    #[inline]
    pub(crate) fn end(&self) -> Result<()> {
        match self.bytes {
            [] => Ok(()),
            _ => Err(corrupt("geometry", "wrong length")),
        }
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of blocks and metadata of these lengths.
    fn header(blocks: u64, metadata: u64) -> ImageHeader {
        let mut geometry = GeometryBytes::default();
        geometry.put(&[0; 16]);
        let counts = Counts::empty(1, 0.5);
        ImageHeader::layout(
            (Kind::Bloom, KeyHasher::default(), counts),
            geometry,
            [(SectionTag::BLOCKS, blocks), (SectionTag::METADATA, metadata)]
                .into_iter(),
        )
    }

    #[test]
    fn the_longest_image_parses_and_a_longer_one_does_not() {
        let mut blocks = 0;
        for bit in (0..63).rev() {
            if header(blocks | 1 << bit, 0).bytes <= MAX_IMAGE {
                blocks |= 1 << bit;
            }
        }
        let metadata = MAX_IMAGE - header(blocks, 0).bytes;
        assert!(metadata < CHUNK);
        let len = |metadata| image_len(&header(blocks, metadata).encode());
        assert_eq!(len(metadata), Ok(MAX_IMAGE));
        let why = "above 2^63 - 1";
        assert_eq!(len(metadata + 1), Err(corrupt("file length", why)));
    }

    /// The rounding is that of the header's length: each part counts.
    #[test]
    fn header_bytes_are_those_of_all_parts() {
        assert_eq!(header_bytes(0, 0), 128);
        assert_eq!(header_bytes(48, 0), 128);
        assert_eq!(header_bytes(49, 0), 192);
        assert_eq!(header_bytes(16, 1), 128);
        assert_eq!(header_bytes(17, 1), 192);
        assert_eq!(header_bytes(168, 3), 384);
    }

    #[test]
    fn headers_with_another_geometry_differ() {
        let mut other = header(64, 3);
        assert!(other == header(64, 3));
        other.geometry[15] = 1;
        assert!(other != header(64, 3));
    }

    #[test]
    fn design_rates_are_rounded_down() {
        let rounded = |rate| Counts::empty(1, rate).design_fpr;
        // Of 24 bits, and between two of them.
        assert_eq!(rounded(0.5), 0.5);
        let next = f64::from(f32::from_bits(0.5f32.to_bits() + 1));
        assert_eq!(rounded(next - f64::EPSILON), 0.5);
        assert_eq!(rounded(next), next);
        assert_eq!(rounded(next + f64::EPSILON), next);
    }

    #[test]
    fn padding_is_zero() {
        let valid = header(64, 3).encode();
        assert_eq!(valid.len(), 192);
        assert!(ImageHeader::parse_prefix(&valid, false).is_ok());
        // From the end of the section table to the checksum.
        for (first, second) in [(152, 152), (152, 153), (160, 183)] {
            let mut bytes = valid.clone();
            for at in [first, second] {
                bytes[at] = 1;
            }
            let sum = xxh3_64(&bytes[..184]);
            bytes[184..].copy_from_slice(&sum.to_le_bytes());
            let why = "bits this version leaves zero";
            assert_eq!(
                ImageHeader::parse_prefix(&bytes, false).err(),
                Some(corrupt("padding", why)),
            );
        }
    }
}

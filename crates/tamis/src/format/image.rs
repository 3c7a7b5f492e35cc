//! Images: structures as bytes. Writing, viewing and verifying them.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::compact::{checksum, is_compact};
use super::header::{ALIGN, CHUNK, ImageHeader, Section, corrupt, field};
use super::metadata::MAX_METADATA;
use crate::error::{Error, Result};
#[cfg(feature = "std")]
use crate::key::HashId;

/// Tag of a section: four ASCII characters, legible in a hex dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionTag(pub(super) u32);

impl SectionTag {
    /// The array of blocks.
    pub(crate) const BLOCKS: Self = Self(u32::from_le_bytes(*b"BLKS"));
    /// The overflow list: sorted hashes.
    pub(crate) const LIST: Self = Self(u32::from_le_bytes(*b"LIST"));
    /// The metadata, always last.
    pub(crate) const METADATA: Self = Self(u32::from_le_bytes(*b"META"));
}

/// A structure laid out as the parts of a file; made by
/// [`Persist::image`]. Equal images are equal files.
#[derive(PartialEq)]
pub(crate) struct Image<'a> {
    /// Without checksums of the sections.
    pub(crate) header: ImageHeader,
    pub(crate) sections: Vec<Cow<'a, [u8]>>,
}

impl<'a> Image<'a> {
    /// The header, then the sections; their padding and checksums in parts
    /// between them. Reads the sections for their checksums.
    fn into_parts(self) -> Vec<Cow<'a, [u8]>> {
        let Self { mut header, sections } = self;
        let mut at = u64::from(header.header_bytes);
        let mut parts = vec![Cow::Borrowed(&[][..])];
        for (section, bytes) in header.sections.iter_mut().zip(sections) {
            parts.push(Cow::Borrowed(padding(at, section.offset)));
            let chunks = bytes.chunks(CHUNK as usize).map(xxh3_64);
            let sums: Vec<u8> = chunks.flat_map(u64::to_le_bytes).collect();
            let list = section.chunk_sums();
            section.checksum = match list.is_empty() {
                true => xxh3_64(&bytes),
                false => xxh3_64(&sums),
            };
            parts.push(bytes);
            if !list.is_empty() {
                let end = section.offset + section.bytes;
                parts.push(Cow::Borrowed(padding(end, list.start)));
                parts.push(Cow::Owned(sums));
            }
            at = list.end;
        }
        parts[0] = Cow::Owned(header.encode());
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Passes the bytes after the header to `put`, in order. Returns the
    /// header, whose checksums need all chunks: every chunk is hashed when it
    /// is written, which reads it once.
    fn write(
        &self,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let mut header = self.header;
        let mut at = u64::from(header.header_bytes);
        for (section, bytes) in header.sections.iter_mut().zip(&self.sections)
        {
            put(padding(at, section.offset))?;
            let mut sums = Vec::new();
            section.checksum = xxh3_64(&[]);
            for chunk in bytes.chunks(CHUNK as usize) {
                put(chunk)?;
                section.checksum = xxh3_64(chunk);
                sums.extend_from_slice(&section.checksum.to_le_bytes());
            }
            let list = section.chunk_sums();
            if !list.is_empty() {
                put(padding(section.offset + section.bytes, list.start))?;
                put(&sums)?;
                section.checksum = xxh3_64(&sums);
            }
            at = list.end;
        }
        Ok(header.encode())
    }
}

/// Zeros up to a multiple of `ALIGN`.
fn padding(from: u64, to: u64) -> &'static [u8] {
    &[0; ALIGN][..(to - from) as usize]
}

/// Structures that can be written in the tamis format. The methods of the
/// public types document them.
pub(crate) trait Persist {
    /// The parts of the file.
    fn image(&self) -> Image<'_>;

    /// The file as one vector.
    fn to_bytes(&self) -> Vec<u8> {
        let image = self.image();
        let mut out = Vec::with_capacity(image.header.bytes as usize);
        out.resize(image.header.header_bytes.into(), 0);
        let header = image.write(&mut |piece| {
            out.extend_from_slice(piece);
            Ok(())
        });
        let header = header.expect("appending to a vector cannot fail");
        out[..header.len()].copy_from_slice(&header);
        out
    }

    /// The file in parts, of which the header is the first.
    fn parts(&self) -> Vec<Cow<'_, [u8]>> {
        self.image().into_parts()
    }

    /// Writes the file to `out`, the payload straight from the structure's
    /// memory. Reads it twice, because the header comes first.
    #[cfg(feature = "std")]
    fn write_to(&self, mut out: impl std::io::Write) -> Result<()>
    where
        Self: Sized,
    {
        for part in self.parts() {
            out.write_all(&part)?;
        }
        Ok(())
    }

    /// [`write_to`](Self::write_to) an empty file: reads the payload once.
    #[cfg(feature = "std")]
    fn write_to_file(&self, file: &mut std::fs::File) -> Result<()> {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let image = self.image();
        let start = image.header.header_bytes.into();
        file.seek(SeekFrom::Start(start))?;
        let header = image.write(&mut |piece| Ok(file.write_all(piece)?))?;
        file.rewind()?;
        file.write_all(&header)?;
        Ok(())
    }

    /// Writes the file atomically, replacing one that exists.
    #[cfg(feature = "std")]
    fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        let path = super::resolve(path.as_ref())?;
        self.replace(&path, super::Overwrite::Within(super::WAIT))
    }

    /// Writes the file atomically; an error if it exists.
    #[cfg(feature = "std")]
    fn save_new(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        let path = super::resolve(path.as_ref())?;
        self.replace(&path, super::Overwrite::Never)
    }

    /// Writes the file atomically. It holds the key of a keyed hash, and is
    /// private then.
    #[cfg(feature = "std")]
    fn replace(
        &self,
        path: &std::path::Path,
        overwrite: super::Overwrite,
    ) -> Result<()>
    where
        Self: Sized,
    {
        let hasher = self.image().header.hasher;
        let private = hasher.id() == HashId::SipHash13;
        super::writer::replace(path, overwrite, private, &mut |file| {
            self.write_to_file(file)
        })
    }
}

impl Section {
    /// Range in an image of the header's length; an error for another tag.
    fn place(&self, tag: SectionTag) -> Result<Range<usize>> {
        if self.tag != tag.0 {
            return Err(corrupt("section", "not one of its kind"));
        }
        // The image is a slice in memory, so its offsets fit a usize.
        let start = self.offset as usize;
        Ok(start..start + self.bytes as usize)
    }
}

/// Ranges of the sections of an image.
pub(crate) struct Sections<const N: usize> {
    /// Those of its kind.
    pub(crate) places: [Range<usize>; N],
    /// Empty without metadata.
    pub(crate) metadata: Range<usize>,
}

impl<const N: usize> Sections<N> {
    /// Finds the sections of a kind, without reading them. `expected` are
    /// their tags and lengths in order; a length is `None` if it overflows.
    ///
    /// All ranges are inside an image of `header.bytes()` bytes.
    pub(crate) fn find(
        header: &ImageHeader,
        expected: [(SectionTag, Option<u64>); N],
    ) -> Result<Self> {
        let Some((found, metadata)) = header.sections.split_at_checked(N)
        else {
            return Err(corrupt("section table", "lacks one of its kind"));
        };
        let mut places = core::array::from_fn(|_| 0..0);
        for ((place, section), (tag, bytes)) in
            places.iter_mut().zip(found).zip(expected)
        {
            let why = "more than a file can hold";
            let bytes = bytes.ok_or(corrupt("geometry", why))?;
            if section.bytes != bytes {
                let why = "its length contradicts the rest";
                return Err(corrupt("section", why));
            }
            *place = section.place(tag)?;
        }
        let metadata = match metadata {
            [] => 0..0,
            [section] if (1..=MAX_METADATA).contains(&section.bytes) => {
                section.place(SectionTag::METADATA)?
            }
            _ => {
                let why = "not the sections of its kind";
                return Err(corrupt("section table", why));
            }
        };
        Ok(Self { places, metadata })
    }
}

/// The metadata section of an image, after a check of its checksum. The image
/// has this section.
pub(crate) fn metadata_bytes(image: &[u8]) -> Result<&[u8]> {
    let header = ImageHeader::parse(image)?;
    let Some(section) = header.sections.last() else { return Ok(&[]) };
    let bytes = &image[section.place(SectionTag::METADATA)?];
    check("metadata", xxh3_64(bytes), section.checksum)?;
    Ok(bytes)
}

/// Checks the chunks that overlap `range` of an image against their
/// checksums, and all padding against zero.
pub(crate) fn verify(image: &[u8], range: Range<u64>) -> Result<()> {
    let header = ImageHeader::parse(image)?;
    let mut end = u64::from(header.header_bytes);
    // Offsets are at most the length of a slice, so they fit a usize.
    let part = |from: u64, to: u64| &image[from as usize..to as usize];
    for section in header.sections.iter() {
        let bytes_end = section.offset + section.bytes;
        let bytes = part(section.offset, bytes_end);
        let sums = match is_compact(image) {
            true => bytes_end..bytes_end,
            false => section.chunk_sums(),
        };
        for gap in [part(end, section.offset), part(bytes_end, sums.start)] {
            if gap.iter().any(|&byte| byte != 0) {
                return Err(Error::Inconsistent("padding is not zero"));
            }
        }
        end = sums.end;
        let is_inside =
            |start: u64, end: u64| start < range.end && range.start < end;
        if !is_inside(section.offset, bytes_end) && !bytes.is_empty() {
            continue;
        }
        if is_compact(image) {
            check("payload", checksum(bytes).into(), section.checksum)?;
        } else if sums.is_empty() {
            check("payload", xxh3_64(bytes), section.checksum)?;
        } else {
            let list = part(sums.start, sums.end);
            check("chunk checksums", xxh3_64(list), section.checksum)?;
            let starts = (section.offset..).step_by(CHUNK as usize);
            let sums = list.chunks_exact(8).map(|sum| field(sum, 0));
            for ((start, chunk), sum) in
                starts.zip(bytes.chunks(CHUNK as usize)).zip(sums)
            {
                if is_inside(start, start + CHUNK) {
                    let expected = u64::from_le_bytes(sum);
                    check("payload", xxh3_64(chunk), expected)?;
                }
            }
        }
    }
    Ok(())
}

/// Compares the checksum of a part.
pub(super) fn check(
    part: &'static str,
    found: u64,
    expected: u64,
) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::Checksum { part, expected, found }),
    }
}

//! Images: structures as bytes. Writing, viewing and verifying them.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::compact::{checksum, is_compact};
use super::header::{ALIGN, Header, Section, corrupt, encode, header_bytes};
use super::metadata::MAX_METADATA;
use super::{Counts, Kind};
use crate::error::{Error, Result};
#[cfg(feature = "std")]
use crate::key::HashId;
use crate::key::KeyHasher;

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
    pub(crate) kind: Kind,
    pub(crate) hasher: KeyHasher,
    pub(crate) counts: Counts,
    pub(crate) geometry: Vec<u8>,
    pub(crate) sections: Vec<(SectionTag, Cow<'a, [u8]>)>,
}

/// Ranges of sections of these lengths, behind a header of this length.
fn places(
    header: u64,
    lengths: impl Iterator<Item = u64>,
) -> impl Iterator<Item = Range<u64>> {
    let mut end = header;
    lengths.map(move |bytes| {
        let start = end.next_multiple_of(ALIGN as u64);
        end = start + bytes;
        start..end
    })
}

/// Length of an image with a geometry and sections of these lengths.
pub(crate) fn image_bytes(
    geometry: usize,
    sections: impl Iterator<Item = u64> + Clone,
) -> u64 {
    let header = header_bytes(geometry, sections.clone().count()) as u64;
    places(header, sections).last().map_or(header, |place| place.end)
}

impl Image<'_> {
    /// Length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        let sections = self.sections.iter();
        let lengths = sections.map(|(_, bytes)| bytes.len() as u64);
        image_bytes(self.geometry.len(), lengths)
    }

    /// Ranges of the sections in the file.
    fn place(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let sections = self.sections.len();
        let header = header_bytes(self.geometry.len(), sections) as u64;
        let sections = self.sections.iter();
        places(header, sections.map(|(_, bytes)| bytes.len() as u64))
    }

    fn header(&self) -> Vec<u8> {
        let sections: Vec<Section> = self
            .place()
            .zip(&self.sections)
            .map(|(place, (tag, bytes))| Section {
                tag: tag.0,
                offset: place.start,
                bytes: bytes.len() as u64,
                checksum: xxh3_64(bytes),
            })
            .collect();
        encode(self, &sections)
    }

    /// Passes header, padding and sections to `put`, in the order of the
    /// file.
    fn pieces<E>(
        &self,
        mut put: impl FnMut(&[u8]) -> core::result::Result<(), E>,
    ) -> core::result::Result<(), E> {
        let header = self.header();
        put(&header)?;
        let mut at = header.len() as u64;
        for (place, (_, bytes)) in self.place().zip(&self.sections) {
            // `place.start - at < ALIGN`: the next multiple of `ALIGN`.
            put(&[0; ALIGN][..(place.start - at) as usize])?;
            put(bytes)?;
            at = place.end;
        }
        Ok(())
    }
}

/// Structures that can be written in the tamis format. The methods of the
/// public types document them.
pub(crate) trait Persist {
    /// The parts of the file.
    fn image(&self) -> Image<'_>;

    /// The file as one vector.
    fn to_bytes(&self) -> Vec<u8> {
        let image = self.image();
        let mut out = Vec::with_capacity(image.bytes() as usize);
        let written = image.pieces(|piece| {
            out.extend_from_slice(piece);
            Ok::<(), core::convert::Infallible>(())
        });
        let Ok(()) = written;
        out
    }

    /// Writes the file to `out`, the payload straight from the structure's
    /// memory.
    #[cfg(feature = "std")]
    fn write_to(&self, mut out: impl std::io::Write) -> Result<()>
    where
        Self: Sized,
    {
        self.image().pieces(|piece| out.write_all(piece))?;
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
        let private = self.image().hasher.id() == HashId::SipHash13;
        super::writer::replace(path, overwrite, private, |file| {
            self.write_to(file)
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

    fn check(&self, found: u64, part: &'static str) -> Result<()> {
        let expected = self.checksum;
        match found == expected {
            true => Ok(()),
            false => Err(Error::Checksum { part, expected, found }),
        }
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
        header: &Header,
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
    let header = Header::parse(image)?;
    let Some(section) = header.sections.last() else { return Ok(&[]) };
    let bytes = &image[section.place(SectionTag::METADATA)?];
    section.check(xxh3_64(bytes), "metadata")?;
    Ok(bytes)
}

/// Reads the whole image and checks every section against its checksum, and
/// padding against zero.
pub(crate) fn verify(image: &[u8]) -> Result<()> {
    let header = Header::parse(image)?;
    let compact = is_compact(image);
    let mut end = u64::from(header.header_bytes);
    for section in header.sections.iter() {
        let padding = &image[end as usize..section.offset as usize];
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Error::Inconsistent("padding is not zero"));
        }
        end = section.offset + section.bytes;
        let payload = &image[section.offset as usize..end as usize];
        let found = match compact {
            true => checksum(payload).into(),
            false => xxh3_64(payload),
        };
        section.check(found, "payload")?;
    }
    Ok(())
}

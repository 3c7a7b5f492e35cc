//! Images: structures as bytes. Writing, viewing and verifying them.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::compact::{checksum, is_compact};
use super::header::{ALIGN, Header, Section, corrupt, encode, header_bytes};
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

impl Image<'_> {
    /// Length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.place().map(|place| place.end).last().unwrap_or_else(|| {
            header_bytes(self.geometry.len(), self.sections.len()) as u64
        })
    }

    /// Ranges of the sections in the file.
    fn place(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut end =
            header_bytes(self.geometry.len(), self.sections.len()) as u64;
        self.sections.iter().map(move |(_, bytes)| {
            let start = end.next_multiple_of(ALIGN as u64);
            end = start + bytes.len() as u64;
            start..end
        })
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
        self.replace(path.as_ref(), true)
    }

    /// Writes the file atomically; an error if it exists.
    #[cfg(feature = "std")]
    fn save_new(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.replace(path.as_ref(), false)
    }

    /// Writes the file atomically. It holds the key of a keyed hash, and is
    /// private then.
    #[cfg(feature = "std")]
    fn replace(&self, path: &std::path::Path, overwrite: bool) -> Result<()>
    where
        Self: Sized,
    {
        let private = self.image().hasher.id() == HashId::SipHash13;
        super::file::replace(path, overwrite, private, |file| {
            self.write_to(file)
        })
    }
}

/// The ranges of the sections in the image, without reading them. `expected`
/// are the tags and lengths of all sections of the kind, in order.
///
/// The ranges are inside an image of `header.bytes()` bytes.
pub(crate) fn view<const N: usize>(
    header: &Header,
    expected: [(SectionTag, u64); N],
) -> Result<[Range<usize>; N]> {
    if header.sections.len() != N {
        return Err(corrupt("section table", "not the sections of its kind"));
    }
    let mut places = core::array::from_fn(|_| 0..0);
    for ((place, section), (tag, bytes)) in
        places.iter_mut().zip(header.sections.iter()).zip(expected)
    {
        if section.tag != tag.0 {
            return Err(corrupt("section", "not one of its kind"));
        }
        if section.bytes != bytes {
            return Err(corrupt("section", "its length contradicts the rest"));
        }
        // `offset + bytes <= header.bytes()`, which is the length of a slice
        // in memory and so a usize.
        let start = section.offset as usize;
        *place = start..start + bytes as usize;
    }
    Ok(places)
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
        if found != section.checksum {
            return Err(Error::Checksum {
                part: "payload",
                expected: section.checksum,
                found,
            });
        }
    }
    Ok(())
}

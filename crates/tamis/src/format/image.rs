//! A structure as bytes: what it has to say, and how that is written,
//! viewed and verified.

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

/// The names of sections. Four readable bytes, so that a hex dump tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionTag(pub(super) u32);

impl SectionTag {
    /// The array of blocks.
    pub(crate) const BLOCKS: Self = Self(u32::from_le_bytes(*b"BLKS"));
    /// The overflow list: sorted hashes.
    pub(crate) const LIST: Self = Self(u32::from_le_bytes(*b"LIST"));
}

/// A structure laid out as the parts of a file; made by
/// [`Persist::image`].
///
/// ```
/// use tamis::{Blocked, Persist};
///
/// let filter = Blocked::builder().items(100).fpr(0.01).build()?;
/// assert_eq!(filter.image().bytes(), filter.to_bytes().len() as u64);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Image<'a> {
    pub(crate) kind: Kind,
    pub(crate) hasher: KeyHasher,
    pub(crate) counts: Counts,
    pub(crate) geometry: Vec<u8>,
    pub(crate) sections: Vec<(SectionTag, Cow<'a, [u8]>)>,
}

impl Image<'_> {
    /// How long the file will be.
    ///
    /// ```
    /// use tamis::{Bloom, Persist};
    ///
    /// let filter = Bloom::builder().items(4096).bits_per_key(8.0).build()?;
    /// // 4096 bytes of bits behind a header of 128.
    /// assert_eq!(filter.image().bytes(), 4096 + 128);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.place().map(|place| place.end).last().unwrap_or_else(|| {
            header_bytes(self.geometry.len(), self.sections.len()) as u64
        })
    }

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

    /// Hands out the file piece by piece.
    fn pieces<E>(
        &self,
        mut put: impl FnMut(&[u8]) -> core::result::Result<(), E>,
    ) -> core::result::Result<(), E> {
        let header = self.header();
        put(&header)?;
        let mut at = header.len() as u64;
        for (place, (_, bytes)) in self.place().zip(&self.sections) {
            // Padding is shorter than one alignment unit.
            put(&[0; ALIGN][..(place.start - at) as usize])?;
            put(bytes)?;
            at = place.end;
        }
        Ok(())
    }
}

/// Structures that can be written in the tamis format.
///
/// The reading side is on the types themselves: `from_bytes` (any buffer,
/// without copying), `open` (a memory map) and `into_owned` (to change it).
///
/// ```
/// use tamis::{Filter, Insert, Persist, Split};
///
/// let mut filter = Split::builder().items(1000).fpr(0.001).build()?;
/// filter.insert("apple");
/// let bytes = filter.to_bytes();
/// let view = Split::from_bytes(&bytes[..])?;
/// assert!(view.contains("apple"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Persist {
    /// The parts of the file.
    ///
    /// ```
    /// use tamis::{Bloom, Persist};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(filter.image().bytes() >= 128);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn image(&self) -> Image<'_>;

    /// The file as one vector.
    ///
    /// ```
    /// use tamis::{Bloom, Persist};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(&filter.to_bytes()[1..6], b"TAMIS");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
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

    /// Writes the file to anything that takes bytes. The payload goes out
    /// straight from the structure's memory.
    ///
    /// # Errors
    ///
    /// What the writer returns.
    ///
    /// ```
    /// use tamis::{Bloom, Persist};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let mut file = Vec::new();
    /// filter.write_to(&mut file)?;
    /// assert_eq!(file, filter.to_bytes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "std")]
    fn write_to(&self, mut out: impl std::io::Write) -> Result<()>
    where
        Self: Sized,
    {
        self.image().pieces(|piece| out.write_all(piece))?;
        Ok(())
    }

    /// Writes the file atomically: a reader of `path` sees the old content
    /// or the new, never half of either, and after an error the old file is
    /// as it was. A new file with a keyed hash can be read by its owner
    /// alone: it contains the key.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the directory cannot be written, the disk is full,
    /// or `path` exists and `overwrite` is false.
    ///
    /// ```
    /// use tamis::{Blocked, Filter, Insert, Persist};
    ///
    /// let path = std::env::temp_dir().join("tamis-doc-save.tamis");
    /// let mut filter = Blocked::builder().items(10).fpr(0.01).build()?;
    /// filter.insert("pear");
    /// filter.save(&path, true)?;
    /// assert!(filter.save(&path, false).is_err());
    /// assert!(Blocked::open(&path)?.contains("pear"));
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "std")]
    fn save(
        &self,
        path: impl AsRef<std::path::Path>,
        overwrite: bool,
    ) -> Result<()>
    where
        Self: Sized,
    {
        // The file of a keyed hash contains the key.
        let private = self.image().hasher.id() == HashId::SipHash13;
        super::file::replace(path.as_ref(), overwrite, private, |file| {
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

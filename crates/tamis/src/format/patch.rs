//! Changes of blocks inside an image, and of the checksums that cover them.

use core::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::header::{CHUNK, ImageHeader};
use super::image::check;
use super::journal::Journal;
use crate::error::Result;

/// The changes that make the image `new` of the image `old`.
///
/// `new` has other bytes in the `changed` ranges, which are in order and
/// inside the blocks. `header` has the counts and the geometry of `new`.
/// Writes the new checksums of the chunks to `new`. Reads the chunks with
/// changes, and all checksums of chunks: 8 bytes per 64 KiB.
///
/// # Errors
///
/// [`Error::Checksum`](crate::Error::Checksum) if a chunk with changes was
/// damaged: its new checksum would hide that.
pub(crate) fn patch(
    old: &[u8],
    new: &mut [u8],
    mut header: ImageHeader,
    changed: &[Range<usize>],
) -> Result<Journal> {
    let mut journal = Journal::new(header.bytes);
    for range in changed {
        journal.record(range.start as u64, &new[range.clone()]);
    }
    let Some(section) = header.sections.first_mut() else {
        return Ok(journal);
    };
    // Offsets are at most the length of a slice, so they fit a usize.
    let start = section.offset as usize;
    let blocks = start..start + section.bytes as usize;
    let sums = section.chunk_sums();
    let sums = sums.start as usize..sums.end as usize;
    if sums.is_empty() && !changed.is_empty() {
        check("payload", xxh3_64(&old[blocks.clone()]), section.checksum)?;
        section.checksum = xxh3_64(&new[blocks]);
    } else if !changed.is_empty() {
        let list = &old[sums.clone()];
        check("chunk checksums", xxh3_64(list), section.checksum)?;
        let chunk = CHUNK as usize;
        // First chunk whose checksum is not computed yet.
        let mut next = 0;
        for range in changed {
            let first = (range.start - start) / chunk;
            let last = (range.end - 1 - start) / chunk;
            for i in next.max(first)..=last {
                let from = start + i * chunk;
                let place = from..blocks.end.min(from + chunk);
                let sum = sums.start + 8 * i..sums.start + 8 * (i + 1);
                let expected = super::header::field(&old[sum.clone()], 0);
                let found = xxh3_64(&old[place.clone()]);
                check("payload", found, u64::from_le_bytes(expected))?;
                let checksum = xxh3_64(&new[place]).to_le_bytes();
                new[sum.clone()].copy_from_slice(&checksum);
                journal.record(sum.start as u64, &checksum);
                next = i + 1;
            }
        }
        section.checksum = xxh3_64(&new[sums]);
    }
    let bytes = header.encode();
    if !old.starts_with(&bytes) {
        journal.record(0, &bytes);
    }
    Ok(journal)
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a range of bytes")]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;
    use std::io::{Read as _, Seek as _, Write as _};

    use super::*;
    use crate::error::Error;
    use crate::format::header::{Counts, GeometryBytes};
    use crate::format::{Kind, SectionTag};
    use crate::key::KeyHasher;

    const SIZE: usize = CHUNK as usize;
    /// Offset of the blocks.
    const START: usize = 128;

    /// An image with blocks of `len` bytes and right checksums, except that of
    /// chunk `damaged`.
    fn image_of(len: usize, damaged: Option<usize>) -> (Vec<u8>, ImageHeader) {
        let mut geometry = GeometryBytes::default();
        geometry.put(&[0; 16]);
        let counts = Counts::empty(1, 0.5);
        let parts = (Kind::Bloom, KeyHasher::default(), counts);
        let sections = [(SectionTag::BLOCKS, len as u64)];
        let mut header =
            ImageHeader::layout(parts, geometry, sections.into_iter());
        let section = header.sections[0];
        assert_eq!(section.offset as usize, START);
        let mut image = vec![7; header.bytes as usize];
        let mut sums: Vec<u64> =
            image[START..START + len].chunks(SIZE).map(xxh3_64).collect();
        if let Some(damaged) = damaged {
            sums[damaged] ^= 1;
        }
        let list: Vec<u8> =
            sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        header.sections[0].checksum = match sums[..] {
            [sum] => sum,
            _ => {
                let at = section.chunk_sums().start as usize;
                image[at..].copy_from_slice(&list);
                xxh3_64(&list)
            }
        };
        image[..START].copy_from_slice(&header.encode());
        (image, header)
    }

    /// The file after a commit of the patch that changes `ranges`, which
    /// begin at the blocks' start.
    fn patched(
        (old, header): &(Vec<u8>, ImageHeader),
        ranges: &[Range<usize>],
    ) -> Result<Vec<u8>> {
        let ranges: Vec<_> =
            ranges.iter().map(|r| START + r.start..START + r.end).collect();
        let mut new = old.clone();
        for range in &ranges {
            new[range.clone()].fill(9);
        }
        let journal = patch(old, &mut new, *header, &ranges)?;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(old).unwrap();
        journal.commit(&file).unwrap();
        let mut found = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut found).unwrap();
        assert!(found[START..] == new[START..]);
        Ok(found)
    }

    /// Patches have the checksums of an image that is written anew.
    fn is_whole(image: &[u8], len: usize) -> bool {
        let header = ImageHeader::parse(image).unwrap();
        let section = header.sections[0];
        let sums = section.chunk_sums();
        let sums = &image[sums.start as usize..sums.end as usize];
        let blocks = &image[START..START + len];
        match sums {
            [] => section.checksum == xxh3_64(blocks),
            _ => {
                section.checksum == xxh3_64(sums)
                    && blocks
                        .chunks(SIZE)
                        .zip(sums.chunks_exact(8))
                        .all(|(c, sum)| xxh3_64(c).to_le_bytes() == *sum)
            }
        }
    }

    #[test]
    fn patches_have_the_checksums_of_their_blocks() {
        for len in [64, SIZE, 2 * SIZE, 3 * SIZE - 64, 3 * SIZE] {
            let image = image_of(len, None);
            assert!(is_whole(&image.0, len));
            for ranges in [
                &[][..],
                &[0..1],
                &[len - 1..len],
                &[0..1, 1..2, len - 1..len],
                &[0..len],
                &[len / 2 - 1..len / 2 + 1],
            ] {
                let patched = patched(&image, ranges).unwrap();
                assert!(is_whole(&patched, len), "{len}: {ranges:?}");
                assert_eq!(patched == image.0, ranges.is_empty());
            }
        }
    }

    /// Of a chunk without changes nothing is read or written; one with
    /// changes must not hide damage.
    #[test]
    fn only_chunks_with_changes_are_checked() {
        let len = 3 * SIZE - 64;
        let image = image_of(len, Some(1));
        for ranges in [&[][..], &[0..1, SIZE - 1..SIZE], &[2 * SIZE..len]] {
            let patched = patched(&image, ranges).unwrap();
            assert!(!is_whole(&patched, len));
        }
        for range in
            [SIZE..SIZE + 1, 2 * SIZE - 1..2 * SIZE, SIZE - 1..2 * SIZE + 1]
        {
            let found = patched(&image, std::slice::from_ref(&range));
            let is_refused =
                matches!(found, Err(Error::Checksum { part: "payload", .. }));
            assert!(is_refused, "{range:?}");
        }
        let short = image_of(64, Some(0));
        assert!(patched(&short, &[]).is_ok());
        assert!(patched(&short, &[0..1]).is_err());
        // A damaged list of checksums.
        let (mut bytes, header) = image_of(len, None);
        *bytes.last_mut().unwrap() ^= 1;
        let found = patched(&(bytes, header), &[0..1]);
        let part = "chunk checksums";
        assert!(
            matches!(found, Err(Error::Checksum { part: p, .. }) if p == part)
        );
    }
}

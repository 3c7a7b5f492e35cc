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

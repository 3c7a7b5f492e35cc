//! Arbitrary bytes: an error, or a filter that answers without panicking.
//!
//! Random bytes never pass the checks of the header's magic and checksum, so
//! every input is tried unchanged and with both corrected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{AnyFilter, Error, Header, Result, inspect::Inspector};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"\x89TAMIS\r\n";
const ALIGN: usize = 64;
/// Offsets of the header's fields: bytes of the file, of the header and of
/// the geometry, and the number of sections.
const FILE_BYTES: usize = 32;
const HEADER_BYTES: usize = 64;
const GEOMETRY_BYTES: usize = 66;
const SECTIONS: usize = 68;
/// Bytes before the geometry, of a section table's entry, of the checksum.
const FIXED: usize = 72;
const ENTRY: usize = 32;
const CHECKSUM: usize = 8;
/// Bytes of the header of the compact form.
const COMPACT_HEADER: usize = 32;

fuzz_target!(|input: &[u8]| {
    let _ = survive(input);
    if let Some(sealed) = seal(input, false) {
        let _ = survive(&sealed);
    }
    if let Some(sealed) = seal(input, true) {
        let _ = survive(&sealed);
    }
    if let Some(sealed) = seal_compact(input) {
        let _ = survive(&sealed);
    }
});

/// Every operation on an opened file.
fn survive(bytes: &[u8]) -> Result<()> {
    let view = AnyFilter::from_bytes(bytes)?;
    let mut hashes = vec![0, 1, u64::MAX, 1 << 63];
    // Hashes from the file itself reach blocks that constants do not.
    hashes.extend(bytes.chunks_exact(8).take(64).map(|word| {
        u64::from_le_bytes(word.try_into().expect("eight bytes"))
    }));
    let mut found = vec![false; hashes.len()];
    view.contains_hash_batch(&hashes, &mut found);
    assert_eq!(found.len(), hashes.len());
    for (&hash, found) in hashes.iter().zip(&found) {
        assert_eq!(view.contains_hash(hash), *found);
    }
    view.contains(bytes);
    let stats = view.stats();
    assert_eq!(stats.bytes, view.bytes());
    assert!((0.0..=1.0).contains(&stats.expected_fpr), "{stats:?}");
    assert!(stats.estimated_items >= 0.0, "{stats:?}");
    for reads in [stats.reads_hit, stats.reads_miss] {
        assert!(reads.is_finite() && reads >= 0.0, "{stats:?}");
    }
    let _ = Inspector::new(&view).parameters();
    let verified = view.verify();
    let metadata = view.metadata().map(|metadata| metadata.iter().count());
    assert!(verified.is_err() || metadata.is_ok(), "{metadata:?}");

    let mut owned = AnyFilter::from_bytes(bytes)?.into_owned()?;
    assert_eq!(owned.metadata().map(|all| all.iter().count()), metadata);
    assert_eq!(owned.stats(), stats);
    let written = owned.to_bytes();
    assert_eq!(written, view.to_bytes());
    if verified.is_ok() {
        let same = match bytes.starts_with(MAGIC) {
            true => written.clone(),
            false => owned.to_compact_bytes()?,
        };
        assert_eq!(same, bytes, "a file verified is not the one written");
    }
    let header = Header::parse(bytes)?;
    assert_eq!(tamis::Header::image_len(bytes)?, bytes.len() as u64);
    let with_header = AnyFilter::from_bytes_with(&header, bytes)?;
    assert_eq!(with_header.to_bytes(), written);
    // Written bytes can be opened, also if the input did not verify.
    let again = AnyFilter::from_bytes(&written[..])?;
    again.contains_hash_batch(&hashes, &mut found);

    // An owned copy can be changed.
    if metadata.is_ok() && owned.set_metadata("note", "fuzz").is_ok() {
        let bytes = owned.to_bytes();
        let noted = AnyFilter::from_bytes(&bytes[..])?;
        assert_eq!(noted.metadata()?.get("note"), Some("fuzz"));
        assert_eq!(noted.bytes(), bytes.len() as u64);
    }
    for &hash in &hashes {
        owned.insert_hash(hash);
        assert!(owned.contains_hash(hash));
    }
    owned.insert_hash_batch(&hashes);
    owned.merge_from(&view)?;
    owned.merge_from(&again)?;
    for &hash in &hashes {
        assert!(owned.contains_hash(hash), "lost {hash:#x}");
    }
    match owned.halved() {
        Ok(folded) => {
            assert!(hashes.iter().all(|&hash| folded.contains_hash(hash)));
        }
        Err(Error::NotFoldable { blocks }) => assert_eq!(blocks % 2, 1),
        Err(other) => return Err(other),
    }
    verified
}

/// The input with correct magic, version, header length, file length and
/// header checksum. With `sections`, also with consecutive sections up to
/// the end of the file and their checksums.
fn seal(input: &[u8], sections: bool) -> Option<Vec<u8>> {
    if input.len() < FIXED {
        return None;
    }
    let mut bytes = input.to_vec();
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, &tamis::Header::FORMAT_VERSION.to_le_bytes());
    let half = |at: usize| {
        usize::from(u16::from_le_bytes([input[at], input[at + 1]]))
    };
    let (geometry, count) = (half(GEOMETRY_BYTES), half(SECTIONS));
    let header =
        (FIXED + geometry + count * ENTRY + CHECKSUM).next_multiple_of(ALIGN);
    if header > bytes.len() {
        return None;
    }
    // A length above 16 bits cannot be corrected and must be refused.
    put(&mut bytes, HEADER_BYTES, &(header as u16).to_le_bytes());
    if sections {
        let mut end = header;
        for section in 0..count {
            let entry = FIXED + geometry + section * ENTRY;
            let start = end.next_multiple_of(ALIGN).min(bytes.len());
            let wanted = bytes[entry + 16..].first_chunk()?;
            let room = bytes.len() - start;
            let len = u64::from_le_bytes(*wanted).min(room as u64);
            end = start + len as usize;
            let sum = xxh3_64(&bytes[start..end]);
            let fields = [start as u64, len, sum].map(u64::to_le_bytes);
            put(&mut bytes, entry + 8, fields.as_flattened());
        }
        bytes.truncate(end);
    }
    let len = bytes.len() as u64;
    put(&mut bytes, FILE_BYTES, &len.to_le_bytes());
    let sum = xxh3_64(&bytes[..header - CHECKSUM]);
    put(&mut bytes, header - CHECKSUM, &sum.to_le_bytes());
    Some(bytes)
}

/// The input as a compact image: with correct magic, version, hash and
/// checksums, and the number of blocks that the bytes hold.
fn seal_compact(input: &[u8]) -> Option<Vec<u8>> {
    let block_bits = input.get(6..8)?.try_into().map(u16::from_le_bytes);
    let block_bytes = usize::from(block_bits.ok()?.div_ceil(8)).max(1);
    let blocks = input.len().checked_sub(COMPACT_HEADER)? / block_bytes;
    let mut bytes = input[..COMPACT_HEADER + blocks * block_bytes].to_vec();
    put(&mut bytes, 0, b"\x89t\x01");
    bytes[3] = 1 << 4 | bytes[3] & 15;
    put(&mut bytes, 8, &(blocks as u32).to_le_bytes());
    let sum = xxh3_64(&bytes[COMPACT_HEADER..]) as u32;
    put(&mut bytes, 24, &sum.to_le_bytes());
    let sum = xxh3_64(&bytes[..28]) as u32;
    put(&mut bytes, 28, &sum.to_le_bytes());
    Some(bytes)
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

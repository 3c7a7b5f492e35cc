//! Arbitrary bytes: an error, or a filter that answers without panicking.
//!
//! Random bytes never pass the checks of the header's magic and checksum, so
//! every input is tried unchanged and with both corrected.
use tamis::{AnyFilter, Error, Header, Result, inspect::Inspector};

use crate::seal::{self, Correct, MAGIC};

/// Longest image that is merged: the entries of two full blocks are compared
/// pairwise.
const LONGEST_MERGED: usize = 1024;

/// Tries the input unchanged, and with corrected checksums.
pub fn run(input: &[u8]) {
    let _ = survive(input);
    let mut sealed = Vec::new();
    for correct in [Correct::Header, Correct::Sections] {
        if seal::full(input, correct, &mut sealed) {
            let _ = survive(&sealed);
        }
    }
    if seal::compact(input, &mut sealed) {
        let _ = survive(&sealed);
    }
}

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
    if bytes.len() <= LONGEST_MERGED {
        owned.merge_from(&view)?;
        owned.merge_from(&again)?;
    }
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

//! Insertion into the file of a filter, at a cost that depends on the keys.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::AnyFilter;
use crate::error::Result;
use crate::format::{
    ExclusiveFile, GeometryBytes, ImageHeader, Mapped, PrivateMap, is_compact,
    patch,
};
use crate::key::KeyHasher;

/// The operation in errors.
pub(super) const OPERATION: &str = "add keys in place";

/// An insertion into a copy of a filter's blocks.
pub(super) struct Inserted {
    /// Keys counted afterwards.
    pub(super) items: u64,
    /// The geometry afterwards.
    pub(super) geometry: GeometryBytes,
    /// All blocks that may have changed: ranges of the copy.
    pub(super) touched: Vec<Range<usize>>,
}

/// Inserts keys into the filter in a file, of which the caller has the
/// writers' lock. `hash` makes hashes of the keys.
pub(super) fn insert<'a>(
    path: &Path,
    wait: Duration,
    hash: impl FnOnce(&KeyHasher) -> Cow<'a, [u64]>,
) -> Result<()> {
    let ExclusiveFile(file) = ExclusiveFile::open(path, wait)?;
    let journal = {
        let old = Mapped::from_file(&file)?;
        let header = ImageHeader::parse(&old)?;
        if is_compact(&old) {
            return Err(super::unsupported(
                header.kind.name(),
                OPERATION,
                "the compact form of a file is written as a whole",
            ));
        }
        let filter = AnyFilter::from_header(&header, old.clone())?;
        let blocks = filter.envelope().payload.clone();
        let mut new = PrivateMap::new(&file, header.bytes)?;
        let hashes = hash(filter.hasher());
        let copy = &mut new[blocks.clone()];
        let mut inserted = filter.insert_into(copy, &hashes)?;
        inserted.touched.sort_unstable_by_key(|range| range.start);
        inserted.touched.dedup();
        let changed: Vec<Range<usize>> = inserted
            .touched
            .into_iter()
            .map(|range| blocks.start + range.start..blocks.start + range.end)
            .filter(|range| old[range.clone()] != new[range.clone()])
            .collect();
        let mut header = header;
        header.counts.items = inserted.items;
        header.geometry = inserted.geometry;
        patch(&old, &mut new, header, &changed)?
    };
    journal.commit(&file)
}

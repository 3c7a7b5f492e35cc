//! Changes of filter files, at a cost that depends on the number of keys.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::AnyFilter;
use crate::block::fingerprint::Removal;
use crate::error::Result;
use crate::format::{
    ExclusiveFile, GeometryBytes, ImageHeader, Mapped, PrivateMap, is_compact,
    patch,
};
use crate::key::KeyHasher;

/// The operations in errors.
pub(super) const INSERTION: &str = "add keys in place";
pub(super) const REMOVAL: &str = "remove keys in place";

/// A change of a copy of a filter's blocks.
pub(super) struct Changed<R = ()> {
    pub(super) result: R,
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
    change(path, wait, INSERTION, |filter, blocks| {
        filter.insert_into(blocks, &hash(filter.hasher()))
    })
}

/// [`insert`] for removals. Returns one result per key.
pub(super) fn remove<'a>(
    path: &Path,
    wait: Duration,
    hash: impl FnOnce(&KeyHasher) -> Cow<'a, [u64]>,
) -> Result<Vec<Removal>> {
    change(path, wait, REMOVAL, |filter, blocks| {
        filter.remove_from(blocks, &hash(filter.hasher()))
    })
}

/// Applies `change` to the filter in a file and to a copy of its blocks.
fn change<R>(
    path: &Path,
    wait: Duration,
    operation: &'static str,
    change: impl FnOnce(&AnyFilter<&[u8]>, &mut [u8]) -> Result<Changed<R>>,
) -> Result<R> {
    let ExclusiveFile(file) = ExclusiveFile::open(path, wait)?;
    let (journal, result) = {
        let old = Mapped::from_file(&file)?;
        let header = ImageHeader::parse(&old)?;
        if is_compact(&old) {
            return Err(super::unsupported(
                header.kind.name(),
                operation,
                "the compact form of a file is written as a whole",
            ));
        }
        let filter = AnyFilter::from_header(&header, &old[..])?;
        let blocks = filter.envelope().payload.clone();
        let mut new = PrivateMap::new(&file, header.bytes)?;
        let Changed { result, items, geometry, mut touched } =
            change(&filter, &mut new[blocks.clone()])?;
        touched.sort_unstable_by_key(|range| range.start);
        touched.dedup();
        let changed: Vec<Range<usize>> = touched
            .into_iter()
            .map(|range| blocks.start + range.start..blocks.start + range.end)
            .filter(|range| old[range.clone()] != new[range.clone()])
            .collect();
        let mut header = header;
        header.counts.items = items;
        header.geometry = geometry;
        (patch(&old, &mut new, header, &changed)?, result)
    };
    journal.commit(&file)?;
    Ok(result)
}

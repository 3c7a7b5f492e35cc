//! A complete check of a store.

use std::sync::Arc;

use crate::core::Shared;
use crate::delta::Delta;
use crate::error::Result;
use crate::extents::{Extent, PAGE};
use crate::merge::{Merged, Step};
use crate::page::Place;
use crate::segment::SegmentReader;

/// Result of [`Store::verify`](crate::Store::verify): counts of the parts checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Verified {
    /// Segments.
    pub segments: u64,
    /// Records in segments.
    pub records: u64,
    /// Pages of records, in bytes.
    pub bytes: u64,
    /// Large values.
    pub large_values: u64,
}

impl Shared {
    /// See [`Store::verify`](crate::Store::verify).
    pub(crate) fn verify(&self) -> Result<Verified> {
        let view = self.view.load_full();
        let mut verified = Verified::default();
        for slot in view.slots() {
            if let Some(runs) = &slot.runs {
                runs.verify(self)?;
                verified.bytes += runs.data_pages() * PAGE;
            }
            let Some(segment) = &slot.segment else { continue };
            let reader = SegmentReader::new(
                Arc::clone(segment),
                Arc::clone(&self.data),
            );
            let range = (slot.low, slot.depth);
            let delta = Arc::new(Delta::default());
            let mut records =
                Merged::new(Some(reader), delta, None, range, self.hash);
            let mut larges: Vec<Extent> = Vec::new();
            let mut count = 0;
            loop {
                let mut named = None;
                let mut located = None;
                let step = records.next(
                    |_| true,
                    |position, record, _| {
                        named =
                            record.large.then(|| Place::decode(record.value));
                        located = segment.locate(position);
                        Ok(())
                    },
                )?;
                if !matches!(step, Step::Written) {
                    break;
                }
                count += 1;
                let page = records.page();
                if located.is_none_or(|(first, _)| first != page) {
                    let why = "the index does not find a record";
                    return Err(segment.corrupt(page, why));
                }
                if let Some(place) = named {
                    let place = place.ok_or_else(|| self.bad_place())?;
                    self.read_large(place)?;
                    larges.push(place.extent);
                    verified.large_values += 1;
                }
            }
            larges.sort_unstable();
            if larges != segment.larges() {
                let why = "the index lists other large values";
                return Err(segment.corrupt(segment.entry.data_pages, why));
            }
            if count != segment.entry.records {
                let why = "the number of records is wrong";
                return Err(segment.corrupt(0, why));
            }
            verified.segments += 1;
            verified.records += count;
            verified.bytes += u64::from(segment.entry.data_pages) * PAGE;
        }
        Ok(verified)
    }
}

//! Commits: a manifest that names the newest segments becomes durable.
//!
//! The order is: log, then segments and the manifest's body, then the slot.
//! The log first: a manifest with a merged write, whose frame was lost, could
//! keep half of a batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::core::{Counters, Shared, lock};
use crate::disk::write_all_at;
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::log;
use crate::manifest::{DATA, Manifest, SegmentEntry};
use crate::view::{Slot, View};

impl Shared {
    /// Makes the newest view durable and frees extents that it no longer names.
    /// The caller holds `merging`.
    pub(crate) fn commit(&self) -> Result<()> {
        self.commit_instead(None)
    }

    /// Like [`commit`](Self::commit), with slots and the identity of the next
    /// segment in place of those of the view, which are yet to be published.
    /// Where it is unknown whether they are durable, the handle is poisoned.
    pub(crate) fn commit_instead(
        &self,
        new: Option<(&[Arc<Slot>], u64)>,
    ) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let (mut manifest, retired) = {
            let writer = lock(writer);
            let view = self.view.load();
            let next = writer.next;
            let oldest = oldest(&view, next);
            // The last log whose first write is not after the oldest one.
            let first = writer
                .logs
                .iter()
                .rev()
                .find(|&&(_, first)| first <= oldest)
                .or(writer.logs.first());
            let &(first_log, first_sequence) =
                first.unwrap_or(&(writer.log.number(), next));
            let space = lock(&self.space);
            let manifest = Manifest {
                generation: space.generation + 1,
                hash_seed: self.settings.hash_seed,
                log_seed: self.settings.log_seed,
                bits_per_key: self.settings.bits_per_key,
                segment_bytes: self.settings.segment_bytes,
                next_segment: new.map_or(writer.next_segment, |new| new.1),
                first_log,
                first_sequence,
                segments: entries(new.map_or(view.slots(), |new| new.0)),
                runs: runs(new.map_or(view.slots(), |new| new.0)),
            };
            (manifest, space.retired.len())
        };
        self.sync_log(u64::MAX)?;
        let body = manifest.body();
        let pages = (body.len() as u64).div_ceil(PAGE);
        let extent = lock(&self.space).allocate_body(pages);
        let written = self.write_body(&body, extent);
        if let Err(error) = written {
            lock(&self.space).extents.release(extent);
            return Err(error);
        }
        // After an error the slot may name the body: its extent stays taken,
        // and the next commit writes the same slot.
        manifest.write_slot(&*self.data, extent, &body).inspect_err(|_| {
            if new.is_some() {
                self.poisoned.store(true, Ordering::Release);
            }
        })?;
        self.sync(&*self.data, DATA)?;
        Counters::add(&self.counters.commits, 1);
        Counters::add(&self.counters.commit_bytes, (pages + 1) * PAGE);
        manifest.segments = Vec::new();
        manifest.runs = Vec::new();
        let mut writer = lock(writer);
        let mut space = lock(&self.space);
        space.committed(retired, extent);
        let mut needed = writer.logs.clone();
        needed.retain(|&(number, _)| number >= manifest.first_log);
        for &(number, _) in &writer.logs {
            if number < manifest.first_log {
                space.logs.push(log::name(number));
            }
        }
        // An average: the exact lengths would be one more list.
        let (older, kept) = (writer.logs.len() - 1, needed.len() - 1);
        if older > 0 {
            writer.older_bytes =
                writer.older_bytes * kept as u64 / older as u64;
        }
        writer.logs = needed;
        self.note_log_length(&writer);
        drop(writer);
        space.release(&*self.disk, &*self.data)
    }

    /// Frees extents whose readers have gone.
    pub(crate) fn release(&self) -> Result<()> {
        lock(&self.space).release(&*self.disk, &*self.data)
    }

    /// Writes a body, and makes it and all segments durable.
    fn write_body(&self, body: &[u8], extent: Extent) -> Result<()> {
        let mut pages = body.to_vec();
        pages.resize((extent.pages * PAGE) as usize, 0);
        write_all_at(&*self.data, &pages, extent.offset())
            .map_err(|e| Error::io("write", DATA, e))?;
        self.sync(&*self.data, DATA)
    }

    /// Commits if enough pages wait for it, or if it lets long logs be cut.
    /// The caller holds `merging`.
    pub(crate) fn commit_if_due(&self) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let due = {
            let writer = lock(writer);
            let space = lock(&self.space);
            let live = space.extents.end() - space.extents.free_pages();
            let segment = self.ram.segment_bytes() / PAGE;
            let oldest = oldest(&self.view.load(), writer.next);
            let cuts = writer.logs.get(1).is_some_and(|log| log.1 <= oldest);
            // Extents that wait for a commit are those of one merge, or 1/32
            // of the data, but at most eight segments: a sync of more would
            // stop merging until the buffers are full. A commit for less than
            // 16 pages writes more than it frees.
            let least = (segment / 2).max(16);
            space.retired_pages() > least.max((live / 32).min(8 * segment))
                || cuts && writer.log_bytes() > self.ram.log_bytes()
        };
        match due {
            true => self.commit(),
            false => Ok(()),
        }
    }
}

/// Smallest sequence number that is in no segment yet.
fn oldest(view: &View, next: u64) -> u64 {
    let oldest = view.slots().iter().map(|slot| slot.oldest()).min();
    oldest.unwrap_or(next).min(next)
}

/// The runs of slots for a manifest.
fn runs(slots: &[Arc<Slot>]) -> Vec<SegmentEntry> {
    let runs = slots.iter().flat_map(|slot| slot.runs.iter());
    runs.flat_map(|runs| runs.iter()).map(|run| run.entry).collect()
}

/// The segments of slots for a manifest.
fn entries(slots: &[Arc<Slot>]) -> Vec<SegmentEntry> {
    let entry = |slot: &Arc<Slot>| {
        let segment = slot.segment.as_ref().map(|segment| segment.entry);
        let mut entry = segment.unwrap_or_default();
        (entry.low, entry.depth) = (slot.low, slot.depth);
        entry.merged = slot.merged;
        entry
    };
    slots.iter().map(entry).collect()
}

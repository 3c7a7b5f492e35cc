//! Compaction: everything merged, small segments joined, the file as short
//! as its data.

use std::sync::{Arc, Mutex};

use crate::core::{Shared, Writer, lock};
use crate::disk::{read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::manifest::DATA;
use crate::segment::{CHUNK, Segment};
use crate::view::Slot;

impl Shared {
    /// See [`Store::compact`](crate::Store::compact).
    pub(crate) fn compact(&self) -> Result<()> {
        let Some(writer) = &self.writer else { return Err(Error::ReadOnly) };
        let _merging = lock(&self.merging);
        lock(&self.space).keep_bodies(false);
        let compacted = self.compact_all(writer);
        lock(&self.space).keep_bodies(true);
        compacted
    }

    /// The steps of [`compact`](Self::compact). The caller holds `merging`.
    fn compact_all(&self, writer: &Mutex<Writer>) -> Result<()> {
        // Beside a steady writer each slot is merged once.
        let last = lock(writer).next - 1;
        loop {
            let merges = self.merge_one(last)?;
            if !merges && !self.join_one()? {
                break;
            }
            self.room.notify();
            self.commit_if_due()?;
        }
        self.trim();
        self.commit()?;
        // Moved segments free their places with the next commit. Each may
        // make way once for those behind it.
        let mut shifts = self.view.load().slots().len();
        loop {
            let mut moved = false;
            while self.move_one()? {
                moved = true;
                self.commit_if_due()?;
            }
            if !moved {
                if shifts == 0 || !self.shift_one()? {
                    return self.lower_body();
                }
                shifts -= 1;
            }
            self.commit()?;
        }
    }

    /// Frees the pages that segments leave unused in their places.
    fn trim(&self) {
        let view = self.view.load();
        let mut space = lock(&self.space);
        for segment in view.slots().iter().flat_map(|slot| &slot.segment) {
            space.extents.release(segment.trim());
        }
    }

    /// Commits again if the body of the manifest is the last extent, a free run
    /// has room for it, and more than a tenth of the file and 16 pages are free:
    /// the file cannot end before its body.
    fn lower_body(&self) -> Result<()> {
        let space = lock(&self.space);
        let (body, extents) = (space.body, &space.extents);
        let lower = extents.free_pages() > (extents.end() / 10).max(16)
            && body.end() == extents.end()
            && extents.runs().any(|run| run.pages >= body.pages);
        drop(space);
        if lower { self.commit() } else { Ok(()) }
    }

    /// Joins two slots that are small, and returns `false` if none are.
    fn join_one(&self) -> Result<bool> {
        let view = self.view.load_full();
        let slots = view.slots().len();
        let Some(writer) = &self.writer else { return Ok(false) };
        let last = lock(writer).next - 1;
        let small =
            (0..slots).find(|&at| self.joined(&view, at, last).len() > 1);
        let Some(position) = small.map(|at| view.slots()[at].low) else {
            return Ok(false);
        };
        drop(view);
        self.merge_at(position)?;
        Ok(true)
    }

    /// Moves a segment to free space before it: the largest one that fits the
    /// first free run with such a segment. Returns `false` if none fits, or if
    /// less than 1 % of the file is free.
    fn move_one(&self) -> Result<bool> {
        let view = self.view.load_full();
        let mut segments: Vec<_> = view
            .slots()
            .iter()
            .filter(|slot| slot.runs.is_none())
            .filter_map(|slot| Some((slot, slot.segment.clone()?)))
            .collect();
        segments.sort_unstable_by_key(|(_, s)| s.entry.extent.pages);
        let mut space = lock(&self.space);
        if space.extents.free_pages() * 100 < space.extents.end() {
            return Ok(false);
        }
        let found = space.extents.runs().find_map(|run| {
            segments.iter().rev().find(|(_, segment)| {
                let extent = segment.entry.extent;
                extent.pages <= run.pages && extent.start > run.start
            })
        });
        let Some((slot, segment)) = found else { return Ok(false) };
        let (slot, segment) = (Arc::clone(slot), Arc::clone(segment));
        let to = space.extents.allocate_low(segment.entry.extent.pages);
        drop(space);
        drop(segments);
        drop(view);
        let moved = self.move_segment(&slot, &segment, to);
        if moved.is_err() {
            lock(&self.space).extents.release(to);
        }
        moved.map(|()| true)
    }

    /// Moves the segment after the first free run to the end of the file: the
    /// run and its place make one, into which a segment is moved then. Returns
    /// `false` if no segment follows a free run, or if at most a tenth of the
    /// file is free.
    fn shift_one(&self) -> Result<bool> {
        let view = self.view.load_full();
        let mut space = lock(&self.space);
        if space.extents.free_pages() * 10 <= space.extents.end() {
            return Ok(false);
        }
        let found = space.extents.runs().find_map(|run| {
            view.slots().iter().find_map(|slot| {
                let segment = slot.segment.as_ref()?;
                let follows = segment.taken().start == run.end();
                (follows && slot.runs.is_none())
                    .then(|| (Arc::clone(slot), Arc::clone(segment)))
            })
        });
        let Some((slot, segment)) = found else { return Ok(false) };
        let to = space.extents.allocate_last(segment.entry.extent.pages);
        drop(space);
        drop(view);
        let moved = self.move_segment(&slot, &segment, to);
        if moved.is_err() {
            lock(&self.space).extents.release(to);
        }
        moved.map(|()| true)
    }

    /// Copies a segment to `to` and publishes it there.
    fn move_segment(
        &self,
        slot: &Arc<Slot>,
        segment: &Segment,
        to: Extent,
    ) -> Result<()> {
        let io = |e| Error::io("move a segment of", DATA, e);
        let from = segment.entry.extent;
        let mut chunk = vec![0; CHUNK];
        let len = from.pages * PAGE;
        for at in (0..len).step_by(CHUNK) {
            let n = (len - at).min(CHUNK as u64) as usize;
            read_exact_at(&*self.data, &mut chunk[..n], from.offset() + at)
                .map_err(io)?;
            write_all_at(&*self.data, &chunk[..n], to.offset() + at)
                .map_err(io)?;
        }
        let mut entry = segment.entry;
        entry.extent = to;
        let segment = Segment::read(&*self.data, entry, &self.ram.index)?;
        self.publish_moved(slot, segment);
        Ok(())
    }
}

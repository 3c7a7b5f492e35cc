//! Compaction: everything merged, small segments joined, the file as short
//! as its data.

use std::sync::Arc;

use crate::core::{Shared, lock};
use crate::disk::{read_exact_at, write_all_at};
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::manifest::DATA;
use crate::segment::{CHUNK, Segment};
use crate::view::Slot;

impl Shared {
    /// See [`Store::compact`](crate::Store::compact).
    pub(crate) fn compact(&self) -> Result<()> {
        if self.writer.is_none() {
            return Err(Error::ReadOnly);
        }
        let _merging = lock(&self.merging);
        loop {
            let merges = self.merge_one()?;
            if !merges && !self.join_one()? {
                break;
            }
            self.room.notify();
            self.commit_if_due()?;
        }
        self.commit()?;
        while self.move_last()? {
            self.commit_if_due()?;
        }
        self.commit()
    }

    /// Joins two slots that are small, and returns `false` if none are.
    fn join_one(&self) -> Result<bool> {
        let view = self.view.load_full();
        let slots = view.slots().len();
        let small = (0..slots).find(|&at| self.joined(&view, at).len() > 1);
        let Some(position) = small.map(|at| view.slots()[at].low) else {
            return Ok(false);
        };
        drop(view);
        self.merge_at(position)?;
        Ok(true)
    }

    /// Moves the last segment of the file to free space before it, and
    /// returns `false` if none fits.
    fn move_last(&self) -> Result<bool> {
        let view = self.view.load_full();
        let last = view.slots().iter().max_by_key(|slot| {
            slot.segment.as_ref().map_or(0, |s| s.entry.extent.end())
        });
        let Some(slot) = last.map(Arc::clone) else { return Ok(false) };
        let Some(segment) = slot.segment.clone() else { return Ok(false) };
        drop(view);
        let from = segment.entry.extent;
        let to = {
            let mut space = lock(&self.space);
            let to = space.extents.allocate(from.pages);
            if to.start > from.start {
                space.extents.release(to);
                return Ok(false);
            }
            to
        };
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

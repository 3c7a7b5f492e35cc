//! Merging: a slot's buffered writes and its segment become new segments.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::Kind;
use crate::core::{Counters, Shared, lock};
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::extents::{Extent, PAGE};
use crate::hash::KeyHash;
use crate::page::{Place, Record};
use crate::ram::RECORD_BYTES;
use crate::segment::{
    MAX_DEPTH, Segment, SegmentReader, SegmentWriter, Target, Written,
};
use crate::space::{MERGE_SLACK, Retired};
use crate::view::{Slot, View, has};

/// A slot that is merged, with the writes that are merged into it.
pub(crate) struct Input {
    pub(crate) slot: Arc<Slot>,
    delta: Arc<Delta>,
    pub(crate) merged: u64,
}

impl Input {
    /// Takes the writes of `slot`, all up to sequence number `last`. The
    /// caller holds the writer.
    pub(crate) fn freeze(slot: &Arc<Slot>, last: u64) -> Self {
        let (delta, merged) = slot.freeze(last);
        Self { slot: Arc::clone(slot), delta, merged }
    }

    /// The records of the segment with the writes applied.
    pub(crate) fn records(&self, shared: &Shared) -> Result<Merged> {
        let segment = self.slot.segment.clone();
        let reader = segment.map(|segment| {
            SegmentReader::new(segment, Arc::clone(&shared.data))
        });
        let range = (self.slot.low, self.slot.depth);
        let delta = Arc::clone(&self.delta);
        let runs = self.slot.runs.as_deref();
        let runs = runs.map(|runs| runs.load(&*shared.data, shared.hash));
        let runs = runs.transpose()?;
        Ok(Merged::new(reader, delta, runs, range, shared.hash))
    }

    /// Pages and records of the segment and the writes, at most.
    pub(crate) fn size(&self) -> (u64, u64) {
        let (pages, records) =
            self.slot.segment.as_ref().map_or((0, 0), |segment| {
                (u64::from(segment.entry.data_pages), segment.entry.records)
            });
        let delta = (self.delta.bytes() as u64).div_ceil(PAGE);
        let runs = self.slot.runs.as_ref().map_or(0, |runs| runs.writes());
        (
            pages + delta + self.slot.run_pages(),
            records + self.delta.len() as u64 + runs,
        )
    }
}

impl Shared {
    /// Merges a slot with writes up to sequence number `last` that its segment
    /// does not have, and returns `false` if none has such. The caller holds
    /// `merging`.
    pub(crate) fn merge_one(&self, last: u64) -> Result<bool> {
        let view = self.view.load_full();
        let slots = view.slots().iter();
        let slots = slots.filter(|s| s.runs.is_some() || s.oldest() <= last);
        let slot = slots.max_by_key(|slot| slot.ram() + slot.run_pages());
        let Some(position) = slot.map(|slot| slot.low) else {
            return Ok(false);
        };
        drop(view);
        self.merge_at(position)?;
        Ok(true)
    }

    /// Merges the slot of `position`, together with its neighbour of the
    /// same parent range if both are small. The caller holds `merging`.
    pub(crate) fn merge_at(&self, position: u64) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        self.check_poison()?;
        let (inputs, mut next_id) = {
            let writer = lock(writer);
            let view = self.view.load();
            let at = view.find(position);
            let last = writer.next - 1;
            let inputs = self
                .joined(&view, at, last)
                .map(|at| Input::freeze(&view.slots()[at], last))
                .collect::<Vec<_>>();
            (inputs, writer.next_segment)
        };
        let first = &inputs[0].slot;
        let depth = first.depth - u8::from(inputs.len() == 2);
        let low = first.low;
        let (pages, records) = inputs.iter().fold((0, 0), |sum, input| {
            let (pages, records) = input.size();
            (sum.0 + pages, sum.1 + records)
        });
        let targets = self.targets((low, depth), pages, records);
        let k = targets.len().trailing_zeros();
        // A quarter above the expected size, and room for an index.
        let share = pages >> k;
        let index = (records >> k) / 1000;
        let mut room = share + share / 4 + index + 32;
        let mut build = Build::new(self, MERGE_SLACK);
        let slots = loop {
            let sizes = (share + 16, room);
            let built = build.slots(&inputs, &targets, sizes, &mut next_id);
            match built {
                Ok(Some(slots)) => break slots,
                Ok(None) => room *= 2,
                Err(_) => {}
            }
            build.undo();
            built?;
        };
        self.publish(&inputs, slots, next_id);
        Counters::add(&self.counters.merges, 1);
        Ok(())
    }

    /// Ranges of segments that are built of `pages` pages and `records` records
    /// of a range: 2^k, of at most half to all of the largest size.
    pub(crate) fn targets(
        &self,
        (low, depth): (u64, u8),
        pages: u64,
        records: u64,
    ) -> Vec<(u64, u8)> {
        let parts = (pages * PAGE)
            .div_ceil(self.split_bytes())
            .max(records.div_ceil(self.ram.max_records()))
            .next_power_of_two();
        let k = (parts.trailing_zeros() as u8).min(MAX_DEPTH - depth);
        (0..1u64 << k)
            .map(|part| {
                let shift = 64 - u32::from(depth + k);
                let offset = part.checked_shl(shift).unwrap_or(0);
                (low + offset, depth + k)
            })
            .collect()
    }

    /// Size at which a segment is split: parts have between 0.7 and 1.4 of
    /// the size that was chosen.
    fn split_bytes(&self) -> u64 {
        self.ram.segment_bytes() * 7 / 5
    }

    /// The slots that are merged together with slot `at`, when `last` is the
    /// sequence number of the last write. Joined slots are complete up to the
    /// same write: neither has writes of a merge that failed, nor, during a
    /// replay, merged writes that are yet to be replayed.
    pub(crate) fn joined(
        &self,
        view: &View,
        at: usize,
        last: u64,
    ) -> std::ops::Range<usize> {
        let slots = view.slots();
        let slot = &slots[at];
        if slot.depth == 0 {
            return at..at + 1;
        }
        let width = 1u64.checked_shl(64 - u32::from(slot.depth)).unwrap_or(0);
        let range = match slot.low & width {
            0 => at..at + 2,
            _ => at - 1..at + 1,
        };
        let size = |slot: &Arc<Slot>| {
            let entry = slot.segment.as_ref().map(|segment| segment.entry);
            let entry = entry.unwrap_or_default();
            let pages = u64::from(entry.data_pages) + slot.run_pages();
            let runs = slot.runs.as_ref().map_or(0, |runs| runs.writes());
            let records = entry.records + runs + slot.ram() / RECORD_BYTES;
            (pages * PAGE + slot.ram(), records)
        };
        let joins = slots.get(range.clone()).is_some_and(|pair| {
            let (a, b) = (size(&pair[0]), size(&pair[1]));
            pair.iter().all(|other| other.depth == slot.depth)
                && pair.iter().all(|s| s.merged <= last && !s.has_frozen())
                && a.0 + b.0 < self.split_bytes() / 3
                && a.1 + b.1 < self.ram.max_records() / 2
        });
        match joins {
            true => range,
            false => at..at + 1,
        }
    }

    /// Replaces the segment of `slot` by a copy of it in another place.
    pub(crate) fn publish_moved(&self, slot: &Arc<Slot>, segment: Segment) {
        let merged = slot.merged;
        let range = (slot.low, slot.depth);
        let segment = Some(Arc::new(segment));
        let new = Slot::new(range, merged, segment, &self.ram.buffers)
            .after(slot.readers().collect());
        let input =
            Input { slot: Arc::clone(slot), delta: Arc::default(), merged };
        self.publish(&[input], vec![Arc::new(new)], 0);
    }

    /// Replaces `slot` by `new`, a run of which has the writes of `delta`.
    pub(crate) fn publish_spilled(
        &self,
        slot: &Arc<Slot>,
        delta: Arc<Delta>,
        new: Slot,
    ) {
        let merged = new.merged;
        let slot = Arc::clone(slot);
        self.publish(&[Input { slot, delta, merged }], vec![Arc::new(new)], 0);
    }

    /// Replaces the merged slots by the new ones in the view. `next_id` is the
    /// identity of the next segment, if that is greater than before.
    pub(crate) fn publish(
        &self,
        inputs: &[Input],
        slots: Vec<Arc<Slot>>,
        next_id: u64,
    ) {
        let Some(writer) = &self.writer else { return };
        let mut writer = lock(writer);
        writer.next_segment = writer.next_segment.max(next_id);
        // A segment is read by readers of the slots that have it, a large
        // value also by those of the slots before.
        let mut segments = Retired {
            pins: inputs.iter().flat_map(|input| input.slot.pins()).collect(),
            extents: inputs
                .iter()
                .flat_map(|input| extents_of(&input.slot))
                .collect(),
            body: false,
        };
        let mut kept: Vec<_> =
            slots.iter().flat_map(|slot| extents_of(slot)).collect();
        kept.sort_unstable();
        segments.extents.retain(|e| kept.binary_search(e).is_err());
        let readers = inputs.iter().flat_map(|input| input.slot.readers());
        let pins = readers.collect();
        let mut extents = Vec::new();
        // Slots are in the order of their ranges.
        for Input { slot, delta, .. } in inputs {
            extents.extend_from_slice(delta.larges());
            extents.extend(larges_of(slot));
            // Before the copies are counted.
            slot.take_copies();
            let buffer = slot.buffer();
            extents.extend_from_slice(buffer.active.larges());
            if buffer.active.is_empty() {
                continue;
            }
            // Those since the merge began, mostly few.
            for entry in buffer.active.entries() {
                let at = slots.partition_point(|s| s.low <= entry.position);
                let write = (entry.kind, entry.key, entry.value);
                slots[at - 1].insert(entry.position, entry.sequence, write, 0);
            }
        }
        let mut kept: Vec<Extent> = Vec::new();
        for slot in &slots {
            kept.extend(larges_of(slot));
            kept.extend_from_slice(slot.buffer().active.larges());
        }
        kept.sort_unstable();
        extents.retain(|extent| kept.binary_search(extent).is_err());
        extents.sort_unstable();
        extents.dedup();
        let view = self.view.load();
        let start = view.find(inputs[0].slot.low);
        let new = view.replaced(start..start + inputs.len(), slots);
        self.ram.directory.store(new.ram(), Ordering::Relaxed);
        self.view.store(Arc::new(new));
        inputs.iter().for_each(|input| input.slot.leave());
        let larges = Retired { pins, extents, body: false };
        let retired = [segments, larges].into_iter();
        lock(&self.space)
            .retired
            .extend(retired.filter(|retired| !retired.extents.is_empty()));
    }
}

/// Extents of the segment and the runs of a slot.
fn extents_of(slot: &Slot) -> impl Iterator<Item = Extent> {
    let segment = slot.segment.iter().map(|segment| segment.taken());
    segment.chain(slot.runs.iter().flat_map(|runs| runs.extents()))
}

/// Extents of the large values of the segment and the runs of a slot.
fn larges_of(slot: &Slot) -> impl Iterator<Item = Extent> {
    let segment = slot.segment.iter().flat_map(|segment| segment.larges());
    let runs = slot.runs.iter().flat_map(|runs| runs.iter());
    segment.chain(runs.flat_map(|run| run.larges())).copied()
}

/// New segments, with the extents they take until they are published.
pub(crate) struct Build<'a> {
    shared: &'a Shared,
    taken: Vec<Extent>,
    /// See [`Target::slack`].
    slack: u64,
}

impl<'a> Build<'a> {
    /// No segments yet.
    pub(crate) fn new(shared: &'a Shared, slack: u64) -> Self {
        Self { shared, taken: Vec::new(), slack }
    }

    /// Gives the extents back.
    pub(crate) fn undo(&mut self) {
        let mut space = lock(&self.shared.space);
        for extent in self.taken.drain(..) {
            space.extents.release(extent);
        }
    }

    /// Builds the slots of `targets` from `inputs`. `None` if one needs more
    /// than `room` pages.
    fn slots(
        &mut self,
        inputs: &[Input],
        targets: &[(u64, u8)],
        (expected, room): (u64, u64),
        next_id: &mut u64,
    ) -> Result<Option<Vec<Arc<Slot>>>> {
        let shared = self.shared;
        let merged =
            inputs.iter().map(|input| input.merged).min().unwrap_or(0);
        let mut slots = Vec::with_capacity(targets.len());
        let mut records = inputs.iter().map(|input| input.records(shared));
        let mut current = records.next().transpose()?;
        for &range in targets {
            let inside = |position| has(range, position);
            let pages = (expected, room);
            let slot = self.slot(range, pages, merged, next_id, |writer| {
                while let Some(input) = &mut current {
                    match input.next(inside, |position, record, large| {
                        writer.push(position, record, large)
                    })? {
                        Step::Written => {}
                        Step::Outside => break,
                        Step::End => current = records.next().transpose()?,
                    }
                }
                Ok(())
            })?;
            let Some(slot) = slot else { return Ok(None) };
            let readers = inputs.iter().flat_map(|i| i.slot.readers());
            slots.push(Arc::new(slot.after(readers.collect())));
        }
        Ok(Some(slots))
    }

    /// Builds the slot of a range from the records that `fill` writes, probably
    /// to `expected` pages. `None` if they need more than `room` pages.
    pub(crate) fn slot(
        &mut self,
        (low, depth): (u64, u8),
        (expected, room): (u64, u64),
        merged: u64,
        next_id: &mut u64,
        fill: impl FnOnce(&mut SegmentWriter<'a>) -> Result<()>,
    ) -> Result<Option<Slot>> {
        let shared = self.shared;
        let id = *next_id;
        *next_id += 1;
        let slack = self.slack;
        let target = Target { low, depth, id, merged, room, slack };
        let most = shared.ram.most_collected();
        let mut writer = SegmentWriter::new(shared, target, most, expected);
        fill(&mut writer)?;
        let segment = match writer.finish(&shared.ram.index)? {
            Written::Full => return Ok(None),
            Written::Empty => None,
            Written::Segment(segment) => Some(segment),
        };
        if let Some(segment) = &segment {
            self.taken.push(segment.taken());
            let bytes = segment.entry.extent.pages * PAGE;
            Counters::add(&shared.counters.segment_bytes, bytes);
        }
        let range = (low, depth);
        let total = &shared.ram.buffers;
        Ok(Some(Slot::new(range, merged, segment, total)))
    }
}

/// Result of [`Merged::next`].
pub(crate) enum Step {
    /// A record was passed, or a deletion was skipped.
    Written,
    /// The next record is outside the range.
    Outside,
    /// All records were passed.
    End,
}

/// Positions and offsets of writes, in the order of positions and keys.
type Order = std::iter::Peekable<std::vec::IntoIter<(u64, u32)>>;

/// The records of a segment with buffered writes applied, in order.
#[derive(Debug)]
pub(crate) struct Merged {
    reader: Option<SegmentReader>,
    /// Position of the reader's record that was not yet passed.
    pending: Option<u64>,
    delta: Arc<Delta>,
    /// Position and offset of each write.
    order: Order,
    /// Writes before those of `delta`.
    older: Delta,
    /// Their order; they count where `delta` has no write of the key.
    old: Order,
    /// Smallest position of the segment, and its depth.
    range: (u64, u8),
    hash: KeyHash,
    /// Position and key of the last record of the segment.
    last: (u64, Vec<u8>),
}

impl Merged {
    /// The records that `reader` reads, all in `range`, with `delta` applied,
    /// and before it the writes of `runs` with their order.
    pub(crate) fn new(
        reader: Option<SegmentReader>,
        delta: Arc<Delta>,
        runs: Option<(Delta, Vec<(u64, u32)>)>,
        range: (u64, u8),
        hash: KeyHash,
    ) -> Self {
        let (older, old) = runs.unwrap_or_default();
        let order = delta.sorted(u64::MAX);
        Self {
            reader,
            pending: None,
            order: order.into_iter().peekable(),
            old: old.into_iter().peekable(),
            older,
            delta,
            range,
            hash,
            last: (0, Vec::new()),
        }
    }

    /// First page of the block of the last record of the segment.
    pub(crate) fn page(&self) -> u32 {
        self.reader.as_ref().map_or(0, SegmentReader::page)
    }

    /// Reads the next record of the segment, if none is pending, and checks
    /// its place in the order.
    fn advance(&mut self) -> Result<()> {
        if self.pending.is_some() {
            return Ok(());
        }
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let advanced = reader.advance()?;
        if !advanced {
            self.reader = None;
            return Ok(());
        }
        let record = reader.record()?;
        let position = self.hash.position(record.key);
        let before = (self.last.0, &self.last.1[..]);
        let first = self.last == (0, Vec::new());
        let why = if !has(self.range, position) {
            Some("a key belongs to another segment")
        } else if (position, record.key) <= before && !first {
            Some("the keys of a block are not in order")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(reader.corrupt(why));
        }
        self.last.0 = position;
        self.last.1.clear();
        self.last.1.extend_from_slice(record.key);
        self.pending = Some(position);
        Ok(())
    }

    /// Passes the next record to `write` if its position is `inside`.
    pub(crate) fn next(
        &mut self,
        inside: impl Fn(u64) -> bool,
        mut write: impl FnMut(u64, &Record<'_>, Option<Extent>) -> Result<()>,
    ) -> Result<Step> {
        self.advance()?;
        let old = match (&self.reader, self.pending) {
            (Some(reader), Some(position)) => {
                Some((position, reader.record()?))
            }
            _ => None,
        };
        let newer = self.order.peek();
        let newer = newer.map(|&(p, at)| (p, self.delta.entry(at)));
        let older = self.old.peek();
        let older = older.map(|&(p, at)| (p, self.older.entry(at)));
        let of_two = match (&newer, &older) {
            (Some(new), Some(old)) => {
                (new.0, new.1.key).cmp(&(old.0, old.1.key))
            }
            (None, _) => std::cmp::Ordering::Greater,
            (_, None) => std::cmp::Ordering::Less,
        };
        let new = if of_two.is_le() { newer } else { older };
        let ordering = match (&old, &new) {
            (None, None) => return Ok(Step::End),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => {
                (old.0, old.1.key).cmp(&(new.0, new.1.key))
            }
        };
        let position = match ordering {
            std::cmp::Ordering::Less => old.as_ref().map(|old| old.0),
            _ => new.as_ref().map(|new| new.0),
        };
        let Some(position) = position.filter(|&p| inside(p)) else {
            return Ok(Step::Outside);
        };
        if ordering == std::cmp::Ordering::Less {
            if let (Some((_, record)), Some(reader)) = (old, &self.reader) {
                let large = match record.large {
                    false => None,
                    true => Some(place(record.value).ok_or_else(|| {
                        reader.corrupt("the place of a large value is bad")
                    })?),
                };
                write(position, &record, large)?;
            }
        } else if let Some((_, entry)) = new {
            let large = entry.kind == Kind::Large;
            let record = Record { key: entry.key, value: entry.value, large };
            let bad = || Error::corrupt("log", 0, "a bad place");
            let extent = match large {
                true => Some(place(entry.value).ok_or_else(bad)?),
                false => None,
            };
            if entry.kind != Kind::Delete {
                write(position, &record, extent)?;
            }
            if of_two.is_le() {
                self.order.next();
            }
            if of_two.is_ge() {
                self.old.next();
            }
        }
        if ordering != std::cmp::Ordering::Greater {
            self.pending = None;
        }
        Ok(Step::Written)
    }
}

/// Extent of a large value.
fn place(value: &[u8]) -> Option<Extent> {
    Place::decode(value).map(|place| place.extent)
}

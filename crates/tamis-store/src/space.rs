//! The space of the data file: which extents may be written again.
//!
//! An extent that a merge replaced is free once a manifest without it is
//! durable, no reader of this process holds its slot, and no other process
//! has the store open for reading.

use std::sync::Weak;

use crate::disk::{Disk, DiskFile, LockKind};
use crate::error::{Error, Result};
use crate::extents::{Extent, Extents, PAGE, spare};
use crate::manifest::DATA;
use crate::view::Pin;

/// Name of the file whose lock readers of other processes hold.
pub(crate) const READERS_LOCK: &str = "readers";

/// Runs of fewer pages are not returned to the file system.
const PUNCH_PAGES: u64 = 16;

/// Extents that no longer belong to the newest view.
#[derive(Debug)]
pub(crate) struct Retired {
    /// Pins of the slots whose readers may read the extents.
    pub(crate) pins: Vec<Weak<Pin>>,
    pub(crate) extents: Vec<Extent>,
    /// Whether they had the body of a manifest.
    pub(crate) body: bool,
}

impl Retired {
    /// Number of pages.
    pub(crate) fn pages(&self) -> u64 {
        self.extents.iter().map(|extent| extent.pages).sum()
    }
}

/// Largest share of its place that a segment of a merge leaves unused: 1 / 8.
/// Places then keep their lengths, so that each has room for the segment that
/// replaces another. The lengths of segments that differ by chance alone have
/// deviations of 1 to 2 %.
pub(crate) const MERGE_SLACK: u64 = 8;

/// The same for a load, whose file has few free runs.
pub(crate) const LOAD_SLACK: u64 = 32;

/// Pages of a place of `room` pages that a segment of `pages` pages keeps.
pub(crate) fn kept(pages: u64, room: u64, slack: u64) -> u64 {
    match room - pages <= spare(pages, slack) {
        true => room,
        false => pages,
    }
}

/// Free, used and retired extents.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) extents: Extents,
    /// Extents that a durable manifest names.
    pub(crate) retired: Vec<Retired>,
    /// Extents that no durable manifest names, with possible readers.
    read: Vec<Retired>,
    /// Extents of large values whose write failed while its frame was
    /// written to the log, with the sequence number of the frame.
    doubtful: Vec<(u64, Extent)>,
    /// Log files that no durable manifest names.
    pub(crate) logs: Vec<String>,
    /// Generation of the durable manifest.
    pub(crate) generation: u64,
    /// Extent of its body.
    pub(crate) body: Extent,
    /// Extents of the bodies before it: the next body goes there, because a page
    /// cut from a free run would leave no room for a segment.
    bodies: Vec<Extent>,
    /// Whether the places of bodies are kept for the next ones. A compaction
    /// frees them.
    keeps_bodies: bool,
}

impl Space {
    /// The space of a file whose used extents are known.
    pub(crate) fn new(
        extents: Extents,
        generation: u64,
        body: Extent,
    ) -> Self {
        Self {
            extents,
            retired: Vec::new(),
            read: Vec::new(),
            doubtful: Vec::new(),
            logs: Vec::new(),
            generation,
            body,
            bodies: Vec::new(),
            keeps_bodies: true,
        }
    }

    /// Keeps all free pages of a file of `end` pages until no process reads:
    /// readers may have opened an older manifest.
    pub(crate) fn hold_free(&mut self, end: u64) {
        let extents = self.extents.take_all(end);
        self.read.push(Retired { pins: Vec::new(), extents, body: false });
    }

    /// Keeps extents that a frame may name whose write failed: the frame may
    /// be in the log until a later one is durable in its place.
    pub(crate) fn doubt(&mut self, sequence: u64, extents: &[Extent]) {
        self.doubtful.extend(extents.iter().map(|&e| (sequence, e)));
    }

    /// The log is durable up to sequence number `durable`: frames that failed
    /// with such a number have been replaced. Readers of other processes may
    /// have read them.
    pub(crate) fn settle(&mut self, durable: u64) {
        if self.doubtful.is_empty() {
            return;
        }
        let (free, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.doubtful)
                .into_iter()
                .partition(|&(sequence, _)| sequence <= durable);
        self.doubtful = kept;
        let extents: Vec<_> = free.into_iter().map(|(_, e)| e).collect();
        if !extents.is_empty() {
            self.read.push(Retired { pins: Vec::new(), extents, body: false });
        }
    }

    /// Pages that a commit would let be released.
    pub(crate) fn retired_pages(&self) -> u64 {
        self.retired.iter().map(Retired::pages).sum()
    }

    /// Pages that wait for readers.
    pub(crate) fn read_pages(&self) -> u64 {
        self.read.iter().map(Retired::pages).sum()
    }

    /// A manifest is durable that does not name the first `count` retired
    /// items nor the body before.
    pub(crate) fn committed(&mut self, count: usize, body: Extent) {
        self.generation += 1;
        self.read.extend(self.retired.drain(..count));
        let body = std::mem::replace(&mut self.body, body);
        self.read.push(Retired {
            pins: Vec::new(),
            extents: vec![body],
            body: true,
        });
    }

    /// Takes the place of an earlier body, or a free one, for a body of `pages`
    /// pages.
    pub(crate) fn allocate_body(&mut self, pages: u64) -> Extent {
        let fits = self.bodies.iter().position(|e| e.pages == pages);
        match fits {
            Some(at) => self.bodies.swap_remove(at),
            None => {
                self.release_bodies();
                self.extents.allocate(pages)
            }
        }
    }

    /// Frees the places of earlier bodies.
    fn release_bodies(&mut self) {
        for extent in std::mem::take(&mut self.bodies) {
            self.extents.release(extent);
        }
    }

    /// Sets whether the places of bodies are kept; without that, frees them.
    pub(crate) fn keep_bodies(&mut self, keep: bool) {
        self.keeps_bodies = keep;
        if !keep {
            self.release_bodies();
        }
    }

    /// Frees the extents without readers, and cuts the file after the last
    /// extent in use.
    pub(crate) fn release(
        &mut self,
        disk: &dyn Disk,
        file: &dyn DiskFile,
    ) -> Result<()> {
        let is_unread = |retired: &Retired| {
            retired.pins.iter().all(|pin| pin.strong_count() == 0)
        };
        if self.logs.is_empty() && !self.read.iter().any(is_unread) {
            return Ok(());
        }
        // A reader that comes later reads the durable manifest, which names
        // none of the extents: the lock need not be kept.
        let lock = disk
            .lock(READERS_LOCK, LockKind::Exclusive)
            .map_err(|e| Error::io("lock", READERS_LOCK, e))?;
        if lock.is_none() {
            return Ok(());
        }
        drop(lock);
        let mut free = Vec::new();
        self.read.retain(|retired| {
            let unread = is_unread(retired);
            if unread && retired.body && self.keeps_bodies {
                self.bodies.extend_from_slice(&retired.extents);
            } else if unread {
                free.extend_from_slice(&retired.extents);
            }
            !unread
        });
        for &extent in &free {
            self.extents.release(extent);
        }
        let end = self.extents.end();
        if self.extents.free_pages() * 4 > end {
            for extent in free {
                if extent.pages >= PUNCH_PAGES && extent.end() <= end {
                    let punched =
                        file.punch(extent.offset(), extent.pages * PAGE);
                    match punched {
                        Err(e)
                            if e.kind() != std::io::ErrorKind::Unsupported =>
                        {
                            return Err(Error::io("punch", DATA, e));
                        }
                        _ => {}
                    }
                }
            }
        }
        let len = file.len().map_err(|e| Error::io("measure", DATA, e))?;
        if len > end * PAGE {
            file.set_len(end * PAGE)
                .map_err(|e| Error::io("truncate", DATA, e))?;
        }
        for name in self.logs.drain(..) {
            // A log that stays is removed when the store is opened.
            let _ = disk.remove(&name);
        }
        Ok(())
    }
}

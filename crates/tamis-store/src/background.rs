//! When merging and syncing happen: in a thread of the store, or in writers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::core::{Shared, lock};
use crate::error::{Error, Result};
use crate::options::Durability;

/// Time after which waiting threads look again.
const TICK: Duration = Duration::from_millis(20);

impl Shared {
    /// Starts the thread that merges and syncs.
    pub(crate) fn start(self: &Arc<Self>) -> Result<JoinHandle<()>> {
        let shared = Arc::clone(self);
        std::thread::Builder::new()
            .name("tamis-store".into())
            .spawn(move || shared.run())
            .map_err(|e| Error::io("start", "the thread of a store", e))
    }

    /// Merges and syncs until the store is dropped.
    fn run(&self) {
        let tick = match self.settings.durability {
            Durability::Interval(interval) => {
                interval.max(Duration::from_millis(1))
            }
            _ => Duration::from_secs(1),
        };
        loop {
            let stopping = || self.stopping.load(Ordering::Acquire);
            self.work.wait(tick, || self.needs_merge() || stopping());
            if stopping() {
                return;
            }
            let result = self.tick();
            let failed = result.is_err();
            *lock(&self.failed) = result.err();
            self.room.notify();
            if failed {
                self.work.wait(TICK, stopping);
            }
        }
    }

    /// A sync if it is due, also where merging fails, and one merge if it is
    /// due.
    fn tick(&self) -> Result<()> {
        let synced = self.sync_if_due();
        // A compaction merges for a long time; syncs go on meanwhile.
        let merged = match self.merging.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(()),
            Ok(_merging) => self.merge_tick(),
            Err(TryLockError::Poisoned(_merging)) => self.merge_tick(),
        };
        merged.and(synced).and(self.sync_if_due())
    }

    /// One merge if it is due. The caller holds `merging`.
    fn merge_tick(&self) -> Result<()> {
        if !self.needs_merge() {
            return self.release();
        }
        self.relieve()?;
        self.room.notify();
        self.commit_if_due()
    }

    /// Syncs the log if the interval of the durability has passed.
    fn sync_if_due(&self) -> Result<()> {
        match self.settings.durability {
            Durability::Interval(interval)
                if lock(&self.synced_at).elapsed() >= interval =>
            {
                self.sync_log(u64::MAX)
            }
            _ => Ok(()),
        }
    }

    /// Whether a merge is due.
    pub(crate) fn needs_merge(&self) -> bool {
        self.ram.is_full()
            || self.full.load(Ordering::Relaxed)
            || self.is_log_long()
            || self.has_large_values()
    }

    /// Whether large values that may be replaced exceed their limit.
    pub(crate) fn has_large_values(&self) -> bool {
        self.large_pages.load(Ordering::Relaxed)
            > self.large_limit.load(Ordering::Relaxed)
    }

    /// Merges, or waits for a merge, until the buffers have room for `needed`
    /// more bytes.
    pub(crate) fn make_room(&self, needed: u64) -> Result<()> {
        let limit = self.ram.admitted();
        let least = self.ram.least_buffer();
        if limit < least {
            let needed = self.ram.reserved() + least;
            return Err(Error::Ram { needed, budget: self.ram.budget() });
        }
        let max = limit / 2;
        if needed > max {
            return Err(Error::TooLong { what: "batch", len: needed, max });
        }
        while !self.has_room(needed) {
            self.check_poison()?;
            if !self.holds_writes() {
                // Waits for a running merge, whose end returns the memory it reserved.
                drop(lock(&self.merging));
                if self.has_room(needed) {
                    break;
                }
                // Snapshots hold the memory.
                let needed =
                    self.ram.reserved() + self.ram.buffered() + needed;
                return Err(Error::Ram { needed, budget: self.ram.budget() });
            }
            if !self.settings.background {
                let _merging = lock(&self.merging);
                self.relieve()?;
                self.commit_if_due()?;
                continue;
            }
            if let Some(error) = &*lock(&self.failed) {
                return Err(error.again());
            }
            // The batch may need more than the fifth that merging keeps free.
            self.full.store(true, Ordering::Relaxed);
            self.work.notify();
            self.room.wait(TICK, || self.has_room(needed));
        }
        Ok(())
    }

    /// Whether a batch may add `needed` bytes to any slot, also to one that is
    /// merged: it reserves 1.5 times as many for copies.
    pub(crate) fn has_room(&self, needed: u64) -> bool {
        let copies = if self.ram.has_copies() { needed * 3 / 2 } else { 0 };
        self.ram.has_room(needed + copies) && !self.is_overfull()
    }

    /// Whether a slot's writes exceed [`slot_limit`](crate::ram::Ram::slot_limit).
    fn is_overfull(&self) -> bool {
        let most = self.ram.slot_limit();
        self.overfull.load(Ordering::Relaxed)
            && self.view.load().slots().iter().any(|s| s.ram() > most)
    }

    /// Whether a slot of the newest view has buffered writes.
    fn holds_writes(&self) -> bool {
        let view = self.view.load();
        view.slots().iter().any(|slot| slot.has_writes())
    }

    /// Merges and syncs that are due after a write.
    pub(crate) fn after_write(&self) -> Result<()> {
        if self.settings.background {
            if self.needs_merge() {
                self.work.notify();
            }
            return Ok(());
        }
        // The write is in the log: an error here is reported by a later
        // write that finds no room, or by a flush.
        let merged = self.merge_if_due();
        let _ = merged.and(self.sync_if_due());
        Ok(())
    }

    /// Merges until no merge is due.
    fn merge_if_due(&self) -> Result<()> {
        while self.needs_merge() {
            let _merging = lock(&self.merging);
            let merged = self.relieve()?;
            self.commit_if_due()?;
            if !merged {
                break;
            }
        }
        Ok(())
    }
}

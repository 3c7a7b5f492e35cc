//! The memory that the allocator gives never exceeds the budget.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tamis_store::{Durability, Error, Options, Result, Store};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts live bytes, and the most of them since the last reset.
struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by contract")]
// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: same contract as this function's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: same contract as this function's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(
        &self,
        block: *mut u8,
        layout: Layout,
        size: usize,
    ) -> *mut u8 {
        let live = LIVE.fetch_add(size, Relaxed) + size;
        LIVE.fetch_sub(layout.size(), Relaxed);
        PEAK.fetch_max(live - layout.size(), Relaxed);
        // SAFETY: same contract as this function's.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn memory_stays_within_the_budget() -> Result<()> {
    fill(Some(400_000))?;
    load(400_000)
}

/// Loads records at once: four times the budget.
fn load(records: u64) -> Result<()> {
    const BUDGET: usize = 8 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let options = Options::new()
        .ram(BUDGET as u64)
        .segment_bytes(512 << 10)
        .absent_reads(0.001)
        .durability(Durability::None);
    let store = Store::create(dir.path(), &options)?;
    let mut loader = store.loader()?;
    for i in 0..records {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        loader.put(key, [i as u8; 72])?;
    }
    loader.finish()?;
    let peak = PEAK.load(Relaxed) - base;
    println!("{records} records loaded, peak {peak}");
    assert!(peak <= BUDGET, "{peak} bytes of {BUDGET}");
    assert_eq!(store.stats()?.records, records);
    Ok(())
}

/// Until the index leaves no memory for writes.
#[test]
#[ignore = "minutes: the slow tier runs it"]
fn a_full_budget_is_an_error() -> Result<()> {
    fill(None)
}

/// Writes `most` records, or as many as the budget allows.
fn fill(most: Option<u64>) -> Result<()> {
    const BUDGET: usize = 8 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let options = Options::new()
        .ram(BUDGET as u64)
        .segment_bytes(512 << 10)
        .absent_reads(0.001)
        .durability(Durability::None);
    let store = Store::create(dir.path(), &options)?;
    // Short records: the index and the memory of merging count most.
    let mut written = 0u64;
    let full = loop {
        if Some(written) == most {
            break None;
        }
        let key = written.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        match store.put(key, [written as u8; 6]) {
            Ok(()) => written += 1,
            Err(error) => break Some(error),
        }
        if written == 200_000 {
            let used = PEAK.load(Relaxed) - base;
            assert!(used > BUDGET / 2, "{used} of {BUDGET} bytes are used");
        }
        assert!(written < 8_000_000, "the budget has no end");
    };
    if most.is_none() {
        assert!(matches!(full, Some(Error::Ram { .. })), "{full:?}");
    }
    let peak = PEAK.load(Relaxed) - base;
    let stats = store.stats()?;
    println!("{written} records, peak {peak}, stats {:?}", stats.ram);
    assert!(peak <= BUDGET, "{peak} bytes of {BUDGET}");
    assert!(stats.ram.total() <= stats.ram.budget);
    drop(store);

    // Opening replays unmerged writes within the same budget.
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let store = Store::open(dir.path(), &options)?;
    let peak = PEAK.load(Relaxed) - base;
    assert!(peak <= BUDGET, "{peak} bytes of {BUDGET} to open");
    for i in (0..written).step_by(97) {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        assert_eq!(store.get(key)?, Some(vec![i as u8; 6]));
    }
    Ok(())
}

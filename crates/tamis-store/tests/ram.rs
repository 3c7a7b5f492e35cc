//! The memory that the allocator gives never exceeds the budget.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tamis_store::{
    Disk, DiskFile, Durability, Error, Files, Lock, LockKind, Mode, Options,
    Result, Store,
};

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

/// Held by the test that counts.
static COUNTS: Mutex<()> = Mutex::new(());

fn options(budget: usize) -> Options {
    Options::new()
        .ram(budget as u64)
        .segment_bytes(512 << 10)
        .absent_reads(0.001)
        .durability(Durability::None)
}

#[test]
fn memory_stays_within_the_budget() -> Result<()> {
    fill(8 << 20, &options(8 << 20), Some(400_000))
}

/// The first merge lasts until writers wait for memory: its end copies nearly
/// as many writes as the buffer holds.
#[test]
fn a_slow_merge_stays_within_the_budget() -> Result<()> {
    const BUDGET: usize = 8 << 20;
    let _turn = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let written = Arc::new(AtomicUsize::new(0));
    let slow = Slow {
        files: Files::new(dir.path()),
        written: Arc::clone(&written),
        waited: Arc::default(),
    };
    let waited = Arc::clone(&slow.waited);
    let store = Store::create_on(Arc::new(slow), &options(BUDGET))?;
    for i in 0..150_000u64 {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        store.put(key, [i as u8; 72])?;
        written.store(i as usize + 1, Relaxed);
        if i % 500 == 0 {
            let ram = store.stats()?.ram;
            assert!(ram.total() <= ram.budget, "{i} records: {ram:?}");
        }
    }
    assert!(waited.load(Relaxed), "the first merge does not wait");
    let peak = PEAK.load(Relaxed) - base;
    println!("peak {peak}");
    assert!(peak <= BUDGET, "{peak} bytes of {BUDGET}");
    Ok(())
}

/// A directory with a data file of which the first write by a merge waits as
/// long as records are written.
#[derive(Debug)]
struct Slow {
    files: Files,
    written: Arc<AtomicUsize>,
    waited: Arc<AtomicBool>,
}

#[derive(Debug)]
struct SlowFile {
    file: Arc<dyn DiskFile>,
    written: Arc<AtomicUsize>,
    waited: Arc<AtomicBool>,
}

impl Disk for Slow {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.files.open(name, mode)?;
        if name != "data" {
            return Ok(file);
        }
        let written = Arc::clone(&self.written);
        let waited = Arc::clone(&self.waited);
        Ok(Arc::new(SlowFile { file, written, waited }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.files.sync_dir()
    }

    fn lock(
        &self,
        name: &str,
        kind: LockKind,
    ) -> io::Result<Option<Box<dyn Lock>>> {
        self.files.lock(name, kind)
    }
}

impl DiskFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut before = self.written.load(Relaxed);
        while before > 0 && !self.waited.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.written.load(Relaxed);
            self.waited.store(now == before, Relaxed);
            before = now;
        }
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }
}

/// Loads records at once: four times the budget.
#[test]
fn a_load_stays_within_the_budget() -> Result<()> {
    const BUDGET: usize = 8 << 20;
    const RECORDS: u64 = 400_000;
    let _turn = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let store = Store::create(dir.path(), &options(BUDGET))?;
    let mut loader = store.loader()?;
    for i in 0..RECORDS {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        loader.put(key, [i as u8; 72])?;
    }
    loader.finish()?;
    let peak = PEAK.load(Relaxed) - base;
    println!("{RECORDS} records loaded, peak {peak}");
    assert!(peak <= BUDGET, "{peak} bytes of {BUDGET}");
    assert_eq!(store.stats()?.records, RECORDS);
    Ok(())
}

/// Until the index leaves no memory for writes. Long filters let it fill a
/// small budget soon: the last writes are the slowest.
#[test]
fn a_full_budget_is_an_error() -> Result<()> {
    fill(8 << 20, &options(8 << 20).ram_bits_per_key(30.0), None)
}

/// Writes `most` records, or as many as the budget allows.
fn fill(budget: usize, options: &Options, most: Option<u64>) -> Result<()> {
    let _turn = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let store = Store::create(dir.path(), options)?;
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
        if written % 500 == 0 {
            let ram = store.stats()?.ram;
            assert!(ram.total() <= ram.budget, "{written} records: {ram:?}");
        }
        assert!(written < 8_000_000, "the budget has no end");
    };
    if most.is_none() {
        assert!(matches!(full, Some(Error::Ram { .. })), "{full:?}");
    }
    let peak = PEAK.load(Relaxed) - base;
    let stats = store.stats()?;
    println!("{written} records, peak {peak}, stats {:?}", stats.ram);
    assert!(peak > budget / 2, "{peak} of {budget} bytes are used");
    assert!(peak <= budget, "{peak} bytes of {budget}");
    assert!(stats.ram.total() <= stats.ram.budget, "{:?}", stats.ram);
    drop(store);

    // Opening replays unmerged writes within the same budget.
    let base = LIVE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let store = Store::open(dir.path(), options)?;
    let peak = PEAK.load(Relaxed) - base;
    assert!(peak <= budget, "{peak} bytes of {budget} to open");
    if most.is_none() {
        drop(store);
        refuse_less(dir.path(), options)?;
        return Ok(());
    }
    for i in (0..written).step_by(97) {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        assert_eq!(store.get(key)?, Some(vec![i as u8; 6]));
    }
    Ok(())
}

/// A budget that the index exceeds is refused before the index is read.
fn refuse_less(dir: &Path, options: &Options) -> Result<()> {
    const LESS: usize = 4 << 20;
    for write in [true, false] {
        let options = options.clone().ram(LESS as u64);
        let base = LIVE.load(Relaxed);
        PEAK.store(base, Relaxed);
        let opened = match write {
            true => Store::open(dir, &options),
            false => Store::open_read_only(dir, &options),
        };
        assert!(matches!(opened, Err(Error::Ram { .. })), "{opened:?}");
        let peak = PEAK.load(Relaxed) - base;
        assert!(peak <= LESS, "{peak} bytes of {LESS} to refuse");
    }
    Ok(())
}

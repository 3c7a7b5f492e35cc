//! Memory of parallel builds: the filter and a bounded number of bytes,
//! whatever the input does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tamis::{AnyFilter, Kind, Size};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts live bytes, and the most there have been since the last reset.
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
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

/// Keys of a chunk: those of 256 KiB of one-byte lines.
const CHUNK: u64 = 131_072;

/// Chunk number 0 takes longest, so that all others arrive before it.
fn hash(chunk: u64, hashes: &mut Vec<u64>) {
    if chunk == 0 {
        std::thread::sleep(Duration::from_millis(500));
    }
    let keys = chunk * CHUNK..(chunk + 1) * CHUNK;
    hashes.extend(keys.map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
}

#[test]
fn a_starved_thread_does_not_raise_the_memory_of_the_others() {
    const CHUNKS: u64 = 40;
    for kind in [Kind::Bloom, Kind::Blocked, Kind::TinySet, Kind::Balanced] {
        for threads in [2, 8] {
            let mut filter = AnyFilter::builder(kind)
                .items(CHUNKS * CHUNK)
                .size(Size::BitsPerKey(16.0))
                .build()
                .unwrap();
            let before = LIVE.load(Relaxed);
            PEAK.store(before, Relaxed);
            let count = NonZero::new(threads).unwrap();
            filter.insert_parallel_with(0..CHUNKS, count, hash);
            let more = PEAK.load(Relaxed) - before;
            let limit = (64 + 8 * threads) * MIB;
            assert!(more < limit, "{kind} {threads}: {} MiB", more / MIB);
            assert!(filter.len() > CHUNKS * CHUNK / 100 * 99);
        }
    }
}

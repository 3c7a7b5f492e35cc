//! Opening a filter from bytes allocates nothing, whatever its kind.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, Header, Kind, Overflow, Split,
    TinySet,
};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// Counts allocations.
struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by contract")]
// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: same contract as this function's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: same contract as this function's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations during `run`. The only test of this program: other threads
/// would be counted.
fn allocations<T>(run: impl FnOnce() -> T) -> usize {
    let before = ALLOCATIONS.load(Relaxed);
    black_box(run());
    ALLOCATIONS.load(Relaxed) - before
}

#[test]
fn opening_allocates_nothing() {
    macro_rules! check {
        ($($type:ident)*) => {$(
            let filter = AnyFilter::builder(Kind::$type).fpr(0.01);
            let filter = filter.build_from(0..1000u32).unwrap();
            let bytes = filter.to_bytes();
            let header = Header::parse(&bytes).unwrap();
            let opened = allocations(|| {
                $type::from_bytes(&bytes[..]).unwrap().contains(&1u32)
            });
            let again = allocations(|| {
                let filter = $type::from_bytes_with(&header, &bytes);
                filter.unwrap().contains(&1u32)
            });
            let any = allocations(|| {
                AnyFilter::from_bytes(&bytes[..]).unwrap().contains(&1u32)
            });
            let parsed = allocations(|| Header::parse(&bytes).unwrap());
            let counts = [opened, again, any, parsed];
            assert_eq!(counts, [0; 4], "{}", stringify!($type));
        )*};
    }
    check! { Bloom Blocked Split Balanced TinySet }

    // With an overflow list.
    let builder = Balanced::builder().bits_per_key(20.0).threshold(20);
    let mut filter = builder.overflow(Overflow::List).items(1000).build();
    filter.as_mut().unwrap().extend(0..1000u32);
    let bytes = filter.unwrap().to_bytes();
    let opened = allocations(|| {
        let filter = Balanced::from_bytes(&bytes[..]).unwrap();
        (0..1000u32).filter(|key| filter.contains(key)).count()
    });
    assert_eq!(opened, 0);

    assert_ne!(allocations(|| vec![black_box(1u8)]), 0, "the counter counts");
}

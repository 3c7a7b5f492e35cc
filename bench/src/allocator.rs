//! Allocator of all contenders: large blocks get huge pages, and live bytes
//! are counted.
//!
//! A filter's memory is measured here because a crate's own figure may be
//! incomplete. All filters get the same pages: with 4 KiB pages almost every
//! lookup in a filter of 512 MiB has a second cache miss, for the address
//! translation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use rustix::mm::{
    Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap,
};

/// Bytes of a huge page on x86-64, and on ARM with 4 KiB pages.
const HUGE: usize = 2 << 20;
/// Bytes of the smallest page.
const PAGE: usize = 4 << 10;

thread_local! {
    // No destructor and no lazy initialisation, so no access allocates.
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// Bytes allocated minus bytes freed by this thread; negative if it frees
/// memory of other threads.
pub(crate) fn live() -> i64 {
    LIVE.get()
}

fn count(layout: Layout, sign: i64) {
    LIVE.set(LIVE.get() + sign * layout.size() as i64);
}

pub(crate) struct HugePages;

#[expect(unsafe_code, reason = "an allocator is unsafe by contract")]
// SAFETY: blocks below `HUGE` are the system allocator's, passed through
// unchanged. The others are private mappings of their own, at least as long
// as the layout, aligned to `HUGE`, which is refused if it is not enough, and
// unmapped only when they are freed. The size of the layout decides between
// the two, and it is the same in `alloc` and `dealloc`.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        match layout.size() < HUGE {
            // SAFETY: same contract as this function's.
            true => unsafe { System.alloc(layout) },
            false => map(layout),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        match layout.size() < HUGE {
            // SAFETY: same contract as this function's.
            true => unsafe { System.alloc_zeroed(layout) },
            // Fresh pages are zero.
            false => map(layout),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout, -1);
        match layout.size() < HUGE {
            // SAFETY: same contract as this function's.
            true => unsafe { System.dealloc(block, layout) },
            false => {
                let length = layout.size().next_multiple_of(HUGE);
                // SAFETY: `map` made a mapping of this length here, and the
                // caller promises that nothing refers to it any more.
                let unmapped = unsafe { munmap(block.cast(), length) };
                debug_assert!(unmapped.is_ok());
            }
        }
    }
}

/// Maps whole huge pages and touches all of them, so that no page fault
/// happens in a timed loop.
#[expect(unsafe_code, reason = "mappings are raw memory")]
fn map(layout: Layout) -> *mut u8 {
    if layout.align() > HUGE {
        return null_mut();
    }
    let length = layout.size().next_multiple_of(HUGE);
    let (read_write, private) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // One extra huge page: the mapping contains an aligned stretch.
    let whole = length + HUGE;
    // SAFETY: a new mapping, at an address the system chooses.
    let mapped =
        unsafe { mmap_anonymous(null_mut(), whole, read_write, private) };
    let Ok(start) = mapped else { return null_mut() };
    let start = start.cast::<u8>();
    let before = start.align_offset(HUGE);
    let block = start.wrapping_add(before);
    let after = HUGE - before;
    // SAFETY: the parts before and after the aligned stretch, inside the
    // mapping just made, and nothing refers to them. `before` is a multiple
    // of the page size because both ends of it are.
    unsafe {
        if before > 0 {
            let _ = munmap(start.cast(), before);
        }
        if after > 0 {
            let _ = munmap(block.wrapping_add(length).cast(), after);
        }
    }
    // A refusal is no failure: the report has the number granted.
    // SAFETY: advice about the mapping just made.
    let _ = unsafe { madvise(block.cast(), length, Advice::LinuxHugepage) };
    for page in (0..length).step_by(PAGE) {
        // SAFETY: `page < length`, and the mapping of `length` bytes just
        // made is writable. Volatile, so that the store of zero over zero
        // is not removed.
        unsafe { block.add(page).write_volatile(0) };
    }
    block
}

#[cfg(test)]
mod tests {
    use super::{HUGE, live};

    #[test]
    fn blocks_of_every_size_are_zero_aligned_and_counted() {
        for length in [1, HUGE - 1, HUGE, HUGE + 1, 5 * HUGE + 7] {
            let before = live();
            let mut block = vec![0u8; length];
            assert!(live() - before >= length as i64);
            assert!(block.iter().all(|&byte| byte == 0));
            assert!(length < HUGE || block.as_ptr().align_offset(HUGE) == 0);
            block.fill(1);
            block.resize(2 * length, 2);
            assert_eq!(block.iter().map(|&b| b as usize).sum::<usize>(), {
                3 * length
            });
        }
    }
}

//! One allocator for every contender: large blocks get huge pages, and what
//! lives is counted.
//!
//! A filter's memory is measured here rather than asked for: a crate's own
//! figure may leave something out. And no filter may profit from pages that
//! another one does not get: a 4 KiB page costs a second cache miss for its
//! translation, in a filter of 512 MiB at almost every lookup.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use rustix::mm::{
    Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap,
};

/// The size of a huge page on x86-64, and on ARM with 4 KiB pages.
const HUGE: usize = 2 << 20;
/// The smallest page there is.
const PAGE: usize = 4 << 10;

thread_local! {
    // Without a destructor and without lazy initialisation: nothing here
    // allocates.
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// Bytes this thread has allocated and not freed; negative if it has freed
/// what others allocated.
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
// unmapped only when they are freed. Which of the two a block is follows
// from the size of its layout, which is the same on both occasions.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        match layout.size() < HUGE {
            // SAFETY: the caller's promise, passed on.
            true => unsafe { System.alloc(layout) },
            false => map(layout),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        match layout.size() < HUGE {
            // SAFETY: the caller's promise, passed on.
            true => unsafe { System.alloc_zeroed(layout) },
            // Fresh pages are zero.
            false => map(layout),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout, -1);
        match layout.size() < HUGE {
            // SAFETY: the caller's promise, passed on.
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

/// A mapping of whole huge pages, all of them present, so that no page fault
/// is left for a timed loop.
#[expect(unsafe_code, reason = "mappings are raw memory")]
fn map(layout: Layout) -> *mut u8 {
    if layout.align() > HUGE {
        return null_mut();
    }
    let length = layout.size().next_multiple_of(HUGE);
    let (read_write, private) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // One huge page more than needed: an aligned stretch is in it.
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
    // A refusal is no failure: the report says how many were got.
    // SAFETY: advice about the mapping just made.
    let _ = unsafe { madvise(block.cast(), length, Advice::LinuxHugepage) };
    for page in (0..length).step_by(PAGE) {
        // SAFETY: inside the mapping just made, which is writable. Volatile
        // because writing zero over zero looks useless.
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

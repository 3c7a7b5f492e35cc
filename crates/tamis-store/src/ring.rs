//! Reads in flight together through io_uring.
//!
//! The ring owns the pages that the kernel writes to. They are freed after
//! the last completion, or never.
#![expect(unsafe_code, reason = "the kernel writes to memory of the ring")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::time::Duration;

use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};

use crate::disk::{ReadDone, ReadQueue};
use crate::extents::PAGE;

const PAGE_LEN: usize = PAGE as usize;

/// Attempts without progress, 50 µs apart, after which a ring is given up.
const ATTEMPTS: u32 = 200_000;

/// Reads that are submitted at once. The kernel prepares all before it starts
/// the device: with 64 at once, batches of 64 pages from the page cache and the
/// disk took 3 times as long as with 16.
const CHUNK: usize = 16;

/// Memory that the kernel may write to.
#[derive(Debug)]
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `start` is an allocation that only this value and the kernel refer
// to, and the kernel writes to it whatever thread has the value. A page is read
// only after its completion, and the memory is freed only when none is in
// flight (`Ring::drop`).
unsafe impl Send for Pages {}

impl Pages {
    fn new(count: usize) -> io::Result<Self> {
        let bytes = count.checked_mul(PAGE_LEN).filter(|&bytes| bytes > 0);
        let layout =
            bytes.and_then(|n| Layout::from_size_align(n, PAGE_LEN).ok());
        let layout = layout.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the size is not zero by the filter above.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, layout })
    }

    /// Number of pages.
    fn count(&self) -> usize {
        self.layout.size() / PAGE_LEN
    }

    /// Address of page `i`, which is less than [`count`](Self::count).
    fn address(&self, i: usize) -> *mut u8 {
        assert!(i < self.count(), "a page of the ring");
        // SAFETY: `i < count`, so the offset is in the allocation.
        unsafe { self.start.as_ptr().add(i * PAGE_LEN) }
    }

    /// Frees the memory.
    ///
    /// # Safety
    ///
    /// The kernel writes to none of the pages any more, and the value is not
    /// used again.
    unsafe fn free(&mut self) {
        // SAFETY: allocated in `new` with this layout; not used again.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// A queue of reads of one file.
pub(crate) struct Ring {
    ring: IoUring,
    /// Open as long as reads of it may be submitted.
    file: File,
    pages: Pages,
    /// Pages that no read has.
    free: Vec<u32>,
    /// For each page that a read has, the index of its offset.
    owners: Vec<usize>,
    /// Whether the kernel refused calls.
    broken: bool,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("file", &self.file)
            .field("pages", &self.pages)
            .field("free", &self.free.len())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for `depth` pages of `file`. The error is that of the kernel,
    /// which may be old or may forbid io_uring.
    pub(crate) fn new(file: File, depth: usize) -> io::Result<Self> {
        let depth = depth.clamp(1, 1 << 12);
        let entries = depth as u32;
        // Without interrupts of this thread for completions that it waits
        // for anyway, where the kernel has that.
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .build(entries)
            .or_else(|_| IoUring::new(entries))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            ring,
            file,
            pages: Pages::new(depth)?,
            free: (0..entries).collect(),
            owners: vec![0; depth],
            broken: false,
        })
    }

    /// Number of reads that the kernel has, or is to have.
    fn in_flight(&self) -> usize {
        self.pages.count() - self.free.len()
    }

    /// Queues reads for pages that are free, up to a multiple of [`CHUNK`],
    /// from offset number `next` on. Returns the number of the first offset
    /// that has no page.
    fn push(&mut self, offsets: &[u64], mut next: usize) -> usize {
        let fd = types::Fd(self.file.as_raw_fd());
        let mut queue = self.ring.submission();
        while let (Some(&offset), Some(&page)) =
            (offsets.get(next), self.free.last())
        {
            let address = self.pages.address(page as usize);
            let entry = opcode::Read::new(fd, address, PAGE as u32)
                .offset(offset)
                .build()
                .user_data(u64::from(page));
            // SAFETY: the entry reads at most `PAGE` bytes to a page that is
            // aligned, in the allocation by `address`, and that no other read
            // has: it is taken from `free` below, and returns there with its
            // completion. The pages live until then (`drop`), and so does the
            // file.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
            self.owners[page as usize] = next;
            self.free.pop();
            next += 1;
            if self.free.len() % CHUNK == 0 {
                break;
            }
        }
        next
    }

    /// Waits for completions, half of the reads if others wait for pages, and
    /// calls `done` with the page and the result of each.
    fn complete(&mut self, all: bool, done: &mut ReadDone<'_>) {
        let in_flight = self.in_flight();
        let want = if all { in_flight } else { in_flight.div_ceil(2) };
        let mut attempts = 0;
        loop {
            // An error may be an interruption, or lack of memory, or that
            // completions are to be taken first: reads may be in flight after
            // any of them.
            let _ = self.ring.submit_and_wait(want);
            if !self.ring.completion().is_empty() {
                break;
            }
            attempts += 1;
            if attempts == ATTEMPTS {
                self.broken = true;
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        loop {
            let entry = self.ring.completion().next();
            let Some(entry) = entry else { break };
            self.take(&entry, done);
        }
    }

    /// Takes back the page of a completed read, after `done`.
    fn take(&mut self, entry: &cqueue::Entry, done: &mut ReadDone<'_>) {
        let page = entry.user_data() as usize;
        // Before `done`, which may panic: the kernel is done with the page,
        // and no read takes it before the next `push`.
        self.free.push(page as u32);
        let address = self.pages.address(page);
        // SAFETY: the page was initialised when it was allocated, is `PAGE`
        // bytes long, and has no other reference: the kernel has completed
        // its read, and `self` is borrowed mutably.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(address, PAGE_LEN) };
        let result = match usize::try_from(entry.result()) {
            Ok(read) => Ok(read.min(PAGE_LEN)),
            Err(_) => Err(error(entry.result())),
        };
        done(self.owners[page], bytes, result);
    }

    /// Waits for the reads that a panic of `done` left in flight.
    fn drain(&mut self) {
        while self.in_flight() > 0 && !self.broken {
            self.complete(true, &mut |_, _, _| {});
        }
    }
}

/// The error of a completion. The kernel could not wait, or was interrupted:
/// the caller reads again.
fn error(result: i32) -> io::Error {
    let error = io::Error::from_raw_os_error(result.saturating_neg());
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::Interrupted.into(),
        _ => error,
    }
}

impl ReadQueue for Ring {
    fn read(&mut self, offsets: &[u64], done: &mut ReadDone<'_>) {
        self.drain();
        let mut called = vec![false; offsets.len()];
        let mut next = 0;
        while !self.broken {
            next = self.push(offsets, next);
            if self.in_flight() == 0 {
                return;
            }
            if next < offsets.len() && !self.free.is_empty() {
                // The device begins while the next reads are prepared.
                if self.ring.submit().is_ok() {
                    continue;
                }
            }
            self.complete(next == offsets.len(), &mut |i, bytes, result| {
                called[i] = true;
                done(i, bytes, result);
            });
        }
        // The kernel completes nothing: the pages it has are not touched.
        let mut page = vec![0; 2 * PAGE_LEN];
        let skip = page.as_ptr().align_offset(PAGE_LEN);
        let page = &mut page[skip..skip + PAGE_LEN];
        for i in (0..offsets.len()).filter(|&i| !called[i]) {
            done(i, page, Err(io::ErrorKind::Interrupted.into()));
        }
    }

    fn ram(&self) -> u64 {
        ram(self.pages.count())
    }
}

/// Bytes of memory of a ring for `depth` pages: the pages, the lists, and the
/// two queues, which the kernel rounds up to powers of two.
pub(crate) fn ram(depth: usize) -> u64 {
    let entries = depth.next_power_of_two();
    let queues = entries
        * (size_of::<squeue::Entry>() + 4 + 2 * size_of::<cqueue::Entry>());
    let lists = depth * (size_of::<u32>() + size_of::<usize>());
    (depth * PAGE_LEN + lists + queues + 4096) as u64
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.drain();
        if self.in_flight() == 0 {
            // SAFETY: no read has a page, and the value is not used again.
            unsafe { self.pages.free() }
        }
        // Otherwise the kernel may write to the pages yet: they are leaked.
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A file of `pages` pages and 100 bytes, and a ring for it, unless the
    /// kernel refuses one.
    fn ring(pages: usize, depth: usize) -> Option<(Vec<u8>, Ring)> {
        let file = tempfile::tempfile().unwrap();
        let mut bytes = vec![0; pages * PAGE_LEN + 100];
        fastrand::Rng::with_seed(1).fill(&mut bytes);
        file.write_all_at(&bytes, 0).unwrap();
        match Ring::new(file, depth) {
            Ok(ring) => Some((bytes, ring)),
            Err(error) => {
                println!("no io_uring: {error}");
                None
            }
        }
    }

    #[test]
    fn every_offset_is_read_once() {
        for depth in [1, 3, 64] {
            let Some((bytes, mut ring)) = ring(200, depth) else { return };
            assert!(ring.ram() >= (depth * PAGE_LEN) as u64);
            for count in [0, 1, 2, 64, 65, 500] {
                let offsets: Vec<u64> =
                    (0..count).map(|i| i * 7 % 200 * PAGE).collect();
                let mut seen = vec![0; offsets.len()];
                ring.read(&offsets, &mut |i, page, read| {
                    assert_eq!(page.as_ptr().align_offset(PAGE_LEN), 0);
                    assert_eq!(read.unwrap(), PAGE_LEN);
                    let at = offsets[i] as usize;
                    assert_eq!(page, &bytes[at..at + PAGE_LEN]);
                    seen[i] += 1;
                });
                assert!(seen.iter().all(|&n| n == 1), "depth {depth}");
                assert_eq!(ring.in_flight(), 0);
            }
        }
    }

    #[test]
    fn the_end_of_the_file_is_a_short_read() {
        let Some((bytes, mut ring)) = ring(2, 4) else { return };
        let mut lengths = [usize::MAX; 2];
        ring.read(&[2 * PAGE, 3 * PAGE], &mut |i, page, read| {
            lengths[i] = read.unwrap();
            if i == 0 {
                assert_eq!(page[..100], bytes[2 * PAGE_LEN..]);
            }
        });
        assert_eq!(lengths, [100, 0]);
    }

    #[test]
    fn errors_are_those_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::open(dir.path()).unwrap();
        let Ok(mut ring) = Ring::new(file, 4) else { return };
        let mut errors = 0;
        ring.read(&[0, 4096, 8192], &mut |_, _, read| {
            errors += 1;
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::IsADirectory);
        });
        assert_eq!(errors, 3);
        assert_eq!(error(-libc_eagain()).kind(), io::ErrorKind::Interrupted);
    }

    fn libc_eagain() -> i32 {
        rustix::io::Errno::AGAIN.raw_os_error()
    }

    /// A panic leaves reads in flight: the next call waits for them, and so
    /// does the destructor.
    #[test]
    fn a_panic_of_the_caller_keeps_the_pages() {
        for again in [true, false] {
            let Some((bytes, mut ring)) = ring(64, 8) else { return };
            let offsets: Vec<u64> = (0..64).map(|i| i * PAGE).collect();
            let panics = AssertUnwindSafe(|| {
                ring.read(&offsets, &mut |_, _, _| panic!("of the caller"));
            });
            assert!(catch_unwind(panics).is_err());
            if again {
                let mut seen = 0;
                ring.read(&offsets, &mut |i, page, read| {
                    assert_eq!(read.unwrap(), PAGE_LEN);
                    let at = offsets[i] as usize;
                    assert_eq!(page, &bytes[at..at + PAGE_LEN]);
                    seen += 1;
                });
                assert_eq!(seen, 64);
            }
        }
    }

    #[test]
    fn a_broken_ring_leaves_all_reads_to_the_caller() {
        let Some((_, mut ring)) = ring(4, 4) else { return };
        ring.broken = true;
        let mut calls = 0;
        ring.read(&[0, PAGE], &mut |_, page, read| {
            calls += 1;
            assert_eq!(page.len(), PAGE_LEN);
            assert_eq!(page.as_ptr().align_offset(PAGE_LEN), 0);
            let kind = read.unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::Interrupted);
        });
        assert_eq!(calls, 2);
    }
}

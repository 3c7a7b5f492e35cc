//! Reading a file through maps of it in memory.
//!
//! A page that is in the page cache is copied without a system call. An error
//! of the device, or a file that another program has cut, is no error of the
//! read but the signal `SIGBUS`.
#![expect(unsafe_code, reason = "copies from memory that the kernel maps")]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::disk::{DiskFile, ReadQueue};
use crate::files;

/// Length of the first window. Every other one is as long as all windows
/// before it.
const FIRST: u64 = 1 << 30;

/// Windows: together 32 TiB.
const WINDOWS: usize = 16;

/// Start and length of window `i`.
fn window(i: usize) -> (u64, u64) {
    match i {
        0 => (0, FIRST),
        _ => (FIRST << (i - 1), FIRST << (i - 1)),
    }
}

/// Number of the window that has `offset`.
#[inline]
fn window_of(offset: u64) -> usize {
    (offset / FIRST).checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// A file for reading, mapped in windows of fixed places.
///
/// A window may exceed the file: the pages of its end are mapped before the
/// file has them, so that no window is mapped again when the file grows.
#[derive(Debug)]
pub(crate) struct MappedFile {
    file: File,
    /// `None` where the system refused the map.
    windows: [OnceLock<Option<MmapRaw>>; WINDOWS],
    /// Length of the file when it was measured. A writer cuts the file only
    /// after pages that no reader uses: those of its process hold pins, those
    /// of others the lock of [`READERS_LOCK`](crate::space::READERS_LOCK).
    len: AtomicU64,
}

impl MappedFile {
    /// Maps the first window.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let len = AtomicU64::new(file.metadata()?.len());
        let first = map(&file, 0)?;
        let windows = [const { OnceLock::new() }; WINDOWS];
        let _ = windows[0].set(Some(first));
        Ok(Self { file, windows, len })
    }

    /// The map that has `offset`, and the place of `offset` in it.
    #[inline]
    fn find(&self, offset: u64) -> Option<(&MmapRaw, usize)> {
        let i = window_of(offset);
        let map = self.windows.get(i)?;
        let map = map.get_or_init(|| map_later(&self.file, i)).as_ref()?;
        Some((map, (offset - window(i).0) as usize))
    }

    /// Bytes of a range of `len` bytes that the file has.
    #[inline]
    fn available(&self, offset: u64, len: usize) -> io::Result<usize> {
        let end = offset.saturating_add(len as u64);
        let mut file_len = self.len.load(Ordering::Relaxed);
        if end > file_len {
            file_len = self.file.metadata()?.len();
            self.len.store(file_len, Ordering::Relaxed);
        }
        Ok((end.min(file_len).saturating_sub(offset)) as usize)
    }
}

/// Maps window `i`.
fn map(file: &File, i: usize) -> io::Result<MmapRaw> {
    let (start, len) = window(i);
    let len = usize::try_from(len)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut options = MmapOptions::new();
    let map = options.offset(start).len(len).map_raw_read_only(file)?;
    // Lookups read single pages; without the advice they read ahead.
    let _ = map.advise(Advice::Random);
    Ok(map)
}

/// Maps a window after the first. Without the address space it is read with
/// system calls.
#[cold]
fn map_later(file: &File, i: usize) -> Option<MmapRaw> {
    map(file, i).ok()
}

impl DiskFile for MappedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.available(offset, buffer.len())?;
        let mut copied = 0;
        while copied < len {
            let at = offset + copied as u64;
            let Some((map, place)) = self.find(at) else {
                let rest = self.file.read_at(&mut buffer[copied..len], at)?;
                return Ok(copied + rest);
            };
            let n = (len - copied).min(map.len() - place);
            let to = buffer[copied..copied + n].as_mut_ptr();
            // SAFETY: `find` returned `place < map.len()`, so `place + n <=
            // map.len()` by the minimum above, and `to` has `n` bytes:
            // `copied + n <= len <= buffer.len()`. The map lives as long as
            // `self` and does not overlap `buffer`, which is borrowed mutably.
            // Pages after the end of the file would be a signal: `at + n <=
            // offset + len`, and `available` ensured that the file had
            // `offset + len` bytes, which the writer does not cut (`len`).
            unsafe {
                to.copy_from_nonoverlapping(map.as_ptr().add(place), n);
            }
            copied += n;
        }
        Ok(len)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn queue(&self, depth: usize) -> io::Result<Box<dyn ReadQueue>> {
        files::queue(&self.file, depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_all_offsets_in_order() {
        let mut end = 0;
        for i in 0..WINDOWS {
            let (start, len) = window(i);
            assert_eq!(start, end);
            end = start + len;
            for offset in [start, start + 1, end - 1] {
                assert_eq!(window_of(offset), i, "{offset}");
            }
        }
        assert_eq!(end, 32 << 40);
        assert_eq!(window_of(end), WINDOWS);
        assert_eq!(window_of(u64::MAX), 34);
    }

    /// Reads of a sparse file with two pages at a border of windows, beside
    /// those of the system.
    #[test]
    fn reads_are_those_of_the_system() {
        let file = tempfile::tempfile().unwrap();
        let mut page = [0; 8192];
        fastrand::Rng::with_seed(1).fill(&mut page);
        file.write_all_at(&page, FIRST - 4096).unwrap();
        let mapped = MappedFile::new(file.try_clone().unwrap()).unwrap();
        let check = |offset: u64, len: usize| {
            let (mut ours, mut theirs) = (vec![1; len], vec![1; len]);
            let n = mapped.read_at(&mut ours, offset).unwrap();
            assert_eq!(n, file.read_at(&mut theirs, offset).unwrap());
            assert_eq!(ours, theirs, "{len} bytes at {offset}");
        };
        for (offset, len) in [
            (0, 4096),
            (FIRST - 4096, 8192),
            (FIRST - 1, 2),
            (FIRST, 4096),
            (FIRST + 4095, 4096),
            (FIRST + 4096, 10),
            (FIRST << 3, 4096),
            (u64::MAX >> 1, 0),
        ] {
            check(offset, len);
        }
        // The file grows by a page, in a window that is mapped.
        file.write_all_at(&page[..4096], FIRST + 4096).unwrap();
        check(FIRST + 4096, 4096);
        // It grows to a window that is not mapped yet.
        let far = 3 << 40;
        if file.write_all_at(&page, far).is_ok() {
            check(far, 8192);
        }
        assert!(mapped.write_at(&page, 0).is_err());
    }

    /// A read that begins in a map and ends in a window without one.
    #[test]
    fn refused_windows_are_read_with_system_calls() {
        let file = tempfile::tempfile().unwrap();
        let mut pages = [0; 8192];
        fastrand::Rng::with_seed(2).fill(&mut pages);
        file.write_all_at(&pages, FIRST - 4096).unwrap();
        let mapped = MappedFile::new(file).unwrap();
        mapped.windows[1].set(None).unwrap();
        for (offset, len) in [(FIRST - 4096, 8192), (FIRST, 4096)] {
            let mut bytes = vec![0; len];
            assert_eq!(mapped.read_at(&mut bytes, offset).unwrap(), len);
            assert_eq!(bytes, pages[8192 - len..]);
        }
    }
}

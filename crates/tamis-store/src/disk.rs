//! The trait through which the engine does every read, write and sync.
//!
//! [`Files`](crate::Files) implements it with a directory. A test implements
//! it with a simulated disk that drops, reorders and tears unsynced writes.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A folder of files. All names are plain: no separators.
///
/// # Durability
///
/// A write is durable after [`DiskFile::sync`] on its file. A creation, a
/// renaming and a removal are durable after [`sync_dir`](Self::sync_dir).
/// Before that a crash may keep any subset of them, in any order.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens the file `name`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if it does not exist and `mode` does not
    /// create it; [`io::ErrorKind::AlreadyExists`] if it exists and `mode`
    /// creates it; others as the system reports them.
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames a file and replaces the file `to`.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Names of all files, in any order.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes creations, renamings and removals durable.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn sync_dir(&self) -> io::Result<()>;

    /// Locks the file `name`, which is created if needed and has no content,
    /// until the result is dropped. `None` if another holder, in this process
    /// or another, excludes it. Does not wait.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn lock(
        &self,
        name: &str,
        kind: LockKind,
    ) -> io::Result<Option<Box<dyn Lock>>>;
}

/// How [`Disk::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading pages in any order: reading ahead is of
    /// no use.
    ReadRandom,
    /// An existing file, for reading past the page cache where the system
    /// can. Offsets, lengths and addresses of reads are multiples of 4096.
    ReadDirect,
    /// An existing file, for reading pages in any order through maps of the
    /// file in memory.
    ReadMapped,
    /// An existing file, for reading and writing.
    Write,
    /// A new file, for reading and writing.
    Create,
}

/// Whether a lock excludes all others or only exclusive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Any number of holders.
    Shared,
    /// One holder.
    Exclusive,
}

/// A lock, released when it is dropped.
pub trait Lock: fmt::Debug + Send + Sync {}

/// An open file.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads at `offset`, and returns the number of bytes read: possibly
    /// fewer than `buffer` has, and 0 only at the end of the file.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset`, and returns the number of bytes written: possibly
    /// fewer than `bytes` has.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes the content and the length durable.
    ///
    /// # Errors
    ///
    /// As the system reports them. After an error, no earlier write may be
    /// relied on.
    fn sync(&self) -> io::Result<()>;

    /// The length of the file.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn len(&self) -> io::Result<u64>;

    /// Whether the length is 0.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Sets the length; new bytes are zero.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns the blocks of a range to the file system; the range then reads
    /// as zeros or keeps its bytes.
    ///
    /// # Errors
    ///
    /// As the system reports them. [`io::ErrorKind::Unsupported`] where it
    /// cannot; the range then keeps its bytes.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// A queue that reads up to `depth` pages of this file at the same time.
    /// The default has none: reads then overlap in threads.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] if the disk has no queues; others as the
    /// system reports them. Reads overlap in threads after any error.
    fn queue(&self, depth: usize) -> io::Result<Box<dyn ReadQueue>> {
        let _ = depth;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Takes the reads of a [`ReadQueue`]: index of the offset, page, and number of
/// bytes read.
pub type ReadDone<'a> = dyn FnMut(usize, &mut [u8], io::Result<usize>) + 'a;

/// Reads of pages that are in flight together.
pub trait ReadQueue: fmt::Debug + Send {
    /// Reads 4096 bytes at each offset, and calls `done` once for each, in any
    /// order: with the index of the offset, a page at an address that is a
    /// multiple of 4096, and the number of its bytes that were read.
    ///
    /// Fewer bytes and errors have the meaning that they have in
    /// [`DiskFile::read_at`]. After [`io::ErrorKind::Interrupted`] the caller
    /// reads again, without the queue.
    fn read(&mut self, offsets: &[u64], done: &mut ReadDone<'_>);

    /// Bytes of memory that the queue holds.
    fn ram(&self) -> u64;
}

/// Reads until `buffer` is full.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before.
pub(crate) fn read_exact_at(
    file: &dyn DiskFile,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes`.
pub(crate) fn write_all_at(
    file: &dyn DiskFile,
    mut bytes: &[u8],
    mut offset: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

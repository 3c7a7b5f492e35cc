//! The log: files of frames, one frame per batch of writes.
//!
//! A frame is written before its writes are visible and synced as the
//! durability demands. Frames have consecutive sequence numbers; a frame that
//! is damaged, or out of sequence, ends the log.

use std::sync::Arc;

use crate::batch::{Op, Ops};
use crate::codec::{checksum, u16_at, u32_at, u64_at};
use crate::disk::{Disk, DiskFile, Mode, read_exact_at, write_all_at};
use crate::error::{Error, Result};

/// First bytes of a log file.
const MAGIC: [u8; 8] = *b"\x89TAMLOG\n";

/// Version of the log format.
const VERSION: u16 = 1;

/// Length of the header of a file.
pub(crate) const HEADER: u64 = 64;

/// Length of the header of a frame.
const FRAME: usize = 40;

/// Frames begin at multiples of this.
const ALIGN: usize = 8;

/// Operation of an error after which the content of the files is unknown.
pub(crate) const SYNC: &str = "sync";

/// Bytes of frames that are collected before a write, where no sync is due.
pub(crate) const BUFFER: usize = 64 << 10;

/// Name of log file `number`.
pub(crate) fn name(number: u64) -> String {
    format!("log-{number:016x}")
}

/// Number of the log file with this name.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-").filter(|d| d.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// Seed of the checksums in a file: frames of another store, or of another
/// file of this one, are not valid here.
fn file_seed(seed: u64, number: u64) -> u64 {
    seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The file that new frames go to.
#[derive(Debug)]
pub(crate) struct Writer {
    file: Arc<dyn DiskFile>,
    name: String,
    number: u64,
    seed: u64,
    /// Offset of the first byte of `buffer`.
    position: u64,
    /// Frames not yet written.
    buffer: Vec<u8>,
}

impl Writer {
    /// Creates log file `number`, whose first frame has sequence number
    /// `first`. The file and its name are durable.
    pub(crate) fn create(
        disk: &dyn Disk,
        number: u64,
        seed: u64,
        first: u64,
    ) -> Result<Self> {
        let name = name(number);
        let seed = file_seed(seed, number);
        let file = disk
            .open(&name, Mode::Create)
            .map_err(|e| Error::io("create", &name, e))?;
        let mut header = [0; HEADER as usize];
        header[..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&number.to_le_bytes());
        header[24..32].copy_from_slice(&first.to_le_bytes());
        let sum = checksum(&header[..56], seed);
        header[56..].copy_from_slice(&sum.to_le_bytes());
        let written = write_all_at(&*file, &header, 0)
            .map_err(|error| Error::io("create", &name, error));
        let made = written.and_then(|()| {
            file.sync()
                .and_then(|()| disk.sync_dir())
                .map_err(|error| Error::io(SYNC, &name, error))
        });
        if let Err(error) = made {
            // The next attempt creates the same name.
            let _ = disk.remove(&name);
            return Err(error);
        }
        let buffer = Vec::with_capacity(BUFFER);
        Ok(Self { file, name, number, seed, position: HEADER, buffer })
    }

    /// Number of the file.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Length of the file with the frames that are not yet written.
    pub(crate) fn len(&self) -> u64 {
        self.position + self.buffer.len() as u64
    }

    /// The file, to sync it without holding the writer.
    pub(crate) fn file(&self) -> (Arc<dyn DiskFile>, String) {
        (Arc::clone(&self.file), self.name.clone())
    }

    /// Appends a frame of `count` writes whose first has sequence number
    /// `first`. Writes up to `durable` are durable already. With `write`, or
    /// with more frames than the buffer holds, the frames reach the system.
    ///
    /// After an error the frame is not in the log, and earlier frames are.
    pub(crate) fn append(
        &mut self,
        first: u64,
        count: u32,
        durable: u64,
        payload: &[u8],
        write: bool,
    ) -> Result<()> {
        let too_long = Error::TooLong {
            what: "batch",
            len: payload.len() as u64,
            max: u32::MAX.into(),
        };
        let len = u32::try_from(payload.len()).map_err(|_| too_long)?;
        let start = self.buffer.len();
        let out = &mut self.buffer;
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&durable.to_le_bytes());
        out.extend_from_slice(&checksum(payload, self.seed).to_le_bytes());
        let sum = checksum(&out[start + 8..], self.seed);
        out[start..start + 8].copy_from_slice(&sum.to_le_bytes());
        if payload.len() > BUFFER {
            return self.write_long(payload).inspect_err(|_| {
                self.buffer.truncate(start);
            });
        }
        out.extend_from_slice(payload);
        out.resize(start + frame_len(payload.len()), 0);
        if write || out.len() > BUFFER {
            if let Err(error) = self.write_out() {
                self.buffer.truncate(start);
                self.buffer.shrink_to(BUFFER);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes the collected frames, the last of which lacks its payload, and
    /// the payload, which is not copied.
    fn write_long(&mut self, payload: &[u8]) -> Result<()> {
        let zeros = [0; ALIGN];
        let rest = frame_len(payload.len()) - FRAME - payload.len();
        let mut at = self.position;
        for part in [&self.buffer[..], payload, &zeros[..rest]] {
            write_all_at(&*self.file, part, at)
                .map_err(|e| Error::io("write", &self.name, e))?;
            at += part.len() as u64;
        }
        self.position = at;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the collected frames. After an error they are still collected.
    pub(crate) fn write_out(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        write_all_at(&*self.file, &self.buffer, self.position)
            .map_err(|e| Error::io("write", &self.name, e))?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        Ok(())
    }
}

/// Length of a frame with `payload` bytes, a multiple of [`ALIGN`].
fn frame_len(payload: usize) -> usize {
    (FRAME + payload).next_multiple_of(ALIGN)
}

/// Result of [`replay`].
#[derive(Debug)]
pub(crate) struct Replayed {
    /// Sequence number after the last write.
    pub(crate) next: u64,
    /// Offset after the last valid frame; 0 if the header is not valid, or is
    /// that of a log whose creation failed.
    pub(crate) end: u64,
    /// Length of the file.
    pub(crate) len: u64,
}

/// Calls `apply` for every write of log file `number`, in order, with its
/// sequence number. `expected` is the number of the first.
///
/// Bytes after the last valid frame are the torn end of the log, unless a
/// valid frame among them proves that the damaged one was durable.
pub(crate) fn replay(
    disk: &dyn Disk,
    number: u64,
    seed: u64,
    expected: u64,
    mut apply: impl FnMut(u64, Op<'_>) -> Result<()>,
) -> Result<Replayed> {
    let name = name(number);
    let seed = file_seed(seed, number);
    let file = disk.open(&name, Mode::Read).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::corrupt(&name, 0, "the manifest names a missing log")
        }
        _ => Error::io("open", &name, e),
    })?;
    let io = |e| Error::io("read", &name, e);
    let len = file.len().map_err(io)?;
    let mut next = expected;
    let mut at = 0;
    let mut header = [0; HEADER as usize];
    if len >= HEADER {
        read_exact_at(&*file, &mut header, 0).map_err(io)?;
        let sum = u64_at(&header, 56);
        if header[..8] == MAGIC && checksum(&header[..56], seed) == sum {
            let version = u16_at(&header, 8);
            if version != VERSION {
                return Err(Error::UnsupportedVersion {
                    found: version,
                    supported: VERSION,
                });
            }
            let first = u64_at(&header, 24);
            // Its creation failed, and its removal was lost: the log before
            // has the writes from its first sequence number on.
            let abandoned = u64_at(&header, 16) == number
                && first < next
                && !survivor(&*file, HEADER, len, seed, 0).map_err(io)?;
            if abandoned {
                return Ok(Replayed { next, end: 0, len });
            }
            if u64_at(&header, 16) != number || first != next {
                let why = "the log does not continue the one before";
                return Err(Error::corrupt(&name, 0, why));
            }
            at = HEADER;
        }
    }
    let mut frame = Vec::new();
    if at > 0 {
        while read_frame(&*file, at, len, seed, &mut frame).map_err(io)?
            && u64_at(&frame, 16) == next
        {
            let count = u32_at(&frame, 12);
            let mut ops = Ops::new(&frame[FRAME..]);
            for sequence in next..next.saturating_add(count.into()) {
                let why = "a frame has fewer writes than it counts";
                let op = ops.next().ok_or(Error::corrupt(&name, at, why))?;
                apply(sequence, op)?;
            }
            if !ops.is_done() {
                let why = "a frame has more writes than it counts";
                return Err(Error::corrupt(&name, at, why));
            }
            next += u64::from(count);
            at += frame_len(frame.len() - FRAME) as u64;
        }
    }
    if survivor(&*file, at.max(HEADER), len, seed, next).map_err(io)? {
        let why = "a durable frame of the log is damaged";
        return Err(Error::corrupt(&name, at, why));
    }
    Ok(Replayed { next, end: at, len })
}

/// Whether a valid frame at `at` or later was written when sequence number
/// `next` was durable; any valid frame if `next` is 0.
fn survivor(
    file: &dyn DiskFile,
    mut at: u64,
    len: u64,
    seed: u64,
    next: u64,
) -> std::io::Result<bool> {
    let mut frame = Vec::new();
    let mut window = vec![0; BUFFER];
    while at + FRAME as u64 <= len {
        let n = (len - at).min(BUFFER as u64) as usize;
        read_exact_at(file, &mut window[..n], at)?;
        let mut start = 0;
        while start + FRAME <= n {
            let header = &window[start..start + FRAME];
            if u64_at(header, 24) >= next
                && is_header(header, seed)
                && read_frame(file, at + start as u64, len, seed, &mut frame)?
            {
                return Ok(true);
            }
            start += ALIGN;
        }
        at += start as u64;
    }
    Ok(false)
}

/// Whether these bytes are a valid header of a frame.
fn is_header(header: &[u8], seed: u64) -> bool {
    checksum(&header[8..FRAME], seed) == u64_at(header, 0)
}

/// Reads the frame at `at`, and returns `true` if it is valid.
fn read_frame(
    file: &dyn DiskFile,
    at: u64,
    len: u64,
    seed: u64,
    frame: &mut Vec<u8>,
) -> std::io::Result<bool> {
    if at + FRAME as u64 > len {
        return Ok(false);
    }
    frame.resize(FRAME, 0);
    read_exact_at(file, frame, at)?;
    let payload = u32_at(frame, 8) as usize;
    let end = at + (FRAME + payload) as u64;
    if !is_header(frame, seed) || end > len {
        return Ok(false);
    }
    frame.resize(FRAME + payload, 0);
    read_exact_at(file, &mut frame[FRAME..], at + FRAME as u64)?;
    Ok(checksum(&frame[FRAME..], seed) == u64_at(frame, 32))
}

//! Redo journal: makes a change of some bytes of a file atomic.
//!
//! The journal is appended to the file that it changes, so that it needs no
//! name, moves with the file, and is found without another system call: the
//! file is longer than the length in its header. A complete journal is a
//! change that has happened. Readers apply it to private pages of their map;
//! the next writer applies it to the file. An incomplete one is ignored and
//! cut off.

use alloc::vec;
use alloc::vec::Vec;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use xxhash_rust::xxh3::xxh3_64;

use super::header::{JOURNAL_START as START, corrupt, field};
use super::image_len;
use crate::error::{Error, Result};

/// Last bytes of a complete journal.
const END: [u8; 8] = *b"\x89TAMIE\r\n";
/// Bytes before the records: `START`, the lengths of image and journal, and
/// the checksum of these.
const HEAD: usize = 32;
/// Bytes of a record before those to write: their offset and number.
const RECORD: usize = 16;
/// Bytes after the records: the checksum of everything before, the length of
/// the journal, `END`.
const TAIL: usize = 24;
/// Longest header of an image, rounded up.
const HEADER_ROOM: u64 = 4096;

/// Changes of an image, to be made at once.
pub(crate) struct Journal {
    image_bytes: u64,
    bytes: Vec<u8>,
}

impl Journal {
    /// An empty journal for an image of this length.
    pub(crate) fn new(image_bytes: u64) -> Self {
        Self { image_bytes, bytes: vec![0; HEAD] }
    }

    /// Adds bytes to be written at an offset.
    pub(crate) fn record(&mut self, offset: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(&offset.to_le_bytes());
        self.bytes.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// Completes the journal.
    fn seal(&mut self) {
        let bytes = &mut self.bytes;
        let len = (bytes.len() + TAIL) as u64;
        bytes[..8].copy_from_slice(&START);
        bytes[8..16].copy_from_slice(&self.image_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&len.to_le_bytes());
        let checksum = xxh3_64(&bytes[..24]);
        bytes[24..HEAD].copy_from_slice(&checksum.to_le_bytes());
        let checksum = xxh3_64(bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&END);
    }

    /// Makes the changes, atomically even if the process or the machine
    /// stops: after an error the file is as before.
    ///
    /// The caller has excluded all others from the file, which holds the
    /// image and nothing else.
    pub(crate) fn commit(mut self, file: &File) -> Result<()> {
        if self.bytes.len() == HEAD {
            return Ok(());
        }
        self.seal();
        if let Err(error) = self.append(file) {
            // An incomplete journal is ignored if this fails as well.
            let _ = file.set_len(self.image_bytes);
            return Err(error);
        }
        // The change has happened: a reader finds it in the journal. After
        // an error, such as a bad sector, it stays there for the next writer.
        let records = Records::parse(&self.bytes, self.image_bytes)?;
        let _ = records.apply(file, self.image_bytes);
        Ok(())
    }

    /// Writes the journal to the end of the file. The head reaches the disk
    /// first: it distinguishes an incomplete journal from damage.
    fn append(&self, file: &File) -> Result<()> {
        let (head, rest) = self.bytes.split_at(HEAD);
        write_at(file, self.image_bytes, head)?;
        file.sync_data()?;
        write_at(file, self.image_bytes + HEAD as u64, rest)?;
        file.sync_data()?;
        Ok(())
    }
}

/// The records of a journal, all inside the image.
#[derive(Clone, Copy)]
struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// The records of a complete journal.
    fn parse(journal: &'a [u8], image_bytes: u64) -> Result<Self> {
        let records = &journal[HEAD..journal.len() - TAIL];
        let mut rest = records;
        while !rest.is_empty() {
            let record = split_record(rest).filter(|&(offset, bytes, _)| {
                let end = offset.checked_add(bytes.len() as u64);
                end.is_some_and(|end| end <= image_bytes)
            });
            let Some((.., next)) = record else {
                let why = "a record is not inside the image";
                return Err(corrupt("journal", why));
            };
            rest = next;
        }
        Ok(Self(records))
    }

    /// Offsets and bytes.
    fn iter(self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let (offset, bytes, next) = split_record(rest)?;
            rest = next;
            Some((offset, bytes))
        })
    }

    /// Writes the records to the image, then cuts the journal off.
    fn apply(self, file: &File, image_bytes: u64) -> Result<()> {
        for (offset, bytes) in self.iter() {
            write_at(file, offset, bytes)?;
        }
        file.sync_data()?;
        // Not synced: a journal that comes back is applied again, with the
        // same result.
        file.set_len(image_bytes)?;
        Ok(())
    }
}

/// Offset and bytes of the first record, and the records after it.
fn split_record(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (record, rest) = bytes.split_first_chunk::<RECORD>()?;
    let offset = u64::from_le_bytes(field(record, 0));
    let len = u64::from_le_bytes(field(record, 8));
    let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    Some((offset, bytes, rest))
}

/// An image with a journal behind it.
pub(super) struct Pending {
    /// Length of the image.
    pub(super) image_bytes: u64,
    /// The journal, empty if it is incomplete.
    journal: Vec<u8>,
}

impl Pending {
    /// Finds the journal of a file that is longer than in its header, or
    /// whose header is damaged: it may have been interrupted while it was
    /// written.
    pub(super) fn find(file: &File) -> Result<Option<Self>> {
        let bytes = file.metadata()?.len();
        if let Some(journal) = complete(file, bytes)? {
            let image_bytes = bytes - journal.len() as u64;
            return Ok(Some(Self { image_bytes, journal }));
        }
        let header = read_header(file, bytes)?;
        // With a header that is damaged, no incomplete journal is found: a
        // journal is complete before the header changes.
        let Ok(image_bytes) = image_len(&header) else { return Ok(None) };
        let behind = bytes.saturating_sub(image_bytes).min(START.len() as u64);
        let start = read_at(file, image_bytes, behind)?;
        let is_journal = behind > 0 && START.starts_with(&start);
        let journal = Vec::new();
        Ok(is_journal.then_some(Self { image_bytes, journal }))
    }

    /// Makes the changes of a complete journal in a copy of the image.
    pub(super) fn replay(&self, image: &mut [u8]) -> Result<()> {
        let records = self.records()?.unwrap_or(Records(&[]));
        for (offset, bytes) in records.iter() {
            // Inside the image, which is a slice.
            image[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// `None` if the journal is incomplete.
    fn records(&self) -> Result<Option<Records<'_>>> {
        match &self.journal[..] {
            [] => Ok(None),
            journal => Records::parse(journal, self.image_bytes).map(Some),
        }
    }
}

/// Applies a complete journal and cuts off an incomplete one. The caller has
/// excluded all others from the file.
pub(crate) fn settle(file: &File) -> Result<()> {
    let Some(pending) = Pending::find(file)? else { return Ok(()) };
    match pending.records()? {
        Some(records) => records.apply(file, pending.image_bytes),
        None => Ok(file.set_len(pending.image_bytes)?),
    }
}

/// The complete journal at the end of a file of this length.
fn complete(file: &File, bytes: u64) -> Result<Option<Vec<u8>>> {
    let Some(tail_at) = bytes.checked_sub(TAIL as u64) else {
        return Ok(None);
    };
    let tail = read_at(file, tail_at, TAIL as u64)?;
    let len = u64::from_le_bytes(field(&tail, 8));
    let start = bytes.checked_sub(len);
    let (Some(start), true) =
        (start, tail.ends_with(&END) && len >= (HEAD + TAIL) as u64)
    else {
        return Ok(None);
    };
    let head = read_at(file, start, HEAD as u64)?;
    let u64_at = |at| u64::from_le_bytes(field(&head, at));
    if !head.starts_with(&START)
        || (u64_at(8), u64_at(16)) != (start, len)
        || u64_at(24) != xxh3_64(&head[..24])
    {
        return Ok(None);
    }
    let journal = read_at(file, start, len)?;
    let covered = &journal[..journal.len() - TAIL];
    let checksum = u64::from_le_bytes(field(&tail, 0));
    Ok((xxh3_64(covered) == checksum).then_some(journal))
}

/// The beginning of a file of this length, with the whole header of an image.
pub(super) fn read_header(file: &File, bytes: u64) -> Result<Vec<u8>> {
    read_at(file, 0, bytes.min(HEADER_ROOM))
}

/// Fills `out` with the beginning of a file.
pub(super) fn read_into(mut file: &File, out: &mut [u8]) -> Result<()> {
    file.rewind()?;
    file.read_exact(out).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::Io(io::Error::new(
            error.kind(),
            "the file became shorter while it was read",
        )),
        _ => Error::Io(error),
    })
}

fn read_at(mut file: &File, offset: u64, len: u64) -> Result<Vec<u8>> {
    let failed = || Error::Allocation { bytes: len };
    let mut bytes = Vec::new();
    let room = usize::try_from(len).map_err(|_| failed())?;
    bytes.try_reserve_exact(room).map_err(|_| failed())?;
    bytes.resize(room, 0);
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write_at(mut file: &File, offset: u64, bytes: &[u8]) -> Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::format::{ExclusiveFile, Mapped};

    /// A filter before and after a key, and the journal of the change.
    fn change() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let builder = crate::Blocked::builder().items(40).fpr(0.01);
        let mut filter = builder.build_from(["apple"]).unwrap();
        let old = filter.to_bytes();
        filter.insert("pear");
        let new = filter.to_bytes();
        let mut journal = Journal::new(old.len() as u64);
        for (i, (old, new)) in old.chunks(32).zip(new.chunks(32)).enumerate() {
            if old != new {
                journal.record(32 * i as u64, new);
            }
        }
        journal.seal();
        (old, new, journal.bytes)
    }

    /// Asserts that readers and the next writer see `expected` in a file.
    #[track_caller]
    fn becomes(path: &Path, file: &[u8], expected: &[u8]) {
        fs::write(path, file).unwrap();
        assert!(Mapped::open(path).unwrap()[..] == *expected, "map");
        assert!(Mapped::read(path).unwrap()[..] == *expected, "copy");
        assert!(fs::read(path).unwrap() == file, "readers do not write");
        drop(ExclusiveFile::open(path, Duration::ZERO).unwrap());
        assert!(fs::read(path).unwrap() == expected, "writer");
    }

    /// All states that a process or a machine that stops can leave, with
    /// writes between two syncs done in any order.
    #[test]
    fn every_interruption_leaves_the_old_image_or_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = &directory.path().join("f");
        let (old, new, journal) = change();
        // While the journal is written. The disk has its head first.
        for len in 0..journal.len() {
            becomes(path, &[&old, &journal[..len]].concat(), &old);
        }
        for from in HEAD..journal.len() {
            let mut holes = journal.clone();
            holes[from..].fill(0);
            if holes != journal {
                becomes(path, &[&old, &holes[..]].concat(), &old);
            }
            let mut holes = journal.clone();
            holes[HEAD..=from].fill(0);
            if holes != journal {
                becomes(path, &[&old, &holes[..]].concat(), &old);
            }
        }
        becomes(path, &[&old, &journal[..]].concat(), &new);
        // While the image is written, byte by byte in both directions.
        for at in 0..=old.len() {
            let forward = [&new[..at], &old[at..], &journal].concat();
            becomes(path, &forward, &new);
            let backward = [&old[..at], &new[at..], &journal].concat();
            becomes(path, &backward, &new);
        }
        becomes(path, &new, &new);
        // A journal that comes back after it was cut off.
        becomes(path, &[&new, &journal[..]].concat(), &new);
        becomes(path, &[&new, &journal[..HEAD + 5]].concat(), &new);
    }

    #[test]
    fn commit_writes_the_new_image_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let (old, new, _) = change();
        fs::write(&path, &old).unwrap();
        let file = ExclusiveFile::open(&path, Duration::ZERO).unwrap();
        let mut journal = Journal::new(old.len() as u64);
        journal.record(0, &new);
        journal.commit(&file.0).unwrap();
        assert!(fs::read(&path).unwrap() == new);
        Journal::new(old.len() as u64).commit(&file.0).unwrap();
        assert!(fs::read(&path).unwrap() == new);
    }

    /// Bytes behind an image that are no journal are an error as before.
    #[test]
    fn other_bytes_behind_an_image_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let (old, _, journal) = change();
        let mut others =
            vec![vec![0; 1], vec![0; 4096], b"\x89TAMIS".to_vec()];
        // The journal of another image.
        let mut longer = old.clone();
        longer.push(0);
        others.push([&longer[old.len()..], &journal].concat());
        for other in others {
            let file = [&old[..], &other].concat();
            fs::write(&path, &file).unwrap();
            let error = crate::Blocked::open(&path).unwrap_err();
            assert!(matches!(error, Error::Length { .. }), "{error}");
        }
        // Bytes alone cannot have their journal applied.
        let file = [&old[..], &journal].concat();
        let error = crate::Blocked::from_bytes(&file[..]).unwrap_err();
        assert_eq!(error, Error::Unfinished);
    }

    /// Damage anywhere in a complete journal makes it an incomplete one, and
    /// a valid checksum over nonsense is an error.
    #[test]
    fn damaged_journals_never_panic() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let (old, _, journal) = change();
        for at in 0..journal.len() {
            let mut damaged = journal.clone();
            damaged[at] ^= 0x11;
            fs::write(&path, [&old[..], &damaged].concat()).unwrap();
            let mapped = crate::Blocked::open(&path);
            assert_eq!(crate::Blocked::read(&path), mapped, "{at}");
            if let Ok(mapped) = mapped {
                mapped.verify().unwrap();
                assert!(mapped.to_bytes() == old, "{at}");
            }
        }
        for (offset, len) in [
            (0, u64::MAX),
            (u64::MAX, 32),
            (old.len() as u64 - 31, 32),
            (1 << 40, 32),
            (0, 33),
        ] {
            let mut wrong = Journal::new(old.len() as u64);
            wrong.record(offset, &[0; 32]);
            wrong.bytes[HEAD + 8..HEAD + RECORD]
                .copy_from_slice(&len.to_le_bytes());
            wrong.seal();
            fs::write(&path, [&old[..], &wrong.bytes].concat()).unwrap();
            for result in [Mapped::open(&path), Mapped::read(&path)] {
                let error = result.unwrap_err();
                assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            }
            assert!(ExclusiveFile::open(&path, Duration::ZERO).is_err());
        }
    }
}

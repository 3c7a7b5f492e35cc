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
/// The last step of an update.
const CUT: &str = "cut off the journal";
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
    /// stops. [`Error::Journal`] has the step that failed, and whether the
    /// file has the changes.
    ///
    /// The caller has excluded all others from the file, which holds the
    /// image and nothing else.
    pub(crate) fn commit(mut self, file: &impl Storage) -> Result<()> {
        if self.bytes.len() == HEAD {
            return Ok(());
        }
        self.seal();
        let records = Records::parse(&self.bytes, self.image_bytes)?;
        if let Err(failed) = self.append(file) {
            // Synced, so that the journal does not come back. If this fails
            // as well, readers may find it complete or incomplete.
            let cut =
                file.set_len(self.image_bytes).and_then(|()| file.sync_data());
            return Err(failed.with_outcome(cut.is_ok().then_some(false)));
        }
        // The change has happened: a reader finds it in the journal. After
        // an error, such as a bad sector, it stays there for the next writer.
        records
            .apply(file, self.image_bytes)
            .map_err(|failed| failed.with_outcome(Some(true)))
    }

    /// Writes the journal to the end of the file. The head reaches the disk
    /// first: it distinguishes an incomplete journal from damage.
    fn append(&self, file: &impl Storage) -> StepResult {
        let (head, rest) = self.bytes.split_at(HEAD);
        let write = FailedStep::at("write the journal");
        let sync = FailedStep::at("sync the journal");
        file.write_at(self.image_bytes, head).map_err(write)?;
        file.sync_data().map_err(sync)?;
        file.write_at(self.image_bytes + HEAD as u64, rest).map_err(write)?;
        file.sync_data().map_err(sync)
    }
}

/// The operations of a file that change it.
pub(crate) trait Storage {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn sync_data(&self) -> io::Result<()>;
    fn set_len(&self, len: u64) -> io::Result<()>;
}

impl Storage for File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// A step of an update in place, and its error.
struct FailedStep {
    step: &'static str,
    error: io::Error,
}

type StepResult = core::result::Result<(), FailedStep>;

impl FailedStep {
    fn at(step: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |error| Self { step, error }
    }

    /// The error of an update that the file has, has not, or may have.
    fn with_outcome(self, is_made: Option<bool>) -> Error {
        let Self { step, error } = self;
        Error::Journal { step, is_made, error }
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
    fn apply(self, file: &impl Storage, image_bytes: u64) -> StepResult {
        for (offset, bytes) in self.iter() {
            file.write_at(offset, bytes)
                .map_err(FailedStep::at("write the changed blocks"))?;
        }
        file.sync_data().map_err(FailedStep::at("sync the changed blocks"))?;
        // Not synced: a journal that comes back is applied again, with the
        // same result.
        file.set_len(image_bytes).map_err(FailedStep::at(CUT))
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
        Self::find_within(file).map_err(|error| match error {
            Error::Io(error) => FailedStep { step: "read the journal", error }
                .with_outcome(Some(false)),
            error => error,
        })
    }

    fn find_within(file: &File) -> Result<Option<Self>> {
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
    let settled = match pending.records()? {
        Some(records) => records.apply(file, pending.image_bytes),
        None => file.set_len(pending.image_bytes).map_err(FailedStep::at(CUT)),
    };
    // The journal is still there: the content is the same.
    settled.map_err(|failed| failed.with_outcome(Some(false)))
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
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

    /// A file whose operations fail from the `good`th on.
    struct FailingFile<'a> {
        file: &'a File,
        good: Cell<u32>,
        /// Whether one operation fails, and those after it succeed.
        once: bool,
    }

    impl FailingFile<'_> {
        fn fails(&self) -> bool {
            let good = self.good.get();
            self.good.set(match self.once {
                true => good.wrapping_sub(1),
                false => good.saturating_sub(1),
            });
            good == 0
        }

        fn check(&self) -> io::Result<()> {
            match self.fails() {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        }
    }

    impl Storage for FailingFile<'_> {
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            let failed = self.check();
            let written = if failed.is_ok() { 1 } else { 2 };
            self.file.write_at(offset, &bytes[..bytes.len() / written])?;
            failed
        }

        fn sync_data(&self) -> io::Result<()> {
            self.check()
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.check()?;
            self.file.set_len(len)
        }
    }

    /// Every operation of an update fails, alone or with all after it. The
    /// error has the step, and whether the file has the change.
    #[test]
    fn errors_of_the_disk_are_returned_with_the_step_and_the_outcome() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let (old, new, journal) = change();
        let records = Records::parse(&journal, old.len() as u64).unwrap();
        let writes = records.iter().count();
        let mut steps = Vec::new();
        for once in [true, false] {
            for good in 0.. {
                fs::write(&path, &old).unwrap();
                let file = ExclusiveFile::open(&path, Duration::ZERO).unwrap();
                let mut update = Journal::new(old.len() as u64);
                for (offset, bytes) in records.iter() {
                    update.record(offset, bytes);
                }
                let good = Cell::new(good);
                let result =
                    update.commit(&FailingFile { file: &file.0, good, once });
                drop(file);
                let read = Mapped::open(&path).unwrap().to_vec();
                assert!(read == old || read == new);
                drop(ExclusiveFile::open(&path, Duration::ZERO).unwrap());
                assert!(fs::read(&path).unwrap() == read, "the next writer");
                match result {
                    Err(Error::Journal { step, is_made, error }) => {
                        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                        if let Some(is_made) = is_made {
                            assert_eq!(read == new, is_made, "{step}");
                        }
                        steps.push((step, is_made));
                    }
                    Err(error) => panic!("{error}"),
                    Ok(()) => {
                        assert!(read == new);
                        break;
                    }
                }
            }
        }
        let [write, sync] = ["write the journal", "sync the journal"];
        let append = [write, sync, write, sync];
        let mut made = vec![("write the changed blocks", Some(true)); writes];
        made.push(("sync the changed blocks", Some(true)));
        made.push((CUT, Some(true)));
        let mut expected = Vec::new();
        for outcome in [Some(false), None] {
            expected.extend(append.map(|step| (step, outcome)));
            expected.extend_from_slice(&made);
        }
        assert_eq!(steps, expected);
    }

    /// A failure to finish an interrupted update leaves its journal.
    #[test]
    fn a_journal_that_cannot_be_applied_is_an_error_of_the_next_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let (old, new, journal) = change();
        fs::write(&path, [&old[..], &journal].concat()).unwrap();
        // Without the right to write.
        let error = settle(&File::open(&path).unwrap()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("cannot write the changed"), "{message}");
        assert!(message.ends_with("nothing was changed"), "{message}");
        assert!(Mapped::open(&path).unwrap()[..] == new);
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

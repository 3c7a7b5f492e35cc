//! A multilevel table whose buckets are in a file.

mod bucket_file;

pub use bucket_file::IoCounts;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use std::path::Path;

use super::MultilevelBuilder;
use super::directory::Directory;
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::placement::{Proposals, Scheme};
use crate::summary::{Levels, Summary, SummaryBuilder, TableShape};
use bucket_file::{BucketFile, Layout};

/// A [`Multilevel`](super::Multilevel) table whose buckets are in a file: the
/// picture of Kirsch and Mitzenmacher, with a slow memory for the items and a
/// fast one for the summary and one occupancy bit per bucket.
///
/// Keys and values have fixed numbers of bytes. Every bucket is read by one
/// positional read (`pread`) and every change of a record is one positional
/// write (`pwrite`); [`io`](Self::io) counts them. After an
/// [audit](Self::audit) the lookup of a present key makes exactly one read,
/// and that of an absent key one for the summary's share of false positives.
/// An insertion reads the buckets that the search for the key reads, none to
/// find a bucket with room, and one to find the free record of a bucket with
/// several.
///
/// | | |
/// |---|---|
/// | file | 4 KiB, and for each entry the bytes of key and value and one more |
/// | memory | the summary, one bit per bucket, the exceptions |
/// | opening | reads the whole file in order and fills the summary |
///
/// One table at a time has a file open; another waits for nothing and gets an
/// error. **Not guaranteed**: anything about the records written last if the
/// machine stops before [`sync`](Self::sync) returns; room under churn, as
/// removals free their slots at once
/// ([`RemovalRule::Immediate`](super::RemovalRule::Immediate)); growth. The file is
/// not the format of the filters and may change between releases. An insertion
/// and a lookup read at most one bucket per level, also if all keys collide;
/// such keys fill the table early. `tamis-store`
/// is a store for records of any length that survives crashes.
///
/// ```
/// use tamis::summary::FilterStack;
/// use tamis::table::{Multilevel, OnDisk};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("table");
///
/// let builder = Multilevel::builder().items(1000);
/// let summary = FilterStack::builder();
/// let mut table = OnDisk::create(&path, (8, 4), &builder, &summary)?;
/// for i in 0..1000u32 {
///     let key = u64::from(i).to_le_bytes();
///     assert!(table.insert(&key, &i.to_le_bytes())?);
/// }
/// table.audit()?;
/// let before = table.io().reads;
/// for i in 0..1000u64 {
///     assert_eq!(table.get(&i.to_le_bytes())?.unwrap()[0], i as u8);
/// }
/// assert_eq!(table.io().reads - before, 1000);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct OnDisk<S> {
    file: BucketFile,
    directory: Directory<S>,
    /// Bit i: bucket i has no free record.
    full: Vec<u64>,
    proposals: Proposals,
    shape: TableShape,
    hasher: KeyHasher,
    len: u64,
}

impl<S: Summary> fmt::Debug for OnDisk<S> {
    /// Omits the records, which are in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDisk")
            .field("len", &self.len)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl<S: Summary> OnDisk<S> {
    /// Creates a file with an empty table for records of `(key, value)` bytes.
    /// Levels and hasher are those of `builder`, whose stash and rule of
    /// removal have no effect. The file stores the hasher; with the key of the
    /// [default](MultilevelBuilder::hasher) it is readable by its owner only.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file exists or cannot be made; those of
    /// [`MultilevelBuilder::shape`] and of the summary;
    /// [`Error::InvalidArgument`] for records of no key bytes or of more than
    /// 64 KiB.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let builder = Multilevel::builder().levels(&[20, 10]);
    /// let summary = Interpolation::builder();
    /// assert!(OnDisk::create(&path, (8, 0), &builder, &summary).is_ok());
    /// assert!(OnDisk::create(&path, (8, 0), &builder, &summary).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn create<B: SummaryBuilder<Summary = S>>(
        path: impl AsRef<Path>,
        (key_bytes, value_bytes): (usize, usize),
        builder: &MultilevelBuilder,
        summary: &B,
    ) -> Result<Self> {
        let (shape, hasher) = (builder.shape()?, builder.hasher_of_keys());
        let layout = Layout::new(key_bytes, value_bytes, &shape)?;
        let summary = summary.build(&shape)?;
        let file = BucketFile::create(path.as_ref(), layout, &shape, &hasher)?;
        Self::new(file, shape, hasher, summary)
    }

    /// Opens a table and fills a summary from its records.
    ///
    /// # Errors
    ///
    /// [`Error::NotTamis`], [`Error::Corrupt`], [`Error::Length`] or
    /// [`Error::Checksum`] for another file, [`Error::Busy`] if another table
    /// has it open, [`Error::Inconsistent`] if a record has no valid state.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.insert(b"ab", b"c")?;
    /// drop(table);
    /// let table = OnDisk::open(&path, &summary)?;
    /// assert_eq!(table.get(b"ab")?, Some(b"c".to_vec()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn open<B: SummaryBuilder<Summary = S>>(
        path: impl AsRef<Path>,
        summary: &B,
    ) -> Result<Self> {
        let (file, shape, hasher) = BucketFile::open(path.as_ref())?;
        let summary = summary.build(&shape)?;
        let mut table = Self::new(file, shape, hasher, summary)?;
        table.read_all()?;
        Ok(table)
    }

    fn new(
        file: BucketFile,
        shape: TableShape,
        hasher: KeyHasher,
        summary: S,
    ) -> Result<Self> {
        let buckets: u64 = shape.levels().iter().sum();
        let words = buckets.div_ceil(64);
        let no_memory = || Error::Allocation { bytes: 8 * words };
        let count = usize::try_from(words).map_err(|_| no_memory())?;
        let mut full = Vec::new();
        full.try_reserve_exact(count).map_err(|_| no_memory())?;
        full.resize(count, 0);
        Ok(Self {
            file,
            directory: Directory::new(summary),
            full,
            proposals: Proposals::new(Scheme::Multilevel, shape.levels()),
            shape,
            hasher,
            len: 0,
        })
    }

    /// Fills summary, occupancy bits and length from the file.
    fn read_all(&mut self) -> Result<()> {
        let Self { file, directory, full, hasher, len, .. } = self;
        directory.clear();
        full.fill(0);
        *len = 0;
        let mut placed = Vec::new();
        let levels: Vec<_> = self.proposals.ranges().collect();
        file.scan(|bucket, records| {
            let mut free = false;
            for record in records {
                match record.key {
                    Some(key) => {
                        *len += 1;
                        let level = levels
                            .iter()
                            .rposition(|range| range.first <= bucket);
                        let level = level.unwrap_or(0) as u32;
                        placed.push((hasher.hash(key), level));
                    }
                    None => free = true,
                }
            }
            if !free {
                full[(bucket / 64) as usize] |= 1 << (bucket % 64);
            }
        })?;
        for &(hash, level) in &placed {
            directory.summary.insert(hash, level);
        }
        self.record_misnamed(&placed);
        Ok(())
    }

    /// Records the true level of every key that the summary misnames.
    fn record_misnamed(&mut self, placed: &[(u64, u32)]) -> u64 {
        let directory = &mut self.directory;
        directory.clear_exceptions();
        let mut misnamed: Vec<(u64, u32)> = placed
            .iter()
            .copied()
            .filter(|&(hash, level)| directory.is_misnamed(hash, level))
            .collect();
        let count = misnamed.len() as u64;
        if count > 0 {
            // Keys with equal hashes, named rightly or not.
            misnamed.sort_unstable();
            let is_here = |hash: u64| {
                let at = misnamed.partition_point(|&(other, _)| other < hash);
                misnamed.get(at).is_some_and(|&(other, _)| other == hash)
            };
            let mut all: Vec<(u64, u32)> = placed
                .iter()
                .copied()
                .filter(|&(hash, _)| is_here(hash))
                .collect();
            all.sort_unstable();
            for same in all.chunk_by(|a, b| a.0 == b.0) {
                let levels = same
                    .iter()
                    .fold(Levels::NONE, |set, &(_, level)| set.with(level));
                directory.record(same[0].0, levels);
            }
        }
        directory.audited = true;
        count
    }

    /// Reads the file in order and records the true level of every key that
    /// the summary misnames; returns their number. Stale keys leave the
    /// summary. See [`Multilevel::audit`](super::Multilevel::audit).
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.insert(b"ab", b"c")?;
    /// assert_eq!(table.audit()?, 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn audit(&mut self) -> Result<u64> {
        self.read_all()?;
        Ok(self.directory.exceptions() as u64)
    }

    /// The number of keys.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.insert(b"ab", b"c")?;
    /// assert_eq!(table.len(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the table has no keys.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// assert!(table.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The design items, the levels and the bucket size.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// assert_eq!(table.shape().items(), 30);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn shape(&self) -> &TableShape {
        &self.shape
    }

    /// The summary, which is in memory.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, Summary};
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// assert!(table.summary().bits() > 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn summary(&self) -> &S {
        &self.directory.summary
    }

    /// Reads and writes of the file so far.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.insert(b"ab", b"c")?;
    /// let io = table.io();
    /// // The occupancy bits find the free bucket, of one record.
    /// assert_eq!((io.reads, io.writes, io.written), (0, 1, 4));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn io(&self) -> IoCounts {
        self.file.counts()
    }

    /// Waits until all records are on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the operating system reports a failure; records may be
    /// lost then.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.sync()?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn bucket(&self, hash: u64, level: u32) -> u64 {
        self.proposals.block(hash, level)
    }

    /// Reads the key's buckets in order. Returns the level, the bucket and the
    /// index of its record there; `buffer` has the bucket then.
    fn search(
        &self,
        key: &[u8],
        hash: u64,
        buffer: &mut [u8],
    ) -> Result<Option<(u32, u64, usize)>> {
        for level in self.directory.route(hash) {
            let bucket = self.bucket(hash, level);
            self.file.read(bucket, buffer)?;
            let mut records = self.file.layout.records(buffer);
            if let Some(at) = records.position(|r| r.key == Some(key)) {
                return Ok(Some((level, bucket, at)));
            }
        }
        Ok(None)
    }

    fn hash(&self, key: &[u8]) -> Result<u64> {
        if key.len() != self.file.layout.key_bytes {
            return Err(Error::InvalidArgument {
                what: "key",
                why: "expected as many bytes as the table was created for",
            });
        }
        Ok(self.hasher.hash(key))
    }

    fn buffer(&self) -> Vec<u8> {
        vec![0; self.file.layout.bucket_bytes()]
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a key of another length, [`Error::Io`]
    /// if the file cannot be read.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.insert(b"ab", b"c")?;
    /// assert_eq!(table.get(b"ab")?, Some(b"c".to_vec()));
    /// assert_eq!(table.get(b"zz")?, None);
    /// assert!(table.get(b"abc").is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let hash = self.hash(key)?;
        let mut buffer = self.buffer();
        let found = self.search(key, hash, &mut buffer)?;
        Ok(found.and_then(|(_, _, at)| {
            let record = self.file.layout.records(&buffer).nth(at);
            record.map(|record| record.value.to_vec())
        }))
    }

    /// Inserts a key and its value into the first level with room; returns
    /// whether the key is new. A present key gets the new value.
    ///
    /// # Errors
    ///
    /// [`Error::TableFull`] if no level has room; nothing has changed then.
    /// [`Error::InvalidArgument`] for a key or value of another length,
    /// [`Error::Io`] if the file cannot be read or written.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// assert!(table.insert(b"ab", b"c")?);
    /// assert!(!table.insert(b"ab", b"d")?);
    /// assert_eq!(table.get(b"ab")?, Some(b"d".to_vec()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let hash = self.hash(key)?;
        if value.len() != self.file.layout.value_bytes {
            return Err(Error::InvalidArgument {
                what: "value",
                why: "expected as many bytes as the table was created for",
            });
        }
        let mut buffer = self.buffer();
        if let Some((_, bucket, at)) = self.search(key, hash, &mut buffer)? {
            self.file.write_record(bucket, at, key, value)?;
            return Ok(false);
        }
        let has_room = |bucket: u64| {
            self.full[(bucket / 64) as usize] >> (bucket % 64) & 1 == 0
        };
        let level = (0..self.proposals.choices())
            .find(|&level| has_room(self.bucket(hash, level)))
            .ok_or(Error::TableFull)?;
        let bucket = self.bucket(hash, level);
        let (mut at, mut free) = (0, 1);
        if self.file.layout.records > 1 {
            self.file.read(bucket, &mut buffer)?;
            let records = self.file.layout.records(&buffer);
            let mut empty =
                records.enumerate().filter(|(_, r)| r.key.is_none());
            // The bit promises one; a changed file may have none.
            at = empty.next().ok_or(Error::TableFull)?.0;
            free = 1 + empty.count();
        }
        self.file.write_record(bucket, at, key, value)?;
        if free == 1 {
            self.full[(bucket / 64) as usize] |= 1 << (bucket % 64);
        }
        self.len += 1;
        if self.directory.insert(hash, level) {
            self.record_exception(hash)?;
        }
        Ok(true)
    }

    /// Removes a key; returns whether it was present.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get), and [`Error::Io`] if the file cannot be
    /// written.
    ///
    /// ```
    /// use tamis::summary::Interpolation;
    /// use tamis::table::{Multilevel, OnDisk};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("table");
    /// let (builder, summary) =
    ///     (Multilevel::builder().levels(&[20, 10]), Interpolation::builder());
    /// let mut table = OnDisk::create(&path, (2, 1), &builder, &summary)?;
    /// table.insert(b"ab", b"c")?;
    /// assert!(table.remove(b"ab")? && !table.remove(b"ab")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let hash = self.hash(key)?;
        let mut buffer = self.buffer();
        let found = self.search(key, hash, &mut buffer)?;
        let Some((level, bucket, at)) = found else { return Ok(false) };
        self.file.free_record(bucket, at)?;
        self.full[(bucket / 64) as usize] &= !(1 << (bucket % 64));
        self.len -= 1;
        self.directory.summary.remove(hash, level);
        if self.directory.is_exception(hash) {
            self.record_exception(hash)?;
        }
        if self.directory.summary.needs_rebuild() {
            self.read_all()?;
        }
        Ok(true)
    }

    /// Records the levels of the keys with this hash, read from the file.
    fn record_exception(&mut self, hash: u64) -> Result<()> {
        let mut levels = Levels::NONE;
        let mut buffer = self.buffer();
        for level in 0..self.proposals.choices() {
            self.file.read(self.bucket(hash, level), &mut buffer)?;
            let mut keys =
                self.file.layout.records(&buffer).filter_map(|r| r.key);
            if keys.any(|key| self.hasher.hash(key) == hash) {
                levels = levels.with(level);
            }
        }
        self.directory.record(hash, levels);
        Ok(())
    }
}

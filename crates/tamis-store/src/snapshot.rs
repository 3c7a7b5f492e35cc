//! Consistent views of a store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::Shared;
use crate::delta::Delta;
use crate::error::Result;
use crate::merge::{Merged, Step};
use crate::page::Place;
use crate::segment::SegmentReader;
use crate::view::View;

/// The snapshots that are alive.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// Sequence numbers, and the snapshots that read up to each.
    live: Mutex<BTreeMap<u64, usize>>,
    /// The largest of them, 0 without snapshots.
    newest: AtomicU64,
}

impl Snapshots {
    /// The largest sequence number that a snapshot reads.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Adds or removes a snapshot.
    fn change(&self, limit: u64, change: impl FnOnce(usize) -> usize) {
        let mut live =
            self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let count = change(live.get(&limit).copied().unwrap_or(0));
        match count {
            0 => live.remove(&limit),
            _ => live.insert(limit, count),
        };
        let newest = live.keys().next_back().copied().unwrap_or(0);
        self.newest.store(newest, Ordering::Release);
    }
}

/// The state of a store at a moment. Writes that follow do not change it.
///
/// A snapshot holds the memory of writes that later ones replace and the
/// space of segments that merging replaces, until it is dropped.
///
/// ```
/// use tamis_store::{Options, Store};
///
/// let dir = tempfile::tempdir()?;
/// let store = Store::create(dir.path(), &Options::new())?;
/// store.put("apple", "red")?;
/// let snapshot = store.snapshot()?;
/// store.put("apple", "green")?;
/// assert_eq!(snapshot.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Snapshot {
    shared: Arc<Shared>,
    view: Arc<View>,
    limit: u64,
}

impl Snapshot {
    /// A snapshot of all writes up to `limit`, all of which `view` has. The
    /// caller excludes writers.
    pub(crate) fn new(
        shared: Arc<Shared>,
        view: Arc<View>,
        limit: u64,
    ) -> Self {
        shared.snapshots.change(limit, |n| n + 1);
        Self { shared, view, limit }
    }

    /// The value of `key`.
    ///
    /// # Errors
    ///
    /// As [`Store::get`](crate::Store::get).
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.get("apple")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.shared.lookup(&self.view, key.as_ref(), self.limit)
    }

    /// All keys and values, in the order of a hash of the keys.
    ///
    /// ```
    /// # use tamis_store::{Options, Store};
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::create(dir.path(), &Options::new())?;
    /// store.put("apple", "red")?;
    /// for record in store.snapshot()?.iter() {
    ///     let (key, value) = record?;
    ///     assert_eq!((&key[..], &value[..]), (&b"apple"[..], &b"red"[..]));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { snapshot: self, cursor: Cursor::default() }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared.snapshots.change(self.limit, |n| n.saturating_sub(1));
    }
}

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

impl<'a> IntoIterator for &'a Snapshot {
    type Item = Result<Pair>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl IntoIterator for Snapshot {
    type Item = Result<Pair>;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        IntoIter { snapshot: self, cursor: Cursor::default() }
    }
}

/// The records of a [`Snapshot`], in the order of a hash of the keys.
///
/// After an error the iterator ends. It holds a part of a segment and a copy
/// of the buffered writes of one in memory.
#[derive(Debug)]
pub struct Iter<'a> {
    snapshot: &'a Snapshot,
    cursor: Cursor,
}

impl Iterator for Iter<'_> {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.next(self.snapshot)
    }
}

/// [`Iter`] with a snapshot of its own.
#[derive(Debug)]
pub struct IntoIter {
    snapshot: Snapshot,
    cursor: Cursor,
}

impl Iterator for IntoIter {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.next(&self.snapshot)
    }
}

/// A place in the order of a snapshot's records.
#[derive(Debug, Default)]
struct Cursor {
    /// The next slot.
    slot: usize,
    records: Option<Merged>,
    failed: bool,
}

impl Cursor {
    /// The next record; `None` at the end and after an error.
    fn next(&mut self, snapshot: &Snapshot) -> Option<Result<Pair>> {
        if self.failed {
            return None;
        }
        let record = self.advance(snapshot);
        self.failed = record.is_err();
        record.transpose()
    }

    /// The next record, `None` at the end.
    fn advance(&mut self, snapshot: &Snapshot) -> Result<Option<Pair>> {
        let Snapshot { shared, view, limit } = snapshot;
        loop {
            let Some(records) = &mut self.records else {
                let Some(slot) = view.slots().get(self.slot) else {
                    return Ok(None);
                };
                self.slot += 1;
                let mut delta = Delta::default();
                {
                    let buffer = slot.buffer();
                    if let Some((frozen, _)) = &buffer.frozen {
                        frozen.copy_to(&mut delta, *limit);
                    }
                    buffer.active.copy_to(&mut delta, *limit);
                }
                let reader = slot.segment.clone().map(|segment| {
                    SegmentReader::new(segment, Arc::clone(&shared.data))
                });
                let range = (slot.low, slot.depth);
                let delta = Arc::new(delta);
                let runs = slot.runs.as_deref();
                let runs = runs.map(|r| r.load(&*shared.data, shared.hash));
                let runs = runs.transpose()?;
                let merged =
                    Merged::new(reader, delta, runs, range, shared.hash);
                self.records = Some(merged);
                continue;
            };
            let mut found = None;
            let step = records.next(
                |_| true,
                |_, record, large| {
                    found = Some((
                        record.key.to_vec(),
                        record.value.to_vec(),
                        large.is_some(),
                    ));
                    Ok(())
                },
            )?;
            match (step, found) {
                (Step::Written, Some((key, value, false))) => {
                    return Ok(Some((key, value)));
                }
                (Step::Written, Some((key, value, true))) => {
                    let bad = || shared.bad_place();
                    let place = Place::decode(&value).ok_or_else(bad)?;
                    return Ok(Some((key, shared.read_large(place)?)));
                }
                (Step::Written, None) => {}
                _ => self.records = None,
            }
        }
    }
}

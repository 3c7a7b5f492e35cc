//! Inserting from many threads at once, without locks.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64 as Counter, Ordering};

#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

use super::BitFilter;
use super::bit_filter::{Layout, by_size};
use crate::block::bloom::BlockProbe;
use crate::format::Counts;
use crate::key::{Key, KeyHasher};
use crate::storage::{Line, Owned};

/// A Bloom kind that any number of threads insert into and ask at the same
/// time, through `&self` and without locks.
///
/// Every bit is set by one atomic OR. A key is found by every lookup that
/// happens after its insertion returned (a lookup that races with the
/// insertion may go either way); whatever the order, the bits end up the
/// same as those of a serial build.
///
/// For building from data that is already there,
/// [`insert_parallel`](BitFilter::insert_parallel) is faster: it needs no
/// atomic operation at all.
///
/// ```
/// use tamis::{Blocked, Filter, Shared};
///
/// let filter = Blocked::builder().items(2_000).fpr(0.01).build()?;
/// let shared = Shared::from(filter);
/// std::thread::scope(|scope| {
///     for thread in 0..2u64 {
///         let shared = &shared;
///         scope.spawn(move || {
///             for key in 0..1_000u64 {
///                 shared.insert(&(thread * 1_000 + key));
///             }
///         });
///     }
/// });
/// let filter = Blocked::from(shared);
/// assert!((0..2_000u64).all(|key| filter.contains(&key)));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Shared<L: Layout> {
    layout: L,
    hasher: KeyHasher,
    counts: Counts,
    /// Keys inserted since it is shared: apart from those before, because
    /// an atomic addition wraps, and a count from a file may be anything.
    added: Counter,
    lines: Box<[AtomicLine]>,
    bytes: usize,
}

/// A cache line of atomic words, laid out as the [`Line`] it came from.
#[derive(Debug)]
#[repr(C, align(64))]
struct AtomicLine([AtomicU64; 8]);

impl<L: Layout> Shared<L> {
    /// Inserts a key; `true` if it certainly was not there before.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// assert!(shared.insert("apple"));
    /// assert!(shared.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hasher.hash(key))
    }

    /// Inserts the key with this hash; `true` if it certainly was not there
    /// before.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(Shared::from(filter).insert_hash(1 << 50));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.added.fetch_add(1, Ordering::Relaxed);
        by_size!(self.layout, BYTES => {
            let mut new = false;
            for part in 0..self.layout.parts() {
                let (block, probe) = self.layout.part::<BYTES>(hash, part);
                new |= set_shared(self.block::<BYTES>(block), probe);
            }
            new
        })
    }

    /// Whether `key` may be in the set.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(!Shared::from(filter).contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hasher.hash(key))
    }

    /// Whether the key with this hash may be in the set.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(!Shared::from(filter).contains_hash(1 << 50));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_hash(&self, hash: u64) -> bool {
        by_size!(self.layout, BYTES => {
            (0..self.layout.parts()).all(|part| {
                let (block, probe) = self.layout.part::<BYTES>(hash, part);
                covered_shared(self.block::<BYTES>(block), probe)
            })
        })
    }

    /// Keys inserted so far.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert("apple");
    /// assert_eq!(shared.items(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn items(&self) -> u64 {
        let added = self.added.load(Ordering::Relaxed);
        self.counts.items.saturating_add(added)
    }

    /// The words of a block: all of a line, or half of one.
    #[inline(always)]
    fn block<const BYTES: usize>(&self, block: u64) -> &[AtomicU64] {
        let words = BYTES / 8;
        let per_line = 8 / words;
        let line = &self.lines[block as usize / per_line];
        &line.0[block as usize % per_line * words..][..words]
    }
}

/// The mask of one bit in the native word that holds it: the block is
/// little-endian bytes on every machine.
#[inline(always)]
fn mask(bit: u32) -> u64 {
    (1u64 << (bit % 64)).to_le()
}

/// Sets every bit of a probe; whether this call set one of them.
///
/// Release on the write and Acquire on the read below: whoever sees the bits
/// of a key also sees what the inserting thread did before. Relaxed would
/// still lose no bit, but would let "the filter says yes" overtake the data
/// the filter speaks of.
pub(crate) fn set_shared(words: &[AtomicU64], probe: impl BlockProbe) -> bool {
    let mut new = false;
    probe.for_each_bit(|bit| {
        let word = &words[bit as usize / 64];
        let before = word.fetch_or(mask(bit), Ordering::Release);
        new |= before & mask(bit) == 0;
    });
    new
}

pub(crate) fn covered_shared(
    words: &[AtomicU64],
    probe: impl BlockProbe,
) -> bool {
    let mut all = true;
    probe.for_each_bit(|bit| {
        let word = words[bit as usize / 64].load(Ordering::Acquire);
        all &= word & mask(bit) != 0;
    });
    all
}

impl<L: Layout> From<BitFilter<L>> for Shared<L> {
    fn from(filter: BitFilter<L>) -> Self {
        let BitFilter { layout, hasher, counts, data, .. } = filter;
        let (lines, bytes) = data.into_parts();
        let lines = cast::to_atomic(lines);
        let added = Counter::new(0);
        Self { layout, hasher, counts, added, lines, bytes }
    }
}

impl<L: Layout> From<Shared<L>> for BitFilter<L> {
    fn from(shared: Shared<L>) -> Self {
        let items = shared.items();
        let Shared { layout, hasher, counts, lines, bytes, .. } = shared;
        let counts = Counts { items, ..counts };
        let data = Owned::from_parts(cast::to_plain(lines), bytes);
        Self::with_data(layout, hasher, counts, data)
    }
}

/// Between plain and atomic lines without copying: a filter may fill most
/// of the machine's memory, so a second copy is not to be had.
#[cfg(not(loom))]
#[expect(unsafe_code, reason = "reinterprets memory owned exclusively")]
mod cast {
    use super::{AtomicLine, Box, Line};

    const _: () = {
        assert!(size_of::<Line>() == size_of::<AtomicLine>());
        assert!(align_of::<Line>() == align_of::<AtomicLine>());
    };

    pub(super) fn to_atomic(lines: Box<[Line]>) -> Box<[AtomicLine]> {
        let raw = Box::into_raw(lines) as *mut [AtomicLine];
        // SAFETY: `raw` comes from a box, so it is unique and valid. Both
        // types have the same size and alignment (asserted above), hence
        // the same allocation layout, and hold no padding. `AtomicU64` "has
        // the same size and bit validity as the underlying integer type"
        // (std), for which every bit pattern is valid.
        unsafe { Box::from_raw(raw) }
    }

    pub(super) fn to_plain(lines: Box<[AtomicLine]>) -> Box<[Line]> {
        let raw = Box::into_raw(lines) as *mut [Line];
        // SAFETY: as above in the other direction; every bit pattern is
        // valid for the bytes of a `Line`.
        unsafe { Box::from_raw(raw) }
    }
}

/// loom's atomics are not laid out as words: under loom only the functions
/// on words are tested, and the conversion is never called.
#[cfg(loom)]
mod cast {
    use super::{AtomicLine, Box, Line};

    pub(super) fn to_atomic(lines: Box<[Line]>) -> Box<[AtomicLine]> {
        lines.iter().map(|_| unreachable!("not under loom")).collect()
    }

    pub(super) fn to_plain(lines: Box<[AtomicLine]>) -> Box<[Line]> {
        lines.iter().map(|_| unreachable!("not under loom")).collect()
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::block::bloom::{Count, Probes};
    use loom::sync::Arc;
    use loom::thread;

    /// In every interleaving of two inserting threads and one asking: both
    /// keys are there at the end, and the asking thread never misses a key
    /// whose insertion it knows to be over.
    #[test]
    fn no_insertion_is_lost() {
        loom::model(|| {
            let words: Arc<[AtomicU64; 4]> =
                Arc::new(core::array::from_fn(|_| AtomicU64::new(0)));
            let keys =
                [3, 9].map(|hash| Probes::new(hash, Count::new(2), 256));
            let other = words.clone();
            let inserting = thread::spawn(move || {
                set_shared(&other[..], keys[0]);
            });
            set_shared(&words[..], keys[1]);
            assert!(covered_shared(&words[..], keys[1]));
            inserting.join().unwrap();
            assert!(covered_shared(&words[..], keys[0]));
            assert!(covered_shared(&words[..], keys[1]));
        });
    }
}

//! Concurrent insertion through `&self`.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64 as Counter, Ordering};

#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

use super::bit_filter::{BitFilter, Layout, by_size, must_match_layout};
use super::envelope::Envelope;
use super::{Filter, Stats, assert_same_length, sealed};
use crate::block::bloom::BlockProbe;
use crate::error::Result;
use crate::key::{Key, KeyHasher};
use crate::memory::{Line, Owned};

/// Filters that can be [`Shared`]: the Bloom kinds and `TinySet`. Sealed.
///
/// ```
/// use tamis::{Shareable, Shared};
/// fn seen<F: Shareable>(urls: &Shared<F>, url: &str) -> bool {
///     !urls.insert(url)
/// }
/// ```
pub trait Shareable: Filter + Sized + sealed::Sealed {
    /// The filter with atomic or locked blocks.
    #[doc(hidden)]
    type State: SharedState;

    #[doc(hidden)]
    fn into_shared(self) -> Self::State;

    #[doc(hidden)]
    fn from_shared(state: Self::State) -> Self;

    #[doc(hidden)]
    fn snapshot(state: &Self::State) -> Result<Self>;

    #[doc(hidden)]
    fn save_to(&self, path: &std::path::Path) -> Result<()>;
}

/// Operations on a filter through `&self`.
pub trait SharedState: Send + Sync + Sized {
    fn hasher(&self) -> &KeyHasher;
    fn len(&self) -> u64;
    fn capacity(&self) -> u64;
    fn insert_hash(&self, hash: u64) -> bool;
    fn contains_hash(&self, hash: u64) -> bool;
    fn merge_from(&self, other: &Self) -> Result<()>;
}

/// A filter that any number of threads insert into and look up at the same
/// time, through `&self`.
///
/// The Bloom kinds need no locks: an insertion sets every bit by one atomic
/// OR. A lookup that happens after an insertion returned finds its key; one
/// that races with the insertion may not. The bits end up the same as those
/// of a serial build, in every order.
///
/// A `TinySet` has 64 locks, each over a range of blocks, and is copied when
/// it is shared and when it is taken back. A TinySet of two levels has one
/// lock.
///
/// If strangers choose the keys, build the filter with
/// [`keyed`](crate::Builder::keyed): otherwise they can choose keys that it
/// answers "maybe" to without having been inserted.
///
/// [`insert_parallel`](crate::Blocked::insert_parallel) is faster for keys
/// that are all there already: it needs no atomic operations.
///
/// ```
/// use std::sync::Arc;
/// use tamis::{Blocked, Shared};
///
/// struct Service {
///     seen: Arc<Shared<Blocked>>,
/// }
///
/// let filter = Blocked::builder().items(2_000).fpr(0.01).build()?;
/// let service = Service { seen: Arc::new(Shared::from(filter)) };
/// std::thread::scope(|scope| {
///     for thread in 0..2u64 {
///         let seen = &service.seen;
///         scope.spawn(move || {
///             for key in 0..1_000 {
///                 seen.insert(&(thread * 1_000 + key));
///             }
///         });
///     }
/// });
/// let filter = service.seen.snapshot()?;
/// assert!((0..2_000u64).all(|key| filter.contains(&key)));
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Shared<F: Shareable>(F::State);

impl<F: Shareable> From<F> for Shared<F> {
    /// Without copying, except for a `TinySet`.
    fn from(filter: F) -> Self {
        Self(filter.into_shared())
    }
}

impl<F: Shareable> core::fmt::Debug for Shared<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (len, capacity) = (self.len(), self.capacity());
        write!(f, "Shared {{ len: {len}, capacity: {capacity} }}")
    }
}

impl<F: Shareable> Shared<F> {
    /// Inserts `key`. `true` if this call added something that was not
    /// there.
    ///
    /// Two threads that insert the same key at the same time into a Bloom
    /// kind can both get `true`: each set a part of its bits. One of them
    /// always gets `true` for a key that was certainly not there. In a
    /// `TinySet` exactly one of them does.
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
        self.insert_hash(self.hasher().hash(key))
    }

    /// [`insert`](Self::insert) by hash.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(Shared::from(filter).insert_hash(1 << 50));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.0.insert_hash(hash)
    }

    /// [`insert`](Self::insert) for every key of a batch.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert_batch(&["apple", "pear"]);
    /// assert!(shared.contains("pear"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_batch<K: Key>(&self, keys: &[K]) {
        self.insert_hash_batch(&self.hashes(keys));
    }

    /// [`insert_batch`](Self::insert_batch) by hash.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert_hash_batch(&[1 << 50]);
    /// assert_eq!(shared.len(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_hash_batch(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.0.insert_hash(hash);
        }
    }

    /// Whether `key` may be in the set: `false` is certain.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(!Shared::from(filter).contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hasher().hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(!Shared::from(filter).contains_hash(1 << 50));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    /// [`contains`](Self::contains) for every key of a batch: `found[i]` is
    /// overwritten with the answer for `keys[i]`.
    ///
    /// # Panics
    ///
    /// If `keys` and `found` differ in length.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let mut found = [true];
    /// Shared::from(filter).contains_batch(&["apple"], &mut found);
    /// assert_eq!(found, [false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_hash_batch(&self.hashes(keys), found);
    }

    /// [`contains_batch`](Self::contains_batch) by hash.
    ///
    /// # Panics
    ///
    /// If `hashes` and `found` differ in length.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let mut found = [true];
    /// Shared::from(filter).contains_hash_batch(&[1 << 50], &mut found);
    /// assert_eq!(found, [false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes.len(), found.len());
        for (found, &hash) in found.iter_mut().zip(hashes) {
            *found = self.0.contains_hash(hash);
        }
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Shared::from(filter).contains_each(&["apple"]), [false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn contains_each<K: Key>(&self, keys: &[K]) -> Vec<bool> {
        let mut found = vec![false; keys.len()];
        self.contains_batch(keys, &mut found);
        found
    }

    fn hashes<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        keys.iter().map(|key| self.hasher().hash(key)).collect()
    }

    /// The hash function of this filter's keys.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// let hash = shared.hasher().hash("apple");
    /// assert!(shared.insert_hash(hash));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn hasher(&self) -> &KeyHasher {
        self.0.hasher()
    }

    /// Keys inserted so far, repeats included.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert("apple");
    /// assert_eq!(shared.len(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether [`len`](Self::len) is 0.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(Shared::from(filter).is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys the filter was sized for.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Shared::from(filter).capacity(), 9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    /// A copy of the filter, while other threads go on inserting.
    ///
    /// It contains every key whose insertion returned before this call, and
    /// may contain parts of keys whose insertion races with it: those can
    /// only add false positives.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`](crate::Error::Allocation) if there is not
    /// enough memory for the copy.
    ///
    /// ```
    /// use tamis::{Blocked, Shared};
    /// let filter = Blocked::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert("apple");
    /// let saved = shared.snapshot()?.to_bytes();
    /// assert!(Blocked::from_bytes(&saved[..])?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<F> {
        F::snapshot(&self.0)
    }

    /// The filter, when all threads are done. The Bloom kinds do not copy.
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert("apple");
    /// assert!(shared.into_filter().contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn into_filter(self) -> F {
        F::from_shared(self.0)
    }

    /// Load and false-positive rate of a [`snapshot`](Self::snapshot).
    ///
    /// # Errors
    ///
    /// That of [`snapshot`](Self::snapshot).
    ///
    /// ```
    /// use tamis::{Bloom, Shared};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(Shared::from(filter).stats()?.expected_fpr, 0.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn stats(&self) -> Result<Stats> {
        Ok(self.snapshot()?.stats())
    }

    /// Saves a [`snapshot`](Self::snapshot) to a file atomically, replacing
    /// one that exists.
    ///
    /// # Errors
    ///
    /// That of [`snapshot`](Self::snapshot), and
    /// [`Error::Io`](crate::Error::Io).
    ///
    /// ```
    /// use tamis::{Blocked, Shared};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("seen.tamis");
    /// let filter = Blocked::builder().items(9).fpr(0.1).build()?;
    /// let shared = Shared::from(filter);
    /// shared.insert("apple");
    /// shared.save(&path)?;
    /// assert!(Blocked::open(&path)?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        self.snapshot()?.save_to(path.as_ref())
    }

    /// Adds all keys of `other`, while other threads go on inserting.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`](crate::Error::Mismatch) names the field that
    /// differs; nothing has changed.
    ///
    /// ```
    /// use tamis::{Blocked, Shared};
    /// let builder = Blocked::builder().items(9).fpr(0.1);
    /// let shared = Shared::from(builder.build()?);
    /// shared.merge_from(&Shared::from(builder.build_from(["apple"])?))?;
    /// assert!(shared.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<()> {
        self.0.merge_from(&other.0)
    }
}

/// A Bloom kind with atomic words.
pub struct AtomicBits<L: Layout> {
    layout: L,
    /// With the counts of the filter that was shared.
    envelope: Envelope<Box<[AtomicLine]>>,
    /// Keys inserted since; separate, because a count from a file may be
    /// `u64::MAX` and an atomic addition wraps.
    added: Counter,
}

/// A cache line of atomic words, laid out as the [`Line`] it came from.
#[derive(Debug)]
#[repr(C, align(64))]
struct AtomicLine([AtomicU64; 8]);

impl<L: Layout> SharedState for AtomicBits<L> {
    fn hasher(&self) -> &KeyHasher {
        &self.envelope.hasher
    }

    fn len(&self) -> u64 {
        let added = self.added.load(Ordering::Relaxed);
        self.envelope.counts.items.saturating_add(added)
    }

    fn capacity(&self) -> u64 {
        self.envelope.counts.design_items
    }

    /// Counts first: a snapshot that sees the bits then sees the count.
    fn insert_hash(&self, hash: u64) -> bool {
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

    fn contains_hash(&self, hash: u64) -> bool {
        by_size!(self.layout, BYTES => {
            (0..self.layout.parts()).all(|part| {
                let (block, probe) = self.layout.part::<BYTES>(hash, part);
                covered_shared(self.block::<BYTES>(block), probe)
            })
        })
    }

    fn merge_from(&self, other: &Self) -> Result<()> {
        must_match_layout(
            (self.hasher(), &self.layout),
            (other.hasher(), &other.layout),
        )?;
        self.added.fetch_add(other.len(), Ordering::Relaxed);
        let theirs = &other.envelope.data;
        for (to, from) in self.envelope.data.iter().zip(theirs) {
            for (to, from) in to.0.iter().zip(&from.0) {
                let word = from.load(Ordering::Acquire);
                to.fetch_or(word, Ordering::Release);
            }
        }
        Ok(())
    }
}

impl<L: Layout> AtomicBits<L> {
    /// A copy of the filter, while other threads insert.
    pub(super) fn copy(&self) -> Result<BitFilter<L>> {
        let Envelope { counts, payload, data, .. } = &self.envelope;
        let bytes = payload.len() as u64;
        let mut copy = self.envelope.resized(Some(bytes), *counts)?;
        let mut ones = 0;
        for (to, from) in copy.data.lines_mut().iter_mut().zip(data) {
            for (to, from) in to.0.chunks_exact_mut(8).zip(&from.0) {
                let word = from.load(Ordering::Acquire);
                ones |= word;
                to.copy_from_slice(&word.to_ne_bytes());
            }
        }
        // After the words: every insertion whose bits are in the copy is
        // counted. A key counted before its first bit does not count alone.
        copy.counts.items = if ones == 0 { 0 } else { self.len() };
        Ok(BitFilter::owned(self.layout, copy))
    }

    /// The words of a block: all of a line, or half of one.
    #[inline(always)]
    fn block<const BYTES: usize>(&self, block: u64) -> &[AtomicU64] {
        let words = BYTES / 8;
        let per_line = 8 / words;
        let line = &self.envelope.data[block as usize / per_line];
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
/// Release here pairs with Acquire in [`covered_shared`]: a thread that finds
/// a key also sees the writes that its inserting thread made before. Relaxed
/// would lose no bit, but would let a lookup's `true` overtake the data that
/// the key stands for.
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

impl<L: Layout> From<BitFilter<L>> for AtomicBits<L> {
    fn from(filter: BitFilter<L>) -> Self {
        let BitFilter { layout, envelope, .. } = filter;
        let to_atomic = |data: Owned| cast::to_atomic(data.into_lines());
        let envelope = envelope.map(to_atomic);
        Self { layout, envelope, added: Counter::new(0) }
    }
}

impl<L: Layout> From<AtomicBits<L>> for BitFilter<L> {
    fn from(shared: AtomicBits<L>) -> Self {
        let items = shared.len();
        let AtomicBits { layout, envelope, .. } = shared;
        let bytes = envelope.payload.len();
        let mut envelope = envelope
            .map(|lines| Owned::from_parts(cast::to_plain(lines), bytes));
        envelope.counts.items = items;
        Self::owned(layout, envelope)
    }
}

/// Conversions between plain and atomic lines without copying: a filter may
/// fill most of the machine's memory, which leaves no room for a second copy.
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

    /// In every interleaving of two inserting threads and a lookup: both
    /// keys are found at the end, and the lookup finds a key whose insertion
    /// happened before.
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

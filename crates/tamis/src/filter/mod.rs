//! The filters, and the two traits for code that is generic over them.

mod any;
mod balanced;
mod bit_filter;
mod bit_kernels;
mod blocked;
mod bloom;
mod bloom_kind;
mod builder;
mod envelope;
mod estimate;
mod header;
#[cfg(feature = "std")]
mod in_place;
mod methods;
mod recommend;
#[cfg(feature = "std")]
mod shared;
mod split;
mod stats;
mod tinyset;
#[cfg(feature = "std")]
mod update;

pub use any::AnyFilter;
pub use balanced::{Balanced, BlockState, Threshold};
pub use blocked::Blocked;
pub use bloom::Bloom;
pub use builder::{Buildable, Builder, Size};
pub use header::Header;
pub use recommend::Prefer;
#[cfg(feature = "std")]
pub use shared::{Shareable, Shared};
pub use split::Split;
use stats::Parameters;
pub use stats::{Parameter, Stats};
pub use tinyset::{LoadHistogram, Stored, TinySet, Window};
#[cfg(feature = "std")]
pub use update::FileLock;

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, Result};
use crate::format::Kind;
use crate::key::{Key, KeyHasher};

/// Keys hashed at a time in a batch: enough to amortise the call, few enough
/// for the stack.
const HASH_CHUNK: usize = 256;

/// Lookups in a filter of any type: the bound of generic code, and an
/// object-safe trait for `dyn Filter`.
///
/// Every filter has these methods itself; the trait is not needed to use
/// one. Lookups take `&self` and filters are `Sync`: any number of threads
/// look up at once, without locks.
///
/// ```
/// use tamis::{Blocked, Filter, TinySet};
///
/// let mut blocked = Blocked::builder().items(1000).fpr(0.01).build()?;
/// let mut tinyset = TinySet::builder().items(1000).fpr(0.01).build()?;
/// blocked.insert("apple");
/// tinyset.insert("pear");
///
/// let runs: [Box<dyn Filter>; 2] = [Box::new(blocked), Box::new(tinyset)];
/// let hash = runs[0].hasher().hash("pear");
/// let found: Vec<_> =
///     runs.iter().map(|run| run.contains_hash(hash)).collect();
/// assert_eq!(found, [false, true]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Filter {
    /// The kind of filter.
    ///
    /// ```
    /// use tamis::{Bloom, Filter, Kind};
    /// let filter = Bloom::builder().items(1).fpr(0.1).build()?;
    /// assert_eq!(Filter::kind(&filter), Kind::Bloom);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn kind(&self) -> Kind;

    /// The hash function of this filter's keys.
    ///
    /// ```
    /// use tamis::{Filter, KeyHasher};
    /// fn hasher(filter: &dyn Filter) -> KeyHasher {
    ///     *filter.hasher()
    /// }
    /// ```
    fn hasher(&self) -> &KeyHasher;

    /// Whether the key with this hash may be in the set: `false` is certain.
    ///
    /// `hash` must be 64 well-mixed bits: the result of
    /// [`KeyHasher::hash`], or of another hash function used for every
    /// insertion *and* every lookup. A raw counter is not a hash.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn runs_to_read(runs: &[Box<dyn Filter>], hash: u64) -> usize {
    ///     runs.iter().filter(|run| run.contains_hash(hash)).count()
    /// }
    /// ```
    fn contains_hash(&self, hash: u64) -> bool;

    /// [`contains_hash`](Self::contains_hash) for every hash of a batch:
    /// `found[i]` is overwritten with the answer for `hashes[i]`.
    ///
    /// # Panics
    ///
    /// If `hashes` and `found` differ in length.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn count(filter: &dyn Filter, hashes: &[u64; 8]) -> usize {
    ///     let mut found = [false; 8];
    ///     filter.contains_hash_batch(hashes, &mut found);
    ///     found.iter().filter(|&&found| found).count()
    /// }
    /// ```
    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]);

    /// Prefetches the block that a lookup of `hash` reads first.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn any(runs: &[&dyn Filter], hash: u64) -> bool {
    ///     runs.iter().for_each(|run| run.prefetch(hash));
    ///     runs.iter().any(|run| run.contains_hash(hash))
    /// }
    /// ```
    fn prefetch(&self, hash: u64);

    /// Keys counted in the filter, in constant time.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn total(runs: &[Box<dyn Filter>]) -> u64 {
    ///     runs.iter().map(|run| run.len()).sum()
    /// }
    /// ```
    fn len(&self) -> u64;

    /// Keys the filter was sized for.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn is_full(filter: &dyn Filter) -> bool {
    ///     filter.len() >= filter.capacity()
    /// }
    /// ```
    fn capacity(&self) -> u64;

    /// Predicted false-positive rate with [`capacity`](Self::capacity)
    /// keys.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn wasted_reads(runs: &[Box<dyn Filter>]) -> f64 {
    ///     runs.iter().map(|run| run.design_fpr()).sum()
    /// }
    /// ```
    fn design_fpr(&self) -> f64;

    /// Length of the filter as a file, in constant time.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn memory(runs: &[Box<dyn Filter>]) -> u64 {
    ///     runs.iter().map(|run| run.bytes()).sum()
    /// }
    /// ```
    fn bytes(&self) -> u64;

    /// Load, false-positive rate and reads per lookup, measured on the
    /// blocks. Reads the whole filter.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn rebuild(filter: &dyn Filter) -> bool {
    ///     filter.stats().over_design
    /// }
    /// ```
    fn stats(&self) -> Stats;

    /// Reads the whole filter and checks it: the checksums of a filter that
    /// came from bytes, and the invariants of its blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Inconsistent`].
    ///
    /// ```
    /// use tamis::{Filter, Result};
    /// fn verify_all(runs: &[Box<dyn Filter>]) -> Result<()> {
    ///     runs.iter().try_for_each(|run| run.verify())
    /// }
    /// ```
    fn verify(&self) -> Result<()>;

    /// Whether [`len`](Self::len) is 0.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn count_empty(runs: &[Box<dyn Filter>]) -> usize {
    ///     runs.iter().filter(|run| run.is_empty()).count()
    /// }
    /// ```
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [`contains_hash_batch`](Self::contains_hash_batch) with one bit per
    /// answer: bit `i % 64` of `mask[i / 64]` belongs to `hashes[i]`; bits
    /// past the last hash are 0.
    ///
    /// # Panics
    ///
    /// If `mask` has not `hashes.len().div_ceil(64)` words.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn count(filter: &dyn Filter, hashes: &[u64; 64]) -> u32 {
    ///     let mut mask = [0];
    ///     filter.contains_hash_mask(hashes, &mut mask);
    ///     mask[0].count_ones()
    /// }
    /// ```
    fn contains_hash_mask(&self, hashes: &[u64], mask: &mut [u64]) {
        assert_eq!(
            mask.len(),
            hashes.len().div_ceil(64),
            "a mask has one bit per hash, in words of 64"
        );
        let mut found = [false; 16 * 64];
        for (hashes, mask) in hashes.chunks(16 * 64).zip(mask.chunks_mut(16)) {
            let found = &mut found[..hashes.len()];
            self.contains_hash_batch(hashes, found);
            for (word, found) in mask.iter_mut().zip(found.chunks(64)) {
                *word = found
                    .iter()
                    .rev()
                    .fold(0, |word, &found| word << 1 | u64::from(found));
            }
        }
    }

    /// Whether `key` may be in the set: `false` is certain.
    ///
    /// Through a `&dyn Filter` the call is `(&filter).contains(key)`; a
    /// `Box<dyn Filter>` needs no reference.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn any(runs: &[impl Filter], key: &str) -> bool {
    ///     runs.iter().any(|run| run.contains(key))
    /// }
    /// ```
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_hash(self.hasher().hash(key))
    }

    /// [`contains`](Self::contains) for every key of a batch: `found[i]` is
    /// overwritten with the answer for `keys[i]`.
    ///
    /// # Panics
    ///
    /// If `keys` and `found` differ in length.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn both(filter: &impl Filter, keys: &[u64; 2]) -> bool {
    ///     let mut found = [false; 2];
    ///     filter.contains_batch(keys, &mut found);
    ///     found == [true, true]
    /// }
    /// ```
    fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool])
    where
        Self: Sized,
    {
        assert_same_length(keys.len(), found.len());
        let mut hashes = vec![0; keys.len()];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hasher().hash(key);
        }
        self.contains_hash_batch(&hashes, found);
    }

    /// [`contains_batch`](Self::contains_batch) into a new vector.
    ///
    /// ```
    /// use tamis::Filter;
    /// fn count(filter: &impl Filter, keys: &[u64]) -> usize {
    ///     filter.contains_each(keys).iter().filter(|&&found| found).count()
    /// }
    /// ```
    fn contains_each<K: Key>(&self, keys: &[K]) -> Vec<bool>
    where
        Self: Sized,
    {
        let mut found = vec![false; keys.len()];
        self.contains_batch(keys, &mut found);
        found
    }
}

/// Panics unless a batch has one answer per key.
#[inline]
#[track_caller]
pub(crate) fn assert_same_length(keys: usize, answers: usize) {
    assert_eq!(keys, answers, "a batch has one answer per key");
}

/// Insertions into a filter of any type, for generic code.
///
/// Every filter in [`Owned`](crate::Owned) memory has these methods itself.
/// Insertion never fails and never loses a key.
///
/// ```
/// use tamis::{Blocked, FilterMut};
///
/// fn fill(filter: &mut impl FilterMut) {
///     filter.insert_batch(&["apple", "pear"]);
/// }
///
/// let mut filter = Blocked::builder().items(2).fpr(0.01).build()?;
/// fill(&mut filter);
/// assert!(filter.contains("pear"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait FilterMut: Filter {
    /// Inserts the key with this hash. `true` if it certainly was not in
    /// the set; `false` if it was, or if it is a false positive.
    ///
    /// ```
    /// use tamis::FilterMut;
    /// fn count_new(filter: &mut dyn FilterMut, hashes: &[u64]) -> usize {
    ///     hashes.iter().filter(|&&hash| filter.insert_hash(hash)).count()
    /// }
    /// ```
    fn insert_hash(&mut self, hash: u64) -> bool;

    /// [`insert_hash`](Self::insert_hash) for every hash of a batch, with
    /// the result of inserting them one by one in this order.
    ///
    /// ```
    /// use tamis::FilterMut;
    /// fn refill(filter: &mut dyn FilterMut, hashes: &[u64]) {
    ///     filter.clear();
    ///     filter.insert_hash_batch(hashes);
    /// }
    /// ```
    fn insert_hash_batch(&mut self, hashes: &[u64]);

    /// Removes all keys; size and settings stay.
    ///
    /// ```
    /// use tamis::FilterMut;
    /// fn reset(filters: &mut [Box<dyn FilterMut>]) {
    ///     filters.iter_mut().for_each(|filter| filter.clear());
    /// }
    /// ```
    fn clear(&mut self);

    /// Inserts `key`; see [`insert_hash`](Self::insert_hash) for the
    /// result.
    ///
    /// ```
    /// use tamis::FilterMut;
    /// fn is_new(seen: &mut impl FilterMut, url: &str) -> bool {
    ///     seen.insert(url)
    /// }
    /// ```
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool
    where
        Self: Sized,
    {
        let hash = self.hasher().hash(key);
        self.insert_hash(hash)
    }

    /// [`insert`](Self::insert) for every key of a batch.
    ///
    /// ```
    /// use tamis::FilterMut;
    /// fn fill(filter: &mut impl FilterMut) {
    ///     filter.insert_batch(&["apple", "pear"]);
    /// }
    /// ```
    fn insert_batch<K: Key>(&mut self, keys: &[K])
    where
        Self: Sized,
    {
        let mut hashes = [0; HASH_CHUNK];
        for chunk in keys.chunks(HASH_CHUNK) {
            let hashes = &mut hashes[..chunk.len()];
            for (hash, key) in hashes.iter_mut().zip(chunk) {
                *hash = self.hasher().hash(key);
            }
            self.insert_hash_batch(hashes);
        }
    }
}

/// The methods of [`Filter`], each evaluated by `$with!(self, filter => ..)`.
macro_rules! forward_filter {
    ($with:ident) => {
        fn kind(&self) -> $crate::Kind {
            $with!(self, filter => $crate::Filter::kind(filter))
        }

        #[inline]
        fn hasher(&self) -> &$crate::KeyHasher {
            $with!(self, filter => $crate::Filter::hasher(filter))
        }

        #[inline]
        fn contains_hash(&self, hash: u64) -> bool {
            $with!(self, filter => $crate::Filter::contains_hash(filter, hash))
        }

        #[inline]
        fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
            $with!(self, filter => {
                $crate::Filter::contains_hash_batch(filter, hashes, found);
            });
        }

        #[inline]
        fn prefetch(&self, hash: u64) {
            $with!(self, filter => $crate::Filter::prefetch(filter, hash));
        }

        fn len(&self) -> u64 {
            $with!(self, filter => $crate::Filter::len(filter))
        }

        fn capacity(&self) -> u64 {
            $with!(self, filter => $crate::Filter::capacity(filter))
        }

        fn design_fpr(&self) -> f64 {
            $with!(self, filter => $crate::Filter::design_fpr(filter))
        }

        fn bytes(&self) -> u64 {
            $with!(self, filter => $crate::Filter::bytes(filter))
        }

        fn stats(&self) -> $crate::Stats {
            $with!(self, filter => $crate::Filter::stats(filter))
        }

        fn verify(&self) -> $crate::Result<()> {
            $with!(self, filter => $crate::Filter::verify(filter))
        }
    };
}
use forward_filter;

/// The methods of [`FilterMut`], as in `forward_filter`.
macro_rules! forward_filter_mut {
    ($with:ident) => {
        #[inline]
        fn insert_hash(&mut self, hash: u64) -> bool {
            $with!(self, filter => $crate::FilterMut::insert_hash(filter, hash))
        }

        #[inline]
        fn insert_hash_batch(&mut self, hashes: &[u64]) {
            $with!(self, filter => {
                $crate::FilterMut::insert_hash_batch(filter, hashes);
            });
        }

        fn clear(&mut self) {
            $with!(self, filter => $crate::FilterMut::clear(filter));
        }
    };
}
use forward_filter_mut;

/// Implements [`Filter`] for a pointer to a filter.
macro_rules! filter_through {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            forward_filter!(target);
        }
    )*};
}

macro_rules! target {
    ($pointer:expr, $filter:ident => $body:expr) => {{
        let $filter = &**$pointer;
        $body
    }};
}
filter_through!(&F, &mut F, Box<F>, Arc<F>);

/// Implements [`FilterMut`] for a unique pointer to a filter.
macro_rules! filter_mut_through {
    ($($pointer:ty),*) => {$(
        impl<F: FilterMut + ?Sized> FilterMut for $pointer {
            forward_filter_mut!(target_mut);
        }
    )*};
}

macro_rules! target_mut {
    ($pointer:expr, $filter:ident => $body:expr) => {{
        let $filter = &mut **$pointer;
        $body
    }};
}
filter_mut_through!(&mut F, Box<F>);

/// Inserts keys from an iterator, a chunk of hashes at a time.
fn extend<F: FilterMut, K: Key>(
    filter: &mut F,
    keys: impl IntoIterator<Item = K>,
) {
    let mut hashes = [0; HASH_CHUNK];
    let mut filled = 0;
    for key in keys {
        hashes[filled] = filter.hasher().hash(&key);
        filled += 1;
        if filled == HASH_CHUNK {
            filter.insert_hash_batch(&hashes);
            filled = 0;
        }
    }
    filter.insert_hash_batch(&hashes[..filled]);
}

/// Formats a filter on one line: its counts, not its blocks.
fn debug(
    name: &str,
    filter: &dyn Filter,
    f: &mut core::fmt::Formatter<'_>,
) -> core::fmt::Result {
    write!(
        f,
        "{name} {{ len: {}, capacity: {}, design_fpr: {:e}, bytes: {} }}",
        filter.len(),
        filter.capacity(),
        filter.design_fpr(),
        filter.bytes()
    )
}

/// A hasher and the fields of a geometry, by name.
type Identity<'a> = (&'a KeyHasher, &'a [(&'static str, u64)]);

/// Compares two structures; the error names the first field that differs.
fn must_match(ours: Identity<'_>, theirs: Identity<'_>) -> Result<()> {
    let ((hasher, fields), (other_hasher, other_fields)) = (ours, theirs);
    let (hash, other_hash) = (hasher.id(), other_hasher.id());
    if hash != other_hash {
        return Err(Error::Mismatch {
            field: "hash",
            ours: hash.to_string(),
            theirs: other_hash.to_string(),
        });
    }
    for (&(field, ours), &(_, theirs)) in fields.iter().zip(other_fields) {
        if ours != theirs {
            return Err(Error::Mismatch {
                field,
                ours: ours.to_string(),
                theirs: theirs.to_string(),
            });
        }
    }
    if hasher != other_hasher {
        // Errors end up in logs, and the seed of a keyed hash is a secret.
        return Err(Error::Mismatch {
            field: "seed",
            ours: "one".into(),
            theirs: "another".into(),
        });
    }
    Ok(())
}

/// Refuses an operation that the structure of a kind rules out.
fn unsupported(
    kind: &'static str,
    operation: &'static str,
    why: &'static str,
) -> Error {
    Error::Unsupported { kind, operation, why }
}

/// The smallest filter that `halve` reaches with an expected false-positive
/// rate of at most `fpr`.
fn folded_to<F: Filter + Clone>(
    filter: &F,
    fpr: f64,
    halve: impl Fn(&F) -> Result<F>,
) -> Result<F> {
    Size::Fpr(fpr).check()?;
    let mut folded = None;
    loop {
        match halve(folded.as_ref().unwrap_or(filter)) {
            Ok(half) if half.stats().expected_fpr <= fpr => {
                folded = Some(half);
            }
            Ok(_) | Err(Error::NotFoldable { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(folded.unwrap_or_else(|| filter.clone()))
}

/// Keeps traits of this crate for its own types.
mod sealed {
    /// Implemented by the filters of this crate.
    pub trait Sealed {}

    impl Sealed for super::AnyFilter {}
    impl Sealed for super::Balanced {}
    impl Sealed for super::Blocked {}
    impl Sealed for super::Bloom {}
    impl Sealed for super::Split {}
    impl Sealed for super::TinySet {}
}

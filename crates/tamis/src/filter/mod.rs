//! The public filters, and the traits they share.

mod any;
mod balanced;
mod bit_filter;
mod blocked;
mod bloom;
mod builder;
mod embedded;
#[cfg(feature = "std")]
mod shared;
mod split;
mod tinyset;

pub use any::AnyFilter;
pub use balanced::{Balanced, BalancedBuilder, BlockState, Threshold};
pub use bit_filter::BitFilter;
pub use blocked::Blocked;
pub use bloom::Bloom;
pub use builder::Builder;
#[cfg(feature = "std")]
pub use shared::Shared;
pub use split::Split;
pub use tinyset::{LoadHistogram, Stored, TinySet, TinySetBuilder, Window};

use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, Result};
use crate::format::Kind;
use crate::key::{Key, KeyHasher};

/// Keys hashed at a time when a batch of keys is asked for: enough to
/// amortise everything, small enough for the stack.
const HASH_CHUNK: usize = 256;

/// Answers "is this key in the set?": *no* is certain, *yes* is wrong for a
/// stated share of the keys that are not.
///
/// Lookups take `&self` and every filter is `Sync`: any number of threads
/// may ask at once, without locks.
///
/// ```
/// use tamis::{Blocked, Filter, Insert};
///
/// let mut filter = Blocked::builder().items(1000).fpr(0.01).build()?;
/// filter.insert("apple");
/// assert!(filter.contains("apple"));
///
/// // Hash once, probe many filters.
/// let hash = filter.hasher().hash("apple");
/// assert!(filter.contains_hash(hash));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Filter {
    /// How keys are hashed here.
    ///
    /// ```
    /// use tamis::{Bloom, Filter, KeyHasher};
    /// let filter = Bloom::builder().items(1).fpr(0.1).build()?;
    /// assert_eq!(*filter.hasher(), KeyHasher::default());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn hasher(&self) -> &KeyHasher;

    /// Whether the key with this hash may be in the set.
    ///
    /// `hash` must be 64 well-mixed bits: the result of
    /// [`KeyHasher::hash`], or of a hash of yours used for every insertion
    /// *and* every lookup. A raw counter is not a hash.
    ///
    /// ```
    /// use tamis::{Bloom, Filter, Insert};
    /// let mut filter = Bloom::builder().items(10).fpr(0.1).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn contains_hash(&self, hash: u64) -> bool;

    /// [`contains_hash`](Self::contains_hash) for many keys at once.
    /// `found` is overwritten with one answer a hash.
    ///
    /// In a filter larger than the cache this is several times faster than
    /// one key after another: the lines of many keys are fetched together.
    ///
    /// ```
    /// use tamis::{Filter, Insert, Split};
    /// let mut filter = Split::builder().items(10).fpr(1e-6).build()?;
    /// filter.insert_hash(1 << 60);
    /// let mut found = Vec::new();
    /// filter.contains_hash_batch(&[1 << 60, 3 << 61], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn contains_hash_batch(&self, hashes: &[u64], found: &mut Vec<bool>);

    /// What the filter holds and how well it does, from the bits it really
    /// has set. Reads the whole filter.
    ///
    /// ```
    /// use tamis::{Blocked, Filter, Insert};
    /// let mut filter = Blocked::builder().items(1000).fpr(0.01).build()?;
    /// assert_eq!(filter.stats().expected_fpr, 0.0);
    /// filter.insert_batch(&(0..1000u32).collect::<Vec<_>>());
    /// let stats = filter.stats();
    /// assert_eq!(stats.items, 1000);
    /// assert!(stats.expected_fpr > 0.005 && stats.expected_fpr < 0.015);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn stats(&self) -> Stats;

    /// The settings of this kind of filter, by name.
    ///
    /// ```
    /// use tamis::{Blocked, Filter, Parameter};
    /// let filter =
    ///     Blocked::builder().items(9).bits_per_key(10.0).build()?;
    /// assert!(
    ///     filter.parameters().contains(&("probes", Parameter::Count(6)))
    /// );
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn parameters(&self) -> Vec<(&'static str, Parameter)>;

    /// Reads everything and checks it: checksums (of a filter that came
    /// from bytes) and the structure's own invariants.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`](crate::Error::Checksum) or
    /// [`Error::Inconsistent`](crate::Error::Inconsistent).
    ///
    /// ```
    /// use tamis::{Bloom, Filter, Insert, Persist};
    /// let mut filter = Bloom::builder().items(100).fpr(0.01).build()?;
    /// filter.insert("apple");
    /// let mut bytes = filter.to_bytes();
    /// *bytes.last_mut().unwrap() ^= 1;
    /// assert!(Bloom::from_bytes(&bytes[..])?.verify().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn verify(&self) -> Result<()>;

    /// Whether `key` may be in the set.
    ///
    /// ```
    /// use tamis::{Bloom, Filter};
    /// let empty = Bloom::builder().items(10).fpr(0.1).build()?;
    /// assert!(!empty.contains(&7u64));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_hash(self.hasher().hash(key))
    }

    /// [`contains`](Self::contains) for many keys at once.
    ///
    /// ```
    /// use tamis::{Filter, Insert, Split};
    /// let mut filter = Split::builder().items(10).fpr(1e-6).build()?;
    /// filter.insert("apple");
    /// assert_eq!(filter.contains_batch(&["pear", "apple"]), [false, true]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn contains_batch<K: Key>(&self, keys: &[K]) -> Vec<bool>
    where
        Self: Sized,
    {
        let mut hashes = vec![0; keys.len()];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hasher().hash(key);
        }
        let mut found = Vec::new();
        self.contains_hash_batch(&hashes, &mut found);
        found
    }
}

/// Filters that take new keys.
///
/// Inserting never fails and never loses a key, whatever the filter already
/// holds: past the design load the false-positive rate rises, and
/// [`Stats::over_design`] says so.
///
/// ```
/// use tamis::{Blocked, Filter, Insert};
///
/// let mut filter = Blocked::builder().items(3).fpr(0.001).build()?;
/// assert!(filter.insert("apple"), "certainly new");
/// assert!(!filter.insert("apple"), "seen before, or a false positive");
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Insert: Filter {
    /// Inserts the key with this hash. `true` if it certainly was not there
    /// before; `false` if it was, or if it is a false positive.
    ///
    /// ```
    /// use tamis::{Bloom, Insert};
    /// let mut filter = Bloom::builder().items(10).fpr(0.1).build()?;
    /// assert!(filter.insert_hash(u64::MAX / 3));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn insert_hash(&mut self, hash: u64) -> bool;

    /// [`insert_hash`](Self::insert_hash) for many keys at once, with the
    /// same result as one after another in this order.
    ///
    /// ```
    /// use tamis::{Bloom, Filter, Insert};
    /// let mut filter = Bloom::builder().items(10).fpr(0.1).build()?;
    /// filter.insert_hash_batch(&[1 << 40, 1 << 50]);
    /// assert!(filter.contains_hash(1 << 50));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn insert_hash_batch(&mut self, hashes: &[u64]);

    /// Inserts a key; see [`insert_hash`](Self::insert_hash) for the
    /// result.
    ///
    /// ```
    /// use tamis::{Bloom, Filter, Insert};
    /// let mut filter = Bloom::builder().items(10).fpr(0.1).build()?;
    /// filter.insert(&[1u8, 2, 3]);
    /// assert!(filter.contains(&[1u8, 2, 3]));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool
    where
        Self: Sized,
    {
        let hash = self.hasher().hash(key);
        self.insert_hash(hash)
    }

    /// [`insert`](Self::insert) for many keys at once.
    ///
    /// ```
    /// use tamis::{Bloom, Filter, Insert};
    /// let mut filter = Bloom::builder().items(10).fpr(0.1).build()?;
    /// filter.insert_batch(&["apple", "pear"]);
    /// assert!(filter.contains("pear"));
    /// # Ok::<(), tamis::Error>(())
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

/// Filters that forget keys. No Bloom kind can.
///
/// Removing a key that was never inserted may remove the trace of another
/// one, and *that* key is then lost; `remove` reports `false` whenever it
/// can tell that the key is absent, and changes nothing then.
///
/// ```
/// use tamis::{Filter, Insert, Remove, TinySet};
///
/// let mut filter =
///     TinySet::builder().items(100).fpr(0.001).removable().build()?;
/// filter.insert("apple");
/// assert!(filter.remove("apple")?);
/// assert!(!filter.contains("apple"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Remove: Insert {
    /// Removes one occurrence of the key with this hash; `false` if it
    /// certainly was not there.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) if this filter was
    /// not built to be removed from.
    ///
    /// ```
    /// use tamis::{Remove, TinySet};
    /// let mut filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert!(filter.remove_hash(1 << 60).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn remove_hash(&mut self, hash: u64) -> Result<bool>;

    /// Removes one occurrence of `key`; `false` if it certainly was not
    /// there.
    ///
    /// # Errors
    ///
    /// That of [`remove_hash`](Self::remove_hash).
    ///
    /// ```
    /// use tamis::{Remove, TinySet};
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.001).removable().build()?;
    /// assert!(!filter.remove("never inserted")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool>
    where
        Self: Sized,
    {
        let hash = self.hasher().hash(key);
        self.remove_hash(hash)
    }
}

/// Filters that can take in another one without its keys, with the result
/// that inserting both key sets into one filter would have had.
///
/// ```
/// use tamis::{Blocked, Filter, Insert, Merge};
///
/// let builder = Blocked::builder().items(1000).fpr(0.01);
/// let (mut left, mut right) = (builder.build()?, builder.build()?);
/// left.insert("apple");
/// right.insert("pear");
/// left.merge(&right)?;
/// assert!(left.contains("apple") && left.contains("pear"));
///
/// let larger = Blocked::builder().items(2000).fpr(0.01).build()?;
/// let error = left.merge(&larger).unwrap_err().to_string();
/// assert!(error.contains("blocks differs"), "{error}");
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Merge<Other = Self> {
    /// Takes in all keys of `other`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`](crate::Error::Mismatch), naming the field that
    /// differs; nothing has been changed then.
    ///
    /// ```
    /// use tamis::{Bloom, Merge};
    /// let builder = Bloom::builder().items(10).fpr(0.1);
    /// builder.build()?.merge(&builder.build()?)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn merge(&mut self, other: &Other) -> Result<()>;
}

/// Filters that can be halved without their keys, with the result that a
/// filter of half the size would have had from the start: build large, count
/// later, fold until it fits.
///
/// ```
/// use tamis::{Filter, Fold, Insert, Split};
///
/// let mut filter = Split::builder().items(100_000).fpr(0.001).build()?;
/// filter.insert("apple");
/// let before = filter.stats().bytes;
/// let folded = filter.fold()?;
/// assert!(folded.contains("apple"));
/// assert!(folded.stats().bytes < before * 51 / 100);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Fold: Sized {
    /// The filter of half the size.
    ///
    /// # Errors
    ///
    /// [`Error::NotFoldable`](crate::Error::NotFoldable) if the number of
    /// blocks is odd.
    ///
    /// ```
    /// use tamis::{Bloom, Fold};
    /// let filter = Bloom::builder().items(1000).fpr(0.01).build()?;
    /// assert!(filter.fold().is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn fold(&self) -> Result<Self>;
}

/// Filters that can be doubled without their keys, to make room for more.
///
/// The present false-positive rate stays about what it is: the first
/// doubling of a filter that was built full costs a fifth, since its blocks
/// must now be able to say what they were cut for. But every fingerprint
/// gives up one bit, so that each doubling that is filled up again doubles
/// the rate; a filter that must grow far is better built again.
///
/// ```
/// use tamis::{Filter, Grow, Insert, TinySet};
///
/// let mut filter = TinySet::builder().items(1000).fpr(0.001).build()?;
/// filter.insert("apple");
/// let larger = filter.grow()?;
/// assert!(larger.contains("apple"));
/// assert_eq!(larger.stats().design_items, 2000);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Grow: Sized {
    /// The filter of twice the size.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) if this kind
    /// cannot grow, [`Error::Allocation`](crate::Error::Allocation) if
    /// there is not enough memory.
    ///
    /// ```
    /// use tamis::{Grow, TinySet};
    /// let filter = TinySet::builder().items(1000).fpr(0.01).build()?;
    /// assert_eq!(filter.grow()?.block_count(), 2 * filter.block_count());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    fn grow(&self) -> Result<Self>;
}

/// A hasher and the fields of a geometry, by name.
type Identity<'a> = (&'a KeyHasher, &'a [(&'static str, u64)]);

/// The first thing in which two structures differ, as an error.
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
        // The seed of a keyed hash is a secret: an error may end up in a
        // log.
        return Err(Error::Mismatch {
            field: "seed",
            ours: "one".into(),
            theirs: "another".into(),
        });
    }
    Ok(())
}

/// The value of a filter's setting.
///
/// ```
/// use tamis::Parameter;
/// assert_eq!(Parameter::Count(512).to_string(), "512");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Parameter {
    /// A whole number.
    Count(u64),
    /// Several whole numbers.
    Counts(Vec<u64>),
    /// Any number.
    Number(f64),
    /// A name.
    Word(&'static str),
}

impl core::fmt::Display for Parameter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Counts(counts) => f.debug_list().entries(counts).finish(),
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.pad(word),
        }
    }
}

/// What a filter holds and how well it does.
///
/// ```
/// use tamis::{Bloom, Filter};
/// let filter = Bloom::builder().items(1000).fpr(0.01).build()?;
/// let stats = filter.stats();
/// assert_eq!((stats.items, stats.design_items), (0, 1000));
/// assert_eq!(stats.bits_per_key, None);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The kind of filter.
    pub kind: Kind,
    /// Keys inserted, repeats included: a Bloom kind cannot tell a repeat
    /// from a false positive.
    pub items: u64,
    /// About how many *different* keys the bits set speak of.
    pub estimated_items: f64,
    /// Keys the filter was sized for.
    pub design_items: u64,
    /// Bytes of the filter with its header, in memory and as a file.
    pub bytes: u64,
    /// Bits of memory per key inserted (beta), the fixed header apart;
    /// none before the first key.
    pub bits_per_key: Option<f64>,
    /// The false-positive rate now, from the bits really set.
    pub expected_fpr: f64,
    /// The false-positive rate predicted at `design_items`.
    pub design_fpr: f64,
    /// Blocks (cache lines) read by a lookup of a member, on average.
    pub reads_hit: f64,
    /// Blocks (cache lines) read by a lookup of a non-member, on average.
    pub reads_miss: f64,
    /// Blocks so full that they answer "maybe" to every key; only a filter
    /// of fingerprints has any.
    pub saturated_blocks: u64,
    /// Whether it holds more different keys than it was sized for, so that
    /// `design_fpr` no longer holds.
    pub over_design: bool,
}

//! Key types, and the n-th key of each.
//!
//! Keys are computed from their number, so a filter of 500 million keys
//! needs no list of them. Numbers below [`ABSENT`] are keys of filters, the
//! others are absent from every filter.

use std::hash::{Hash, Hasher};

use clap::ValueEnum;

use crate::subject::Subject;

/// Number of the first key that is never inserted.
pub(crate) const ABSENT: u64 = 1 << 40;

/// Type of a key passed to a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyType {
    /// A 64-bit hash
    Hash,
    /// A 64-bit integer, hashed by the filter
    U64,
    /// A string of 20 bytes, hashed by the filter
    String,
}

impl KeyType {
    pub(crate) const ALL: [Self; 3] = [Self::Hash, Self::U64, Self::String];

    /// The heading in the documents.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Hash => "hashes",
            Self::U64 => "64-bit integers",
            Self::String => "strings of 20 bytes",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::U64 => "u64",
            Self::String => "string",
        }
    }
}

/// A key type, as a type: timed loops are compiled for each.
pub(crate) trait Keys {
    type Key: Copy;

    /// Key `number`.
    fn key(number: u64) -> Self::Key;

    fn insert<S: Subject>(subject: &mut S, key: &Self::Key);

    fn insert_batch<S: Subject>(subject: &mut S, keys: &[Self::Key]);

    fn contains<S: Subject>(subject: &S, key: &Self::Key) -> bool;

    fn contains_batch<S: Subject>(
        subject: &S,
        keys: &[Self::Key],
        found: &mut Vec<bool>,
    );
}

/// A key that the filter hashes.
pub(crate) trait Item: tamis::Key + Hash + Copy {
    /// The key as one type, for a filter of keys of one type.
    fn any(&self) -> AnyItem;

    /// The key as 64 bits, for a filter that takes 64-bit keys only.
    fn word(&self, hasher: &tamis::KeyHasher) -> u64;
}

impl Item for u64 {
    #[inline(always)]
    fn any(&self) -> AnyItem {
        AnyItem::U64(*self)
    }

    #[inline(always)]
    fn word(&self, _hasher: &tamis::KeyHasher) -> u64 {
        *self
    }
}

impl Item for Text {
    #[inline(always)]
    fn any(&self) -> AnyItem {
        AnyItem::Text(*self)
    }

    #[inline(always)]
    fn word(&self, hasher: &tamis::KeyHasher) -> u64 {
        hasher.hash(self)
    }
}

/// A key of either type.
pub(crate) enum AnyItem {
    U64(u64),
    Text(Text),
}

impl Hash for AnyItem {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::U64(key) => key.hash(state),
            Self::Text(key) => key.hash(state),
        }
    }
}

/// A string of 20 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text([u8; 20]);

impl Hash for Text {
    /// The same calls as `str` makes.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
        state.write_u8(0xff);
    }
}

impl tamis::Key for Text {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.0)
    }
}

pub(crate) struct Hashes;
pub(crate) struct Integers;
pub(crate) struct Texts;

impl Keys for Hashes {
    type Key = u64;

    fn key(number: u64) -> u64 {
        mix(number, 0)
    }

    #[inline(always)]
    fn insert<S: Subject>(subject: &mut S, key: &u64) {
        subject.insert_hash(*key);
    }

    #[inline(always)]
    fn insert_batch<S: Subject>(subject: &mut S, keys: &[u64]) {
        subject.insert_hash_batch(keys);
    }

    #[inline(always)]
    fn contains<S: Subject>(subject: &S, key: &u64) -> bool {
        subject.contains_hash(*key)
    }

    #[inline(always)]
    fn contains_batch<S: Subject>(
        subject: &S,
        keys: &[u64],
        found: &mut Vec<bool>,
    ) {
        subject.contains_hash_batch(keys, found);
    }
}

/// Operations on keys that the filter hashes.
macro_rules! hashed_by_the_filter {
    () => {
        #[inline(always)]
        fn insert<S: Subject>(subject: &mut S, key: &Self::Key) {
            subject.insert(key);
        }

        #[inline(always)]
        fn insert_batch<S: Subject>(subject: &mut S, keys: &[Self::Key]) {
            subject.insert_batch(keys);
        }

        #[inline(always)]
        fn contains<S: Subject>(subject: &S, key: &Self::Key) -> bool {
            subject.contains(key)
        }

        #[inline(always)]
        fn contains_batch<S: Subject>(
            subject: &S,
            keys: &[Self::Key],
            found: &mut Vec<bool>,
        ) {
            subject.contains_batch(keys, found);
        }
    };
}

impl Keys for Integers {
    type Key = u64;

    fn key(number: u64) -> u64 {
        mix(number, 1 << 60)
    }

    hashed_by_the_filter!();
}

impl Keys for Texts {
    type Key = Text;

    fn key(number: u64) -> Text {
        let mut text = *b"key-0123456789abcdef";
        let mixed = mix(number, 2 << 60);
        for (i, digit) in text[4..].iter_mut().enumerate() {
            let nibble = (mixed >> (4 * i)) as u8 & 15;
            *digit = if nibble < 10 { b'0' } else { b'a' - 10 } + nibble;
        }
        Text(text)
    }

    hashed_by_the_filter!();
}

/// SplitMix64, a bijection: different numbers are different keys.
pub(crate) fn mix(number: u64, stream: u64) -> u64 {
    let mut z = (number + stream).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Pseudorandom numbers, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 += 1;
        let random = mix(self.0, 3 << 60);
        ((u128::from(random) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

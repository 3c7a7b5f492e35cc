//! From a key to its place: a keyed hash whose upper bits choose the segment
//! and the page.

use tamis::KeyHasher;

/// The hash of a store's keys. Its key is random and differs per store, so
/// that chosen keys cannot gather in one segment or page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHash(KeyHasher);

impl KeyHash {
    /// The hash with `seed`, 128 secret bits.
    pub(crate) fn new(seed: u128) -> Self {
        Self(KeyHasher::siphash(seed))
    }

    /// Position of `key` in the order of the store.
    pub(crate) fn position(&self, key: &[u8]) -> u64 {
        self.0.hash(key)
    }
}

/// Hash for a segment's filter and for hash tables of one segment.
///
/// The keys of a segment share the upper bits of their positions, and a
/// filter chooses its block by the upper bits: it needs all of them mixed
/// again. SplitMix64's finaliser is a bijection.
#[inline]
pub(crate) fn filter_hash(position: u64) -> u64 {
    let mut z = position.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! From a key to 64 bits: what is hashed, with what, and how those bits are
//! stretched.
//!
//! A key is hashed **once**. Every structure works from the 64-bit result,
//! so a caller who probes many filters built with the same [`KeyHasher`]
//! hashes once and uses the `_hash` form of each operation.
//!
//! The outputs of this module are public API: filters written today must
//! answer the same tomorrow, so they are frozen by test vectors and change
//! only together with a new hash id.

use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};
use crate::named::named_enum;

/// The hash functions a structure can be built with. The id is stored in
/// the header, so a filter always knows how to hash a key.
///
/// ```
/// use tamis::HashId;
///
/// assert_eq!(HashId::Xxh3.name(), "xxh3");
/// assert_eq!("siphash".parse(), Ok(HashId::SipHash13));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashId {
    /// XXH3-64 with a 64-bit seed: fast, well distributed, **not** a
    /// defence against someone who chooses keys to collide.
    Xxh3,
    /// SipHash-1-3 with a 128-bit key: the choice when keys come from
    /// strangers. It holds as long as the key (the seed) stays secret, and
    /// the key is stored in the filter.
    SipHash13,
}

named_enum!(HashId, "hash", { Xxh3 => "xxh3", SipHash13 => "siphash" });

impl HashId {
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Xxh3 => 1,
            Self::SipHash13 => 2,
        }
    }

    pub(crate) fn from_code(code: u16) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|id| id.code() == code)
            .ok_or(Error::UnknownHash { found: code })
    }
}

/// A hash function together with its seed: all that is needed to hash a key
/// the way a structure did when it was built.
///
/// ```
/// use tamis::KeyHasher;
///
/// let hasher = KeyHasher::xxh3(7);
/// assert_eq!(hasher.hash("abc"), hasher.hash(b"abc".as_slice()));
/// assert_ne!(hasher.hash("abc"), KeyHasher::xxh3(8).hash("abc"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHasher {
    id: HashId,
    seed: u128,
}

impl KeyHasher {
    /// XXH3-64 with a 64-bit seed.
    ///
    /// ```
    /// let hasher = tamis::KeyHasher::xxh3(0);
    /// assert_eq!(hasher.hash(""), 0x2d06_8005_38d3_94c2);
    /// ```
    #[must_use]
    pub const fn xxh3(seed: u64) -> Self {
        Self { id: HashId::Xxh3, seed: seed as u128 }
    }

    /// SipHash-1-3 with a 128-bit key; the low 64 bits are the first key
    /// word of the SipHash paper.
    ///
    /// ```
    /// let hasher = tamis::KeyHasher::siphash(0x0123_4567_89ab_cdef);
    /// assert_eq!(hasher.id(), tamis::HashId::SipHash13);
    /// ```
    #[must_use]
    pub const fn siphash(key: u128) -> Self {
        Self { id: HashId::SipHash13, seed: key }
    }

    /// The hasher named by an id and a seed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the seed is wider than the function's:
    /// 64 bits for XXH3. Truncating it silently would make two different
    /// seeds mean the same filter.
    ///
    /// ```
    /// use tamis::{HashId, KeyHasher};
    ///
    /// assert!(KeyHasher::new(HashId::SipHash13, 1 << 100).is_ok());
    /// assert!(KeyHasher::new(HashId::Xxh3, 1 << 100).is_err());
    /// ```
    pub fn new(id: HashId, seed: u128) -> Result<Self> {
        if id == HashId::Xxh3 && u64::try_from(seed).is_err() {
            return Err(Error::InvalidArgument {
                what: "seed",
                why: "xxh3 takes a seed of at most 64 bits",
            });
        }
        Ok(Self { id, seed })
    }

    /// Which function this is.
    ///
    /// ```
    /// use tamis::{HashId, KeyHasher};
    /// assert_eq!(KeyHasher::default().id(), HashId::Xxh3);
    /// ```
    #[must_use]
    pub fn id(&self) -> HashId {
        self.id
    }

    /// The seed (for SipHash: the secret key).
    ///
    /// ```
    /// assert_eq!(tamis::KeyHasher::xxh3(5).seed(), 5);
    /// ```
    #[must_use]
    pub fn seed(&self) -> u128 {
        self.seed
    }

    /// Hashes a key to the 64 bits that every `_hash` operation takes.
    ///
    /// ```
    /// let hasher = tamis::KeyHasher::default();
    /// // Integers are their little-endian bytes.
    /// assert_eq!(hasher.hash(&1u16), hasher.hash(&[1u8, 0]));
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.with_bytes(|bytes| self.hash_bytes(bytes))
    }

    #[inline]
    fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        match self.id {
            HashId::Xxh3 => xxh3_64_with_seed(bytes, self.seed as u64),
            HashId::SipHash13 => {
                let (k0, k1) = (self.seed as u64, (self.seed >> 64) as u64);
                let mut state = SipHasher13::new_with_keys(k0, k1);
                state.write(bytes);
                state.finish()
            }
        }
    }
}

impl Default for KeyHasher {
    /// XXH3-64 with seed 0, so that filters built on different machines
    /// can be merged without agreeing on anything first.
    fn default() -> Self {
        Self::xxh3(0)
    }
}

impl core::fmt::Debug for KeyHasher {
    /// Keeps a SipHash key out of logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = f.debug_struct("KeyHasher");
        out.field("id", &self.id);
        match self.id {
            HashId::Xxh3 => out.field("seed", &self.seed),
            HashId::SipHash13 => out.field("seed", &"secret"),
        };
        out.finish()
    }
}

/// Anything that is bytes.
///
/// Strings are their UTF-8 bytes, integers their little-endian bytes
/// (`usize` and `isize` as 64 bits, so a filter means the same on every
/// machine). Two keys with the same bytes are the same key, whatever their
/// types.
///
/// ```
/// use tamis::{Key, KeyHasher};
///
/// struct Url { host: String, path: String }
///
/// impl Key for Url {
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         f(format!("{}{}", self.host, self.path).as_bytes())
///     }
/// }
///
/// let url = Url { host: "a.example".into(), path: "/b".into() };
/// let hasher = KeyHasher::default();
/// assert_eq!(hasher.hash(&url), hasher.hash("a.example/b"));
/// ```
pub trait Key {
    /// Calls `f` with the bytes of this key.
    ///
    /// ```
    /// use tamis::Key;
    /// assert_eq!(258u16.with_bytes(|bytes| bytes.to_vec()), [2, 1]);
    /// ```
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(f)
    }
}

macro_rules! key_as_bytes {
    ($($type:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(self.as_ref())
            }
        }
    )*};
}
key_as_bytes!([u8], str, alloc::vec::Vec<u8>, alloc::string::String);

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

macro_rules! key_as_integer {
    ($($type:ty => $wide:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&(*self as $wide).to_le_bytes())
            }
        }
    )*};
}
key_as_integer!(
    u8 => u8, u16 => u16, u32 => u32, u64 => u64, u128 => u128,
    i8 => i8, i16 => i16, i32 => i32, i64 => i64, i128 => i128,
    usize => u64, isize => i64
);

/// How many independent streams [`stretch`] offers.
///
/// | streams | used for |
/// |---|---|
/// | 0 to 31 | positions |
/// | 32 to 39 | blocks of the second and later choices |
/// | 40 to 47 | tickets: coin and class at each choice |
/// | 48 | the random choice of refused keys |
/// | 49 | the order in which a table is rebalanced |
/// | 50 | the second level of a filter of fingerprints |
/// | 63 | the second block of a split filter |
pub(crate) const STREAMS: usize = 64;

/// The step of the SplitMix64 sequence.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser: a bijection whose every output bit hangs on every
/// input bit.
#[inline(always)]
pub(crate) const fn finalise(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Multipliers of the streams: the SplitMix64 sequence started at zero,
/// made odd so that each is a bijection on 64-bit words.
const MULTIPLIERS: [u64; STREAMS] = {
    let mut table = [0; STREAMS];
    let mut state = 0u64;
    let mut i = 0;
    while i < STREAMS {
        state = state.wrapping_add(GOLDEN);
        table[i] = finalise(state) | 1;
        i += 1;
    }
    table
};

/// Derives the `stream`-th 64-bit word from a key's hash.
///
/// Blocks are chosen by the *top* bits of a hash (multiply-shift), and the
/// positions inside a block must not depend on the same bits: at 10^10 keys
/// the block index alone eats 28 of them. The full 128-bit product folded
/// onto itself makes every output bit hang on the whole hash. The cheaper
/// 64-bit product does not: its low bits are functions of the low bits of
/// the hash in *every* stream, which showed as a false-positive rate 2 %
/// above the formula at ten probes in 256 bits.
#[inline(always)]
pub(crate) fn stretch(hash: u64, stream: usize) -> u64 {
    Stream::new(stream).word(hash)
}

/// One of the streams of [`stretch`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    multiplier: u64,
}

impl Stream {
    #[inline(always)]
    pub(crate) fn new(stream: usize) -> Self {
        Self { multiplier: MULTIPLIERS[stream % STREAMS] }
    }

    /// For a loop that has no register left for the multiplier: the
    /// multiplication itself reads it from memory, where the constant would
    /// be one more instruction and register for each key.
    #[inline(always)]
    pub(crate) fn in_memory(self) -> Self {
        core::hint::black_box(self)
    }

    #[inline(always)]
    pub(crate) fn word(self, hash: u64) -> u64 {
        let product = u128::from(hash) * u128::from(self.multiplier);
        (product >> 64) as u64 ^ product as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_frozen() {
        assert_eq!(MULTIPLIERS[0], 0xe220_a839_7b1d_cdaf);
        assert_eq!(MULTIPLIERS[1], 0x6e78_9e6a_a1b9_65f5);
        let word = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(stretch(word, 0), 0xc2d7_79c9_a200_728f);
        assert_eq!(stretch(word, 63), 0xf021_be8e_74c4_26c7);
    }

    /// Computed by independent implementations (the xxhash library, and
    /// SipHash-1-3 written from its paper).
    #[test]
    fn hashes_are_frozen() {
        let long: alloc::vec::Vec<u8> =
            (0..1000u32).map(|i| (i % 251) as u8).collect();
        let xxh3 = KeyHasher::xxh3(0);
        assert_eq!(xxh3.hash(""), 0x2d06_8005_38d3_94c2);
        assert_eq!(xxh3.hash("a"), 0xe6c6_32b6_1e96_4e1f);
        assert_eq!(xxh3.hash("tamis"), 0x059d_e48c_2aa7_e0bc);
        assert_eq!(xxh3.hash("abcdefghijklmnopqrst"), 0x67cb_7b2a_fe01_0bb6);
        assert_eq!(xxh3.hash(&long[..200]), 0xf42a_8864_feaf_0703);
        assert_eq!(xxh3.hash(&long), 0x33ef_703f_b2b2_0ed1);
        assert_eq!(xxh3.hash(&42u64), 0xd5a6_f8c8_38df_27c8);

        let seeded = KeyHasher::xxh3(42);
        assert_eq!(seeded.hash(""), 0xb029_411f_f43d_84d2);
        assert_eq!(seeded.hash("tamis"), 0x3d92_91a9_6ab6_7cd6);
        assert_eq!(seeded.hash(&long[..200]), 0xc335_a2de_8a09_a90e);
        assert_eq!(seeded.hash(&long), 0x0f58_0bfa_2054_1114);
        assert_eq!(seeded.hash(&42u64), 0xbffc_1505_8f95_6b16);

        let key = u128::from_le_bytes(core::array::from_fn(|i| i as u8));
        let siphash = KeyHasher::siphash(key);
        assert_eq!(siphash.hash(""), 0xabac_0158_050f_c4dc);
        assert_eq!(siphash.hash("a"), 0x1c26_97ab_786a_6237);
        assert_eq!(siphash.hash("tamis"), 0x7be7_0630_87c4_19d8);
        assert_eq!(siphash.hash(&long[..200]), 0xb73f_e861_830e_faed);
        assert_eq!(siphash.hash(&long), 0xd77f_d922_8db4_050a);
        assert_eq!(siphash.hash(&42u64), 0x2d9b_012a_8072_94cb);
    }

    #[test]
    fn equal_bytes_are_equal_keys() {
        let hasher = KeyHasher::default();
        let expected = hasher.hash(&0x0807_0605_0403_0201_u64);
        let bytes = [1u8, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(hasher.hash(&bytes), expected);
        assert_eq!(hasher.hash(&bytes[..]), expected);
        assert_eq!(hasher.hash(&bytes.to_vec()), expected);
        assert_eq!(hasher.hash(&0x0807_0605_0403_0201_usize), expected);
        assert_eq!(hasher.hash(&-1i32), hasher.hash(&[0xffu8; 4]));
        assert_eq!(hasher.hash(&"x"), hasher.hash("x"));
    }

    #[test]
    fn multipliers_are_distinct() {
        let mut sorted = MULTIPLIERS;
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn debug_hides_the_siphash_key() {
        let shown = alloc::format!("{:?}", KeyHasher::siphash(0xfeed_beef));
        assert!(!shown.contains("4276993775"), "{shown}");
        assert!(shown.contains("secret"));
    }
}

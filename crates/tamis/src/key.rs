//! Keys and their hashes: the bytes of a key, the hash functions, and the
//! streams of further words derived from a hash.
//!
//! A key is hashed **once**. Every structure works from the 64-bit result,
//! so a caller who probes many filters built with the same [`KeyHasher`]
//! hashes once and uses the `_hash` form of each operation.
//!
//! The outputs of this module are public API: filters written today must
//! answer the same tomorrow, so they are frozen by test vectors and change
//! only together with a new hash id.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};
use crate::named::named_enum;

/// Hash functions of keys. The header of a filter stores the id.
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
    /// XXH3-64 with a 64-bit seed: fast and well distributed, but an
    /// attacker can choose keys that collide.
    Xxh3,
    /// SipHash-1-3 with a 128-bit key, for keys from untrusted sources.
    /// Collisions stay hard to find as long as the key (the seed) is secret;
    /// the filter's file contains it.
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

/// A hash function with its seed. Equal hashers give equal hashes on every
/// machine.
///
/// ```
/// use tamis::KeyHasher;
///
/// let hasher = KeyHasher::xxh3(7);
/// assert_eq!(hasher.hash("abc"), hasher.hash(b"abc".as_slice()));
/// assert_ne!(hasher.hash("abc"), KeyHasher::xxh3(8).hash("abc"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    /// word of the SipHash paper. The key is a secret:
    /// [`random`](Self::random) draws one.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// // The same secret in another process, for filters to be merged.
    /// let secret = KeyHasher::random().seed();
    /// let [here, there] = [secret; 2].map(KeyHasher::siphash);
    /// assert_eq!(here.hash("apple"), there.hash("apple"));
    /// ```
    #[must_use]
    pub const fn siphash(key: u128) -> Self {
        Self { id: HashId::SipHash13, seed: key }
    }

    /// SipHash-1-3 with a random secret key, for keys that strangers choose.
    ///
    /// The key is drawn from the standard library: 128 bits of output of a
    /// [`RandomState`](std::hash::RandomState), a SipHash-1-3 under a key that
    /// the operating system gives each thread once and that changes at every
    /// call. It is as hard to guess as that of a
    /// [`HashMap`](std::collections::HashMap). Targets without an operating
    /// system (`wasm32-unknown-unknown`) have no random numbers there: pass a
    /// key of your own to [`siphash`](Self::siphash) on them.
    ///
    /// Filters with different keys cannot be merged. Draw one hasher for all
    /// filters of a service, and keep their files private: they contain the
    /// key.
    ///
    /// ```
    /// use tamis::{HashId, KeyHasher};
    ///
    /// let hasher = KeyHasher::random();
    /// assert_eq!(hasher.id(), HashId::SipHash13);
    /// assert_ne!(hasher, KeyHasher::random());
    /// ```
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Self {
        use std::hash::{BuildHasher as _, RandomState};

        let state = RandomState::new();
        let [low, high] = [0u8, 1].map(|half| state.hash_one(half));
        Self::siphash(u128::from(high) << 64 | u128::from(low))
    }

    /// The hasher of a table if none is given. A table is not merged with
    /// another and needs no common hash; its time depends on collisions.
    #[cfg(feature = "table")]
    pub(crate) fn for_table() -> Self {
        #[cfg(feature = "std")]
        return Self::random();
        #[cfg(not(feature = "std"))]
        Self::default()
    }

    /// The hash function `id` with `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for XXH3 with a seed of more than 64 bits:
    /// truncated, two different seeds would be the same.
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

    /// The hash function.
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

    /// Hashes a value of any type that implements [`Hash`].
    ///
    /// Convenient for `#[derive(Hash)]` types in memory. The bytes that
    /// [`Hash`] produces differ between platforms and releases of Rust, and
    /// from those of [`Key`]: a filter that is written to a file needs keys
    /// that implement [`Key`].
    ///
    /// ```
    /// use tamis::Blocked;
    ///
    /// #[derive(Hash)]
    /// struct Point { x: i32, y: i32 }
    ///
    /// let mut filter = Blocked::builder().items(100).fpr(0.01).build()?;
    /// let hasher = *filter.hasher();
    /// filter.insert_hash(hasher.hash_of(&Point { x: 1, y: 2 }));
    /// assert!(filter.contains_hash(hasher.hash_of(&Point { x: 1, y: 2 })));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hash_of<T: Hash + ?Sized>(&self, value: &T) -> u64 {
        let mut collected = Collected { hasher: *self, bytes: Buffer::new() };
        value.hash(&mut collected);
        collected.finish()
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
    /// XXH3-64 with seed 0: filters built on different machines with the
    /// default can be merged.
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

/// A key: a value with bytes to hash.
///
/// | type | bytes |
/// |---|---|
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | themselves |
/// | `str`, `String`, `char` | UTF-8 |
/// | integers | little-endian; `usize` and `isize` as 64 bits |
/// | `bool` | one byte, 0 or 1 |
/// | `IpAddr`, `Ipv4Addr`, `Ipv6Addr` | the 4 or 16 octets |
/// | `OsStr`, `Path` and their owned forms | on Unix the bytes; elsewhere UTF-8, and an encoding that may change with Rust for paths that are not Unicode |
/// | tuples of 2 to 4 keys | of each field its length as a `u64`, then its bytes |
/// | `&K`, `Box<K>`, `Rc<K>`, `Arc<K>`, `Cow<K>` | those of `K` |
///
/// Two keys with the same bytes are the same key, whatever their types. The
/// lengths in a tuple keep `("a", "bc")` and `("ab", "c")` apart.
///
/// ```
/// use tamis::{Key, KeyHasher};
///
/// struct Url { host: String, path: String }
///
/// impl Key for Url {
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         (&self.host, &self.path).with_bytes(f)
///     }
/// }
///
/// let url = Url { host: "a.example".into(), path: "/b".into() };
/// let hasher = KeyHasher::default();
/// assert_eq!(hasher.hash(&url), hasher.hash(&("a.example", "/b")));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key: it does not implement `tamis::Key`",
    label = "not a key",
    note = "implement it with the bytes that distinguish two keys:\n\
            impl tamis::Key for {Self} {{\n    \
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {{\n        \
            (&self.one, &self.two).with_bytes(f)\n    \
            }}\n\
            }}",
    note = "or hash the value and use the `_hash` methods: \
            `filter.insert_hash(filter.hasher().hash_of(&value))` for a type \
            that implements `Hash`"
)]
pub trait Key {
    /// Calls `f` with the bytes of this key.
    ///
    /// ```
    /// use tamis::Key;
    /// assert_eq!(258u16.with_bytes(|bytes| bytes.to_vec()), [2, 1]);
    /// ```
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;
}

macro_rules! key_behind {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> Key for $type {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(f)
            }
        }
    )*};
}
key_behind!(
    [K: Key + ?Sized] &K,
    [K: Key + ?Sized] alloc::boxed::Box<K>,
    [K: Key + ?Sized] alloc::rc::Rc<K>,
    [K: Key + alloc::borrow::ToOwned + ?Sized] alloc::borrow::Cow<'_, K>
);
#[cfg(target_has_atomic = "ptr")]
key_behind!([K: Key + ?Sized] alloc::sync::Arc<K>);

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

impl Key for bool {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&[u8::from(*self)])
    }
}

impl Key for char {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.encode_utf8(&mut [0; 4]).as_bytes())
    }
}

impl Key for Ipv4Addr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.octets())
    }
}

impl Key for Ipv6Addr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.octets())
    }
}

impl Key for IpAddr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::V4(address) => address.with_bytes(f),
            Self::V6(address) => address.with_bytes(f),
        }
    }
}

#[cfg(feature = "std")]
macro_rules! key_as_os_str {
    ($($type:ty),*) => {$(
        impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(AsRef::<std::ffi::OsStr>::as_ref(self).as_encoded_bytes())
            }
        }
    )*};
}
#[cfg(feature = "std")]
key_as_os_str!(
    std::ffi::OsStr,
    std::ffi::OsString,
    std::path::Path,
    std::path::PathBuf
);

macro_rules! key_as_tuple {
    ($(($($field:ident $at:tt),*))*) => {$(
        impl<$($field: Key),*> Key for ($($field,)*) {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let mut buffer = Buffer::new();
                $(self.$at.with_bytes(|bytes| {
                    buffer.push(&(bytes.len() as u64).to_le_bytes());
                    buffer.push(bytes);
                });)*
                f(buffer.bytes())
            }
        }
    )*};
}
key_as_tuple!((A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3));

/// Bytes collected on the stack, on the heap when they exceed it.
struct Buffer {
    stack: [u8; Self::STACK],
    /// Bytes in `stack`; unused once `heap` is not empty.
    len: usize,
    heap: Vec<u8>,
}

impl Buffer {
    const STACK: usize = 128;

    #[inline]
    fn new() -> Self {
        Self { stack: [0; Self::STACK], len: 0, heap: Vec::new() }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.heap.is_empty() && end <= Self::STACK {
            self.stack[self.len..end].copy_from_slice(bytes);
            self.len = end;
        } else {
            self.spill(bytes);
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.heap.is_empty() {
            self.heap.extend_from_slice(&self.stack[..self.len]);
        }
        self.heap.extend_from_slice(bytes);
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self.heap.is_empty() {
            true => &self.stack[..self.len],
            false => &self.heap,
        }
    }
}

/// A [`Hasher`] that collects all bytes and hashes them at once: the
/// streaming form of XXH3 has a state of 576 bytes.
struct Collected {
    hasher: KeyHasher,
    bytes: Buffer,
}

impl Hasher for Collected {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.bytes.push(bytes);
    }

    fn finish(&self) -> u64 {
        self.hasher.hash_bytes(self.bytes.bytes())
    }
}

/// Number of independent streams of [`stretch`].
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

/// SplitMix64's finaliser: a bijection in which every output bit depends on
/// every input bit.
#[inline(always)]
pub(crate) const fn finalise(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Multipliers of the streams: the SplitMix64 sequence started at zero,
/// made odd so that each is a bijection on 64-bit words.
static MULTIPLIERS: [Stream; STREAMS] = {
    let mut table = [Stream { multiplier: 0 }; STREAMS];
    let mut state = 0u64;
    let mut i = 0;
    while i < STREAMS {
        state = state.wrapping_add(GOLDEN);
        table[i].multiplier = finalise(state) | 1;
        i += 1;
    }
    table
};

/// Derives the `stream`-th 64-bit word from a key's hash.
///
/// The *top* bits of a hash choose the block (multiply-shift), and positions
/// inside a block must not depend on the same bits: at 10^10 keys the block
/// number uses 28 of them. In the 128-bit product, its halves XORed, every
/// output bit depends on the whole hash. Rejected: the 64-bit product, whose
/// low bits depend on the low bits of the hash alone in *every* stream. Its
/// false-positive rate is 2 % above the formula at ten probes in 256 bits.
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
        MULTIPLIERS[stream % STREAMS]
    }

    /// The first `count` streams, or all.
    #[inline(always)]
    pub(crate) fn first(count: usize) -> &'static [Self] {
        &MULTIPLIERS[..count.min(STREAMS)]
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
        assert_eq!(MULTIPLIERS[0].multiplier, 0xe220_a839_7b1d_cdaf);
        assert_eq!(MULTIPLIERS[1].multiplier, 0x6e78_9e6a_a1b9_65f5);
        let word = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(stretch(word, 0), 0xc2d7_79c9_a200_728f);
        assert_eq!(stretch(word, 63), 0xf021_be8e_74c4_26c7);
    }

    /// Vectors of independent implementations: the xxhash library, and
    /// SipHash-1-3 written from its paper.
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
        #[cfg(target_pointer_width = "64")]
        assert_eq!(hasher.hash(&0x0807_0605_0403_0201_usize), expected);
        // Of 64 bits on every machine.
        assert_eq!(hasher.hash(&7usize), hasher.hash(&7u64));
        assert_eq!(hasher.hash(&-1i32), hasher.hash(&[0xffu8; 4]));
        assert_eq!(hasher.hash(&"x"), hasher.hash("x"));
    }

    #[test]
    fn keys_of_one_value_have_the_bytes_of_the_table() {
        use alloc::borrow::Cow;
        use alloc::boxed::Box;
        use alloc::rc::Rc;
        use alloc::sync::Arc;

        fn bytes(key: &(impl Key + ?Sized)) -> Vec<u8> {
            key.with_bytes(<[u8]>::to_vec)
        }
        assert_eq!(bytes(&true), [1]);
        assert_eq!(bytes(&'\u{e9}'), "\u{e9}".as_bytes());
        let boxed: Box<str> = "x".into();
        let shared: Arc<[u8]> = Arc::new([1, 2]);
        assert_eq!(bytes(&boxed), b"x");
        assert_eq!(bytes(&shared), [1, 2]);
        assert_eq!(bytes(&Rc::new(258u16)), [2, 1]);
        assert_eq!(bytes(&Cow::Borrowed("x")), b"x");
        let v4 = Ipv4Addr::new(192, 0, 2, 1);
        assert_eq!(bytes(&v4), [192, 0, 2, 1]);
        assert_eq!(bytes(&IpAddr::V4(v4)), [192, 0, 2, 1]);
        assert_eq!(bytes(&v4.to_ipv6_mapped()).len(), 16);
        #[cfg(feature = "std")]
        {
            use std::path::{Path, PathBuf};
            assert_eq!(bytes(Path::new("a/b")), b"a/b");
            assert_eq!(bytes(&PathBuf::from("a/b")), b"a/b");
        }
    }

    #[test]
    fn tuples_keep_their_fields_apart() {
        let hasher = KeyHasher::default();
        assert_ne!(hasher.hash(&("a", "bc")), hasher.hash(&("ab", "c")));
        assert_ne!(hasher.hash(&("", "a")), hasher.hash(&("a", "")));
        let expected = b"\x01\0\0\0\0\0\0\0a\x02\0\0\0\0\0\0\0\x07\0";
        let bytes = ("a", 7u16).with_bytes(<[u8]>::to_vec);
        assert_eq!(bytes, expected);
        // Longer than the buffer on the stack, in the first field and later.
        let long = [7u8; 200];
        for len in [0, 1, 111, 112, 113, 128, 200] {
            let bytes = ("a", &long[..len], 3u8).with_bytes(<[u8]>::to_vec);
            assert_eq!(bytes.len(), 3 * 8 + 2 + len);
            assert_eq!(bytes[17..17 + len], long[..len]);
            assert_eq!(bytes.last(), Some(&3));
        }
    }

    #[test]
    fn hashes_of_hash_types_follow_equality() {
        let hasher = KeyHasher::xxh3(3);
        let long = alloc::vec!["apple"; 100];
        assert_eq!(hasher.hash_of(&long), hasher.hash_of(&long.clone()));
        assert_ne!(hasher.hash_of(&long), hasher.hash_of(&long[1..]));
        assert_ne!(hasher.hash_of("a"), KeyHasher::xxh3(4).hash_of("a"));
    }

    #[test]
    fn multipliers_are_distinct() {
        let mut sorted = MULTIPLIERS.map(|stream| stream.multiplier);
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]));
    }

    /// 10,000 keys are distinct, and each of the 128 bits is set in about half
    /// of them: 5 standard errors are 250.
    #[cfg(feature = "std")]
    #[test]
    fn random_keys_are_distinct_and_use_every_bit() {
        let mut keys: Vec<u128> =
            (0..10_000).map(|_| KeyHasher::random().seed()).collect();
        for bit in 0..128 {
            let set = keys.iter().filter(|&&key| key >> bit & 1 == 1).count();
            assert!(set.abs_diff(5000) < 250, "bit {bit}: {set}");
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 10_000);
        let other = std::thread::spawn(|| KeyHasher::random().seed());
        assert!(keys.binary_search(&other.join().unwrap()).is_err());
    }

    #[test]
    fn debug_hides_the_siphash_key() {
        let shown = alloc::format!("{:?}", KeyHasher::siphash(0xfeed_beef));
        assert!(!shown.contains("4276993775"), "{shown}");
        assert!(shown.contains("secret"));
    }
}

//! Filters of other crates, each with its own hash function if it has one.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use tamis::KeyHasher;

use crate::keys::{AnyItem, Item};
use crate::subject::{Result, Subject};

/// Seed of the crates that take one: every run has the same hash functions.
const SEED: u128 = 0x0074_616d_6973;

/// `fastbloom`: a standard Bloom filter, not blocked.
pub(crate) struct FastBloom(fastbloom::BloomFilter);

impl Subject for FastBloom {
    const NAME: &'static str = "fastbloom";

    type Design = (usize, f64);

    fn design(items: u64, fpr: f64) -> Result<Option<Self::Design>> {
        Ok(Some((usize::try_from(items)?, fpr)))
    }

    fn empty(&(items, fpr): &Self::Design) -> Result<Self> {
        let builder = fastbloom::BloomFilter::with_false_pos(fpr).seed(&SEED);
        Ok(Self(builder.expected_items(items)))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        self.0.insert_hash(hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.0.insert(key);
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.0.contains(key)
    }
}

/// `fastbloom` with atomic words.
pub(crate) struct AtomicFastBloom(fastbloom::AtomicBloomFilter);

impl Subject for AtomicFastBloom {
    const NAME: &'static str = "fastbloom-atomic";

    type Design = (usize, f64);

    fn design(items: u64, fpr: f64) -> Result<Option<Self::Design>> {
        FastBloom::design(items, fpr)
    }

    fn empty(&(items, fpr): &Self::Design) -> Result<Self> {
        let builder =
            fastbloom::AtomicBloomFilter::with_false_pos(fpr).seed(&SEED);
        Ok(Self(builder.expected_items(items)))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        self.0.insert_hash(hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.0.insert(key);
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.0.contains(key)
    }
}

/// `sbbf-rs`: Parquet's split block filter, eight bits in 32 bytes. It takes
/// hashes only; other keys are hashed with XXH3, which Parquet prescribes
/// and tamis uses too.
pub(crate) struct Sbbf {
    functions: sbbf_rs::FilterFn,
    lines: Vec<Line>,
    buckets: usize,
    hasher: KeyHasher,
}

#[derive(Clone)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; sbbf_rs::ALIGNMENT],
}

#[expect(unsafe_code, reason = "the crate lacks this implementation")]
// SAFETY: the only field that is not `Send` is a reference to one of the
// crate's tables of functions: statics of types without a field.
unsafe impl Send for Sbbf {}

impl Subject for Sbbf {
    const NAME: &'static str = "sbbf-rs";

    /// Number of buckets.
    type Design = usize;

    fn design(items: u64, fpr: f64) -> Result<Option<usize>> {
        let bits = items as f64 * sbbf_bits_per_key(fpr);
        let bucket_bits = 8 * sbbf_rs::BUCKET_SIZE;
        Ok(Some((bits / bucket_bits as f64).ceil() as usize))
    }

    fn empty(&buckets: &usize) -> Result<Self> {
        let bytes = buckets * sbbf_rs::BUCKET_SIZE;
        let lines = bytes.div_ceil(sbbf_rs::ALIGNMENT);
        Ok(Self {
            functions: sbbf_rs::FilterFn::new(),
            lines: vec![Line { _bytes: [0; sbbf_rs::ALIGNMENT] }; lines],
            buckets,
            hasher: KeyHasher::default(),
        })
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "the crate has no other interface")]
    fn insert_hash(&mut self, hash: u64) {
        let buffer = self.lines.as_mut_ptr().cast();
        // SAFETY: a `Line` is aligned to `ALIGNMENT`, and `empty` allocated
        // at least `buckets * BUCKET_SIZE` bytes, with `buckets >= 1`.
        unsafe { self.functions.insert(buffer, self.buckets, hash) };
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "the crate has no other interface")]
    fn contains_hash(&self, hash: u64) -> bool {
        let buffer = self.lines.as_ptr().cast();
        // SAFETY: as for `insert_hash`.
        unsafe { self.functions.contains(buffer, self.buckets, hash) }
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.insert_hash(self.hasher.hash(key));
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.contains_hash(self.hasher.hash(key))
    }
}

/// Bits per key with which a split block filter reaches a rate.
///
/// A bucket of 256 bits has a Poisson number of keys, each of which sets one
/// bit in each of the bucket's eight words. A key is a false positive if its
/// eight bits are set.
pub(crate) fn sbbf_bits_per_key(fpr: f64) -> f64 {
    let rate = |bits_per_key: f64| {
        let load = 256.0 / bits_per_key;
        let mut probability = (-load).exp();
        let mut rate = 0.0;
        for keys in 0..1000 {
            let word = 1.0 - (31.0f64 / 32.0).powi(keys);
            rate += probability * word.powi(8);
            probability *= load / f64::from(keys + 1);
        }
        rate
    };
    let (mut low, mut high) = (1.0, 200.0);
    while high - low > 1e-3 {
        let middle = (low + high) / 2.0;
        match rate(middle) > fpr {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// `bloomfilter`: a Bloom filter with SipHash. It takes no hashes, so a
/// hashed key is hashed again. A filter holds keys of one type.
pub(crate) struct BloomFilter(bloomfilter::Bloom<AnyItem>);

impl Subject for BloomFilter {
    const NAME: &'static str = "bloomfilter";

    type Design = (usize, f64);

    fn design(items: u64, fpr: f64) -> Result<Option<Self::Design>> {
        Ok(Some((usize::try_from(items)?, fpr)))
    }

    fn empty(&(items, fpr): &Self::Design) -> Result<Self> {
        let seed = std::array::from_fn(|i| i as u8);
        let filter =
            bloomfilter::Bloom::new_for_fp_rate_with_seed(items, fpr, &seed);
        Ok(Self(filter?))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        self.0.set(&AnyItem::U64(hash));
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.check(&AnyItem::U64(hash))
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.0.set(&key.any());
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.0.check(&key.any())
    }
}

/// `qfilter`: a rank-select quotient filter. The number of its slots is a
/// power of two, at most 95 % are full, and its rates are powers of 1/2.
pub(crate) struct QFilter(qfilter::Filter);

impl Subject for QFilter {
    const NAME: &'static str = "qfilter";

    type Design = (u64, f64);

    fn design(items: u64, fpr: f64) -> Result<Option<Self::Design>> {
        Ok(Some((items, fpr)))
    }

    fn empty(&(items, fpr): &Self::Design) -> Result<Self> {
        Ok(Self(qfilter::Filter::new(items, fpr)?))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        let inserted = self.0.insert_fingerprint(false, hash);
        inserted.expect("sized for the keys");
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_fingerprint(hash)
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.0.insert(key).expect("sized for the keys");
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.0.contains(key)
    }

    /// Inserts into an empty filter in sorted order, as the crate's
    /// documentation recommends.
    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        if !self.0.is_empty() {
            for &hash in hashes {
                self.insert_hash(hash);
            }
            return;
        }
        let bits = self.0.fingerprint_size();
        let mut sorted: Vec<u64> = hashes
            .iter()
            .map(|&hash| qfilter::truncate_to_fingerprint(hash, bits))
            .collect();
        sorted.sort_unstable();
        let smallest = qfilter::Filter::new(1, 0.5).expect("a small filter");
        let empty = std::mem::replace(&mut self.0, smallest);
        let mut builder = qfilter::Builder::new(empty);
        for fingerprint in sorted {
            let inserted = builder.insert_fingerprint(false, fingerprint);
            inserted.expect("sized for the keys");
        }
        self.0 = builder.into_filter();
    }

    fn insert_batch<I: Item>(&mut self, keys: &[I]) {
        let hasher = qfilter::StableBuildHasher;
        let hashes: Vec<u64> =
            keys.iter().map(|key| hasher.hash_one(key)).collect();
        self.insert_hash_batch(&hashes);
    }
}

/// `cuckoofilter`: 8-bit fingerprints in a power of two of buckets of four.
/// It takes no hashes, so a hashed key is hashed again.
pub(crate) struct CuckooFilter(cuckoofilter::CuckooFilter<DefaultHasher>);

impl CuckooFilter {
    /// Past this load an insertion may fail.
    const MAX_LOAD: f64 = 0.95;
    /// Largest size considered: emptier buckets have a lower rate, at a
    /// cost out of proportion.
    const MAX_BITS_PER_KEY: u64 = 64;
    /// Bits of a fingerprint. One of its values marks an empty slot.
    const BITS: u64 = 8;
    const VALUES: f64 = 255.0;
    /// Fingerprints that a lookup compares if all slots are full.
    const COMPARED: f64 = 8.0;
}

impl Subject for CuckooFilter {
    const NAME: &'static str = "cuckoofilter";

    /// Number of slots.
    type Design = usize;

    /// With 8 bits the rate is about 3 % in a full filter, and half of that
    /// in one twice as large. If `MAX_BITS_PER_KEY` are not enough for the
    /// rate, the filter has the smallest size that holds the keys, and the
    /// report marks that it misses the target.
    fn design(items: u64, fpr: f64) -> Result<Option<usize>> {
        let least = (items as f64 / Self::MAX_LOAD).ceil() as usize;
        let smallest = least.next_power_of_two();
        let mut places = smallest;
        loop {
            let load = items as f64 / places as f64;
            let rate = load * Self::COMPARED / Self::VALUES;
            if rate <= fpr {
                return Ok(Some(places));
            }
            places *= 2;
            if places as u64 * Self::BITS > items * Self::MAX_BITS_PER_KEY {
                return Ok(Some(smallest));
            }
        }
    }

    fn empty(&places: &usize) -> Result<Self> {
        Ok(Self(cuckoofilter::CuckooFilter::with_capacity(places)))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        self.insert(&hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains(&hash)
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.0.add(key).expect("sized for the keys");
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.0.contains(key)
    }
}

/// `xorf`: binary fuse filters, built once from all keys. They mix 64-bit
/// keys and take no others; strings are hashed with XXH3.
pub(crate) struct Fuse<F> {
    keys: Vec<u64>,
    filter: Option<F>,
    hasher: KeyHasher,
}

/// Fingerprint sizes of fuse filters.
pub(crate) trait FuseFilter: xorf::Filter<u64> + Send + Sized {
    /// Rates for which it is the smallest fuse filter.
    const RATES: RangeInclusive<f64>;

    fn build(keys: &[u64]) -> std::result::Result<Self, &'static str>;
}

impl FuseFilter for xorf::BinaryFuse8 {
    const RATES: RangeInclusive<f64> = 1.0 / 256.0..=1.0;

    fn build(keys: &[u64]) -> std::result::Result<Self, &'static str> {
        Self::try_from(keys)
    }
}

impl FuseFilter for xorf::BinaryFuse16 {
    const RATES: RangeInclusive<f64> = 1.0 / 65536.0..=1.0 / 256.0;

    fn build(keys: &[u64]) -> std::result::Result<Self, &'static str> {
        Self::try_from(keys)
    }
}

impl<F: FuseFilter> Subject for Fuse<F> {
    const NAME: &'static str = "xorf";
    const STATIC: bool = true;

    /// Number of keys.
    type Design = usize;

    fn design(items: u64, fpr: f64) -> Result<Option<usize>> {
        match F::RATES.contains(&fpr) {
            true => Ok(Some(usize::try_from(items)?)),
            false => Ok(None),
        }
    }

    fn empty(&items: &usize) -> Result<Self> {
        Ok(Self {
            keys: Vec::with_capacity(items),
            filter: None,
            hasher: KeyHasher::default(),
        })
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        self.keys.push(hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.contains(&hash))
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.insert_hash(key.word(&self.hasher));
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.contains_hash(key.word(&self.hasher))
    }

    fn finish(&mut self) -> Result {
        let keys = std::mem::take(&mut self.keys);
        self.filter = Some(F::build(&keys)?);
        Ok(())
    }
}

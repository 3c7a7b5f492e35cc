//! Shared test code.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test file uses a part"
)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, Filter, Key, KeyHasher, Kind, Split,
    TinySet,
};

/// Distinct keys from a seed: SplitMix64 is a bijection, so different
/// streams never share a key.
pub fn key(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 48 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn keys(stream: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| key(stream, i))
}

/// A key made from a number, with or without colliding hashes.
pub trait Keyed: Key + Eq + Copy + std::hash::Hash + std::fmt::Debug {
    /// Whether different keys have different hashes.
    const DISTINCT_HASHES: bool;

    fn make(number: u16) -> Self;
}

impl Keyed for u16 {
    const DISTINCT_HASHES: bool = true;

    fn make(number: u16) -> Self {
        number
    }
}

/// Only three different hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Colliding(u16);

impl Key for Colliding {
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&[(self.0 % 3) as u8])
    }
}

impl Keyed for Colliding {
    const DISTINCT_HASHES: bool = false;

    fn make(number: u16) -> Self {
        Self(number)
    }
}

/// Size of a test filter.
#[derive(Debug, Clone, Copy)]
pub enum Size {
    Fpr(f64),
    BitsPerKey(f64),
}

#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    pub kind: Kind,
    pub items: u64,
    pub size: Size,
    pub block_bits: u32,
    pub probes: Option<u32>,
    pub hasher: KeyHasher,
}

impl Recipe {
    pub fn new(kind: Kind, items: u64, size: Size) -> Self {
        let hasher = KeyHasher::default();
        Self { kind, items, size, block_bits: 512, probes: None, hasher }
    }

    pub fn build(&self) -> tamis::Result<AnyFilter> {
        macro_rules! build {
            ($kind:ident) => {{
                let mut builder = $kind::builder()
                    .items(self.items)
                    .block_bits(self.block_bits)
                    .hasher(self.hasher);
                builder = match self.size {
                    Size::Fpr(fpr) => builder.fpr(fpr),
                    Size::BitsPerKey(bits) => builder.bits_per_key(bits),
                };
                if let Some(probes) = self.probes {
                    builder = builder.probes(probes);
                }
                AnyFilter::$kind(builder.build()?)
            }};
        }
        Ok(match self.kind {
            Kind::Bloom => build!(Bloom),
            Kind::Blocked => build!(Blocked),
            Kind::Split => build!(Split),
            Kind::Balanced => {
                // A fixed design, which the golden files pin.
                let mut builder = Balanced::builder()
                    .items(self.items)
                    .block_bits(self.block_bits)
                    .hasher(self.hasher)
                    .tracking_bits(8);
                builder = match self.size {
                    Size::Fpr(fpr) => builder.fpr(fpr),
                    Size::BitsPerKey(bits) => builder.bits_per_key(bits),
                };
                if let Some(probes) = self.probes {
                    builder = builder.probes(probes);
                }
                AnyFilter::Balanced(builder.build()?)
            }
            Kind::TinySet => {
                assert_eq!(self.probes, None, "it has none");
                let mut builder = TinySet::builder()
                    .items(self.items)
                    .block_bits(self.block_bits)
                    .hasher(self.hasher);
                builder = match self.size {
                    Size::Fpr(fpr) => builder.fpr(fpr),
                    Size::BitsPerKey(bits) => builder.bits_per_key(bits),
                };
                AnyFilter::TinySet(builder.build()?)
            }
            other => panic!("no recipe for {other}"),
        })
    }
}

/// False positives among `count` keys of `stream`.
pub fn false_positives(filter: &impl Filter, stream: u64, count: u64) -> u64 {
    const CHUNK: u64 = 1 << 16;
    let hasher = *filter.hasher();
    let (mut hashes, mut found, mut hits) = (Vec::new(), Vec::new(), 0);
    for start in (0..count).step_by(CHUNK as usize) {
        let end = count.min(start + CHUNK);
        hashes.clear();
        hashes.extend((start..end).map(|i| hasher.hash(&key(stream, i))));
        found.resize(hashes.len(), false);
        filter.contains_hash_batch(&hashes, &mut found);
        hits += found.iter().filter(|&&found| found).count() as u64;
    }
    hits
}

/// Panics unless `hits` of `trials` lies in the 99.9 % binomial interval
/// around `p`.
pub fn assert_binomial(hits: u64, trials: u64, p: f64, what: &str) {
    const Z: f64 = 3.2905; // two-sided 99.9 %
    let mean = trials as f64 * p;
    // Half a count for the step from a discrete to a continuous law.
    let slack = Z * (mean * (1.0 - p)).sqrt() + 0.5;
    assert!(
        (hits as f64 - mean).abs() <= slack,
        "{what}: {hits} of {trials} hits, expected {mean:.1} +- {slack:.1}"
    );
}

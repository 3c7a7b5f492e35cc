//! Every kind keeps its rate at every size, from one key to 100,000.
//!
//! The numbers of keys are those of RocksDB's `FullVaryingLengths` test. For
//! each, several filters of different keys are asked for keys they do not
//! have. The interval around the rate allows for chance in the answers
//! (binomial) and in the filters (standard error of their exact rates).
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use support::{false_positives, keys};
use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, Buildable, Builder, Size, Split,
    TinySet,
};

/// 1, 2, .. 10, 20, .. 100, 200, .. 100,000.
fn lengths() -> impl Iterator<Item = u64> {
    let mut next = 1u64;
    core::iter::from_fn(move || {
        let length = next;
        next += 10u64.pow(length.ilog10());
        (length <= 100_000).then_some(length)
    })
}

/// More filters of few keys: their rates differ more.
fn filters(items: u64) -> u64 {
    (4000 / items).clamp(3, 60)
}

/// Non-members asked of all filters of a length: about 400 false positives,
/// with a standard error of 5 %.
const HITS: f64 = 400.0;
/// Two-sided 99.99 %: the sweep makes some 1000 comparisons.
const Z: f64 = 3.9;

/// The mean of some numbers, and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (mean, (squares.sum::<f64>() / (n * (n - 1.0))).sqrt())
}

/// Builds filters of every length by `size`.
fn sweep<F>(what: &str, builder: Builder<F>, size: Size)
where
    F: Buildable + Clone + Into<AnyFilter>,
{
    let builder = builder.size(size).resolve().unwrap();
    for items in lengths() {
        let what = format!("{what}, {size:?}, {items} keys");
        let empty = builder.items(items).build().unwrap();
        let design = empty.design_fpr();
        let count = filters(items);
        let (mut hits, mut trials, mut rates) = (0, 0, Vec::new());
        for seed in 0..count {
            let mut filter: AnyFilter = empty.clone().into();
            let keys: Vec<u64> = keys(1 + seed, items).collect();
            filter.insert_batch(&keys);
            let found = filter.contains_each(&keys);
            assert!(found.iter().all(|&found| found), "{what}: lost a key");
            rates.push(filter.stats().expected_fpr);
            let probes = HITS / design / count as f64;
            let probes = probes.clamp(100.0, 400_000.0) as u64;
            trials += probes;
            hits += false_positives(&filter, 1000 + seed, probes);
        }
        let (rate, error) = mean(&rates);
        let trials = trials as f64;
        // The filters have the rate that they report.
        let chance = (rate * (1.0 - rate) / trials).sqrt();
        let measured = hits as f64 / trials;
        let slack = Z * (chance + error) + 0.5 / trials;
        assert!(
            (measured - rate).abs() <= slack,
            "{what}: measured {measured:e}, reported {rate:e} +- {slack:e}"
        );
        // And not more than was asked, or than the design says.
        let most = match size {
            Size::Fpr(fpr) => fpr.min(1.001 * design),
            _ => design,
        };
        assert!(
            rate <= most + Z * error,
            "{what}: {rate:e} +- {error:e}, at most {most:e}"
        );
    }
}

fn every_size<F>(what: &str, builder: Builder<F>, sizes: &[Size])
where
    F: Buildable + Clone + Into<AnyFilter>,
{
    for &size in sizes {
        sweep(what, builder, size);
    }
}

const SIZES: [Size; 5] = [
    Size::Fpr(0.1),
    Size::Fpr(0.01),
    Size::Fpr(0.001),
    Size::BitsPerKey(16.0),
    Size::BitsPerKey(20.0),
];

#[test]
fn bloom_kinds() {
    every_size("bloom", Bloom::builder(), &SIZES);
    every_size("blocked", Blocked::builder(), &SIZES);
    every_size("split", Split::builder(), &SIZES);
}

#[test]
fn balanced() {
    every_size("balanced", Balanced::builder(), &SIZES);
}

#[test]
fn tinyset() {
    every_size("tinyset", TinySet::builder(), &SIZES);
    // Many keys match already.
    every_size("tinyset", TinySet::builder(), &[Size::Fpr(0.3)]);
    // Two levels are sized by a rate, and pay from 0.1 % down.
    let two_level = TinySet::builder().two_level();
    let sizes = [Size::Fpr(0.001), Size::Fpr(0.0001)];
    every_size("tinyset of two levels", two_level, &sizes);
}

//! One picture of all structures: bits per key against the false-positive
//! rate, with the cache lines that an absent key touches as colour.
//!
//! Every mark is a filter that was built, filled and looked up in. The
//! curves are limits: [`tamis_theory::limit`].

mod drawing;

use std::error::Error;

use serde::Serialize;
use tamis::{Balanced, Blocked, Bloom, Buildable, Builder, Split, TinySet};

use crate::baseline::{
    Baseline, Counting, DLeft, Design, Increments, LeastLoaded, Product,
    RankIndexed, VariableIncrement,
};
use crate::simulation::{Keys, Rate, false_positives, fill, mean_lines, runs};

pub use drawing::draw;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Keys in filters whose size is free.
const KEYS: u64 = 100_000;
/// Lookups of which the lines are counted.
const COUNTED: u64 = 20_000;
/// Rates of the product's filters.
const TARGETS: [f64; 8] = [0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5];
/// Rates of the baselines, and the bits of fingerprints that reach them.
const BASELINE_TARGETS: [(f64, u32); 3] =
    [(0.01, 11), (0.001, 14), (0.0001, 18)];

/// A filter that was measured.
///
/// ```
/// let series = tamis_lab::picture::measure(20.0, 0.01)?;
/// let blocked = &series[0].points[0];
/// assert!((blocked.bits_per_key - 4.8).abs() < 0.1);
/// assert_eq!(blocked.lines_miss, 1.0);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Point {
    /// Memory per key, as built.
    pub bits_per_key: f64,
    /// Share of absent keys found.
    pub fpr: f64,
    /// Interval of 99.9 % for `fpr`.
    pub interval: [f64; 2],
    /// Rate by the structure's formula.
    pub expected_fpr: f64,
    /// Cache lines that an absent key touches: counted in baselines, by the
    /// statistics of the filter in the product.
    pub lines_miss: f64,
}

/// One structure at several rates.
///
/// ```
/// let series = tamis_lab::picture::measure(20.0, 0.01)?;
/// let names: Vec<&str> = series.iter().map(|one| one.name).collect();
/// assert!(names.contains(&"tinyset") && names.contains(&"d-left counting"));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Name in the picture.
    pub name: &'static str,
    /// A filter of the product, not of another paper.
    pub product: bool,
    /// In order of falling rates.
    pub points: Vec<Point>,
}

/// Function that measures a structure at a rate, with a number of false
/// positives to expect. `None`: it has no such rate.
type Measure = fn(usize, f64) -> Result<Option<Point>>;

const STRUCTURES: [(&str, bool, Measure); 14] = [
    ("blocked", true, |i, hits| product(Blocked::builder(), i, hits)),
    ("split", true, |i, hits| product(Split::builder(), i, hits)),
    ("bloom", true, |i, hits| product(Bloom::builder(), i, hits)),
    ("tinyset", true, |i, hits| product(TinySet::builder(), i, hits)),
    ("tinyset, removable", true, |i, hits| {
        product(TinySet::builder().removable(), i, hits)
    }),
    ("tinyset, 2 levels", true, |i, hits| {
        product(TinySet::builder().two_level(), i, hits)
    }),
    ("balanced", true, |i, hits| product(Balanced::builder(), i, hits)),
    ("counting Bloom", false, |i, hits| {
        let structure = Counting::for_rate(KEYS, BASELINE_TARGETS[i].0);
        let expected = structure.expected_rate(KEYS);
        baseline(structure, KEYS, expected, hits)
    }),
    ("VI-CBF, L = 4", false, |i, hits| variable(i, Increments::FOUR, hits)),
    ("VI-CBF, L = 8", false, |i, hits| variable(i, Increments::EIGHT, hits)),
    ("d-left counting", false, |i, hits| {
        let structure = DLeft::new(12, BASELINE_TARGETS[i].1);
        let keys = structure.nominal();
        let expected = structure.expected_rate(keys);
        baseline(structure, keys, expected, hits)
    }),
    ("rank-indexed", false, |i, hits| rank_indexed(i, false, hits)),
    ("rank-indexed, removable", false, |i, hits| rank_indexed(i, true, hits)),
    ("least loaded of 2", false, |i, hits| {
        // Six keys per bucket.
        let structure =
            LeastLoaded::filter(KEYS / 6, 2, BASELINE_TARGETS[i].1);
        let expected = structure.expected_rate(KEYS)?;
        baseline(structure, KEYS, expected, hits)
    }),
];

/// Builds, fills and measures all structures, with about `hits` false
/// positives each, at rates of at least `least`.
///
/// ```
/// let series = tamis_lab::picture::measure(20.0, 0.01)?;
/// assert_eq!(series.len(), 14);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn measure(hits: f64, least: f64) -> Result<Vec<Series>> {
    let most = TARGETS.len();
    let tasks = (STRUCTURES.len() * most) as u64;
    let mut points = runs(tasks, |task| {
        let (number, i) = (task as usize / most, task as usize % most);
        let (_, product, measure) = STRUCTURES[number];
        let target = match product {
            true => Some(TARGETS[i]),
            false => BASELINE_TARGETS.get(i).map(|(target, _)| *target),
        };
        match target {
            Some(target) if target >= least => measure(i, hits),
            _ => Ok(None),
        }
    })
    .into_iter();
    let series = STRUCTURES.map(|(name, product, _)| {
        let found: Result<Vec<Option<Point>>> =
            points.by_ref().take(most).collect();
        let points = found?.into_iter().flatten().collect();
        Ok(Series { name, product, points })
    });
    series.into_iter().collect()
}

/// A filter of the product, if its builder reaches the rate.
fn product<F: Buildable>(
    builder: Builder<F>,
    target: usize,
    hits: f64,
) -> Result<Option<Point>> {
    let builder = builder.items(KEYS).fpr(TARGETS[target]);
    if builder.predict().is_err() {
        return Ok(None);
    }
    let keys = Keys::new(0);
    let mut filter = Product(builder.build()?);
    fill(&mut filter, keys.members(KEYS))?;
    let stats = filter.0.stats();
    let strangers = keys.strangers((hits / TARGETS[target]) as u64);
    let rate = false_positives(&filter, strangers);
    let bits = filter.bits();
    let (expected, lines) = (stats.expected_fpr, stats.reads_miss);
    Ok(Some(point(bits, KEYS, rate, expected, lines)))
}

fn baseline<B: Baseline>(
    mut structure: B,
    items: u64,
    expected_fpr: f64,
    hits: f64,
) -> Result<Option<Point>> {
    let keys = Keys::new(0);
    fill(&mut structure, keys.members(items))?;
    let strangers = keys.strangers((hits / expected_fpr) as u64);
    let rate = false_positives(&structure, strangers);
    let lines = mean_lines(&structure, keys.strangers(COUNTED));
    Ok(Some(point(structure.bits(), items, rate, expected_fpr, lines)))
}

fn variable(
    target: usize,
    increments: Increments,
    hits: f64,
) -> Result<Option<Point>> {
    let rate = BASELINE_TARGETS[target].0;
    let structure = VariableIncrement::for_rate(KEYS, rate, increments);
    let expected = structure.expected_rate(KEYS);
    baseline(structure, KEYS, expected, hits)
}

fn rank_indexed(
    target: usize,
    counted: bool,
    hits: f64,
) -> Result<Option<Point>> {
    let design = Design::search(BASELINE_TARGETS[target].0, counted);
    let structure = RankIndexed::new(design.ok_or("no design")?, 4);
    let keys = structure.nominal();
    let expected = structure.expected_rate(keys);
    baseline(structure, keys, expected, hits)
}

fn point(
    bits: u64,
    keys: u64,
    rate: Rate,
    expected_fpr: f64,
    lines_miss: f64,
) -> Point {
    Point {
        bits_per_key: bits as f64 / keys as f64,
        fpr: rate.value(),
        interval: rate.interval(),
        expected_fpr,
        lines_miss,
    }
}

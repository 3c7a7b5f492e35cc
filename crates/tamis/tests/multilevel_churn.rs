//! Multilevel tables under churn: every answer is correct, and the summaries
//! keep their error rates.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::collections::HashMap;

use support::key;
use tamis::KeyHasher;
use tamis::summary::{
    Deletion, FilterStack, Interpolation, LevelFilter, NoSummary, Summary,
    SummaryBuilder, TypeFilter,
};
use tamis::table::{Multilevel, MultilevelBuilder};

const ITEMS: u64 = 4000;
const TURNOVERS: u64 = 20;
/// Three buckets per item. These levels suffice for insertions alone; churn
/// also needs a stash.
const LEVELS: [u64; 6] = [7600, 2600, 1000, 600, 120, 80];

const LAZY: Deletion = Deletion::Lazy { share: 0.3 };

/// A builder with a fixed hasher: tables draw a random one by default.
fn fixed() -> MultilevelBuilder {
    Multilevel::builder().hasher(KeyHasher::default())
}

/// A table under churn and the map with its expected contents.
struct Churn<S> {
    table: Multilevel<u64, u64, S>,
    model: HashMap<u64, u64>,
    keys: Vec<u64>,
    fresh: u64,
    /// Lookups of present keys.
    hits: u64,
    /// Buckets read by these lookups.
    hit_reads: u64,
    misnamed: u64,
}

impl<S: Summary> Churn<S> {
    fn new(summary: &impl SummaryBuilder<Summary = S>) -> Self {
        let builder = fixed().items(ITEMS).levels(&LEVELS).stash(64);
        let mut churn = Self {
            table: builder.build_with(summary).unwrap(),
            model: HashMap::new(),
            keys: Vec::new(),
            fresh: 0,
            hits: 0,
            hit_reads: 0,
            misnamed: 0,
        };
        (0..ITEMS).for_each(|_| churn.insert());
        churn
    }

    fn insert(&mut self) {
        let (new, value) = (key(1, self.fresh), self.fresh);
        self.fresh += 1;
        assert_eq!(self.table.insert(new, value).unwrap(), None);
        assert_eq!(self.model.insert(new, value), None);
        self.keys.push(new);
    }

    /// Replaces a random key, `ITEMS` times.
    fn turnover(&mut self) {
        for _ in 0..ITEMS {
            let random = key(2, self.fresh);
            let at = random as usize % self.keys.len();
            let old = self.keys.swap_remove(at);
            assert_eq!(self.table.remove(&old), self.model.remove(&old));
            assert_eq!(self.table.get(&old), None);
            self.insert();
        }
        assert_eq!(self.table.len(), self.model.len());
        for key in &self.keys {
            let lookup = self.table.lookup(key);
            assert_eq!(lookup.value, self.model.get(key));
            self.hits += 1;
            self.hit_reads += u64::from(lookup.reads);
        }
        for i in 0..ITEMS {
            assert_eq!(self.table.get(&key(3, i)), None);
        }
        self.misnamed += self.table.audit();
    }
}

/// Reads per hit and misnamed keys, over twenty turnovers.
fn churn<S: Summary>(
    what: &str,
    summary: &impl SummaryBuilder<Summary = S>,
) -> (f64, f64) {
    let mut churn = Churn::new(summary);
    (0..TURNOVERS).for_each(|_| churn.turnover());
    let reads = churn.hit_reads as f64 / churn.hits as f64;
    let misnamed = churn.misnamed as f64 / TURNOVERS as f64;
    let stats = churn.table.stats();
    println!(
        "{what}: {reads:.4} reads per hit, {misnamed:.1} misnamed, \
         {:.2} bits per key, {} stale",
        stats.summary_bits_per_key.unwrap(),
        stats.stale,
    );
    (reads, misnamed)
}

fn stack(probes: [u32; 6], bits: [u64; 6]) -> [LevelFilter; 6] {
    std::array::from_fn(|i| match bits[i] {
        0 => LevelFilter::HashList { bits: 64 },
        cells => LevelFilter::Bloom { cells, probes: probes[i] },
    })
}

/// Summaries of ordinary size: under churn keys move to later levels, and
/// their lookups still take one read.
#[test]
fn summaries_of_ordinary_size_keep_one_read_per_hit() {
    for deletion in [LAZY, Deletion::Counting] {
        let what = format!("{deletion:?}");
        let cells = TypeFilter::builder().cells(60_000).probes(14);
        let (reads, _) =
            churn(&format!("cells, {what}"), &cells.deletion(deletion));
        assert!(reads < 1.005, "{what}: {reads}");
        let filters = stack(
            [7, 16, 16, 16, 16, 1],
            [40_000, 40_000, 16_000, 6000, 2000, 0],
        );
        let filters = FilterStack::builder().filters(&filters);
        let (reads, _) =
            churn(&format!("stack, {what}"), &filters.deletion(deletion));
        assert!(reads < 1.005, "{what}: {reads}");
    }
    let (reads, misnamed) = churn("strings", &Interpolation::builder());
    // Below 1, because stashed keys take no read.
    assert!(reads <= 1.0 && misnamed == 0.0, "{reads}, {misnamed}");
    let (reads, _) = churn("no summary", &NoSummary::builder());
    assert!(reads > 1.3, "{reads}");
}

/// Summaries small enough that most levels are named wrongly: every lookup
/// is still correct.
#[test]
fn tiny_summaries_lose_no_key() {
    for deletion in [LAZY, Deletion::Counting] {
        let what = format!("{deletion:?}");
        let cells = TypeFilter::builder().cells(9000).probes(3);
        let (_, misnamed) =
            churn(&format!("few cells, {what}"), &cells.deletion(deletion));
        assert!(misnamed > 20.0, "{misnamed}");
        let filters = stack([3, 3, 3, 2, 2, 1], [9000, 3000, 900, 300, 80, 0]);
        let filters = FilterStack::builder().filters(&filters);
        let (_, misnamed) = churn(
            &format!("small stack, {what}"),
            &filters.deletion(deletion),
        );
        assert!(misnamed > 20.0, "{misnamed}");
    }
    let short = Interpolation::builder().bits(14);
    let (_, misnamed) = churn("short strings", &short);
    assert!(misnamed > 20.0, "{misnamed}");
}

/// Counters that stick at 15 lose their count, but no key.
#[test]
fn stuck_counters_lose_no_key() {
    let filters = [LevelFilter::Bloom { cells: 2, probes: 1 }; 2];
    let stack = FilterStack::builder().filters(&filters);
    check_stuck_counters(&stack.deletion(Deletion::Counting));
    let cells = TypeFilter::builder().cells(1).probes(1);
    check_stuck_counters(&cells.deletion(Deletion::Counting));
}

fn check_stuck_counters(summary: &impl SummaryBuilder) {
    let builder = fixed().levels(&[30_000, 9000]);
    let mut table = builder.build_with(summary).unwrap();
    for round in 0..3 {
        for i in 0..1000 {
            table.insert(key(round, i), i).unwrap();
        }
        for i in 0..999 {
            assert_eq!(table.remove(&key(round, i)), Some(i));
            assert_eq!(table.get(&key(round, 999)), Some(&999));
        }
        assert_eq!(table.remove(&key(round, 999)), Some(999));
    }
    // The counters are stuck: all keys are gone, no bit is clear.
    assert_eq!(table.summary().false_positive(), 1.0);
}

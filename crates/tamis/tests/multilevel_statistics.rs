//! Multilevel tables and their summaries compared with the theory, in 99.9 %
//! intervals, with fixed seeds.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use support::{assert_binomial, key, keys};
use tamis::summary::{
    FilterStack, Interpolation, LevelFilter, Summary, SummaryBuilder,
    TableShape, TypeFilter,
};
use tamis::table::{Multilevel, MultilevelBuilder, RemovalRule};
use tamis::{KeyHasher, Result};
use tamis_theory::crisis::{Occupancy, churn, lazy};
use tamis_theory::summary::{self, Prediction};

/// The two-sided 99.9 % quantile of the normal distribution.
const Z: f64 = 3.2905;

/// A builder with a fixed hasher: tables draw a random one by default.
fn fixed() -> MultilevelBuilder {
    Multilevel::builder().hasher(KeyHasher::default())
}

/// The number of trials in which one of `items` keys, new ones in every trial,
/// finds no room.
fn crises(items: u64, levels: &[u64], bucket: u32, trials: u64) -> u64 {
    let builder = fixed().levels(levels).bucket_entries(bucket);
    let mut table = builder.build().unwrap();
    let mut crises = 0;
    for trial in 0..trials {
        let mut keys = (0..items).map(|i| key(1, trial * items + i));
        if keys.any(|key| table.insert(key, ()).is_err()) {
            crises += 1;
        }
        table.clear();
    }
    crises
}

#[test]
fn crises_are_as_frequent_as_predicted() {
    type Case = (u64, &'static [u64], u32, u64);
    let cases: [Case; 10] = [
        (3, &[2, 2], 1, 100_000),
        (4, &[3, 2], 1, 100_000),
        (4, &[4, 1], 1, 100_000),
        (100, &[150, 60, 20, 8], 1, 30_000),
        (1000, &[1900, 650, 250, 100], 1, 4000),
        (10_000, &[18_000, 7200, 3600, 1200], 1, 300),
        (600, &[68, 14, 4], 8, 4000),
        (3000, &[41, 8], 64, 600),
        // Rare crises.
        (20, &[60, 20, 10], 1, 200_000),
        (30, &[60, 20, 8, 4], 1, 200_000),
    ];
    for (items, levels, bucket, trials) in cases {
        let predicted =
            Occupancy::new(items, levels, bucket).unwrap().crisis();
        // Frequent enough to occur in the trials, rare enough to vary.
        assert!((2e-4..0.7).contains(&predicted), "{levels:?}: {predicted}");
        let seen = crises(items, levels, bucket, trials);
        println!("{items} in {levels:?} x {bucket}: {seen} of {trials}");
        let what = format!("{items} in {levels:?} of {bucket}");
        assert_binomial(seen, trials, predicted, &what);
    }
}

/// Buckets of 8 entries, with hardly a key in the last level: the prediction
/// is in the far tail of the distributions.
#[test]
fn levels_hold_the_predicted_number_of_keys() {
    const TRIALS: u64 = 1500;
    const KEYS: u64 = 600;
    for levels in [[80, 30, 8], [80, 30, 10], [80, 20, 5]] {
        let predicted = Occupancy::new(KEYS, &levels, 8).unwrap();
        assert!(predicted.crisis() < 1e-9, "{predicted:?}");
        let builder = fixed().levels(&levels).bucket_entries(8);
        let mut table = builder.build().unwrap();
        let mut seen = [const { Vec::new() }; 3];
        for trial in 0..TRIALS {
            table.clear();
            for i in 0..KEYS {
                table.insert(key(8, trial * KEYS + i), ()).unwrap();
            }
            let levels = table.stats().level_items;
            for (seen, items) in seen.iter_mut().zip(levels) {
                seen.push(items as u64);
            }
        }
        for (seen, predicted) in seen.iter().zip(predicted.level_items()) {
            assert_mean(seen, predicted, &format!("{levels:?}"));
        }
    }
}

/// The number of keys that a summary misnames, in each of `builds` tables.
fn misnamed(
    summary: &impl SummaryBuilder,
    items: u64,
    levels: &[u64],
    builds: u64,
) -> Vec<u64> {
    let builder = fixed().items(items).levels(levels);
    let mut table = builder.build_with(summary).unwrap();
    let build = |build| {
        table.clear();
        for i in 0..items {
            table.insert(key(2, build * items + i), ()).unwrap();
        }
        table.audit()
    };
    (0..builds).map(build).collect()
}

/// Compares the mean with the prediction, by the standard error of the sample:
/// keys are misnamed in clusters, so their number is not binomial.
fn assert_mean(seen: &[u64], predicted: f64, what: &str) {
    let count = seen.len() as f64;
    let mean = seen.iter().sum::<u64>() as f64 / count;
    let squares: f64 = seen.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    println!("{what}: {mean:.4} +- {error:.4}, predicted {predicted:.4}");
    assert!(
        (mean - predicted).abs() <= Z * error,
        "{what}: {mean} +- {error}, predicted {predicted}"
    );
}

const ITEMS: u64 = 2000;
const LEVELS: [u64; 6] = [3800, 1300, 500, 300, 100, 40];

fn bloom(cells: u64, probes: u32) -> LevelFilter {
    LevelFilter::Bloom { cells, probes }
}

/// Filters small enough that keys are misnamed in every table or every fourth.
#[test]
fn keys_are_misnamed_as_often_as_predicted() {
    let table = Occupancy::new(ITEMS, &LEVELS, 1).unwrap();
    for (cells, probes, builds) in [(12_000, 5, 1000), (6000, 4, 300)] {
        let summary = TypeFilter::builder().cells(cells).probes(probes);
        let shape = Multilevel::builder().levels(&LEVELS).shape().unwrap();
        // Rounded up to whole words.
        let cells = summary.build(&shape).unwrap().cells();
        let predicted = summary::type_filter(&table, cells, probes).unwrap();
        let seen = misnamed(&summary, ITEMS, &LEVELS, builds);
        let what = format!("{cells} cells, {probes} probes");
        assert_mean(&seen, predicted.failure, &what);
    }
    let stack = [
        bloom(12_000, 4),
        bloom(6000, 8),
        bloom(1200, 8),
        bloom(200, 8),
        bloom(80, 8),
        bloom(40, 8),
    ];
    let lists = [
        bloom(12_000, 4),
        bloom(4000, 6),
        LevelFilter::HashList { bits: 16 },
        LevelFilter::HashList { bits: 10 },
        LevelFilter::HashList { bits: 8 },
        LevelFilter::HashList { bits: 6 },
    ];
    for (filters, builds) in [(stack, 400), (lists, 200)] {
        let summary = FilterStack::builder().filters(&filters);
        let predicted = summary::filter_stack(&table, &filters).unwrap();
        let seen = misnamed(&summary, ITEMS, &LEVELS, builds);
        assert_mean(&seen, predicted.failure, &format!("{filters:?}"));
    }
}

/// For sorted strings the paper defines a failure as two equal strings.
#[test]
fn strings_are_equal_as_often_as_predicted() {
    const BUILDS: u64 = 600;
    let table = Occupancy::new(ITEMS, &LEVELS, 1).unwrap();
    let shape = Multilevel::builder().levels(&LEVELS).shape().unwrap();
    for bits in [20, 22, 24] {
        let summary = Interpolation::builder().bits(bits);
        let mut strings = summary.build(&shape).unwrap();
        let mut failures = 0;
        for build in 0..BUILDS {
            strings.clear();
            for i in 0..ITEMS {
                strings.insert(key(3, build * ITEMS + i), 0);
            }
            failures += u64::from(strings.distinct_strings() < ITEMS);
        }
        let predicted = summary::interpolation(&table, bits).unwrap().failure;
        let what = format!("strings of {bits} bits");
        assert_binomial(failures, BUILDS, predicted, &what);
    }
}

/// A million keys in a table with default settings: every key is found with
/// one read except for the promised share, and after an audit without
/// exception. Absent keys are read as often as predicted.
fn check_a_million<B: SummaryBuilder>(
    what: &str,
    summary: &B,
    predict: impl Fn(&TableShape) -> Result<Prediction>,
    documented_bits: f64,
) {
    const MILLION: u64 = 1_000_000;
    let builder = fixed().items(MILLION);
    let mut table = builder.build_with(summary).unwrap();
    for (value, key) in (0..).zip(keys(6, MILLION)) {
        assert_eq!(table.insert(key, value), Ok(None));
    }
    let predicted = predict(table.shape()).unwrap();
    let lookups = |table: &Multilevel<u64, u64, B::Summary>| {
        let mut more_reads = 0;
        for (value, key) in (0..).zip(keys(6, MILLION)) {
            let lookup = table.lookup(&key);
            assert_eq!(lookup.value, Some(&value));
            assert!(lookup.reads >= 1);
            more_reads += u64::from(lookup.reads > 1);
        }
        more_reads
    };
    let before = lookups(&table);
    let misnamed = table.audit();
    assert_eq!(lookups(&table), 0, "{what}: after an audit");
    let read = keys(7, MILLION).filter(|key| {
        let lookup = table.lookup(key);
        assert!(lookup.value.is_none() && lookup.reads <= 1);
        lookup.reads == 1
    });
    let read = read.count() as u64;
    let bits = table.stats().summary_bits_per_key.unwrap();
    println!(
        "{what}: {before} keys with more than one read, {misnamed} misnamed \
         ({:.2}), {read} false positives ({:.2}), {bits:.2} bits per key",
        predicted.failure,
        predicted.false_positive * MILLION as f64,
    );
    assert!((bits - documented_bits).abs() <= 0.05, "{what}: {bits}");
    assert!(before <= misnamed);
    let share = predicted.failure / MILLION as f64;
    assert_binomial(misnamed, MILLION, share, &format!("{what}: misnamed"));
    assert_binomial(read, MILLION, predicted.false_positive, what);
}

/// The bits per key equal those in the documentation of the summaries.
#[test]
fn a_million_keys_are_read_once() {
    let strings = Interpolation::builder();
    check_a_million(
        "interpolation",
        &strings,
        |shape| strings.predict(shape),
        69.5,
    );
    let cells = TypeFilter::builder();
    check_a_million("type filter", &cells, |shape| cells.predict(shape), 27.9);
    let stack = FilterStack::builder();
    check_a_million(
        "filter stack",
        &stack,
        |shape| stack.predict(shape),
        15.3,
    );
}

/// The mean number of keys in each level under churn, over the turnovers after
/// the first ten.
fn steady_levels(
    items: u64,
    levels: &[u64],
    bucket: u32,
    turnovers: u64,
) -> Vec<f64> {
    const SETTLING: u64 = 10;
    /// Samples per turnover.
    const SAMPLES: u64 = 2;
    let builder = fixed().levels(levels).bucket_entries(bucket);
    let mut table = builder.stash(items as usize).build().unwrap();
    let mut sums = vec![0; levels.len()];
    let mut present: Vec<u64> = (0..items).map(|i| key(4, i)).collect();
    for &key in &present {
        table.insert(key, ()).unwrap();
    }
    let steps = (SETTLING + turnovers) * items;
    for step in 0..steps {
        let at = key(5, step) as usize % present.len();
        let (old, new) = (present[at], key(4, items + step));
        present[at] = new;
        assert_eq!(table.remove(&old), Some(()));
        assert_eq!(table.insert(new, ()), Ok(None));
        if step >= SETTLING * items && step % (items / SAMPLES) == 0 {
            let stats = table.stats();
            for (sum, items) in sums.iter_mut().zip(stats.level_items) {
                *sum += items;
            }
        }
    }
    let samples = (turnovers * SAMPLES) as f64;
    sums.into_iter().map(|sum| sum as f64 / samples).collect()
}

/// Within 2 % of the prediction, or within the 99.9 % interval if that is
/// wider. The number of keys in a small level is nearly Poisson, and samples
/// are independent after about two turnovers.
#[test]
fn churn_fills_the_levels_as_predicted() {
    type Case = (u64, &'static [u64], u32, u64);
    let cases: [Case; 3] = [
        (100_000, &[190_000, 65_000, 25_000, 15_000, 3000, 2000], 1, 25),
        (50_000, &[5524, 1788, 374], 8, 6),
        (50_000, &[750, 125, 15], 64, 6),
    ];
    for (items, levels, bucket, turnovers) in cases {
        let predicted = churn(items, levels, bucket).unwrap().level_items();
        let seen = steady_levels(items, levels, bucket, turnovers);
        println!("{levels:?} of {bucket}: {seen:.1?}, {predicted:.1?}");
        for (seen, predicted) in seen.iter().zip(predicted) {
            let error = (predicted * 2.0 / turnovers as f64).sqrt();
            let slack = (0.02 * predicted).max(Z * error);
            assert!(
                (seen - predicted).abs() <= slack,
                "{levels:?}: {seen}, predicted {predicted} +- {slack}"
            );
        }
    }
}

const QUARTER: RemovalRule = RemovalRule::Lazy { share: 0.25 };

/// A table whose keys are replaced at random, one at a time.
struct Replaced {
    table: Multilevel<u64, ()>,
    present: Vec<u64>,
    trial: u64,
    inserted: u64,
    crises: u64,
}

impl Replaced {
    fn new(items: u64, levels: &[u64], bucket: u32) -> Self {
        let table = fixed()
            .items(items)
            .levels(levels)
            .bucket_entries(bucket)
            .removal(QUARTER)
            .build()
            .unwrap();
        let present = Vec::new();
        Self { table, present, trial: 0, inserted: 0, crises: 0 }
    }

    /// Empties the table and fills it with new keys.
    fn refill(&mut self, items: u64, trial: u64) {
        self.table.clear();
        self.present.clear();
        (self.trial, self.inserted) = (trial, 0);
        (0..items).for_each(|_| self.insert());
    }

    fn insert(&mut self) {
        let new = key(9, self.trial << 20 | self.inserted);
        self.inserted += 1;
        match self.table.insert(new, ()) {
            Ok(old) => {
                assert_eq!(old, None);
                self.present.push(new);
            }
            Err(_) => self.crises += 1,
        }
    }

    fn replace(&mut self) {
        let random = key(10, self.trial << 20 | self.inserted);
        let at = random as usize % self.present.len();
        let old = self.present.swap_remove(at);
        assert_eq!(self.table.remove(&old), Some(()));
        self.insert();
    }
}

/// The slots of each level just before the second rebuild by removals.
#[test]
fn lazy_removal_fills_the_levels_as_predicted() {
    type Case = (u64, &'static [u64], u32, u64);
    let cases: [Case; 2] = [
        (2000, &[3800, 1300, 500, 300, 100, 40], 1, 400),
        (500, &[80, 30, 8], 8, 600),
    ];
    for (items, levels, bucket, trials) in cases {
        let quota = items / 4;
        let predicted = lazy(items, levels, bucket, quota).unwrap();
        assert!(predicted.crisis_per_rebuild < 1e-6, "{predicted:?}");
        let mut replaced = Replaced::new(items, levels, bucket);
        let mut seen = vec![Vec::new(); levels.len()];
        for trial in 0..trials {
            replaced.refill(items, trial);
            // The removal after `quota` others rebuilds.
            for _ in 0..=2 * quota {
                replaced.replace();
            }
            let stats = replaced.table.stats();
            assert_eq!(stats.rebuilds, trial + 1);
            assert_eq!(stats.stale, quota);
            let slots = stats.level_items.iter().zip(&stats.level_deleted);
            let slots = slots.map(|(items, deleted)| items + deleted);
            assert_eq!(slots.clone().sum::<usize>() as u64, items + quota);
            for (seen, slots) in seen.iter_mut().zip(slots) {
                seen.push(slots as u64);
            }
        }
        assert_eq!(replaced.crises, 0);
        for (seen, predicted) in seen.iter().zip(predicted.level_slots) {
            match predicted * trials as f64 > 10.0 {
                true => assert_mean(seen, predicted, &format!("{levels:?}")),
                // Hardly a key: their number is Poisson.
                false => assert!(seen.iter().sum::<u64>() < 30),
            }
        }
    }
}

/// The keys that find no room in the cycle after a rebuild by removals.
#[test]
fn lazy_removal_has_the_predicted_crises() {
    const TRIALS: u64 = 20_000;
    type Case = (u64, &'static [u64], u32);
    let cases: [Case; 2] =
        [(60, &[100, 45, 20, 10], 1), (200, &[24, 8, 3], 8)];
    for (items, levels, bucket) in cases {
        let quota = items / 4;
        let predicted =
            lazy(items, levels, bucket, quota).unwrap().crisis_per_rebuild;
        assert!((0.005..0.05).contains(&predicted), "{predicted}");
        let mut replaced = Replaced::new(items, levels, bucket);
        let mut seen = 0;
        for trial in 0..TRIALS {
            replaced.refill(items, trial);
            let rebuilds = replaced.table.stats().rebuilds;
            for _ in 0..=quota {
                replaced.replace();
            }
            // A rebuild that finds the table full is a crisis as well.
            let failed = replaced.table.stats().rebuilds == rebuilds;
            replaced.crises = u64::from(failed);
            for _ in 0..quota {
                replaced.replace();
            }
            seen += u64::from(replaced.crises > 0);
        }
        println!("{levels:?}: {seen} of {TRIALS}, predicted {predicted}");
        assert_binomial(seen, TRIALS, predicted, &format!("{levels:?}"));
    }
}

/// The table that has 12.6 crises in every turnover if removals free their
/// slots has none in three turnovers (twelve rebuilds, 7e-5 expected).
#[test]
fn lazy_removal_keeps_room_under_churn() {
    const ITEMS: u64 = 100_000;
    let levels = [190_000, 65_000, 25_000, 15_000, 3000, 2000];
    let mut replaced = Replaced::new(ITEMS, &levels, 1);
    replaced.refill(ITEMS, 0);
    (0..3 * ITEMS).for_each(|_| replaced.replace());
    assert_eq!(replaced.crises, 0);
    assert_eq!(replaced.table.stats().rebuilds, 11);
    let table = &replaced.table;
    assert!(replaced.present.iter().all(|key| table.contains_key(key)));
    assert_eq!(table.len(), replaced.present.len());
}

/// Occupancy bits: an insertion reads the bucket that a false positive names,
/// and none to find room; with several entries, the one that takes the key.
#[test]
fn insertions_read_no_bucket_to_find_room() {
    const ITEMS: u64 = 50_000;
    for (entries, to_place) in [(1, 0.0), (8, 1.0)] {
        let builder = fixed().items(ITEMS).choices(4);
        let builder = builder.crisis_budget(1e-6).bucket_entries(entries);
        let mut plain = builder.build().unwrap();
        let strings = Interpolation::builder();
        let mut named = builder.build_with(&strings).unwrap();
        for key in keys(11, ITEMS) {
            plain.insert(key, ()).unwrap();
            named.insert(key, ()).unwrap();
        }
        // A search without a summary reads one bucket of each level; strings
        // of 61 bits have no false positive among these keys.
        assert_eq!(plain.stats().reads_insert, Some(4.0 + to_place));
        assert_eq!(named.stats().reads_insert, Some(to_place));
        let buckets: u64 = named.shape().levels().iter().sum();
        let bits = named.stats().occupancy_bits;
        assert!((buckets..buckets + 64).contains(&bits), "{bits}");
    }
}

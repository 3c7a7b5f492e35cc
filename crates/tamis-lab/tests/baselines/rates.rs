//! Measured false-positive rates beside the formula of each structure.

use tamis_lab::baseline::{
    Baseline, Counting, DLeft, Design, FastHashTable, Increments, LeastLoaded,
    Product, RankIndexed, SharedNodes, VariableIncrement,
};
use tamis_lab::simulation::{Keys, Sample, false_positives, fill, runs};

/// Structures per measurement, each with other keys.
const RUNS: u64 = 32;
const KEYS: u64 = 20_000;

/// Rates of `RUNS` structures, each with `strangers` lookups of absent keys.
///
/// `expected` lies in the interval of 99.9 % of their mean, of which half
/// is at most the share `precision` of it.
fn assert_rate<B: Baseline>(
    empty: impl Fn() -> B + Sync,
    keys: u64,
    strangers: u64,
    expected: f64,
    precision: f64,
) {
    let what = empty().name();
    let sample = Sample::new(runs(RUNS, |run| {
        let mut structure = empty();
        let of_run = Keys::new(run);
        fill(&mut structure, of_run.members(keys)).unwrap();
        for key in of_run.members(keys) {
            assert!(structure.contains(key), "{what} {run}");
        }
        false_positives(&structure, of_run.strangers(strangers)).value()
    }));
    let [low, high] = sample.interval();
    println!("{what}: {} [{low}, {high}], expected {expected}", sample.mean());
    assert!(
        sample.agrees(expected),
        "{what}: expected {expected}, measured [{low}, {high}]"
    );
    let half = (high - low) / 2.0;
    assert!(half <= precision * expected, "{what}: +-{half} of {expected}");
}

/// Targets, absent keys per structure, and the precision they give.
const TARGETS: [(f64, u64, f64); 3] =
    [(0.01, 100_000, 0.03), (0.001, 300_000, 0.05), (0.0001, 500_000, 0.13)];

#[test]
fn counting_bloom_filters() {
    for (target, strangers, precision) in TARGETS {
        let filter = || Counting::for_rate(KEYS, target);
        let expected = filter().expected_rate(KEYS);
        assert!((expected / target - 1.0).abs() < 0.001);
        assert_rate(filter, KEYS, strangers, expected, precision);
    }
}

#[test]
fn variable_increment_filters() {
    for increments in [Increments::FOUR, Increments::EIGHT] {
        for (target, strangers, precision) in TARGETS {
            let filter =
                || VariableIncrement::for_rate(KEYS, target, increments);
            let expected = filter().expected_rate(KEYS);
            assert!((expected / target - 1.0).abs() < 0.001);
            assert_rate(filter, KEYS, strangers, expected, precision);
        }
    }
}

#[test]
fn d_left_filters() {
    // Rates of 1.2, 0.15 and 0.009 %.
    let remainders = [11, 14, 18];
    for (bits, (_, strangers, precision)) in
        remainders.into_iter().zip(TARGETS)
    {
        let filter = || DLeft::new(10, bits);
        let keys = filter().nominal();
        let expected = filter().expected_rate(keys);
        let first_order = 24.0 / 2f64.powi(bits as i32);
        assert!((expected / first_order - 1.0).abs() < 0.007);
        assert_rate(filter, keys, strangers, expected, precision);
    }
}

#[test]
fn rank_indexed_tables() {
    let uncounted = TARGETS.map(|target| (false, target));
    for (counted, target) in uncounted.into_iter().chain([(true, TARGETS[0])])
    {
        let (target, strangers, precision) = target;
        let design = Design::search(target, counted).unwrap();
        let filter = || RankIndexed::new(design, 1);
        let keys = filter().nominal();
        let expected = filter().expected_rate(keys);
        assert!((expected / target - 1.0).abs() < 0.006);
        assert_rate(filter, keys, strangers, expected, precision);
    }
}

#[test]
fn fast_hash_tables() {
    let expected = FastHashTable::new(131_072, 6).expected_rate(KEYS);
    let pruned = || FastHashTable::new(131_072, 6);
    assert_rate(pruned, KEYS, 50_000, expected, 0.02);
    let shared = || SharedNodes::new(131_072, 6);
    assert_rate(shared, KEYS, 50_000, expected, 0.02);
}

#[test]
fn least_loaded_filters() {
    for (choices, width, target) in [(2, 10, 0), (3, 14, 1), (4, 17, 2)] {
        let (_, strangers, precision) = TARGETS[target];
        // Five keys per bucket.
        let filter = || LeastLoaded::filter(KEYS / 5, choices, width);
        let expected = filter().expected_rate(KEYS).unwrap();
        let first_order = 5.0 * f64::from(choices) / 2f64.powi(width as i32);
        assert!((expected / first_order - 1.0).abs() < 0.006);
        assert_rate(filter, KEYS, strangers, expected, precision);
    }
}

#[test]
fn filters_of_the_product() {
    let filter = || {
        let builder = tamis::Bloom::builder().items(KEYS).fpr(0.01);
        Product(builder.build().unwrap())
    };
    let expected = filter().0.design_fpr();
    assert_rate(filter, KEYS, 100_000, expected, 0.03);
}

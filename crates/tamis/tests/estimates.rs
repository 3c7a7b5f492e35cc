//! Bounds and estimates of the number of different keys, from sparse filters
//! to filters for a hundred keys that got 400,000.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use support::key;
use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, FilterMut, Removal, Split, Stats,
    TinySet, Window,
};

/// One filter of every kind for `items` keys at 1 %.
fn every_kind(items: u64) -> Vec<(&'static str, Box<dyn FilterMut>)> {
    macro_rules! sized {
        ($kind:ident) => {
            $kind::builder().items(items).fpr(0.01)
        };
    }
    macro_rules! boxed {
        ($builder:expr) => {
            Box::new($builder.build().unwrap())
        };
    }
    vec![
        ("bloom", boxed!(sized!(Bloom))),
        ("blocked", boxed!(sized!(Blocked))),
        ("split", boxed!(sized!(Split))),
        ("balanced", boxed!(sized!(Balanced).tracking_bits(8))),
        ("tinyset", boxed!(sized!(TinySet))),
        ("tinyset with repeats", boxed!(sized!(TinySet).repeats())),
        ("removable tinyset", boxed!(sized!(TinySet).removable())),
        ("two-level tinyset", boxed!(sized!(TinySet).fpr(0.0005).two_level())),
    ]
}

fn insert(filter: &mut dyn FilterMut, keys: u64) {
    let hasher = *filter.hasher();
    let hashes: Vec<u64> =
        (0..keys).map(|i| hasher.hash(&key(1, i))).collect();
    filter.insert_hash_batch(&hashes);
}

#[track_caller]
fn check(stats: &Stats, keys: u64, what: &str) {
    let Stats { least_items, estimated_items, most_items, .. } = *stats;
    let what = format!(
        "{what}: {keys} keys in {least_items}..{most_items:?}, \
         estimated {estimated_items:.1}"
    );
    assert!(least_items <= keys, "{what}");
    assert!(most_items.is_none_or(|most| most >= keys), "{what}");
    assert!(estimated_items >= least_items as f64, "{what}");
    let most = most_items.map_or(f64::INFINITY, |most| most as f64);
    assert!(estimated_items <= most, "{what}");
    println!("{what}");
}

#[test]
fn the_true_number_is_between_the_bounds_of_overfull_filters() {
    const KEYS: u64 = 400_000;
    for items in [400_000, 100_000, 10_000, 100] {
        for (name, mut filter) in every_kind(items) {
            insert(&mut *filter, KEYS);
            let stats = filter.stats();
            check(&stats, KEYS, &format!("{name} for {items}"));
            assert_eq!(stats.over_design, items < KEYS, "{name} for {items}");
            // All again, and some more often.
            for part in [1, 1, 4, 16] {
                insert(&mut *filter, KEYS / part);
            }
            let stats = filter.stats();
            check(&stats, KEYS, &format!("{name} for {items}, repeats"));
            assert!(stats.items >= KEYS || name == "balanced");
        }
    }
}

#[test]
fn filters_that_are_not_overfull_know_their_keys_within_a_percent() {
    for (items, keys) in [
        (0, 0),
        (1, 1),
        (10, 3),
        (100, 1),
        (100, 100),
        (1000, 700),
        (30_000, 10_000),
        (100_000, 100_000),
        (100_000, 150_000),
    ] {
        for (name, mut filter) in every_kind(items) {
            insert(&mut *filter, keys);
            let what = format!("{name} for {items}");
            check(&filter.stats(), keys, &what);
            insert(&mut *filter, keys);
            let stats = filter.stats();
            check(&stats, keys, &what);
            let most = stats.most_items.unwrap();
            // Copies are load: the rate is ten times that of the keys.
            let share = match (keys, stats.expected_fpr) {
                (..10_000, _) => 0.3,
                (_, 0.1..) => 0.4,
                _ => 0.02,
            };
            let slack = share * keys as f64 + 4.0;
            assert!((most - stats.least_items) as f64 <= slack, "{what}");
        }
    }
}

/// The number to build a filter again for follows merges, folds, growth and
/// removals.
#[test]
fn bounds_hold_after_every_change() {
    let keys = |from: u64, to: u64| -> Vec<u64> {
        (from..to).map(|i| key(1, i)).collect()
    };
    for fpr in [0.3, 0.1, 0.01, 0.0001] {
        for builder in [
            TinySet::builder(),
            TinySet::builder().repeats(),
            TinySet::builder().removable(),
        ] {
            let builder = builder.items(50_000).fpr(fpr).foldable(1);
            let mut left = builder.build_from(keys(0, 30_000)).unwrap();
            let right = builder.build_from(keys(20_000, 50_000)).unwrap();
            left.merge_from(&right).unwrap();
            check(&left.stats(), 50_000, "merged");
            check(&left.halved().unwrap().stats(), 50_000, "folded");
            let mut grown = left.doubled().unwrap();
            check(&grown.stats(), 50_000, "grown");
            grown.insert_batch(&keys(50_000, 150_000));
            check(&grown.stats(), 150_000, "grown, filled");
            let mut grown = grown.doubled().unwrap();
            grown.insert_batch(&keys(150_000, 200_000));
            check(&grown.stats(), 200_000, "grown twice");
            if grown.is_removable() {
                for key in keys(0, 150_000) {
                    assert_eq!(grown.remove(&key), Ok(Removal::Removed));
                }
                // 10,000 keys were inserted twice.
                check(&grown.stats(), 60_000, "removed");
            }
        }
    }
    for kind in [tamis::Kind::Bloom, tamis::Kind::Blocked, tamis::Kind::Split]
    {
        let builder = AnyFilter::builder(kind).items(40_000).fpr(0.01);
        let builder = builder.foldable(2);
        let mut left = builder.build_from(keys(0, 30_000)).unwrap();
        let right = builder.build_from(keys(20_000, 50_000)).unwrap();
        left.merge_from(&right).unwrap();
        check(&left.stats(), 50_000, "merged");
        let folded = left.halved().unwrap();
        check(&folded.stats(), 50_000, "folded");
        check(&folded.halved().unwrap().stats(), 50_000, "folded twice");
    }
    let mut window =
        Window::new(TinySet::builder().items(1000).fpr(0.01)).unwrap();
    window.extend(keys(0, 1500));
    check(&window.stats(), 1500, "window");
}

//! Level sizes and summaries found by search, against exact predictions and
//! reference values.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod support;

use serde_json::Value;
use support::{integer, multilevel_reference as reference, number};
use tamis_theory::Error;
use tamis_theory::crisis::{Occupancy, fewest_buckets, least_crisis};
use tamis_theory::summary::{
    Designs, Filter, Goal, Prediction, filter_stack, interpolation, optimise,
    type_filter,
};

/// Asserts the limits of the goal by the exact table, without the search.
fn assert_meets(goal: &Goal, crisis: f64, levels: &[u64], found: &Prediction) {
    let table = Occupancy::new(goal.items, levels, goal.bucket).unwrap();
    assert_eq!(table.crisis(), crisis);
    assert!(crisis + found.failure <= goal.budget, "{found:?}");
    assert!(found.false_positive <= goal.max_false_positive, "{found:?}");
    let buckets: u64 = levels.iter().sum();
    assert!(buckets as f64 <= goal.items as f64 * goal.buckets_per_item);
}

fn assert_all_meet(goal: &Goal, found: &Designs) {
    let stack = &found.filter_stack;
    assert_meets(goal, stack.crisis, &stack.levels, &stack.prediction);
    let table = Occupancy::new(goal.items, &stack.levels, goal.bucket);
    let again = filter_stack(&table.unwrap(), &stack.filters).unwrap();
    assert_eq!(again, stack.prediction);
    let cells = &found.type_filter;
    assert_meets(goal, cells.crisis, &cells.levels, &cells.prediction);
    let table = Occupancy::new(goal.items, &cells.levels, goal.bucket);
    let again = type_filter(&table.unwrap(), cells.cells, cells.probes);
    assert_eq!(again.unwrap(), cells.prediction);
    let strings = &found.interpolation;
    assert_meets(goal, strings.crisis, &strings.levels, &strings.prediction);
    let table = Occupancy::new(goal.items, &strings.levels, goal.bucket);
    let again = interpolation(&table.unwrap(), strings.bits).unwrap();
    assert_eq!(again, strings.prediction);
}

/// Asserts at most 0.1% more memory than the reference; type filters are
/// several percent smaller.
fn assert_as_small(row: &Value) {
    let goal = Goal {
        budget: number(&row["budget"]),
        ..Goal::new(number(&row["n"]) as u64, number(&row["buckets_per_item"]))
    };
    let found = optimise(goal).unwrap();
    assert_all_meet(&goal, &found);
    for (what, got, most) in [
        ("mbf", found.filter_stack.prediction.bits_per_item, 1.001),
        ("sf", found.type_filter.prediction.bits_per_item, 1.001),
        ("is", found.interpolation.prediction.bits_per_item, 1.0),
    ] {
        let want = number(&row[what]["bits_per_item"]);
        let ratio = got / want;
        assert!(ratio <= most && ratio > 0.93, "{goal:?} {what}: {ratio}");
    }
    let stack = &found.filter_stack;
    for (got, name) in [
        (stack.level_bits, "type_bits_per_item"),
        (stack.level_bits_with_exceptions, "type_bits_with_exceptions"),
    ] {
        let ratio = got / number(&row["mbf"][name]);
        assert!((0.97..1.002).contains(&ratio), "{goal:?} {name}: {ratio}");
    }
    let bits = integer(&row["is"]["string_bits"]);
    assert_eq!(found.interpolation.bits, bits);
}

/// Compares the rows with these numbers of items, and returns how many.
fn compare(items: &[u64]) -> usize {
    let mut rows = 0;
    for row in reference("optimised_h1") {
        if items.contains(&(number(&row["n"]) as u64)) {
            assert_as_small(&row);
            rows += 1;
        }
    }
    rows
}

#[test]
fn summaries_of_ten_thousand() {
    assert_eq!(compare(&[10_000]), 6);
}

/// Run by `cargo xtask slow`.
#[test]
#[ignore = "slow tier"]
fn summaries_of_millions() {
    assert_eq!(compare(&[100_000, 1_000_000, 100_000_000]), 18);
}

#[test]
fn other_goals() {
    let small = Goal::new(1000, 3.0);
    for goal in [
        Goal { choices: Some(6), ..small },
        Goal { budget: 0.1, max_false_positive: 0.3, ..small },
        Goal { max_false_positive: 1e-6, ..small },
        Goal {
            items: 300,
            bucket: 4,
            buckets_per_item: 0.5,
            choices: Some(4),
            budget: 1e-6,
            ..small
        },
    ] {
        let found = optimise(goal).unwrap();
        assert_all_meet(&goal, &found);
        if let Some(choices) = goal.choices {
            let levels = found.filter_stack.levels.len();
            assert_eq!(levels, choices as usize);
        }
        let bloom = |f: &Filter| matches!(f, Filter::Bloom { .. });
        assert!(found.filter_stack.filters.iter().all(bloom));
    }
}

#[test]
fn more_levels_meet_the_budget() {
    let goal = Goal { choices: Some(3), ..Goal::new(10_000, 3.0) };
    let error = optimise(goal).unwrap_err();
    assert!(
        matches!(error, Error::Budget { budget: 1e-9, best } if best > 1e-9)
    );
    assert!(optimise(Goal { choices: Some(5), ..goal }).is_err());
    assert!(optimise(Goal { choices: Some(6), ..goal }).is_ok());
}

/// With three buckets per item, one more level lowers the chance of a crisis
/// by orders of magnitude.
#[test]
fn least_crises() {
    for (choices, most) in [(4, 0.062), (5, 4.95e-6), (6, 6.61e-13)] {
        let levels = least_crisis(10_000, 30_000, choices, 1).unwrap();
        assert_eq!(levels.len(), choices as usize);
        assert_eq!(levels.iter().sum::<u64>(), 30_000);
        let crisis = Occupancy::new(10_000, &levels, 1).unwrap().crisis();
        assert!(crisis <= most && crisis > 0.8 * most, "{crisis}");
    }
}

/// Asserts at most 0.3% more pages than these rows of the reference.
fn assert_few_pages(rows: core::ops::Range<usize>) {
    for row in &reference("capacity_exact")[rows] {
        let n = number(&row["n"]) as u64;
        let pages = row["pages"].as_array().unwrap();
        let (choices, bucket) = (pages.len() as u32, integer(&row["h"]));
        let budget = number(&row["crisis"]);
        let levels = fewest_buckets(n, choices, bucket, budget).unwrap();
        let buckets = levels.iter().sum::<u64>() as f64;
        let load = n as f64 / (f64::from(bucket) * buckets);
        let ratio = load / number(&row["load"]);
        assert!((0.997..1.01).contains(&ratio), "{pages:?}: {ratio}");
        let table = Occupancy::new(n, &levels, bucket).unwrap();
        assert!(table.crisis() <= budget);
    }
}

#[test]
fn fewest_pages_of_eight() {
    assert_few_pages(0..1);
}

/// Run by `cargo xtask slow`.
#[test]
#[ignore = "slow tier"]
fn fewest_pages_of_more() {
    assert_few_pages(1..4);
}

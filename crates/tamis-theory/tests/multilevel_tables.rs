//! Multilevel tables and their summaries against independent reference
//! values.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod support;

use serde_json::Value;
use support::{
    Tally, counts, integer, multilevel_reference as reference, number, numbers,
};
use tamis_theory::crisis::{self, Occupancy};
use tamis_theory::summary::{self, Filter};

fn items(row: &Value) -> u64 {
    number(&row["n"]) as u64
}

fn table(row: &Value, sizes: &str, bucket: u32) -> Occupancy {
    Occupancy::new(items(row), &counts(&row[sizes]), bucket).unwrap()
}

/// Asserts a list of the same length with equal numbers.
fn same_list(tally: &mut Tally, what: &str, got: &[f64], want: &Value) {
    let want = numbers(want);
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        tally.within(what, *got, want, 1e-6);
    }
}

#[test]
fn crises() {
    let mut tally = Tally::default();
    let mut fractions = 0;
    for row in reference("crisis") {
        let what = row["sizes"].to_string();
        let table = table(&row, "sizes", 1);
        tally.same(&what, table.crisis(), &row["crisis"]);
        let passed_on = table.passed_on();
        let above = &passed_on[..passed_on.len() - 1];
        same_list(&mut tally, &what, above, &row["mean_passed_on"]);
        let heuristic =
            crisis::heuristic(items(&row), table.levels(), 1).unwrap();
        same_list(&mut tally, &what, &heuristic, &row["heuristic_passed_on"]);
        if let Some(text) = row["crisis_fraction"].as_str() {
            fractions += 1;
            let (above, below) = text.split_once('/').unwrap();
            let [above, below]: [f64; 2] =
                [above, below].map(|part| part.parse().unwrap());
            // To the last digit: all operands are small fractions.
            let gap = table.crisis() / (above / below) - 1.0;
            assert!(gap.abs() < 4.0 * f64::EPSILON, "{what}: {gap}");
        }
    }
    assert_eq!((tally.0, fractions), (18 + 90 + 108, 4));
}

#[test]
fn larger_buckets() {
    let mut tally = Tally::default();
    for row in reference("capacity_exact") {
        let bucket = integer(&row["h"]);
        let what = format!("h {bucket} {}", row["pages"]);
        let table = table(&row, "pages", bucket);
        tally.same(&what, table.crisis(), &row["crisis"]);
        let passed_on = table.passed_on();
        let above = &passed_on[..passed_on.len() - 1];
        same_list(&mut tally, &what, above, &row["passed_on"]);
        let fluid =
            crisis::heuristic(items(&row), table.levels(), bucket).unwrap();
        tally.same(&what, fluid[fluid.len() - 1], &row["fluid"]);
    }
    assert_eq!(tally.0, 4 * 2 + 11);
    for row in reference("simulated_capacity") {
        let bucket = integer(&row["h"]);
        let table = table(&row, "pages", bucket);
        // The reference is a union bound: the sum over the buckets of the
        // last level of their chance to overflow.
        let added = -(-table.crisis()).ln_1p();
        let sum = number(&row["exact"]);
        assert!(table.crisis() < sum);
        tally.within("sum", added, sum, 2e-3);
        let fluid = crisis::heuristic(items(&row), table.levels(), bucket);
        tally.same("fluid", *fluid.unwrap().last().unwrap(), &row["fluid"]);
    }
    assert_eq!(tally.0, 19 + 3 * 2);
}

#[test]
fn overflow_of_one_bucket() {
    let mut tally = Tally::default();
    for row in reference("capacity_overflow_fraction") {
        let (bucket, mean) = (integer(&row["h"]), number(&row["lam"]));
        let fresh = crisis::overflow_fraction(bucket, mean).unwrap();
        tally.same("insert only", fresh, &row["insert_only"]);
        let used = crisis::erlang_b(bucket, mean).unwrap();
        tally.same("churn", used, &row["churn"]);
    }
    assert_eq!(tally.0, 15 * 2);
}

#[test]
fn replaced_items() {
    let mut tally = Tally::default();
    for row in reference("churn") {
        let (levels, bucket) = (counts(&row["sizes"]), integer(&row["h"]));
        let fresh = crisis::heuristic(items(&row), &levels, bucket).unwrap();
        // The reference rounds negligible numbers to zero.
        let (last, others) = fresh.split_last().unwrap();
        let mut want = numbers(&row["insert_only_passed_on"]);
        let end = want.pop().unwrap();
        for (got, want) in others.iter().zip(want) {
            tally.within("fresh", *got, want, 1e-6);
        }
        assert!((last - end).abs() <= 1e-6 * end + 1e-30);
        let used = crisis::churn(items(&row), &levels, bucket).unwrap();
        let erlang = &row["churn_passed_on_erlang"];
        same_list(&mut tally, "churn", &used.passed_on, erlang);
        // Simulated means of ten turnovers, replacing random items or the
        // oldest first.
        for mean in
            ["simulated_passed_on_mean", "simulated_passed_on_fifo_mean"]
        {
            for (got, want) in used.passed_on.iter().zip(numbers(&row[mean])) {
                let room = 0.02 * want + 6.0 * want.sqrt().max(1.0);
                assert!((got - want).abs() < room, "{got} {want}");
            }
        }
    }
    assert_eq!(tally.0, 25 + 31);
}

#[test]
fn pages_at_given_sizes() {
    let mut tally = Tally::default();
    let n = 100_000_000;
    for (block, failures) in [("capacity", 1e-9), ("lean", 5e-10)] {
        for row in reference(block) {
            let (pages, bucket) = (counts(&row["pages"]), integer(&row["h"]));
            let what = format!("{block} {bucket} {}", row["pages"]);
            let passed_on = crisis::heuristic(n, &pages, bucket).unwrap();
            let load = n as f64
                / (f64::from(bucket) * pages.iter().sum::<u64>() as f64);
            tally.same(&what, load, &row["load"]);
            same_list(&mut tally, &what, &passed_on, &row["passed_on"]);
            let never = summary::level_bits(&passed_on, failures).unwrap();
            tally.same(&what, never, &row["mbf_type_bits"]);
            let recorded =
                summary::level_bits_with_exceptions(&passed_on).unwrap();
            tally.same(&what, recorded, &row["exception_type_bits"]);
            let entropy = summary::lower_bound(&passed_on, 1.0).unwrap();
            tally.same(&what, entropy, &row["type_entropy"]);
            if block == "capacity" {
                let pages = counts(&row["churn_pages"]);
                let used = crisis::churn(n, &pages, bucket).unwrap();
                // Rounding to whole pages misses the target by up to 0.1%.
                let crises = used.crises_per_turnover;
                tally.within(&what, crises, 1e-9, 1e-3);
                let share = used.passed_on[1] / n as f64;
                tally.same(&what, share, &row["churn_type_gt1"]);
            }
        }
    }
    assert_eq!(tally.0, 15 * 6 + 27 * 4 + 60 + 122);
}

fn filters(value: &Value) -> Vec<Filter> {
    let pairs = value.as_array().unwrap().iter().map(counts);
    pairs
        .map(|pair| Filter::Bloom { cells: pair[0], probes: pair[1] as u32 })
        .collect()
}

#[test]
fn summaries() {
    let mut tally = Tally::default();
    for row in reference("summaries") {
        let table = table(&row, "sizes", 1);
        let what = row["sizes"].to_string();
        tally.same(&what, table.crisis(), &row["crisis"]);
        let (cells, probes) =
            (number(&row["sf"]["cells"]), integer(&row["sf"]["k"]));
        let single =
            summary::type_filter(&table, cells as u64, probes).unwrap();
        let stack =
            summary::filter_stack(&table, &filters(&row["mbf"]["filters"]))
                .unwrap();
        for (got, want) in [(&single, &row["sf"]), (&stack, &row["mbf"])] {
            let rate = &want["false_positive"];
            tally.same(&what, got.false_positive, rate);
            tally.same(&what, got.failure, &want["failure"]);
            let each = numbers(&want["failure_by_type"]);
            assert_eq!(got.failure_by_level.len(), each.len());
            for (got, want) in got.failure_by_level.iter().zip(each) {
                // Above 1e6 items the reference uses normal distributions
                // and ignores the covariance of items kept and passed on.
                // Chances below 1e-25 are negligible.
                let part = if items(&row) > 1_000_000 { 3e-4 } else { 1e-6 };
                if want > 1e-25 {
                    tally.within(&what, *got, want, part);
                }
            }
        }
        tally.same(&what, stack.bits_per_item, &row["mbf"]["bits_per_item"]);
        // Cells packed into words take up to 4% more than their entropy.
        let ideal = number(&row["sf"]["bits_per_item"]);
        let ratio = single.bits_per_item / ideal;
        assert!((1.0..1.04).contains(&ratio), "{what}: {ratio}");
    }
    assert_eq!(tally.0, 7 * 6 + 53);
}

#[test]
fn strings() {
    let mut tally = Tally::default();
    for row in reference("interpolation") {
        // The result does not depend on the levels.
        let n = items(&row);
        let table = Occupancy::new(n, &[2 * n, n], 1).unwrap();
        let bits = integer(&row["bits_per_item"]);
        let got = summary::interpolation(&table, bits).unwrap();
        tally.same("failure", got.failure, &row["failure"]);
        tally.same("rate", got.false_positive, &row["false_positive"]);
        assert_eq!(got.bits_per_item, f64::from(bits) + 1.0);
    }
    assert_eq!(tally.0, 5 * 2);
}

#[test]
fn counting_filters_under_churn() {
    let mut tally = Tally::default();
    for row in reference("simulated_churn_counting_mbf") {
        let levels = counts(&row["sizes"]);
        let (group, probes) = (number(&row["group"]), integer(&row["k"]));
        let cells = group as u64 * u64::from(probes);
        let mut filters = vec![Filter::HashList { bits: 128 }; levels.len()];
        filters[1] = Filter::Bloom { cells, probes };
        let steady =
            summary::churned_stack(items(&row), &levels, 1, &filters).unwrap();
        let predicted = number(&row["misnamed_steady_predicted"]);
        tally.within("steady", steady, predicted, 1e-4);
        // The reference replaces every level by its average, which is too
        // low: the chance of a hit is convex in the items below.
        let average = crisis::heuristic(items(&row), &levels, 1).unwrap();
        let stay = average[0] - average[1];
        let mean = stay * filters[1].hit(average[1]);
        let fresh = table(&row, "sizes", 1);
        tally.same("fresh", mean, &row["misnamed_static"]);
        let exact = summary::filter_stack(&fresh, &filters).unwrap();
        assert!(exact.failure > 1.01 * mean && exact.failure < 1.1 * mean);
        let churn = crisis::churn(items(&row), &levels, 1).unwrap();
        tally.same("below", churn.passed_on[1], &row["type_gt1_erlang"]);
        // A simulated mean over many turnovers.
        let seen = number(&row["misnamed_steady_simulated"]);
        assert!((steady / seen - 1.0).abs() < 0.15);
    }
    assert_eq!(tally.0, 2 * 3);
}

//! Predictions of multilevel tables against simulations, our own and those of
//! the reference.

mod support;

use serde_json::Value;
use support::{Random, counts, multilevel_reference as reference, number};
use tamis_theory::crisis::Occupancy;
use tamis_theory::summary::{self, Filter};

/// Half width of a 99.9 % interval, in standard deviations.
const DEVIATIONS: f64 = 3.29;

/// Asserts that an event of this chance occurred in a share `seen` of the
/// trials, up to [`DEVIATIONS`].
#[track_caller]
fn assert_frequency(what: &str, seen: f64, chance: f64, trials: f64) {
    let room = DEVIATIONS * (chance * (1.0 - chance) / trials).sqrt();
    assert!((seen - chance).abs() <= room, "{what}: {seen}, not {chance}");
}

/// Fills a table; returns the items of each level, then those without room.
fn fill(random: &mut Random, items: u64, levels: &[u64], h: u32) -> Vec<u64> {
    let mut table: Vec<Vec<u32>> =
        levels.iter().map(|m| vec![0; *m as usize]).collect();
    let mut counts = vec![0; levels.len() + 1];
    for _ in 0..items {
        let place = table.iter_mut().position(|level| {
            let bucket = random.below(level.len());
            let room = level[bucket] < h;
            level[bucket] += u32::from(room);
            room
        });
        counts[place.unwrap_or(levels.len())] += 1;
    }
    counts
}

#[test]
fn crises_and_levels() {
    for (items, levels, bucket, trials) in [
        (1000, &[1900, 650, 250, 100][..], 1, 20_000u32),
        (200, &[30, 8, 2], 4, 20_000),
        (500, &[52, 14, 3], 8, 10_000),
        (20_000, &[2072, 715, 168], 8, 3000),
        (2000, &[25, 9], 64, 4000),
    ] {
        let mut random = Random(items);
        let table = Occupancy::new(items, levels, bucket).unwrap();
        let mut crises = 0u32;
        let mut means = vec![0.0; levels.len()];
        for _ in 0..trials {
            let counts = fill(&mut random, items, levels, bucket);
            crises += u32::from(counts[levels.len()] > 0);
            for (mean, count) in means.iter_mut().zip(&counts) {
                *mean += *count as f64 / f64::from(trials);
            }
        }
        let trials = f64::from(trials);
        let what = format!("{levels:?} of {bucket}");
        let seen = f64::from(crises) / trials;
        assert!(crises > 20, "{what}: too few crises to compare");
        assert_frequency(&what, seen, table.crisis(), trials);
        for (mean, want) in means.iter().zip(table.level_items()) {
            // The variance of a count is below that of a Poisson variable.
            let room = DEVIATIONS * (want / trials).sqrt() * 2.0;
            assert!((mean - want).abs() < room, "{what}: {mean} {want}");
        }
    }
}

#[test]
fn crises_of_reference_simulations() {
    let mut rows = 0;
    for row in reference("simulated_crisis") {
        rows += 1;
        let items = number(&row["n"]) as u64;
        let table = Occupancy::new(items, &counts(&row["sizes"]), 1).unwrap();
        let (seen, trials) = (number(&row["mc"]), number(&row["trials"]));
        assert_frequency("crisis", seen, table.crisis(), trials);
        let gap = table.crisis() / number(&row["exact"]) - 1.0;
        assert!(gap.abs() < 1e-6);
    }
    assert_eq!(rows, 2);
}

fn pair(value: &Value) -> (u64, u32) {
    let both = counts(value);
    (both[0], both[1] as u32)
}

/// Items with the wrong level per table, and false positives.
#[test]
fn summaries_of_reference_simulations() {
    let mut rows = 0;
    for row in reference("simulated_summaries") {
        rows += 1;
        let items = number(&row["n"]) as u64;
        let table = Occupancy::new(items, &counts(&row["sizes"]), 1).unwrap();
        let (cells, probes) = pair(&row["sf"]);
        let single = summary::type_filter(&table, cells, probes).unwrap();
        let stack: Vec<Filter> = row["mbf"]
            .as_array()
            .unwrap()
            .iter()
            .map(pair)
            .map(|(cells, probes)| Filter::Bloom { cells, probes })
            .collect();
        let stack = summary::filter_stack(&table, &stack).unwrap();
        let trials = number(&row["trials"]);
        for (name, found) in [("sf", single), ("mbf", stack)] {
            let of = |what: &str| number(&row[&format!("{name}_{what}")]);
            let gap = found.failure / of("failure_bound") - 1.0;
            assert!(gap.abs() < 1e-6, "{name}: {found:?}");
            // Counts of rare items are nearly Poisson.
            let room = DEVIATIONS * (found.failure / trials).sqrt() * 1.2;
            let wrong = (of("bad_items_mc") - found.failure).abs();
            assert!(wrong < room, "{name}: {found:?}");
            // Tables with a failure are at most as frequent as failures.
            assert!(of("failure_mc") <= of("bad_items_mc"));
            let seen = of("fp_mc");
            let gap = (seen / found.false_positive - 1.0).abs();
            assert!(gap < 0.01, "{name}: {seen}");
        }
    }
    assert_eq!(rows, 2);
}

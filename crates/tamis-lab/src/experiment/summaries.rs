//! Summaries of a multilevel table compared with the fast hash table:
//! memory, false positives and failures.

use tamis_theory::crisis::Occupancy;
use tamis_theory::summary::{self, Goal};

use super::{Experiment, Result, Setting};
use crate::baseline::{Baseline as _, FastHashTable};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Rate, false_positives, mix, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "summaries",
    title: "Summaries beside the fast hash table",
    source: "SUM, interpolation search to numerical evaluation",
    about: "Memory, false positives and failures of the three summaries, \
        with three buckets per item and a budget of 1e-9, and of the fast \
        hash table of Song et al. with 13.1 buckets per item.",
    seconds: [90.0, 1.2],
    traced: false,
    run,
};

/// Numbers of items, and tables of the baseline to build.
const SIZES: [(u64, u64); 2] = [(10_000, 1000), (100_000, 60)];
const BUCKETS_PER_ITEM: f64 = 3.0;
/// Fast hash table: buckets for 10 000 items, and hashes of a key.
const SONG_BUCKETS: u64 = 131_072;
const SONG_CHOICES: u32 = 10;
/// Absent keys looked up in the fast hash table.
const STRANGERS: u64 = 1_000_000;
/// Bits of a string that fills a word together with its level.
const STRING_BITS: u32 = 61;
const WORD_BYTES: f64 = 8.0;

#[derive(Debug)]
struct Row {
    scheme: &'static str,
    items: u64,
    /// k of the filter that decides the failures.
    probes: Option<u32>,
    bytes: f64,
    false_positive: f64,
    /// Probability of a crisis or of a wrong level, or the share of tables
    /// in which two keys share a bucket.
    goes_wrong: f64,
    /// Tables built, if `goes_wrong` was measured; `None` if computed.
    trials: Option<u64>,
}

fn run(setting: &Setting) -> Result<Outcome> {
    let sizes: &[(u64, u64)] =
        setting.size(&[(10_000, 1000), (100_000, 60)], &[(10_000, 200)]);
    let mut outcome = Outcome {
        parameters: vec![
            ("buckets per item", BUCKETS_PER_ITEM.to_string()),
            ("budget of crises and failures", "1e-9".to_owned()),
            ("fast hash tables built", format!("{sizes:?}")),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &[
            "scheme",
            "items",
            "k",
            "bytes",
            "false positives",
            "goes wrong",
            "tables built",
        ],
    );
    let mut series = Vec::new();
    for (items, trials) in sizes {
        let rows = compare(*items, *trials)?;
        for row in &rows {
            table.push(row![
                row.scheme,
                row.items,
                row.probes,
                row.bytes,
                row.false_positive,
                row.goes_wrong,
                row.trials,
            ]);
        }
        if *items == SIZES[0].0 {
            series = rows
                .iter()
                .enumerate()
                .map(|(i, row)| {
                    let bits = row.bytes * 8.0 / *items as f64;
                    let rate = row.false_positive.max(1e-15);
                    Series::marks(row.scheme, i, vec![(bits, rate)])
                })
                .collect();
        }
        findings(&mut outcome, *items, *trials, &rows)?;
    }
    strings(&mut outcome)?;
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Memory and false positives at 10 000 items".into(),
        x: Axis::linear("bits per item"),
        y: Axis::log("false-positive rate"),
        legend: Corner::LowerLeft,
        series,
    });
    Ok(outcome)
}

fn findings(
    outcome: &mut Outcome,
    items: u64,
    trials: u64,
    rows: &[Row; 5],
) -> Result<()> {
    let [song, balanced, strings, cells, stack] = rows;
    let failed = |row: &Row| Rate {
        hits: (row.goes_wrong * trials as f64).round() as u64,
        trials,
    };
    let buckets = SONG_BUCKETS * (items / SIZES[0].0);
    let model = FastHashTable::new(buckets, SONG_CHOICES);
    let mut push = |finding: Finding| outcome.findings.push(finding);
    push(
        Finding::new(
            &["S-003", "S-031"],
            format!("fast hash table, {items} items: false positives"),
        )
        .ours(song.false_positive)
        .predicted_within(model.expected_rate(items), 0.1),
    );
    push(
        Finding::new(
            &["S-004", "S-032"],
            format!(
                "fast hash table with balancing, {items} items: tables \
                     with two keys in a bucket"
            ),
        )
        .rate(failed(balanced))
        .published_inside(0.0)
        .check(
            "basic pruning alone fails more often",
            failed(song).hits > failed(balanced).hits,
        ),
    );
    push(
        Finding::new(
            &["S-025", "S-031"],
            format!(
                "filter stack, {items} items: bytes relative to the fast \
                     hash table"
            ),
        )
        .ours(stack.bytes / song.bytes)
        .holds(stack.bytes < song.bytes)
        .check(
            "chance of a crisis or failure within 1e-9",
            stack.goes_wrong <= 1e-9,
        ),
    );
    push(
        Finding::new(
            &["S-018", "S-021", "S-031"],
            format!(
                "type filter, {items} items: chance of a crisis or failure"
            ),
        )
        .ours(cells.goes_wrong)
        .check("within 1e-9", cells.goes_wrong <= 1e-9),
    );
    push(
        Finding::new(
            &["S-016", "S-017", "S-031"],
            format!("sorted strings, {items} items: false positives"),
        )
        .ours(strings.false_positive)
        .check("below 1e-12", strings.false_positive < 1e-12),
    );
    push(
        Finding::new(&["S-031"], format!("the printed digits, {items} items"))
            .not_reproducible(
                "the digits of the table are lost in the text; the columns \
                 are computed for the sizes that it names",
            ),
    );
    Ok(())
}

/// Sorted strings with few bits, whose failures can be counted.
fn strings(outcome: &mut Outcome) -> Result<()> {
    const ITEMS: u64 = 2000;
    let levels = Occupancy::new(ITEMS, &[3800, 1300, 500, 300, 100, 40], 1)?;
    for bits in [20u32, 22] {
        let equal = runs(2000, |run| {
            let keys = Keys::new(run).members(ITEMS);
            let mut strings: Vec<u64> =
                keys.map(|key| mix(key, 7) >> (64 - bits)).collect();
            strings.sort_unstable();
            strings.windows(2).any(|pair| pair[0] == pair[1])
        });
        let hits = equal.iter().filter(|equal| **equal).count() as u64;
        let theory = summary::interpolation(&levels, bits)?;
        outcome.findings.push(
            Finding::new(
                &["S-016"],
                format!("two of 2000 strings of {bits} bits are equal"),
            )
            .rate(Rate { hits, trials: 2000 })
            .predicted(theory.failure),
        );
    }
    Ok(())
}

/// All schemes for `items` items.
fn compare(items: u64, trials: u64) -> Result<[Row; 5]> {
    let found = summary::optimise(Goal::new(items, BUCKETS_PER_ITEM))?;
    let n = items as f64;
    let bytes = |bits_per_item: f64| (bits_per_item * n / 8.0).ceil();
    let strings = &found.interpolation;
    let levels = Occupancy::new(items, &strings.levels, 1)?;
    let words = summary::interpolation(&levels, STRING_BITS)?;
    let cells = &found.type_filter;
    let stack = &found.filter_stack;
    let second = stack.filters.get(1).map(|filter| match *filter {
        summary::Filter::Bloom { probes, .. } => probes,
        summary::Filter::HashList { .. } => 0,
    });
    Ok([
        pruned(items, trials, false),
        pruned(items, trials, true),
        Row {
            scheme: "interpolation",
            items,
            probes: None,
            bytes: WORD_BYTES * n,
            false_positive: words.false_positive,
            goes_wrong: words.failure + strings.crisis,
            trials: None,
        },
        Row {
            scheme: "type filter",
            items,
            probes: Some(cells.probes),
            bytes: bytes(cells.prediction.bits_per_item),
            false_positive: cells.prediction.false_positive,
            goes_wrong: cells.prediction.failure + cells.crisis,
            trials: None,
        },
        Row {
            scheme: "filter stack",
            items,
            probes: second,
            bytes: bytes(stack.prediction.bits_per_item),
            false_positive: stack.prediction.false_positive,
            goes_wrong: stack.prediction.failure + stack.crisis,
            trials: None,
        },
    ])
}

/// The fast hash table, built `trials` times, and `balanced` or not.
fn pruned(items: u64, trials: u64, balanced: bool) -> Row {
    let buckets = SONG_BUCKETS * (items / SIZES[0].0);
    let keys = Keys::new(0);
    let members: Vec<u64> = keys.members(items).collect();
    let table = FastHashTable::built(&members, buckets, SONG_CHOICES);
    let failed = failures(items, buckets, SONG_CHOICES, trials, balanced);
    Row {
        scheme: match balanced {
            true => "fast hash table, balanced",
            false => "fast hash table, pruned",
        },
        items,
        probes: Some(SONG_CHOICES),
        bytes: table.bits().div_ceil(8) as f64,
        false_positive: false_positives(&table, keys.strangers(STRANGERS))
            .value(),
        goes_wrong: failed.value(),
        trials: Some(trials),
    }
}

/// Share of fast hash tables with several keys in some bucket, of `trials`
/// with different keys.
fn failures(
    items: u64,
    buckets: u64,
    choices: u32,
    trials: u64,
    balanced: bool,
) -> Rate {
    let failed = runs(trials, |trial| {
        let keys: Vec<u64> = Keys::new(trial).members(items).collect();
        let mut table = FastHashTable::built(&keys, buckets, choices);
        if balanced {
            table.balance();
        }
        table.collisions() > 0
    });
    let hits = failed.iter().filter(|failed| **failed).count() as u64;
    Rate { hits, trials }
}

#[cfg(test)]
mod tests {
    use crate::simulation::DEVIATIONS;

    use super::*;

    #[test]
    fn the_stack_is_smallest_and_keeps_its_promise() {
        let [song, balanced, strings, cells, stack] =
            compare(10_000, 3).unwrap();
        assert_eq!(song.bytes, 49_152.0);
        assert_eq!(song.false_positive, balanced.false_positive);
        assert_eq!(strings.bytes, 80_000.0);
        assert!(stack.bytes < 0.65 * song.bytes && stack.bytes < cells.bytes);
        for row in [&strings, &cells, &stack] {
            assert!(row.goes_wrong <= 1e-9, "{row:?}");
            assert!(row.false_positive <= 0.01, "{row:?}");
        }
    }

    /// Failures simulated by another program.
    fn reference() -> Vec<serde_json::Value> {
        let file = include_str!(
            "../../../tamis-theory/tests/fixtures/multilevel_reference.json"
        );
        let all: serde_json::Value = serde_json::from_str(file).unwrap();
        all["simulated_song"].as_array().unwrap().clone()
    }

    #[test]
    fn pruned_tables_fail_as_often_as_elsewhere() {
        for (row, trials) in reference().iter().zip([300, 20, 20]) {
            let number = |name: &str| row[name].as_f64().unwrap();
            let (items, buckets) = (number("n") as u64, number("buckets"));
            let (buckets, choices) = (buckets as u64, number("k") as u32);
            let table = FastHashTable::new(buckets, choices);
            let rate = table.expected_rate(items);
            assert!((rate / number("false_positive") - 1.0).abs() < 1e-6);
            let failed = failures(items, buckets, choices, trials, false);
            // Both programs measured: the interval is that of the difference.
            let (here, there) = (trials as f64, number("trials"));
            let other = number("p_some_bucket_gt1") * there;
            let pooled =
                (failed.hits as f64 + other + 1.0) / (here + there + 2.0);
            let variance =
                pooled * (1.0 - pooled) * (1.0 / here + 1.0 / there);
            let gap = failed.value() - other / there;
            assert!(
                gap.abs() < DEVIATIONS * variance.sqrt(),
                "{row} {failed:?}"
            );
        }
        assert_eq!(reference().len(), 3);
    }

    #[test]
    fn balanced_tables_fail_less_often() {
        // 200 keys in 50 buckets.
        assert_eq!(failures(200, 50, 3, 5, true).hits, 5);
        let [pruned, balanced] = [false, true]
            .map(|balanced| failures(3000, 27_000, 8, 100, balanced).hits);
        assert!(pruned > 20 && balanced == 0, "{pruned} {balanced}");
    }
}

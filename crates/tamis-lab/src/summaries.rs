//! Summaries of a multilevel table compared with the fast hash table:
//! memory, false positives and failures.

use std::error::Error;

use serde::Serialize;
use tamis_theory::crisis::Occupancy;
use tamis_theory::summary::{self, Goal};

use crate::song;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Numbers of items, and tables of the baseline to build.
const SIZES: [(u64, u64); 2] = [(10_000, 1000), (100_000, 60)];
const BUCKETS_PER_ITEM: f64 = 3.0;
/// Fast hash table: buckets for 10 000 items, and hashes of a key.
const SONG_BUCKETS: u32 = 131_072;
const SONG_CHOICES: u32 = 10;
/// Absent keys looked up in the fast hash table.
const STRANGERS: u64 = 1_000_000;
/// Bits of a string that fills a word together with its level.
const STRING_BITS: u32 = 61;
const WORD_BYTES: f64 = 8.0;

#[derive(Debug, Serialize)]
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

pub(crate) fn run(json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for (items, trials) in SIZES {
        rows.extend(compare(items, trials)?);
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    Ok(())
}

/// All schemes for `items` items.
fn compare(items: u64, trials: u64) -> Result<[Row; 4]> {
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
        pruned(items, trials)?,
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

/// The fast hash table, built `trials` times.
fn pruned(items: u64, trials: u64) -> Result<Row> {
    let scale = u32::try_from(items / SIZES[0].0)?;
    let buckets = SONG_BUCKETS * scale;
    let failed = song::failures(items, buckets, SONG_CHOICES, trials);
    let bits = f64::from(buckets) * f64::from(song::COUNTER_BITS);
    Ok(Row {
        scheme: "fast hash table, pruned",
        items,
        probes: Some(SONG_CHOICES),
        bytes: (bits / 8.0).ceil(),
        false_positive: song::false_positives(
            items,
            buckets,
            SONG_CHOICES,
            STRANGERS,
        ),
        goes_wrong: failed as f64 / trials as f64,
        trials: Some(trials),
    })
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| scheme | items | k | bytes | false positives | goes wrong |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in rows {
        let probes = row.probes.map_or_else(|| "-".into(), |k| k.to_string());
        let wrong = match row.trials {
            Some(trials) => format!("{:.3} ({trials} built)", row.goes_wrong),
            None => format!("{:.1e}", row.goes_wrong),
        };
        let cells = [
            row.scheme.to_owned(),
            row.items.to_string(),
            probes,
            row.bytes.to_string(),
            format!("{:.1e}", row.false_positive),
            wrong,
        ];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_smallest_and_keeps_its_promise() {
        let [song, strings, cells, stack] = compare(10_000, 3).unwrap();
        assert_eq!(song.bytes, 49_152.0);
        assert_eq!(strings.bytes, 80_000.0);
        assert!(stack.bytes < 0.65 * song.bytes && stack.bytes < cells.bytes);
        for row in [&strings, &cells, &stack] {
            assert!(row.goes_wrong <= 1e-9, "{row:?}");
            assert!(row.false_positive <= 0.01, "{row:?}");
        }
        let text = table(&[song, stack]);
        assert!(text.contains("| fast hash table, pruned | 10000 | 10 |"));
        assert_eq!(text.lines().count(), 4);
    }
}

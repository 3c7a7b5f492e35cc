//! The baselines beside their formulas and published sizes.

use std::error::Error;

use serde::Serialize;
use tamis_lab::baseline::{
    Baseline, Counting, DLeft, Design, Increments, LeastLoaded, RankIndexed,
    VariableIncrement,
};
use tamis_lab::simulation::{Keys, false_positives, fill, mean_lines, runs};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const TARGETS: [f64; 3] = [0.01, 0.001, 0.0001];
/// Keys of the filters whose size is free.
const KEYS: u64 = 100_000;
/// False positives to expect at a target.
const HITS: f64 = 2000.0;
/// Lookups of which the lines are counted.
const COUNTED: u64 = 20_000;

/// One structure at one target.
#[derive(Debug, Serialize)]
struct Row {
    structure: &'static str,
    target_fpr: f64,
    keys: u64,
    bits_per_key: f64,
    /// Bits per key at the target, to first order from the formula's rate.
    bits_at_target: f64,
    /// The published column.
    published: Option<f64>,
    /// Rate by the structure's formula.
    expected_fpr: f64,
    fpr: f64,
    /// Interval of 99.9 % for the rate.
    interval: [f64; 2],
    lines_miss: f64,
    lines_hit: f64,
}

/// A structure before it is measured.
struct Plan<B> {
    structure: B,
    keys: u64,
    expected_fpr: f64,
    /// Bits per key for a rate lower by half.
    slope: f64,
    published: Option<f64>,
}

pub(crate) fn run(json: bool) -> std::result::Result<(), Box<dyn Error>> {
    let rows = compare(HITS).map_err(|error| error as Box<dyn Error>)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    Ok(())
}

/// All structures at all targets, with about `hits` false positives each.
fn compare(hits: f64) -> Result<Vec<Row>> {
    let rows = runs(TARGETS.len() as u64 * 7, |run| {
        row((run / 3) as usize, (run % 3) as usize, hits)
    });
    rows.into_iter().collect()
}

/// Structure `number` at one target.
fn row(number: usize, target: usize, hits: f64) -> Result<Row> {
    let rate = TARGETS[target];
    match number {
        0 => counting(rate, [38.3, 57.5, 76.7][target]).row(rate, hits),
        1 => variable(rate, Increments::FOUR, None).row(rate, hits),
        2 => {
            let column = [25.28, 37.92, 50.56][target];
            variable(rate, Increments::EIGHT, Some(column)).row(rate, hits)
        }
        3 => d_left([11, 14, 18][target], [17.64, 22.07, 26.5][target])
            .row(rate, hits),
        4 => rank_indexed(rate, false, [10.6, 14.4, 18.2][target])?
            .row(rate, hits),
        5 => rank_indexed(rate, true, [13.0, 16.8, 20.6][target])?
            .row(rate, hits),
        _ => least_loaded([11, 14, 17][target])?.row(rate, hits),
    }
}

fn counting(rate: f64, published: f64) -> Plan<Counting> {
    let structure = Counting::for_rate(KEYS, rate);
    Plan {
        expected_fpr: structure.expected_rate(KEYS),
        structure,
        keys: KEYS,
        slope: Counting::bits_per_key(0.5),
        published: Some(published),
    }
}

fn variable(
    rate: f64,
    increments: Increments,
    published: Option<f64>,
) -> Plan<VariableIncrement> {
    let structure = VariableIncrement::for_rate(KEYS, rate, increments);
    Plan {
        expected_fpr: structure.expected_rate(KEYS),
        structure,
        keys: KEYS,
        slope: increments.bits_per_key(0.5),
        published,
    }
}

fn d_left(remainder_bits: u32, published: f64) -> Plan<DLeft> {
    let structure = DLeft::new(12, remainder_bits);
    let keys = structure.nominal();
    Plan {
        expected_fpr: structure.expected_rate(keys),
        structure,
        keys,
        slope: DLeft::bits_per_key(0.25) - DLeft::bits_per_key(0.5),
        published: Some(published),
    }
}

fn rank_indexed(
    rate: f64,
    counted: bool,
    published: f64,
) -> Result<Plan<RankIndexed>> {
    let design = Design::search(rate, counted).ok_or("no design")?;
    let structure = RankIndexed::new(design, 4);
    let keys = structure.nominal();
    let [size, longer] =
        [design.fingerprint_bits, design.fingerprint_bits + 1].map(|bits| {
            Design { fingerprint_bits: bits, ..design }.bits_per_key()
        });
    Ok(Plan {
        expected_fpr: structure.expected_rate(keys),
        structure,
        keys,
        slope: longer - size,
        published: Some(published),
    })
}

/// Two choices, and six keys per bucket.
fn least_loaded(width: u32) -> Result<Plan<LeastLoaded>> {
    let structure = LeastLoaded::filter(KEYS / 6, 2, width);
    Ok(Plan {
        expected_fpr: structure.expected_rate(KEYS)?,
        structure,
        keys: KEYS,
        // The largest load is eight.
        slope: 8.0 / 6.0,
        published: None,
    })
}

impl<B: Baseline> Plan<B> {
    fn row(mut self, target: f64, hits: f64) -> Result<Row> {
        let keys = Keys::new(0);
        let structure = &mut self.structure;
        fill(structure, keys.members(self.keys))?;
        let strangers = (hits / target) as u64;
        let rate = false_positives(structure, keys.strangers(strangers));
        let bits_per_key = structure.bits() as f64 / self.keys as f64;
        let halvings = (self.expected_fpr / target).log2();
        Ok(Row {
            structure: structure.name(),
            target_fpr: target,
            keys: self.keys,
            bits_per_key,
            bits_at_target: bits_per_key + self.slope * halvings,
            published: self.published,
            expected_fpr: self.expected_fpr,
            fpr: rate.value(),
            interval: rate.interval(),
            lines_miss: mean_lines(structure, keys.strangers(COUNTED)),
            lines_hit: mean_lines(structure, keys.members(COUNTED)),
        })
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| structure | bits per key | at | published | formula | measured \
         | lines, absent | present |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let published =
            row.published.map_or_else(|| "-".into(), |bits| bits.to_string());
        out += &format!(
            "| {} | {:.2} | {} %: {:.2} | {published} | {:.3e} | {:.3e} \
             | {:.2} | {:.2} |\n",
            row.structure,
            row.bits_per_key,
            row.target_fpr * 100.0,
            row.bits_at_target,
            row.expected_fpr,
            row.fpr,
            row.lines_miss,
            row.lines_hit,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_published_size_and_the_expected_rate() {
        let rows = compare(50.0).unwrap();
        assert_eq!(rows.len(), 21);
        for row in &rows {
            let [low, high] = row.interval;
            assert!((low..=high).contains(&row.expected_fpr), "{row:?}");
            if let Some(published) = row.published {
                let gap = (row.bits_at_target - published).abs();
                assert!(gap < 0.2, "{row:?}");
            }
            assert!(row.lines_miss >= 1.0 && row.lines_hit >= 1.0, "{row:?}");
        }
        assert_eq!(table(&rows).lines().count(), 23);
    }
}

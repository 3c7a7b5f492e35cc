//! Table 2 and Fig. 11 of TinySet: times of additions and queries.

use std::hint::black_box;
use std::time::Instant;

use tamis::{Bloom, FilterMut, TinySet};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Sample};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "speed",
    title: "Time of additions and queries",
    source: "TS 5.2, Table 2, Fig. 11",
    about: "A million keys are added one by one and queried once each, as in \
        the paper, whose times are those of a Java program on an Intel i7 of \
        3.2 GHz. Only ratios of one run are compared; the benchmarks of the \
        repository measure batches, misses and other libraries.",
    seconds: [8.0, 0.2],
    traced: false,
    run,
};

const TARGETS: [f64; 3] = [0.01, 0.001, 0.0001];
/// Printed seconds: additions and queries of a Bloom filter and of blocks
/// with 32 and 64 chains.
const PRINTED: [[[f64; 2]; 3]; 3] = [
    [[0.65, 0.69], [0.28, 0.05], [0.34, 0.08]],
    [[0.96, 0.98], [0.28, 0.05], [0.34, 0.08]],
    [[1.33, 1.29], [0.28, 0.05], [0.35, 0.08]],
];
const NAMES: [&str; 3] = ["Bloom", "TinySet, 32 bytes", "TinySet, 64 bytes"];
/// Parts of a fill whose times are taken.
const STEPS: usize = 16;

/// Nanoseconds per addition and per query of each part of a fill.
fn times<F: FilterMut>(mut filter: F, keys: &[u64]) -> Vec<[f64; 2]> {
    let part = keys.len() / STEPS;
    let mut times = Vec::new();
    for chunk in keys.chunks_exact(part) {
        let start = Instant::now();
        for key in chunk {
            filter.insert(key);
        }
        let add = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut found = 0;
        for key in chunk {
            found += u32::from(filter.contains(black_box(key)));
        }
        assert_eq!(black_box(found) as usize, chunk.len(), "a key was lost");
        let query = start.elapsed().as_secs_f64();
        times.push([add, query].map(|time| time * 1e9 / part as f64));
    }
    times
}

fn fill(kind: usize, target: f64, keys: &[u64]) -> Result<Vec<[f64; 2]>> {
    let items = keys.len() as u64;
    Ok(match kind {
        0 => times(Bloom::builder().items(items).fpr(target).build()?, keys),
        _ => {
            let (bits, chains) = if kind == 1 { (256, 32) } else { (512, 64) };
            let builder = TinySet::builder().items(items).fpr(target);
            times(builder.block_bits(bits).chains(chains).build()?, keys)
        }
    })
}

fn run(setting: &Setting) -> Result<Outcome> {
    let items = setting.size(1_000_000u64, 160_000);
    let count = setting.size(10, 3);
    let keys: Vec<u64> = Keys::new(3).members(items).collect();
    let mut outcome = Outcome {
        parameters: vec![
            ("keys", items.to_string()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &[
            "rate",
            "filter",
            "ns per addition",
            "ns per query",
            "printed addition",
            "printed query",
        ],
    );
    let mut steps = Table::new(
        "fill",
        &["filter", "share filled", "ns per addition", "ns per query"],
    );
    let mut lines = Vec::new();
    for (row, target) in TARGETS.into_iter().enumerate() {
        let mut medians = Vec::new();
        for (kind, name) in NAMES.into_iter().enumerate() {
            let mut fills = Vec::new();
            for _ in 0..count {
                fills.push(fill(kind, target, &keys)?);
            }
            let median = |values: Vec<f64>| Sample::new(values).quantile(0.5);
            let of_step = |step: usize, i: usize| {
                median(fills.iter().map(|fill| fill[step][i]).collect())
            };
            let whole = |i: usize| {
                let mean = |fill: &Vec<[f64; 2]>| {
                    fill.iter().map(|step| step[i]).sum::<f64>() / STEPS as f64
                };
                median(fills.iter().map(mean).collect())
            };
            let [add, query] = [whole(0), whole(1)];
            let printed = PRINTED[row][kind];
            let printed = printed.map(|seconds| seconds * 1000.0);
            table.push(row![target, name, add, query, printed[0], printed[1]]);
            medians.push([add, query]);
            if target == 0.001 {
                for step in 0..STEPS {
                    let share = (step + 1) as f64 / STEPS as f64;
                    let (add, query) = (of_step(step, 0), of_step(step, 1));
                    steps.push(row![name, share, add, query]);
                    lines.push((kind, share, [add, query]));
                }
            }
        }
        for (i, what) in ["additions", "queries"].into_iter().enumerate() {
            let quantity = format!(
                "time of {what} of a Bloom filter relative to 64-byte \
                 blocks, rate {target}"
            );
            let printed = PRINTED[row][0][i] / PRINTED[row][2][i];
            outcome.findings.push(
                Finding::new(&["T-024"], quantity)
                    .ours(medians[0][i] / medians[2][i])
                    .published(printed, 0.5 * printed)
                    .timed(
                        "this Bloom filter computes all positions from one \
                         hash, and caches hide its reads at this size; the \
                         printed one was written in Java",
                    ),
            );
        }
    }
    let line = |kind: usize, i: usize| -> Vec<(f64, f64)> {
        let of_kind = lines.iter().filter(|line| line.0 == kind);
        of_kind.map(|(_, share, times)| (*share, times[i])).collect()
    };
    let faster = |i: usize, from: usize, to: usize| {
        let pairs = line(0, i).into_iter().zip(line(2, i));
        let mut pairs = pairs.skip(from).take(to - from);
        pairs.all(|(bloom, tiny)| tiny.1 < bloom.1)
    };
    outcome.findings.push(
        Finding::new(
            &["T-025"],
            "queries of 64-byte blocks are faster than those of the Bloom \
             filter in all parts of the fill",
        )
        .holds(faster(1, 0, STEPS))
        .timed("on this machine, in this run, not in every part"),
    );
    outcome.findings.push(
        Finding::new(
            &["T-025"],
            "additions begin faster than those of the Bloom filter and end \
             slower",
        )
        .holds(faster(0, 0, 1) && !faster(0, STEPS - 1, STEPS))
        .timed("the order of the first or of the last part differs here"),
    );
    for (i, what) in ["addition", "query"].into_iter().enumerate() {
        let series = NAMES.into_iter().enumerate();
        outcome.charts.push(Chart {
            suffix: if i == 0 { "" } else { "query" },
            title: format!("Time per {what} while the filter fills (Fig. 11)"),
            x: Axis::linear("share filled"),
            y: Axis::linear("nanoseconds"),
            legend: Corner::LowerRight,
            series: series
                .map(|(kind, name)| Series::line(name, kind, line(kind, i)))
                .collect(),
        });
    }
    outcome.tables.extend([table, steps]);
    Ok(outcome)
}

//! Fig. 15: freed slots of a filter whose keys are replaced.

use tamis::{Removal, TinySet};
use tamis_theory::tinyset::{Block, churned};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Sample, mix, reduce, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "churn",
    title: "TinySet under replacements",
    source: "TS 3.5 and 5.6, Fig. 15",
    about: "A full filter replaces one key per step, a random one or the \
        oldest. Every block keeps the slots of its fullest time; the share \
        of slots that are free is simulated from this rule alone, the rate \
        is that of the library's filters.",
    seconds: [37.0, 5.7],
    traced: false,
    run,
};

const LOAD: f64 = 40.0;
/// Replacements, in multiples of the keys, and the printed shares.
const PRINTED: [(f64, Option<f64>); 5] = [
    (0.5, Some(0.11)),
    (1.0, Some(0.16)),
    (2.0, None),
    (5.0, None),
    (10.0, Some(0.35)),
];

/// Position of the key that `step` replaces: the oldest or a random one.
fn chosen(run: u64, step: u64, items: u64, oldest: bool) -> usize {
    let chosen = match oldest {
        true => step % items,
        false => reduce(mix(Keys::new(run).stranger(step), 1), items),
    };
    chosen as usize
}

/// Free slots per key after each number of replacements.
fn freed(run: u64, blocks: u64, oldest: bool) -> Vec<f64> {
    let items = (LOAD * blocks as f64) as u64;
    let place =
        |number: u64| reduce(mix(Keys::new(run).member(number), 0), blocks);
    let mut places: Vec<u64> = (0..items).map(place).collect();
    let mut loads = vec![0u32; blocks as usize];
    for block in &places {
        loads[*block as usize] += 1;
    }
    let mut slots = loads.clone();
    let mut done = 0;
    let mut shares = Vec::new();
    for (replaced, _) in PRINTED {
        let last = (replaced * items as f64) as u64;
        for step in done..last {
            let chosen = chosen(run, step, items, oldest);
            let new = place(items + step);
            let old = std::mem::replace(&mut places[chosen], new);
            loads[old as usize] -= 1;
            let (load, slots) =
                (&mut loads[new as usize], &mut slots[new as usize]);
            *load += 1;
            *slots = (*slots).max(*load);
        }
        done = last;
        let all: u32 = slots.iter().sum();
        shares.push(f64::from(all) / items as f64 - 1.0);
    }
    shares
}

/// Rates of a filter of the library, before and after the replacements.
fn rates(run: u64, blocks: u64, oldest: bool) -> Result<Vec<f64>> {
    let items = (LOAD * blocks as f64) as u64;
    let builder = TinySet::builder().items(items).bits_per_key(512.0 / LOAD);
    let mut filter = builder.block_bits(512).chains(64).removable().build()?;
    let key = |number: u64| Keys::new(run).member(number);
    let mut present: Vec<u64> = (0..items).map(key).collect();
    for key in &present {
        filter.insert(key);
    }
    let mut rates = vec![filter.stats().expected_fpr];
    let mut done = 0;
    for (replaced, _) in PRINTED.into_iter().take(3) {
        let last = (replaced * items as f64) as u64;
        for step in done..last {
            let chosen = chosen(run, step, items, oldest);
            let new = key(items + step);
            let old = std::mem::replace(&mut present[chosen], new);
            if filter.remove(&old)? != Removal::Removed {
                return Err("a present key was not removed".into());
            }
            filter.insert(&new);
        }
        done = last;
        if !present.iter().all(|key| filter.contains(key)) {
            return Err("a key was lost".into());
        }
        rates.push(filter.stats().expected_fpr);
    }
    Ok(rates)
}

fn run(setting: &Setting) -> Result<Outcome> {
    let blocks = setting.size(1024, 512);
    let rated = setting.size(1024, 256);
    let count = setting.size(16, 16);
    let block = Block::new(512, 64).removable();
    let mut outcome = Outcome {
        parameters: vec![
            ("blocks", format!("{blocks} of 512 bits, 64 chains")),
            ("blocks of filters whose rate is measured", rated.to_string()),
            ("keys per block", LOAD.to_string()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &[
            "order",
            "replaced",
            "free slots",
            "low",
            "high",
            "theory",
            "printed",
        ],
    );
    let mut line = Vec::new();
    for step in 0..=40 {
        let replaced = f64::from(step) * 0.25;
        line.push((replaced, churned(block, LOAD, replaced)?.freed_slots));
    }
    let mut series = vec![Series::line("theory, random key", 0, line)];
    for (colour, (name, oldest)) in
        [("random key", false), ("oldest key", true)].into_iter().enumerate()
    {
        let runs = runs(count, |run| freed(run, blocks, oldest));
        let mut marks = Vec::new();
        for (i, (replaced, printed)) in PRINTED.into_iter().enumerate() {
            let sample = Sample::new(runs.iter().map(|run| run[i]).collect());
            let [low, high] = sample.interval();
            let theory = churned(block, LOAD, replaced)?.freed_slots;
            table.push(row![
                name,
                replaced,
                sample.mean(),
                low,
                high,
                theory,
                printed
            ]);
            marks.push((replaced, sample.mean(), [low, high]));
            let Some(printed) = printed else { continue };
            let finding = Finding::new(
                &["T-011", "T-036"],
                format!("free slots after {} %, {name}", replaced * 100.0),
            )
            .mean(&sample)
            .published(printed, 0.03);
            outcome.findings.push(match oldest {
                false => finding.predicted_within(theory, 0.02),
                true => finding,
            });
        }
        series.push(Series::measured(
            format!("simulated, {name}"),
            colour + 1,
            &marks,
        ));
    }
    let mut rate_table = Table::new(
        "rate",
        &["order", "replaced", "rate", "low", "high", "theory"],
    );
    for (name, oldest) in [("random key", false), ("oldest key", true)] {
        let all = runs_of_rates(count, rated, oldest)?;
        for i in 0..all[0].len() {
            let replaced = if i == 0 { 0.0 } else { PRINTED[i - 1].0 };
            let sample = Sample::new(all.iter().map(|run| run[i]).collect());
            let theory = churned(block, LOAD, replaced)?.fpr;
            let [low, high] = sample.interval();
            rate_table.push(row![
                name,
                replaced,
                sample.mean(),
                low,
                high,
                theory
            ]);
            if replaced == 1.0 {
                outcome.findings.push(
                    Finding::new(
                        &["T-036"],
                        format!(
                            "rate after as many replacements as keys, {name}"
                        ),
                    )
                    .mean(&sample)
                    .predicted_within(theory, 0.12),
                );
                let fresh: Vec<f64> = all.iter().map(|run| run[0]).collect();
                let fresh = Sample::new(fresh).mean();
                outcome.findings.push(
                    Finding::new(
                        &["T-036"],
                        format!(
                            "the same relative to the fresh filter, {name}"
                        ),
                    )
                    .ours(sample.mean() / fresh)
                    .check("above 1.5", sample.mean() > 1.5 * fresh),
                );
            }
        }
    }
    outcome.tables.extend([table, rate_table]);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Free slots per key under replacements (Fig. 15)".into(),
        x: Axis::linear("replacements per key"),
        y: Axis::linear("free slots per key"),
        legend: Corner::LowerRight,
        series,
    });
    Ok(outcome)
}

fn runs_of_rates(
    count: u64,
    blocks: u64,
    oldest: bool,
) -> Result<Vec<Vec<f64>>> {
    runs(count, |run| rates(run, blocks, oldest)).into_iter().collect()
}

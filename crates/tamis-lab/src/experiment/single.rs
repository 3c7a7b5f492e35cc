//! SINGLE: the fluid limit, and simulations that approach it.

use tamis_theory::single::fractions;

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Placement, Rate, Sample, Scheme, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "single",
    title: "SINGLE: model and simulation",
    source: "BBF 5.1, equations (5) to (8), Fig. 3",
    about: "One block per key, which takes every key below h = 2 keys and \
        half of the keys at two. Shares of blocks with 0 to 3 keys while \
        25 000 keys arrive at 10 000 blocks, and the deviation of \
        simulations from the model with growing size.",
    seconds: [2.1, 0.2],
    traced: false,
    run,
};

const LOAD: f64 = 2.5;
const THRESHOLD: u32 = 2;
const ADMISSION: f64 = 0.5;
const BLOCKS: u64 = 10_000;
/// Points in time that are compared.
const STEPS: u64 = 25;

/// Shares of blocks by load at the end of each step.
fn follow(run: u64, blocks: u64) -> Vec<[f64; 4]> {
    let scheme = Scheme::single(blocks, THRESHOLD, ADMISSION);
    let mut placement = Placement::new(scheme);
    let keys = (LOAD * blocks as f64) as u64;
    let mut steps = Vec::new();
    for number in 0..keys {
        placement.insert(Keys::new(run).member(number));
        if (number + 1) % (keys / STEPS) == 0 {
            let mut at = [0.0; 4];
            for (at, share) in at.iter_mut().zip(placement.shares()) {
                *at = share;
            }
            steps.push(at);
        }
    }
    steps
}

fn model(time: f64) -> Result<[f64; 4]> {
    let shares = fractions(LOAD * time, THRESHOLD, ADMISSION)?;
    let mut at = [0.0; 4];
    at.copy_from_slice(shares.as_slice());
    Ok(at)
}

fn run(setting: &Setting) -> Result<Outcome> {
    let count = setting.size(40, 20);
    let trials = setting.size(2000, 500);
    let mut outcome = Outcome {
        parameters: vec![
            ("h, p, r", format!("{THRESHOLD}, {ADMISSION}, {LOAD}")),
            ("keys, blocks", "25000, 10000".to_owned()),
            ("runs", count.to_string()),
            ("runs of each size", trials.to_string()),
        ],
        ..Outcome::default()
    };
    let times = (1..=STEPS).map(|step| step as f64 / STEPS as f64);
    let models: Vec<[f64; 4]> = times.map(model).collect::<Result<_>>()?;
    let followed = runs(count, |run| follow(run, BLOCKS));
    let mut table = Table::new(
        "",
        &["t", "load", "model", "one run", "mean", "low", "high"],
    );
    let mut series = Vec::new();
    for load in 0..4 {
        let mut line = vec![(0.0, f64::from(load == 0))];
        let mut marks = Vec::new();
        for (step, model) in models.iter().enumerate() {
            let time = (step + 1) as f64 / STEPS as f64;
            let values = followed.iter().map(|run| run[step][load]);
            let sample = Sample::new(values.collect());
            let [low, high] = sample.interval();
            line.push((time, model[load]));
            marks.push((time, followed[0][step][load]));
            table.push(row![
                time,
                load as u64,
                model[load],
                followed[0][step][load],
                sample.mean(),
                low,
                high,
            ]);
            if step + 1 == models.len() {
                let quantity =
                    format!("share of blocks with {load} keys, t = 1");
                outcome.findings.push(
                    Finding::new(&["B-027", "B-029"], quantity)
                        .mean(&sample)
                        .predicted(model[load]),
                );
            }
        }
        series.push(Series::line(format!("{load} keys"), load, line));
        series.push(Series::marks("", load, marks));
    }
    outcome.charts.push(Chart {
        suffix: "",
        title: "Model (lines) and one simulation (marks) (Fig. 3)".into(),
        x: Axis::linear("time t"),
        y: Axis::linear("share of blocks"),
        legend: Corner::UpperRight,
        series,
    });
    outcome.findings.push(printed_last_line(&followed, &models));
    outcome.tables.push(table);
    convergence(&mut outcome, trials)?;
    Ok(outcome)
}

/// The last line of (6) as printed lets every key at the threshold in.
fn printed_last_line(
    followed: &[Vec<[f64; 4]>],
    models: &[[f64; 4]],
) -> Finding {
    let last = models.len() - 1;
    let ends = followed.iter().map(|run| run[last][3]).collect();
    let printed = models[last][3] / ADMISSION;
    Finding::new(
        &["B-025"],
        "share of blocks with 3 keys by the last line of (6) as printed",
    )
    .mean(&Sample::new(ends))
    .published_inside(printed)
    .predicted(models[last][3])
    .differs(
        "the printed line lacks the factor p: its shares sum to 1.31. With \
         p f_h it is the model of this experiment",
    )
}

/// Largest deviations from the model over the whole run, at three sizes.
fn convergence(outcome: &mut Outcome, trials: u64) -> Result<()> {
    const SIZES: [u64; 3] = [400, 800, 1200];
    const LARGE: f64 = 0.045;
    let times = (1..=STEPS).map(|step| step as f64 / STEPS as f64);
    let models: Vec<[f64; 4]> = times.map(model).collect::<Result<_>>()?;
    let mut table = Table::new(
        "deviation",
        &["blocks", "mean largest", "share above 0.045"],
    );
    let mut means = Vec::new();
    let mut rates = Vec::new();
    for (number, blocks) in SIZES.into_iter().enumerate() {
        let largest = runs(trials, |run| {
            let run = run + 10_000 * (number as u64 + 1);
            let steps = follow(run, blocks);
            let gaps = steps.iter().zip(&models);
            let gaps =
                gaps.flat_map(|(a, b)| (0..4).map(|i| (a[i] - b[i]).abs()));
            gaps.fold(0.0, f64::max)
        });
        let hits = largest.iter().filter(|gap| **gap > LARGE).count() as u64;
        let mean = Sample::new(largest).mean();
        let rate = Rate { hits, trials };
        table.push(row![blocks, mean, rate.value()]);
        means.push(mean * (blocks as f64).sqrt());
        rates.push(rate);
    }
    outcome.tables.push(table);
    outcome.findings.push(
        Finding::new(
            &["B-026"],
            "largest deviation times the root of the size, 1200 against 400 \
             blocks",
        )
        .ours(means[2] / means[0])
        .published(1.0, 0.1),
    );
    let [small, middle, large] = [rates[0], rates[1], rates[2]];
    let falls = |a: Rate, b: Rate| b.value() <= 0.6 * a.value();
    outcome.findings.push(
        Finding::new(
            &["B-026"],
            "share of runs of 1200 blocks that deviate by more than 0.045",
        )
        .rate(large)
        .check(
            "each 400 blocks more leave at most 60 % of them",
            falls(small, middle) && falls(middle, large),
        ),
    );
    Ok(())
}

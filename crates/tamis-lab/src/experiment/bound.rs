//! Theorem 1: the lower bound, beside an offline removal.

use tamis_theory::bound::Bound;

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Sample, mix, reduce, runs, shares};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bound",
    title: "Lower bound on the imbalance",
    source: "BBF 3 and 4, Theorem 1, Fig. 2",
    about: "No scheme with a reads per key balances better than an offline \
        one that throws a keys per key and then removes the surplus from the \
        fullest blocks. The curve is the closed form, the marks are \
        simulated removals.",
    seconds: [0.7, 0.1],
    traced: false,
    run,
};

const LOAD: f64 = 8.0;
const BUDGETS: [f64; 3] = [1.0, 1.1, 1.2];

fn run(setting: &Setting) -> Result<Outcome> {
    let buckets = setting.size(100_000, 20_000);
    let count = setting.size(40, 20);
    let mut outcome = Outcome {
        parameters: vec![
            ("keys per block r", LOAD.to_string()),
            ("overflow gamma", "0".to_owned()),
            ("blocks", buckets.to_string()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table =
        Table::new("", &["a", "load", "bound", "simulated", "low", "high"]);
    let mut series = Vec::new();
    for (colour, a) in BUDGETS.into_iter().enumerate() {
        let bound = Bound::new(a, LOAD, 0.0)?;
        let shares = bound.distribution().as_slice();
        let simulated = runs(count, |run| removed(run, buckets, a));
        let most = 20.min(shares.len() - 1);
        let mut marks = Vec::new();
        for (load, share) in shares.iter().enumerate().take(most + 1) {
            let of_run = |run: &Vec<f64>| run.get(load).copied();
            let values = simulated.iter().map(|r| of_run(r).unwrap_or(0.0));
            let sample = Sample::new(values.collect());
            let [low, high] = sample.interval();
            marks.push((load as f64, sample.mean(), [low, high]));
            table.push(row![a, load as u64, *share, sample.mean(), low, high]);
            let claims: &[&str] = &["B-018", "B-019", "B-022"];
            if *share > 0.1 && load + 2 >= shares.len().min(11) {
                let quantity =
                    format!("share of blocks of load {load}, a = {a}");
                outcome.findings.push(
                    Finding::new(claims, quantity)
                        .mean(&sample)
                        .predicted(*share),
                );
            }
        }
        if a == 1.2 {
            outcome.findings.push(
                Finding::new(
                    &["B-016", "B-017"],
                    "mean load at a = 1.2: cost phi(x) = x",
                )
                .ours(bound.distribution().mean())
                .published(LOAD, 1e-9),
            );
            outcome.findings.push(
                Finding::new(
                    &["B-019", "B-079"],
                    "largest deviation of the cut Poisson law from sums of \
                     its terms",
                )
                .ours(by_terms(&bound, a))
                .check("below 1e-12", by_terms(&bound, a) < 1e-12),
            );
        }
        let points = shares.iter().enumerate().take(21);
        let points = points.map(|(i, share)| (i as f64, *share)).collect();
        series.push(Series::line(format!("a = {a}"), colour, points));
        series.push(Series::measured(
            format!("a = {a}, simulated"),
            colour,
            &marks,
        ));
    }
    outcome.findings.push(
        Finding::new(
            &["B-020"],
            "the introduction lets the bound depend on the choices d",
        )
        .holds(false)
        .differs(
            "Theorem 1 has no d: the bound follows from a, r and gamma \
             alone, and the section itself notes it",
        ),
    );
    outcome.charts.push(Chart {
        suffix: "",
        title: "Share of blocks by load, r = 8, no overflow (Fig. 2)".into(),
        x: Axis::linear("keys in a block"),
        y: Axis::linear("share of blocks"),
        legend: Corner::UpperLeft,
        series,
    });
    outcome.tables.push(table);
    Ok(outcome)
}

/// Throws a r keys per bucket, removes (a - 1) r of them from the fullest
/// buckets, and returns the shares by load.
fn removed(run: u64, buckets: u64, a: f64) -> Vec<f64> {
    let mut loads = vec![0u32; buckets as usize];
    let keys = (LOAD * buckets as f64) as u64;
    let thrown = (a * LOAD * buckets as f64) as u64;
    for key in Keys::new(run).members(thrown) {
        loads[reduce(mix(key, 0), buckets) as usize] += 1;
    }
    let mut counts = vec![0u64; 100];
    for load in loads {
        counts[load as usize] += 1;
    }
    let mut surplus = thrown - keys;
    for load in (1..counts.len()).rev() {
        let moved = surplus.min(counts[load]);
        counts[load] -= moved;
        counts[load - 1] += moved;
        surplus -= moved;
    }
    let loads = counts.iter().enumerate();
    shares(loads.flat_map(|(load, count)| {
        std::iter::repeat_n(load as u32, *count as usize)
    }))
}

/// The bound computed from the terms of the Poisson law alone.
fn by_terms(bound: &Bound, a: f64) -> f64 {
    let mean = a * LOAD;
    let mut term = (-mean).exp();
    let mut surplus = (a - 1.0) * LOAD;
    let mut terms = Vec::new();
    for i in 0..200 {
        terms.push(term);
        term *= mean / f64::from(i + 1);
    }
    for i in (1..terms.len()).rev() {
        let moved = surplus.min(terms[i]);
        terms[i] -= moved;
        terms[i - 1] += moved;
        surplus -= moved;
    }
    let found = bound.distribution().as_slice();
    let pairs = terms.iter().enumerate();
    pairs
        .map(|(i, x)| (x - found.get(i).copied().unwrap_or(0.0)).abs())
        .fold(0.0, f64::max)
}

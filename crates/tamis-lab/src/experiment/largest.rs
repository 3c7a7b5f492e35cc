//! Largest loads with one choice and with two.

use super::{Experiment, Result, Setting};
use crate::baseline::{Baseline as _, LeastLoaded};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Sample, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "largest",
    title: "Largest load with one and two choices",
    source: "BBF 1 and 11",
    about: "n keys in n buckets: with one choice the fullest bucket grows \
        like log n / log log n, with the less loaded of two like log log n. \
        Distribution of the largest load beside the one that follows from \
        the fluid limit.",
    seconds: [79.0, 0.2],
    traced: false,
    run,
};

fn run(setting: &Setting) -> Result<Outcome> {
    let powers: &[u32] =
        setting.size(&[10, 12, 14, 16, 18, 20], &[10, 13, 16]);
    let count = setting.size(40, 24);
    let mut outcome = Outcome {
        parameters: vec![
            ("keys per bucket", "1".to_owned()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &["buckets", "choices", "mean largest", "expected", "least", "most"],
    );
    let mut series = Vec::new();
    let mut means = [Vec::new(), Vec::new()];
    for choices in [1u32, 2] {
        let mut marks = Vec::new();
        let mut line = Vec::new();
        for power in powers {
            let buckets = 1u64 << power;
            let largest = runs(count, |run| {
                let mut table = LeastLoaded::table(buckets, choices);
                for key in Keys::new(run).members(buckets) {
                    // Buckets have no limit.
                    let _ = table.insert(key);
                }
                table.largest() as f64
            });
            let sample = Sample::new(largest);
            let model = LeastLoaded::table(buckets, choices);
            let mut expected = 0.0;
            for load in 1..30 {
                expected += model.expected_largest(buckets, load)?;
            }
            let [least, most] = [0.0, 1.0].map(|q| sample.quantile(q));
            let mean = sample.mean();
            table.push(row![buckets, choices, mean, expected, least, most]);
            marks.push((buckets as f64, mean, [least, most]));
            line.push((buckets as f64, expected));
            means[choices as usize - 1].push((buckets as f64, mean));
            if power == powers.last().unwrap_or(&0) {
                let claims: &[&str] =
                    if choices == 1 { &["B-006"] } else { &["B-062"] };
                outcome.findings.push(
                    Finding::new(
                        claims,
                        format!(
                            "largest load of 2^{power}, choices: {choices}"
                        ),
                    )
                    .mean(&sample)
                    .predicted_within(expected, 0.05),
                );
            }
        }
        let name =
            if choices == 1 { "one choice" } else { "less loaded of two" };
        series.push(Series::line(
            format!("{name}, expected"),
            choices as usize - 1,
            line,
        ));
        series.push(Series::measured(name, choices as usize - 1, &marks));
    }
    let [one, two] = &means;
    let ratio = |(n, mean): &(f64, f64)| mean * n.ln().ln() / n.ln();
    let ratios: Vec<f64> = one.iter().map(ratio).collect();
    let spread = ratios[ratios.len() - 1] / ratios[0];
    outcome.findings.push(
        Finding::new(
            &["B-006"],
            "one choice: largest load over log n / log log n, largest \
             relative to smallest n",
        )
        .ours(spread)
        .published(1.0, 0.2),
    );
    let rest = |(n, mean): &(f64, f64)| mean - n.ln().ln() / 2f64.ln();
    let rests: Vec<f64> = two.iter().map(rest).collect();
    let drift = rests[rests.len() - 1] - rests[0];
    outcome.findings.push(
        Finding::new(
            &["B-062"],
            "two choices: growth of the largest load beyond log log n / log 2",
        )
        .ours(drift)
        .published(0.0, 1.0),
    );
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Largest load: mean and range of the runs".into(),
        x: Axis::log("buckets, and keys"),
        y: Axis::linear("keys in the fullest bucket"),
        legend: Corner::UpperLeft,
        series,
    });
    Ok(outcome)
}

//! Chance of a crisis: exact, by expectations, simulated.

use tamis_theory::crisis::{Occupancy, heuristic};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Placement, Rate, Sample, Scheme, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "crisis",
    title: "Crises of multilevel tables",
    source: "SUM, MHT and calculations; Broder and Karlin",
    about: "The chance that an item finds all its buckets full: the exact \
        distribution passed from level to level, the estimate by \
        expectations, and simulated tables.",
    seconds: [2.0, 0.5],
    traced: false,
    run,
};

/// Items and levels of one entry.
const TABLES: [(u64, &[u64]); 5] = [
    (10_000, &[18_000, 7200, 3600, 1200]),
    (10_000, &[20_000, 7000, 2500, 1000, 500]),
    (10_000, &[23_797, 4580, 1013, 332, 158, 80, 40]),
    (100_000, &[190_000, 65_000, 25_000, 15_000, 3000, 2000]),
    (100_000, &[238_790, 45_590, 9890, 3140, 1480, 740, 370]),
];

fn run(setting: &Setting) -> Result<Outcome> {
    let trials = setting.size(4000, 800);
    let mut outcome = Outcome {
        parameters: vec![("tables simulated", trials.to_string())],
        ..Outcome::default()
    };
    let mut table =
        Table::new("", &["items", "levels", "exact", "estimate", "ratio"]);
    let mut points = Vec::new();
    let mut most = 0.0f64;
    let mut decays = true;
    for (items, levels) in TABLES {
        let exact = Occupancy::new(items, levels, 1)?;
        let estimate = heuristic(items, levels, 1)?;
        let last = estimate.last().copied().unwrap_or(f64::NAN);
        let ratio = exact.crisis() / last;
        let text: Vec<String> = levels.iter().map(u64::to_string).collect();
        table.push(row![items, text.join(" "), exact.crisis(), last, ratio]);
        points.push((last, exact.crisis()));
        most = most.max(ratio);
        // E|S(i+1)| <= E|S(i)|^2 / 2 m(i), with the second moment at least
        // the square of the first.
        for (passed, size) in estimate.windows(2).zip(levels) {
            decays &= passed[1] <= passed[0] * passed[0] / (2 * size) as f64;
        }
    }
    let (items, levels) = TABLES[0];
    let scheme = Scheme {
        levels: levels.to_vec(),
        choices: 1,
        threshold: 0,
        admission: 1.0,
        budget: None,
    };
    let filled = runs(trials, |run| {
        let filled = Placement::filled(scheme.clone(), run, items);
        let stored: Vec<f64> = filled
            .loads
            .iter()
            .map(|level| f64::from(level.iter().sum::<u32>()))
            .collect();
        (filled.listed > 0, stored)
    });
    let hits = filled.iter().filter(|run| run.0).count() as u64;
    let exact = Occupancy::new(items, levels, 1)?;
    outcome.findings.push(
        Finding::new(
            &["S-009", "S-010", "S-014"],
            "chance of a crisis, 10 000 items in 18 000, 7200, 3600 and 1200 \
             buckets",
        )
        .rate(Rate { hits, trials })
        .predicted(exact.crisis()),
    );
    for (level, theory) in exact.level_items().into_iter().enumerate() {
        let stored = filled.iter().map(|run| run.1[level]).collect();
        outcome.findings.push(
            Finding::new(
                &["S-013", "S-014"],
                format!("items in level {}", level + 1),
            )
            .mean(&Sample::new(stored))
            .predicted(theory),
        );
    }
    let estimate = heuristic(items, levels, 1)?;
    outcome.findings.push(
        Finding::new(
            &["S-013"],
            "estimate by expectations relative to the exact chance, large \
             last level",
        )
        .ours(estimate[levels.len()] / exact.crisis())
        .published(1.0, 0.1),
    );
    outcome.findings.push(
        Finding::new(
            &["S-013"],
            "largest ratio of the exact chance and the estimate",
        )
        .ours(most)
        .published(1.0, 1.0)
        .differs(
            "the variance of small last levels decides rare crises, and the \
             estimate leaves it out",
        ),
    );
    outcome.findings.push(
        Finding::new(
            &["S-015"],
            "items passed on are at most |S|^2 / 2m in every level of every \
             table",
        )
        .holds(decays),
    );
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Exact chance of a crisis against the estimate".into(),
        x: Axis::log("estimate by expectations"),
        y: Axis::log("exact chance"),
        legend: Corner::UpperLeft,
        series: vec![
            Series::line("equal", 6, vec![(1e-13, 1e-13), (1.0, 1.0)]),
            Series::marks("tables", 0, points),
        ],
    });
    Ok(outcome)
}

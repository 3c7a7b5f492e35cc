//! The budget stop of sections 6 and 7, and the members that it loses.

use tamis_theory::bound::Bound;
use tamis_theory::multilevel::{boundary, inside, lost_members};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Placement, Sample, Scheme, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "budget",
    title: "Stopping at the read budget",
    source: "BBF 2, 6 and 7, Theorems 4 and 5 inside the region",
    about: "With a longer list than needed the schemes stop reading when \
        a n reads are spent and list all further keys unread. The loads are \
        optimal, but the lookup of section 2 stops at the first block with \
        room and never reads the list for such a key.",
    seconds: [10.0, 0.5],
    traced: false,
    run,
};

const LOAD: f64 = 8.0;
const BUDGET: f64 = 1.1;
const CHOICES: u32 = 3;

/// One filled scheme: overflow, variance, share of members lost.
fn simulate(scheme: &Scheme, run: u64) -> [f64; 3] {
    let blocks: u64 = scheme.levels.iter().sum();
    let keys = (LOAD * blocks as f64) as u64;
    let mut placement = Placement::new(scheme.clone());
    let listed: Vec<u64> = Keys::new(run)
        .members(keys)
        .filter(|key| !placement.insert(*key))
        .collect();
    let lost = listed.iter().filter(|key| !placement.reaches_list(**key));
    let lost = lost.count() as f64 / keys as f64;
    [placement.overflow(), placement.variance(), lost]
}

fn run(setting: &Setting) -> Result<Outcome> {
    let blocks = setting.size(65_536, 16_384);
    let count = setting.size(32, 16);
    let mut outcome = Outcome {
        parameters: vec![
            ("a, d, r", format!("{BUDGET}, {CHOICES}, {LOAD}")),
            ("blocks", blocks.to_string()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &["scheme", "gamma", "lost, theory", "lost", "low", "high"],
    );
    let least = boundary(BUDGET, CHOICES)?.overflow_fraction;
    let stop = (BUDGET * LOAD * blocks as f64) as u64;
    let mut line = Vec::new();
    let mut marks = Vec::new();
    let mut at_least = None;
    for step in 0..=30 {
        let gamma = least + f64::from(step) * 0.001;
        line.push((gamma, lost_members(BUDGET, LOAD, CHOICES, gamma)?));
    }
    for gamma in [least, 0.005, 0.01, 0.02, 0.03] {
        let bound = Bound::new(BUDGET, LOAD, gamma)?;
        let h = bound.threshold().ok_or("no threshold")?;
        let shares = inside(BUDGET, CHOICES, gamma)?.level_shares;
        let p = bound.admission();
        let many = Scheme::multilevel(blocks, &shares, h, p);
        let one = Scheme::sequential(blocks, CHOICES, h, p);
        for (name, scheme) in [("MHT", many), ("SEQUENTIAL", one)] {
            let many = name == "MHT";
            // SEQUENTIAL needs 0.59 % at least.
            if !many && gamma < 0.006 {
                continue;
            }
            let scheme = Scheme { budget: Some(stop), ..scheme };
            let filled = runs(count, |run| simulate(&scheme, run));
            let sample = |i: usize| {
                Sample::new(filled.iter().map(|run| run[i]).collect())
            };
            let lost = sample(2);
            let [low, high] = lost.interval();
            let theory = lost_members(BUDGET, LOAD, CHOICES, gamma)?;
            let known = many.then_some(theory);
            table.push(row![name, gamma, known, lost.mean(), low, high]);
            if many {
                marks.push((gamma, lost.mean(), [low.max(0.0), high]));
                at_least.get_or_insert_with(|| lost.clone());
            }
            if gamma == 0.02 {
                let claims: &[&str] =
                    if many { &["B-035", "B-070"] } else { &["B-030"] };
                let least = bound.distribution().variance();
                outcome.findings.push(
                    Finding::new(
                        claims,
                        format!("{name}, gamma 2 %: variance of the load"),
                    )
                    .mean(&sample(1))
                    .predicted(least),
                );
                outcome.findings.push(
                    Finding::new(claims, format!("{name}: share in the list"))
                        .mean(&sample(0))
                        .published_inside(gamma),
                );
                let finding = Finding::new(
                    if many {
                        &["B-012", "B-035"]
                    } else {
                        &["B-012", "B-030"]
                    },
                    format!("{name}, gamma 2 %: members that a lookup misses"),
                )
                .mean(&lost)
                .published_inside(0.0)
                .differs(
                    "a lookup ends at the first block below its threshold, \
                     but a key listed unread may have such a block. The \
                     library works on the boundary of the region, where no \
                     key is listed unread",
                );
                outcome.findings.push(match many {
                    true => finding.predicted(theory),
                    false => finding,
                });
            }
        }
    }
    let safe = at_least.ok_or("no scheme")?;
    outcome.findings.push(
        Finding::new(
            &["B-013", "B-035"],
            "MHT at the smallest gamma: members that a lookup misses",
        )
        .mean(&safe)
        .check(
            "less than a twentieth of those at 2 %",
            safe.mean() < marks[3].1 / 20.0,
        ),
    );
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Members lost by the budget stop of MHT, a = 1.1, r = 8".into(),
        x: Axis::linear("overflow gamma"),
        y: Axis::linear("share of members lost"),
        legend: Corner::UpperLeft,
        series: vec![
            Series::line("theory", 0, line),
            Series::measured("simulated", 1, &marks),
        ],
    });
    Ok(outcome)
}

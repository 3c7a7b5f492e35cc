//! Theorem 6: levels of any shares.

use tamis_theory::multilevel::{boundary, run as theorem_6};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Placement, Sample, Scheme, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "partition",
    title: "MHT with any partition into levels",
    source: "BBF 2 (Fig. 1), Appendix A, Theorem 6",
    about: "Reads, overflow and loads of three levels of given shares, \
        threshold and admission: the closed form beside simulations, and \
        the worked insertion of Fig. 1.",
    seconds: [5.4, 0.3],
    traced: false,
    run,
};

const LOAD: f64 = 8.0;
const THRESHOLD: u32 = 8;
const ADMISSION: f64 = 0.5;

fn run(setting: &Setting) -> Result<Outcome> {
    let blocks = setting.size(65_536, 16_384);
    let count = setting.size(32, 16);
    let best = boundary(1.2, 3)?.level_shares;
    let partitions = [
        ("equal", vec![1.0 / 3.0; 3]),
        ("4 : 2 : 1", [4.0, 2.0, 1.0].map(|part| part / 7.0).to_vec()),
        ("16 : 4 : 1", [16.0, 4.0, 1.0].map(|part| part / 21.0).to_vec()),
        ("Theorem 5, a = 1.2", best),
    ];
    let mut outcome = Outcome {
        parameters: vec![
            ("r, h, p", format!("{LOAD}, {THRESHOLD}, {ADMISSION}")),
            ("blocks", blocks.to_string()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &["shares", "quantity", "theory", "simulated", "low", "high"],
    );
    let mut series = Vec::new();
    for (colour, (name, shares)) in partitions.iter().enumerate() {
        let theory = theorem_6(LOAD, shares, THRESHOLD, ADMISSION)?;
        let scheme = Scheme::multilevel(blocks, shares, THRESHOLD, ADMISSION);
        let keys = (LOAD * blocks as f64) as u64;
        let filled = runs(count, |run| {
            let filled = Placement::filled(scheme.clone(), run, keys);
            let levels = filled.loads.iter().map(|level| {
                let sum: u32 = level.iter().sum();
                f64::from(sum) / level.len() as f64
            });
            let mut values = vec![filled.accesses(), filled.overflow()];
            values.extend(levels);
            (values, filled.shares())
        });
        let mut expected =
            vec![theory.access_budget, theory.overflow_fraction];
        expected.extend(theory.levels.iter().map(|l| l.distribution.mean()));
        let quantities = [
            "reads per key",
            "overflow",
            "load of level 1",
            "load of level 2",
            "load of level 3",
        ];
        for (i, (quantity, theory)) in
            quantities.into_iter().zip(expected).enumerate()
        {
            let sample =
                Sample::new(filled.iter().map(|run| run.0[i]).collect());
            let [low, high] = sample.interval();
            table.push(row![
                *name,
                quantity,
                theory,
                sample.mean(),
                low,
                high
            ]);
            outcome.findings.push(
                Finding::new(
                    &["B-033", "B-066", "B-067"],
                    format!("shares {name}: {quantity}"),
                )
                .mean(&sample)
                .predicted(theory),
            );
        }
        let line = (0..=THRESHOLD as usize + 1).map(|load| {
            let levels = theory.levels.iter().zip(shares);
            let all: f64 = levels
                .map(|(level, share)| {
                    let shares = level.distribution.as_slice();
                    share * shares.get(load).copied().unwrap_or(0.0)
                })
                .sum();
            (load as f64, all)
        });
        series.push(Series::line(*name, colour, line.collect()));
        let marks = filled[0].1.iter().enumerate();
        let marks = marks.map(|(i, share)| (i as f64, *share)).collect();
        series.push(Series::marks("", colour, marks));
    }
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Loads of all blocks: Theorem 6 (lines), one run (marks)"
            .into(),
        x: Axis::linear("keys in a block"),
        y: Axis::linear("share of blocks"),
        legend: Corner::UpperLeft,
        series,
    });
    outcome.findings.push(figure_1());
    Ok(outcome)
}

/// h = 3 and levels of four, two and one blocks: a key that meets a full
/// block of the first level goes to the second, one that meets only full
/// blocks goes to the list.
fn figure_1() -> Finding {
    let scheme = Scheme {
        levels: vec![4, 2, 1],
        choices: 1,
        threshold: 3,
        admission: 0.0,
        budget: None,
    };
    let drawn = vec![vec![1, 0, 3, 2], vec![3, 2], vec![3]];
    let insert = |key: u64| {
        let mut placement = Placement::new(scheme.clone());
        placement.loads = drawn.clone();
        let stored = placement.insert(key);
        (stored, placement.loads, placement.reads)
    };
    let mut second = vec![vec![1, 0, 3, 2], vec![3, 3], vec![3]];
    let results: Vec<_> = Keys::new(1).members(200).map(insert).collect();
    let moved = results.iter().any(|(stored, loads, reads)| {
        (*stored, loads, *reads) == (true, &second, 2)
    });
    second.clone_from(&drawn);
    let listed = results.iter().any(|(stored, loads, reads)| {
        (*stored, loads, *reads) == (false, &second, 3)
    });
    Finding::new(
        &["B-011"],
        "a key that meets load 3 in block 10 of level 1 enters block 01 of \
         level 2, and another one goes to the list",
    )
    .holds(moved && listed)
}

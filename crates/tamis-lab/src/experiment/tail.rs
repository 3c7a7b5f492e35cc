//! Section 4.4 of TinySet: blocks that receive too many keys.

use tamis_theory::tinyset::overflow_tail;

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Rate, mix, reduce, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "tail",
    title: "Overflow of blocks and counters",
    source: "TS 3.3, 4.1 and 4.4",
    about: "The chance that a block with 64 keys on average receives more \
        than a counter of 7 or 8 bits counts, or more than it has bits.",
    seconds: [0.2, 0.1],
    traced: false,
    run,
};

const LOAD: f64 = 64.0;

fn run(setting: &Setting) -> Result<Outcome> {
    let groups: u64 = setting.size(400, 60);
    const GROUP: u64 = 2000;
    let mut outcome = Outcome {
        parameters: vec![
            ("keys per block", LOAD.to_string()),
            ("blocks simulated", (groups * GROUP).to_string()),
        ],
        ..Outcome::default()
    };
    let fullest = runs(groups, |run| {
        let mut loads = vec![0u32; GROUP as usize];
        for key in Keys::new(run).members(GROUP * LOAD as u64) {
            loads[reduce(mix(key, 0), GROUP) as usize] += 1;
        }
        loads
    });
    let mut table =
        Table::new("", &["keys", "log10 of the tail", "simulated"]);
    let mut marks = Vec::new();
    for limit in [80, 88, 96] {
        let above = |load: &&u32| **load > limit;
        let hits = fullest.iter().flatten().filter(above).count() as u64;
        let rate = Rate { hits, trials: groups * GROUP };
        let theory = 10f64.powf(overflow_tail(LOAD, limit)?);
        table.push(row![limit, theory.log10(), rate.value()]);
        marks.push((f64::from(limit), rate.value().log10()));
        outcome.findings.push(
            Finding::new(
                &["T-020"],
                format!("blocks with more than {limit} keys"),
            )
            .rate(rate)
            .predicted(theory),
        );
    }
    let mut line = Vec::new();
    for limit in (64..=448).step_by(4) {
        let tail = overflow_tail(LOAD, limit)?;
        table.push(row![limit, tail, None::<f64>]);
        line.push((f64::from(limit), tail));
    }
    let cases = [
        (127, "7-bit counter: log10 of its overflow", -13.0),
        (255, "8-bit counter: log10 of its overflow", -23.0),
        (448, "no slot left in 448 bits: log10 of the chance", -200.0),
    ];
    for (limit, name, printed) in cases {
        let finding = Finding::new(&["T-020"], name)
            .ours(overflow_tail(LOAD, limit)?)
            .at_most(printed, 0.0);
        outcome.findings.push(match limit {
            127 => finding.differs(
                "the tail of 128 keys or more is ten times larger than \
                 stated; the other two statements hold with room",
            ),
            _ => finding,
        });
    }
    outcome.findings.push(
        Finding::new(&["T-014"], "bits per key of an 8-bit counter, 64 keys")
            .ours(8.0 / LOAD)
            .published(0.125, 0.0),
    );
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Chance of more keys in a block than the limit".into(),
        x: Axis::linear("limit"),
        y: Axis::linear("log10 of the chance"),
        legend: Corner::UpperRight,
        series: vec![
            Series::line("theory", 0, line),
            Series::marks("simulated", 1, marks),
        ],
    });
    Ok(outcome)
}

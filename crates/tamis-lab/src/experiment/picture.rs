//! All structures in one picture.

use super::{Experiment, Result, Setting};
use crate::picture::{draw, measure};
use crate::report::{Finding, Outcome, Table, row};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "picture",
    title: "All structures: memory, rate and cache lines",
    source: "this project",
    about: "Bits per key against the false-positive rate, with the cache \
        lines that an absent key touches as colour. Every mark is a filter \
        that was built, filled and looked up in; the curves are limits.",
    seconds: [19.0, 2.5],
    traced: false,
    run,
};

fn run(setting: &Setting) -> Result<Outcome> {
    let (hits, least) = setting.size((200.0, 1e-4), (100.0, 0.01));
    let series = measure(hits, least)?;
    let mut outcome = Outcome {
        parameters: vec![
            ("false positives to expect", hits.to_string()),
            ("least rate", least.to_string()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &[
            "structure",
            "bits per key",
            "rate",
            "low",
            "high",
            "formula",
            "lines of a miss",
        ],
    );
    let mut inside = true;
    for one in &series {
        for point in &one.points {
            let [low, high] = point.interval;
            inside &= (low..=high).contains(&point.expected_fpr);
            table.push(row![
                one.name,
                point.bits_per_key,
                point.fpr,
                low,
                high,
                point.expected_fpr,
                point.lines_miss,
            ]);
        }
    }
    outcome.findings.push(
        Finding::new(
            &[],
            "the formula of each structure lies in the interval of its marks",
        )
        .holds(inside),
    );
    outcome.tables.push(table);
    let title = "Bits per key and rate of all structures".to_owned();
    outcome.pictures.push((title, draw(&series)?));
    Ok(outcome)
}

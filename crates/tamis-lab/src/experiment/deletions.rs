//! Deletions: slots freed at once, and the paper's lazy rule.

use tamis_theory::crisis::{Occupancy, churn};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Rate, Sample, mix, reduce, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "deletions",
    title: "Deletions in multilevel tables",
    source: "SUM, deletions",
    about: "Items are replaced one by one. If a slot is free at once, new \
        items fill the holes of the first level while old ones stay in later \
        levels, and crises become frequent. By the paper's lazy rule a \
        deleted item keeps its slot until a quota is used up and the whole \
        table is built again.",
    seconds: [20.0, 3.0],
    run,
};

const ITEMS: u64 = 10_000;
const LEVELS: [u64; 6] = [19_000, 6500, 2500, 1500, 300, 200];
/// The table of the theory's example, of the same proportions.
const LARGE: (u64, [u64; 6]) =
    (100_000, [190_000, 65_000, 25_000, 15_000, 3000, 2000]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    Taken,
    /// The item is deleted and keeps its slot.
    Deleted,
}

/// A table of slots of one item.
struct Slots {
    levels: Vec<Vec<Slot>>,
    /// Place of each present item, none for an item without room.
    items: Vec<(u64, Option<(usize, usize)>)>,
    deleted: u64,
    crises: u64,
    rebuilds: u64,
    builds: u64,
}

impl Slots {
    fn new() -> Self {
        let levels = LEVELS.map(|size| vec![Slot::Free; size as usize]);
        Self {
            levels: levels.to_vec(),
            items: Vec::new(),
            deleted: 0,
            crises: 0,
            rebuilds: 0,
            builds: 0,
        }
    }

    fn room(&mut self, key: u64) -> Option<(usize, usize)> {
        // New hash functions for every build.
        let key = key ^ mix(self.builds, 99);
        for (level, slots) in self.levels.iter_mut().enumerate() {
            let hash = mix(key, level as u64);
            let place = reduce(hash, slots.len() as u64) as usize;
            if slots[place] == Slot::Free {
                slots[place] = Slot::Taken;
                return Some((level, place));
            }
        }
        self.crises += 1;
        None
    }

    fn insert(&mut self, key: u64) {
        let room = self.room(key);
        self.items.push((key, room));
    }

    /// Replaces the item `at`.
    fn replace(&mut self, at: usize, key: u64, quota: Option<u64>) {
        if let (_, Some((level, place))) = self.items[at] {
            self.levels[level][place] = match quota {
                None => Slot::Free,
                Some(_) => Slot::Deleted,
            };
        }
        self.deleted += 1;
        // The deleted item leaves before the new one comes.
        self.items.swap_remove(at);
        if quota.is_some_and(|quota| self.deleted > quota) {
            self.rebuild();
        }
        self.insert(key);
    }

    fn rebuild(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(Slot::Free));
        (self.deleted, self.builds) = (0, self.builds + 1);
        self.rebuilds += 1;
        let keys: Vec<u64> = self.items.drain(..).map(|item| item.0).collect();
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

/// Items of each level, crises and rebuilds of `turnovers` turnovers after
/// as many without counting.
fn turn(run: u64, turnovers: u64, quota: Option<u64>) -> (Vec<f64>, f64, f64) {
    let mut slots = Slots::new();
    let keys = Keys::new(run);
    keys.members(ITEMS).for_each(|key| slots.insert(key));
    let mut start = (0, 0);
    for step in 0..2 * turnovers * ITEMS {
        if step == turnovers * ITEMS {
            start = (slots.crises, slots.rebuilds);
        }
        let at = reduce(keys.stranger(step), slots.items.len() as u64);
        slots.replace(at as usize, keys.member(ITEMS + step), quota);
    }
    let mut levels = vec![0.0; LEVELS.len()];
    for (_, place) in &slots.items {
        if let Some((level, _)) = place {
            levels[*level] += 1.0;
        }
    }
    let crises = (slots.crises - start.0) as f64 / turnovers as f64;
    (levels, crises, (slots.rebuilds - start.1) as f64)
}

fn run(setting: &Setting) -> Result<Outcome> {
    let turnovers = setting.size(8, 4);
    let count = setting.size(40, 16);
    let mut outcome = Outcome {
        parameters: vec![
            ("items", ITEMS.to_string()),
            ("levels", format!("{LEVELS:?}")),
            ("turnovers", turnovers.to_string()),
            ("runs", count.to_string()),
        ],
        ..Outcome::default()
    };
    let theory = churn(ITEMS, &LEVELS, 1)?;
    let freed = runs(count, |run| turn(run, turnovers, None));
    let mut table = Table::new(
        "",
        &["rule", "quantity", "theory", "simulated", "low", "high"],
    );
    let expected = theory.level_items();
    for (level, expected) in expected.iter().enumerate().take(4) {
        let values = freed.iter().map(|run| run.0[level]).collect();
        let sample = Sample::new(values);
        let [low, high] = sample.interval();
        let quantity = format!("items in level {}", level + 1);
        table.push(row![
            "freed at once",
            &*quantity,
            *expected,
            sample.mean(),
            low,
            high
        ]);
        outcome.findings.push(
            Finding::new(
                &["S-012", "S-036"],
                format!("slots freed at once: {quantity}"),
            )
            .mean(&sample)
            .predicted_within(*expected, 0.01),
        );
    }
    let crises = Sample::new(freed.iter().map(|run| run.1).collect());
    let [low, high] = crises.interval();
    table.push(row![
        "freed at once",
        "crises per turnover",
        theory.crises_per_turnover,
        crises.mean(),
        low,
        high,
    ]);
    outcome.findings.push(
        Finding::new(
            &["S-012", "S-036"],
            "slots freed at once: crises per turnover",
        )
        .mean(&crises)
        .predicted(theory.crises_per_turnover),
    );
    // The lazy rule fills at most items and quota: a static table.
    let mut line = Vec::new();
    let (items, levels) = LARGE;
    for percent in (0..=60).step_by(5) {
        let most = items + items * percent / 100;
        let chance = Occupancy::new(most, &levels, 1)?.crisis();
        line.push((percent as f64 / 100.0, chance));
        let quantity = format!("crisis per rebuild, quota {percent} %");
        table.push(row![
            "lazy, 100 000 items",
            quantity,
            chance,
            None::<f64>,
            None::<f64>,
            None::<f64>
        ]);
    }
    let quarter = line[5].1;
    outcome.findings.push(
        Finding::new(
            &["S-028"],
            "100 000 items: chance of a crisis per rebuild, quota 25 %",
        )
        .ours(quarter)
        .at_most(1e-5)
        .check(
            "crises per turnover with slots freed at once are more frequent \
             by five orders",
            churn(items, &levels, 1)?.crises_per_turnover > 1e5 * quarter,
        ),
    );
    let mut marks = Vec::new();
    for percent in [25, 50, 60] {
        let quota = ITEMS * percent / 100;
        let lazy = runs(count, |run| turn(run, turnovers, Some(quota)));
        let cycles: f64 = lazy.iter().map(|run| run.2).sum();
        let seen: f64 = lazy.iter().map(|run| run.1 * turnovers as f64).sum();
        let most = Occupancy::new(ITEMS + quota, &LEVELS, 1)?;
        let chance = most.crisis();
        // A cycle has a crisis or none; more than one is rare.
        let rate = Rate {
            hits: (seen as u64).min(cycles as u64),
            trials: cycles as u64,
        };
        let [low, high] = rate.interval();
        let quantity = format!("crises per rebuild, quota {percent} %");
        table.push(row!["lazy", &*quantity, chance, rate.value(), low, high]);
        marks.push((percent as f64 / 100.0, rate.value(), [low, high]));
        if percent < 60 {
            outcome.findings.push(
                Finding::new(
                    &["S-028"],
                    format!("lazy rule, 10 000 items: {quantity}"),
                )
                .rate(rate)
                .predicted(chance),
            );
        }
    }
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Chance of a crisis per rebuild by the quota of deleted items"
            .into(),
        x: Axis::linear("quota of deleted items, share of all"),
        y: Axis::log("chance of a crisis per rebuild"),
        legend: Corner::LowerRight,
        series: vec![
            Series::line("lazy, 100 000 items, exact", 0, line),
            Series::measured("lazy, 10 000 items, simulated", 1, &marks),
        ],
    });
    Ok(outcome)
}

//! Deletions: slots freed at once, and the paper's lazy rule.

use tamis_theory::crisis::{churn, lazy};

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
    seconds: [2.0, 0.7],
    traced: false,
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
    cycles: Cycles,
}

/// Rebuilds of a table, and the time between each and the next.
#[derive(Debug, Clone, Copy, Default)]
struct Cycles {
    rebuilds: u64,
    /// Cycles with an item without room.
    with_crisis: u64,
    /// The cycle that has not ended has such an item.
    crisis: bool,
    /// Slots taken at the ends of all cycles, by level.
    taken: [u64; LEVELS.len()],
}

impl Slots {
    fn new() -> Self {
        let levels = LEVELS.map(|size| vec![Slot::Free; size as usize]);
        Self {
            levels: levels.to_vec(),
            items: Vec::new(),
            deleted: 0,
            crises: 0,
            cycles: Cycles::default(),
        }
    }

    fn room(&mut self, key: u64) -> Option<(usize, usize)> {
        // New hash functions for every build.
        let key = key ^ mix(self.cycles.rebuilds, 99);
        for (level, slots) in self.levels.iter_mut().enumerate() {
            let hash = mix(key, level as u64);
            let place = reduce(hash, slots.len() as u64) as usize;
            if slots[place] == Slot::Free {
                slots[place] = Slot::Taken;
                return Some((level, place));
            }
        }
        self.crises += 1;
        self.cycles.crisis = true;
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
        let cycles = &mut self.cycles;
        for (taken, level) in cycles.taken.iter_mut().zip(&self.levels) {
            let full = level.iter().filter(|slot| **slot != Slot::Free);
            *taken += full.count() as u64;
        }
        cycles.rebuilds += 1;
        cycles.with_crisis += u64::from(std::mem::take(&mut cycles.crisis));
        self.levels.iter_mut().for_each(|level| level.fill(Slot::Free));
        self.deleted = 0;
        let keys: Vec<u64> = self.items.drain(..).map(|item| item.0).collect();
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

/// A table after two times as many turnovers as were asked for.
struct Turned {
    /// Items of each level.
    items: [f64; LEVELS.len()],
    /// Items without room in each turnover of the second half.
    crises: f64,
    cycles: Cycles,
}

fn turn(run: u64, turnovers: u64, quota: Option<u64>) -> Turned {
    let mut slots = Slots::new();
    let keys = Keys::new(run);
    keys.members(ITEMS).for_each(|key| slots.insert(key));
    let mut start = 0;
    for step in 0..2 * turnovers * ITEMS {
        if step == turnovers * ITEMS {
            start = slots.crises;
        }
        let at = reduce(keys.stranger(step), slots.items.len() as u64);
        slots.replace(at as usize, keys.member(ITEMS + step), quota);
    }
    let mut items = [0.0; LEVELS.len()];
    for (_, place) in &slots.items {
        if let Some((level, _)) = place {
            items[*level] += 1.0;
        }
    }
    let crises = (slots.crises - start) as f64 / turnovers as f64;
    Turned { items, crises, cycles: slots.cycles }
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
        let values = freed.iter().map(|run| run.items[level]).collect();
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
    let crises = Sample::new(freed.iter().map(|run| run.crises).collect());
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
        let quota = items * percent / 100;
        let chance = lazy(items, &levels, 1, quota)?.crisis_per_rebuild;
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
        .check(
            "crises per turnover with slots freed at once are more frequent \
             by five orders",
            churn(items, &levels, 1)?.crises_per_turnover > 1e5 * quarter,
        ),
    );
    let mut marks = Vec::new();
    for percent in [25, 50, 60] {
        let quota = ITEMS * percent / 100;
        let theory = lazy(ITEMS, &LEVELS, 1, quota)?;
        let turned = runs(count, |run| turn(run, turnovers, Some(quota)));
        let sum = |f: fn(&Cycles) -> u64| -> u64 {
            turned.iter().map(|run| f(&run.cycles)).sum()
        };
        let rate = Rate {
            hits: sum(|cycles| cycles.with_crisis),
            trials: sum(|cycles| cycles.rebuilds),
        };
        let chance = theory.crisis_per_rebuild;
        let [low, high] = rate.interval();
        let quantity = format!("crisis per rebuild, quota {percent} %");
        table.push(row!["lazy", &*quantity, chance, rate.value(), low, high]);
        marks.push((percent as f64 / 100.0, rate.value(), [low, high]));
        outcome.findings.push(
            Finding::new(
                &["S-028"],
                format!("lazy rule, 10 000 items: {quantity}"),
            )
            .rate(rate)
            .predicted(chance),
        );
        if percent > 25 {
            continue;
        }
        for (level, slots) in theory.level_slots.iter().enumerate().take(4) {
            let mean = |run: &Turned| {
                run.cycles.taken[level] as f64 / run.cycles.rebuilds as f64
            };
            let sample = Sample::new(turned.iter().map(mean).collect());
            let [low, high] = sample.interval();
            let quantity = format!(
                "slots taken in level {} before a rebuild, quota 25 %",
                level + 1
            );
            table.push(row![
                "lazy",
                &*quantity,
                *slots,
                sample.mean(),
                low,
                high
            ]);
            outcome.findings.push(
                Finding::new(&["S-028"], format!("lazy rule: {quantity}"))
                    .mean(&sample)
                    .predicted(*slots),
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

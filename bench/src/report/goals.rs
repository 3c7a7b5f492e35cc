//! Goals for ratios of times, and the measured ratios.

use super::{Group, Row};
use crate::Size;
use crate::contender::Mode;
use crate::keys::KeyType;
use crate::subject::Result;

/// Ratio of an operation's times in two filters.
struct Goal {
    filter: &'static str,
    operations: &'static [&'static str],
    mode: Mode,
    of: &'static str,
    of_mode: Mode,
    sizes: &'static [Size],
    /// Hashes only, where the other filter hashes no keys.
    keys: &'static [KeyType],
    /// Largest ratio that reaches the goal.
    limit: fn(target: f64) -> Result<f64>,
}

const CACHES: &[Size] = &[Size::L2, Size::L3];
const MEMORY: &[Size] = &[Size::Dram];
const HASHES: &[KeyType] = &[KeyType::Hash];

const GOALS: [Goal; 33] = [
    roofline("blocked", &["miss"], |_| Ok(1.15)),
    roofline("split", &["miss"], |_| Ok(1.15)),
    sbbf("blocked-as-sbbf", &["miss"], Mode::Batch, |_| Ok(1.6)),
    sbbf("blocked-as-sbbf", &["miss"], Mode::Single, |_| Ok(1.6)),
    ahead("blocked", "fastbloom", &["hit", "miss", "mixed"]),
    ahead("blocked", "fastbloom-atomic", &["hit", "miss", "mixed"]),
    ahead("tinyset", "qfilter", &["hit", "miss", "insert"]),
    ahead("tinyset", "cuckoofilter", &["hit", "miss", "insert"]),
    sbbf("tinyset", &["miss"], Mode::Batch, |_| Ok(3.0)),
    sbbf("tinyset", &["hit"], Mode::Batch, |_| Ok(4.0)),
    sbbf("tinyset", &["miss"], Mode::Single, |_| Ok(3.0)),
    sbbf("tinyset", &["hit"], Mode::Single, |_| Ok(4.0)),
    sbbf("tinyset-as-sbbf", &["miss"], Mode::Batch, |_| Ok(3.0)),
    sbbf("tinyset-as-sbbf", &["hit"], Mode::Batch, |_| Ok(4.0)),
    sbbf("tinyset-as-sbbf", &["miss"], Mode::Single, |_| Ok(3.0)),
    sbbf("tinyset-as-sbbf", &["hit"], Mode::Single, |_| Ok(4.0)),
    ahead("tinyset-half", "qfilter", &["hit", "miss", "insert"]),
    ahead("tinyset-half", "cuckoofilter", &["hit", "miss", "insert"]),
    sbbf("tinyset-half", &["miss"], Mode::Batch, |_| Ok(3.0)),
    sbbf("tinyset-half", &["hit"], Mode::Batch, |_| Ok(4.0)),
    sbbf("tinyset-half", &["miss"], Mode::Single, |_| Ok(3.0)),
    sbbf("tinyset-half", &["hit"], Mode::Single, |_| Ok(4.0)),
    roofline("tinyset", &["miss"], |_| Ok(1.6)),
    roofline("tinyset", &["hit"], |_| Ok(2.0)),
    roofline("balanced", &["miss"], |target| {
        let design = tamis::Balanced::builder().fpr(target);
        Ok(1.25 * design.predict()?.reads_miss)
    }),
    ahead("bloom", "fastbloom", &["hit", "miss", "mixed"]),
    ahead("bloom", "fastbloom", &["insert"]),
    sbbf("blocked", &["hit"], Mode::Single, |_| Ok(1.8)),
    sbbf("blocked", &["insert"], Mode::Single, |_| Ok(1.6)),
    sbbf("tinyset", &["miss"], Mode::Single, |_| Ok(2.5)).at(&[Size::L2]),
    sbbf("tinyset", &["hit"], Mode::Single, |_| Ok(3.2)).at(&[Size::L2]),
    sbbf("blocked", &["insert"], Mode::Single, |_| Ok(1.5)).at(MEMORY),
    sbbf("tinyset", &["insert"], Mode::Single, |_| Ok(3.0)).at(MEMORY),
];

impl Goal {
    /// The goal at other sizes.
    const fn at(self, sizes: &'static [Size]) -> Self {
        Self { sizes, ..self }
    }
}

/// Batches in DRAM, relative to the roofline.
const fn roofline(
    filter: &'static str,
    operations: &'static [&'static str],
    limit: fn(f64) -> Result<f64>,
) -> Goal {
    Goal {
        filter,
        operations,
        mode: Mode::Batch,
        of: "roofline",
        of_mode: Mode::Batch,
        sizes: MEMORY,
        keys: HASHES,
        limit,
    }
}

/// Filters in cache, relative to sbbf-rs, the fastest peer.
const fn sbbf(
    filter: &'static str,
    operations: &'static [&'static str],
    mode: Mode,
    limit: fn(f64) -> Result<f64>,
) -> Goal {
    Goal {
        filter,
        operations,
        mode,
        of: "sbbf-rs",
        of_mode: Mode::Single,
        sizes: CACHES,
        keys: HASHES,
        limit,
    }
}

/// Faster than a peer, at every size and for every key type.
const fn ahead(
    filter: &'static str,
    of: &'static str,
    operations: &'static [&'static str],
) -> Goal {
    Goal {
        filter,
        operations,
        mode: Mode::Single,
        of,
        of_mode: Mode::Single,
        sizes: &Size::ALL,
        keys: &KeyType::ALL,
        limit: |_| Ok(1.0),
    }
}

/// The cell with the largest ratio relative to the goal.
struct Worst {
    ratio: f64,
    limit: f64,
    place: String,
}

impl Goal {
    fn worst(&self, groups: &[Group<'_>]) -> Result<Option<Worst>> {
        let mut worst: Option<Worst> = None;
        for group in groups {
            let counts = self.sizes.contains(&group.size)
                && self.keys.contains(&group.keys);
            for operation in self.operations.iter().filter(|_| counts) {
                let ours = group.ns(self.filter, operation, self.mode);
                let theirs = group.ns(self.of, operation, self.of_mode);
                let (Some(ours), Some(theirs)) = (ours, theirs) else {
                    continue;
                };
                let ratio = ours / theirs;
                let limit = (self.limit)(group.target)?;
                let worse = worst.as_ref().is_none_or(|worst| {
                    ratio / limit > worst.ratio / worst.limit
                });
                if worse {
                    let place = format!("{operation}, {}", group.place());
                    worst = Some(Worst { ratio, limit, place });
                }
            }
        }
        Ok(worst)
    }
}

/// Table of the goals, each with its worst cell.
pub(crate) fn goals(rows: &[Row]) -> Result<String> {
    let groups = Group::all(rows);
    let mut lines = vec![
        "| ratio of times | limit | worst | reached | where |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for goal in &GOALS {
        let Some(Worst { ratio, limit, place }) = goal.worst(&groups)? else {
            continue;
        };
        let Goal { filter, mode, of, .. } = goal;
        let operations = goal.operations.join(", ");
        let mode = match mode {
            Mode::Single => "",
            Mode::Batch => ", batch",
        };
        let reached = if ratio <= limit { "yes" } else { "no" };
        lines.push(format!(
            "| {filter} / {of}: {operations}{mode} | {limit:.2} | \
             {ratio:.2} | {reached} | {place} |"
        ));
    }
    for group in &groups {
        let fpr = |name| {
            let row = group.filters().into_iter().find(|r| r.filter == name);
            row.and_then(|row| row.fpr)
        };
        let rates = fpr("blocked-as-sbbf").zip(fpr("sbbf-rs"));
        let counts =
            CACHES.contains(&group.size) && group.keys == KeyType::Hash;
        if let Some((ours, theirs)) = rates.filter(|_| counts) {
            let ratio = ours / theirs;
            let reached = if ratio <= 0.8 { "yes" } else { "no" };
            let place = group.place();
            lines.push(format!(
                "| blocked-as-sbbf / sbbf-rs: rate | 0.80 | {ratio:.2} | \
                 {reached} | {place} |"
            ));
        }
    }
    Ok(lines.join("\n") + "\n")
}

//! Tables of the figures, and the goals.

use std::fmt::Write as _;
use std::path::Path;

use crate::child::{Figures, Job};
use crate::engine::Result;
use crate::parent::{JOBS, Results, Room, Sizes};

/// A figure of [`Figures`] that goals compare.
type Metric = (&'static str, fn(&Figures) -> f64);

const CPU: Metric = ("processor time", |f| f.cpu_seconds / per(f));
const P50: Metric = ("median time", |f| f.p50);
const DISK: Metric = ("bytes from the disk", |f| f.disk_bytes as f64 / per(f));
const RATE: Metric = ("rate", |f| per(f) / f.seconds);
const WRITTEN: Metric = ("bytes written", |f| f.write_chars as f64 / per(f));

fn per(figures: &Figures) -> f64 {
    figures.operations as f64
}

/// A ratio that tamis is to keep against peers.
struct Goal {
    room: Room,
    job: Job,
    metric: Metric,
    peers: &'static [&'static str],
    /// The ratio, and whether more is better.
    bound: (f64, bool),
}

const fn at_most(
    (room, job): (Room, Job),
    metric: Metric,
    bound: f64,
    peers: &'static [&'static str],
) -> Goal {
    Goal { room, job, metric, peers, bound: (bound, false) }
}

const fn at_least(
    (room, job): (Room, Job),
    metric: Metric,
    bound: f64,
    peers: &'static [&'static str],
) -> Goal {
    Goal { room, job, metric, peers, bound: (bound, true) }
}

const LSM: &[&str] = &["rocksdb", "fjall"];
const TREES: &[&str] = &["redb", "lmdb"];

const GOALS: &[Goal] = &[
    at_most((Room::Cached, Job::Hit), CPU, 0.4, LSM),
    at_most((Room::Cached, Job::Hit), CPU, 0.55, &["redb"]),
    at_most((Room::Cached, Job::Hit), CPU, 1.1, &["lmdb"]),
    at_most((Room::Limited, Job::Hit), P50, 0.85, LSM),
    at_most((Room::Limited, Job::Hit), P50, 0.95, &["lmdb"]),
    at_most((Room::Limited, Job::Hit), DISK, 0.55, LSM),
    at_least((Room::Limited, Job::Miss), RATE, 3.0, LSM),
    at_least((Room::Limited, Job::Miss), RATE, 100.0, TREES),
    at_most(
        (Room::Cached, Job::Load),
        CPU,
        0.25,
        &["rocksdb", "fjall", "redb", "lmdb"],
    ),
    at_most((Room::Cached, Job::Overwrite), WRITTEN, 0.35, TREES),
    at_most((Room::Cached, Job::Overwrite), WRITTEN, 3.0, LSM),
];

pub(crate) fn print(
    engines: &[String],
    sizes: Sizes,
    results: &Results,
    write_docs: bool,
) -> Result<()> {
    let mut text = String::new();
    writeln!(
        text,
        "{} records of 16 + 100 bytes, {} rounds in turns, medians; write \
         buffer {} MiB, memory limit {} MiB. {}.\n",
        sizes.items,
        sizes.rounds,
        sizes.buffer >> 20,
        sizes.limit >> 20,
        machine()
    )?;
    for (room, job) in JOBS {
        table(&mut text, engines, results, room, job)?;
    }
    goals(&mut text, engines, results)?;
    print!("{text}");
    if write_docs {
        replace_in_docs(&text)?;
    }
    Ok(())
}

fn figures<'a>(
    results: &'a Results,
    engine: &str,
    room: Room,
    job: Job,
) -> Option<&'a [Figures]> {
    results.get(&(engine.into(), room, job as u8)).map(Vec::as_slice)
}

fn median(figures: &[Figures], metric: fn(&Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = figures.iter().map(metric).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn table(
    text: &mut String,
    engines: &[String],
    results: &Results,
    room: Room,
    job: Job,
) -> Result<()> {
    if !engines.iter().any(|e| figures(results, e, room, job).is_some()) {
        return Ok(());
    }
    let unit = match job {
        Job::Hit | Job::Miss => "lookup",
        Job::Many => "64 lookups",
        _ => "1000 writes",
    };
    let title = match (room, job) {
        (_, Job::Load) => "Bulk load",
        (Room::Cached, Job::Hit) => "Hits, data in the page cache",
        (Room::Cached, Job::Miss) => "Misses, data in the page cache",
        (Room::Cached, Job::Many) => {
            "64 hits at a time, data in the page cache"
        }
        (Room::Limited, Job::Hit) => "Hits, memory limited",
        (Room::Limited, Job::Miss) => "Misses, memory limited",
        (Room::Limited, Job::Many) => "64 hits at a time, memory limited",
        (_, Job::Overwrite) => "Overwrites, synced every 1000, then settled",
        (_, Job::Insert) => "Insertions of new keys, likewise",
        (_, Job::Delete) => "Deletions, likewise",
    };
    writeln!(text, "**{title}**\n")?;
    writeln!(
        text,
        "| engine | operations/s | CPU µs | {unit}: p50 µs | p99 µs | longest \
         ms | read calls | bytes read | from the disk | bytes written | peak \
         memory MiB | files MiB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\
         --:|--:|"
    )?;
    for engine in engines {
        let Some(f) = figures(results, engine, room, job) else { continue };
        let m = |metric: fn(&Figures) -> f64| median(f, metric);
        writeln!(
            text,
            "| {engine} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.3} | \
             {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            m(RATE.1),
            m(CPU.1) * 1e6,
            m(|f| f.p50) * 1e6,
            m(|f| f.p99) * 1e6,
            m(|f| f.longest) * 1e3,
            m(|f| f.read_calls as f64 / per(f)),
            m(|f| f.read_chars as f64 / per(f)),
            m(DISK.1),
            m(WRITTEN.1),
            m(|f| f.peak_memory as f64) / 1048576.0,
            m(|f| f.files as f64) / 1048576.0,
        )?;
    }
    text.push('\n');
    Ok(())
}

fn goals(
    text: &mut String,
    engines: &[String],
    results: &Results,
) -> Result<()> {
    writeln!(
        text,
        "**Goals**, as ratios of tamis to the peer\n\n| measurement | figure \
         | peer | goal | ratio | |\n|---|---|---|--:|--:|---|"
    )?;
    let mut line = |what: String, figure, peer, bound: (f64, bool), ratio| {
        let (bound, more) = bound;
        let reached = if more { ratio >= bound } else { ratio <= bound };
        let sign = if more { "≥" } else { "≤" };
        let verdict = if reached { "reached" } else { "**not reached**" };
        writeln!(
            text,
            "| {what} | {figure} | {peer} | {sign} {bound} | {ratio:.2} | \
             {verdict} |"
        )
    };
    for goal in GOALS {
        let (name, metric) = goal.metric;
        for ours in ["tamis", "tamis-mapped", "tamis-direct"] {
            // Direct reads have no cache, and take no part in its goals.
            let cached = goal.room == Room::Cached;
            if cached && ours == "tamis-direct" {
                continue;
            }
            let what = format!("{:?}, {:?}", goal.job, goal.room);
            let what = format!("{}, {ours}", what.to_lowercase());
            let ours = figures(results, ours, goal.room, goal.job);
            let Some(ours) = ours else { continue };
            for peer in goal.peers {
                let theirs = figures(results, peer, goal.room, goal.job);
                let Some(theirs) = theirs else { continue };
                let ratio = median(ours, metric) / median(theirs, metric);
                line(what.clone(), name, peer, goal.bound, ratio)?;
            }
        }
    }
    for name in engines.iter().filter(|name| name.starts_with("tamis")) {
        let single = name.trim_end_matches("-threads");
        let hit = figures(results, single, Room::Limited, Job::Hit);
        let many = figures(results, name, Room::Limited, Job::Many);
        if let (Some(hit), Some(many)) = (hit, many) {
            let ratio = median(many, RATE.1) / median(hit, RATE.1);
            let what = format!("64 at a time, {name}");
            line(what, "rate", &"single", (4.0, true), ratio)?;
        }
    }
    text.push('\n');
    Ok(())
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        info.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(": "))
            .map_or_else(|| "?".into(), |(_, value)| value.to_owned())
    };
    let cores = info.matches("processor\t").count();
    format!(
        "{} (family {}, model {}), {cores} cores",
        field("model name"),
        field("cpu family"),
        field("model\t")
    )
}

/// Replaces the generated part of docs/store.md.
fn replace_in_docs(text: &str) -> Result<()> {
    const BEGIN: &str = "<!-- begin: cargo xtask bench store -->\n";
    const END: &str = "<!-- end: cargo xtask bench store -->";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("docs/store.md");
    let page = std::fs::read_to_string(&path)?;
    let (before, rest) =
        page.split_once(BEGIN).ok_or("docs/store.md has no begin mark")?;
    let (_, after) =
        rest.split_once(END).ok_or("docs/store.md has no end mark")?;
    let text = text.trim_end();
    std::fs::write(&path, format!("{before}{BEGIN}{text}\n{END}{after}"))?;
    Ok(())
}

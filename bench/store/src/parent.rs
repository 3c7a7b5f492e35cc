//! Runs the measurements: engines take turns, memory is limited by a cgroup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::child::{Figures, Job, VALUE};
use crate::engine::{ENGINES, Result, form_of};
use crate::report;

#[derive(Args)]
pub(crate) struct Settings {
    /// Records, of 16 + 100 bytes
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) items: u64,

    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: u64,

    /// A tenth of the records and one round
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only these engines, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(crate) engines: Vec<String>,

    /// Only these measurements after the load, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(crate) jobs: Vec<Job>,

    /// Directory for the stores, on the disk to measure
    #[arg(long, default_value = "target/bench-store")]
    pub(crate) dir: PathBuf,

    /// Write the tables into docs/store.md
    #[arg(long)]
    pub(crate) write_docs: bool,
}

/// Memory of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Room {
    /// All files fit the page cache.
    Cached,
    /// The page cache and the process have a quarter of the records' bytes.
    Limited,
}

/// All figures of one engine in one measurement, a round each.
pub(crate) type Results = BTreeMap<(String, Room, u8), Vec<Figures>>;

/// Measurements in the order in which they run.
pub(crate) const JOBS: [(Room, Job); 10] = [
    (Room::Cached, Job::Load),
    (Room::Cached, Job::Hit),
    (Room::Cached, Job::Miss),
    (Room::Cached, Job::Many),
    (Room::Limited, Job::Hit),
    (Room::Limited, Job::Miss),
    (Room::Limited, Job::Many),
    (Room::Cached, Job::Overwrite),
    (Room::Cached, Job::Insert),
    (Room::Cached, Job::Delete),
];

/// Sizes that follow from the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) items: u64,
    pub(crate) rounds: u64,
    /// Bytes of keys and values.
    pub(crate) raw: u64,
    /// Write buffer: 2.5 % of the data.
    pub(crate) buffer: u64,
    /// Memory of a limited measurement.
    pub(crate) limit: u64,
}

impl Sizes {
    fn new(settings: &Settings) -> Self {
        let (items, rounds) = match settings.quick {
            true => (settings.items / 10, 1),
            false => (settings.items, settings.rounds),
        };
        let raw = items * (16 + VALUE as u64);
        // An empty tamis process and its libraries take some of the limit.
        let limit = (raw / 4).max(48 << 20);
        Self { items, rounds, raw, buffer: raw / 40, limit }
    }

    /// Operations of a measurement: of writes, three turnovers of the buffer.
    fn operations(self, room: Room, job: Job) -> u64 {
        let turnovers = 3 * self.buffer / (16 + VALUE as u64);
        match (room, job) {
            (_, Job::Load) => self.items,
            (_, Job::Overwrite) => turnovers,
            (_, Job::Insert | Job::Delete) => turnovers / 3,
            (Room::Cached, _) => 512_000.min(self.items),
            (Room::Limited, Job::Miss) => 64_000,
            (Room::Limited, _) => 16_000,
        }
    }
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let sizes = Sizes::new(settings);
    let engines: Vec<String> = match settings.engines.is_empty() {
        true => ENGINES.iter().map(|&name| name.into()).collect(),
        false => settings.engines.clone(),
    };
    let _ = std::fs::remove_dir_all(&settings.dir);
    std::fs::create_dir_all(&settings.dir)?;
    let group = Group::new(sizes.limit);
    if let Err(error) = &group {
        eprintln!("memory is not limited: {error}");
    }
    let group = group.ok();
    let mut results = Results::new();
    for round in 0..sizes.rounds {
        for (room, job) in JOBS {
            if job == Job::Load && round > 0 {
                continue;
            }
            let wanted =
                settings.jobs.is_empty() || settings.jobs.contains(&job);
            if job != Job::Load && !wanted {
                continue;
            }
            if room == Room::Limited && group.is_none() {
                continue;
            }
            for name in &engines {
                eprintln!("round {}: {job:?} {room:?} {name}", round + 1);
                let dir = settings.dir.join(directory(name));
                // A form of reading writes as its engine does.
                let form = form_of(name).is_some();
                if form && (job.writes() || is_same(name, job)) {
                    continue;
                }
                let group = match room {
                    Room::Cached => {
                        if !job.writes() {
                            read_all(&dir)?;
                        }
                        None
                    }
                    Room::Limited => {
                        drop_cached(&dir)?;
                        group.as_ref()
                    }
                };
                let figures =
                    measure(name, &dir, sizes, round, (room, job), group)?;
                let place = (name.clone(), room, job as u8);
                results.entry(place).or_default().push(figures);
            }
        }
    }
    std::fs::remove_dir_all(&settings.dir)?;
    report::print(&engines, sizes, &results, settings.write_docs)
}

/// Forms of reading share a store.
fn directory(name: &str) -> &str {
    form_of(name).unwrap_or(name)
}

/// Whether a form differs from others only in batches, and this is none.
fn is_same(name: &str, job: Job) -> bool {
    name.ends_with("-threads") && job != Job::Many
}

fn measure(
    name: &str,
    dir: &Path,
    sizes: Sizes,
    round: u64,
    (room, job): (Room, Job),
    group: Option<&Group>,
) -> Result<Figures> {
    let cache = match room {
        Room::Cached => 4 * sizes.raw,
        Room::Limited => sizes.raw / 20,
    };
    // A load may use the memory that a store has for its buffer.
    let buffer = match job {
        Job::Load => sizes.buffer.max(sizes.raw / 10),
        _ => sizes.buffer,
    };
    let job_name = format!("{job:?}").to_lowercase();
    let program = std::env::current_exe()?;
    let mut command = match group {
        None => Command::new(program),
        Some(group) => {
            // The shell enters the group before it becomes the program.
            let mut shell = Command::new("sh");
            let procs = group.0.join("cgroup.procs");
            shell
                .args(["-c", "echo $$ > \"$0\"; exec \"$@\""])
                .arg(procs)
                .arg(program);
            shell
        }
    };
    let output = command
        .args(["child", name])
        .arg(dir)
        .args([
            &job_name,
            "--items",
            &sizes.items.to_string(),
            "--operations",
            &sizes.operations(room, job).to_string(),
            "--round",
            &round.to_string(),
            "--buffer",
            &buffer.to_string(),
            "--cache",
            &cache.to_string(),
        ])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{name} {job:?}: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Writes all files of `dir` to the disk and drops them from the page cache.
fn drop_cached(dir: &Path) -> Result<()> {
    use rustix::fs::{Advice, fadvise};
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_cached(&path)?;
        } else {
            let file = std::fs::File::open(&path)?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Reads all files of `dir`, so that the page cache has them.
fn read_all(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path)?;
        } else {
            let mut file = std::fs::File::open(&path)?;
            std::io::copy(&mut file, &mut std::io::sink())?;
        }
    }
    Ok(())
}

/// A control group with a memory limit, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Result<Self> {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (base, file) = match v1.is_dir() {
            true => (v1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let dir = base.join("tamis-bench-store");
        if !dir.is_dir() {
            std::fs::create_dir(&dir)?;
        }
        let group = Self(dir);
        std::fs::write(group.0.join(file), limit.to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

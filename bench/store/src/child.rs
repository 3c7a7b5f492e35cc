//! One measurement of one engine, in a process of its own.

use std::path::Path;
use std::time::Instant;

use clap::ValueEnum;
use fastrand::Rng;
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use crate::engine::{self, Engine, Key, Memory, Result};

/// Length of the values.
pub(crate) const VALUE: usize = 100;

/// Writes between two syncs.
const BATCH: usize = 1000;

/// Keys of a call of `get_many`.
const MANY: usize = 64;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize,
)]
pub(crate) enum Job {
    /// All records, with one sync at the end.
    Load,
    Hit,
    Miss,
    /// Hits in groups of 64.
    Many,
    Overwrite,
    Insert,
    Delete,
}

impl Job {
    /// Whether it changes the store.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::Hit | Self::Miss | Self::Many)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) job: Job,
    pub(crate) items: u64,
    pub(crate) operations: u64,
    pub(crate) round: u64,
}

/// Result of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    /// Of all threads, the work that was put off included.
    pub(crate) cpu_seconds: f64,
    /// Per operation; per batch for writes and groups.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
    pub(crate) read_calls: u64,
    /// Bytes that read calls returned.
    pub(crate) read_chars: u64,
    /// Bytes that came from the disk.
    pub(crate) disk_bytes: u64,
    /// Bytes that write calls passed on.
    pub(crate) write_chars: u64,
    pub(crate) peak_memory: u64,
    pub(crate) files: u64,
}

/// The key of record `i`.
pub(crate) fn key(i: u64) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(i).to_be_bytes());
    key[8..].copy_from_slice(&mix(!i).to_be_bytes());
    key
}

/// The value of a version of record `i`: bytes that do not compress.
pub(crate) fn value(i: u64, version: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(mix(i ^ (version << 40)));
    let mut value = vec![0; VALUE];
    rng.fill(&mut value);
    value[..8].copy_from_slice(&i.to_le_bytes());
    value
}

/// A bijection of the integers that looks random.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

pub(crate) fn run(
    name: &str,
    dir: &Path,
    memory: Memory,
    work: Work,
) -> Result<Figures> {
    let load = work.job == Job::Load;
    let mut engine = engine::open(name, dir, memory, load)?;
    let before = Counters::now()?;
    let start = Instant::now();
    let mut times = match work.job {
        Job::Load => write(&mut *engine, work, |i, _| (i, Some(0)))?,
        Job::Hit => hits(&*engine, work)?,
        Job::Miss => misses(&*engine, work)?,
        Job::Many => groups(&*engine, work)?,
        Job::Overwrite => write(&mut *engine, work, |_, rng| {
            (rng.u64(..work.items), Some(1 + work.round))
        })?,
        // New keys of each round, deleted by the round's deletions.
        Job::Insert => write(&mut *engine, work, |i, _| {
            (work.items + work.round * work.operations + i, Some(0))
        })?,
        Job::Delete => write(&mut *engine, work, |i, _| {
            (work.items + work.round * work.operations + i, None)
        })?,
    };
    let seconds = start.elapsed().as_secs_f64();
    drop(engine);
    let after = Counters::now()?;
    times.sort_unstable();
    let at = |share: f64| {
        let last = times.len().saturating_sub(1) as f64;
        times.get((share * last) as usize).copied().unwrap_or(0) as f64 * 1e-9
    };
    Ok(Figures {
        operations: work.operations,
        seconds,
        cpu_seconds: after.cpu - before.cpu,
        p50: at(0.5),
        p99: at(0.99),
        longest: at(1.0),
        read_calls: after.syscr - before.syscr,
        read_chars: after.rchar - before.rchar,
        disk_bytes: after.read_bytes - before.read_bytes,
        write_chars: after.wchar - before.wchar,
        peak_memory: after.peak,
        files: files(dir)?,
    })
}

fn nanos(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

fn hits(engine: &dyn Engine, work: Work) -> Result<Vec<u64>> {
    let mut rng = Rng::with_seed(work.round);
    let mut times = Vec::with_capacity(work.operations as usize);
    for _ in 0..work.operations {
        let i = rng.u64(..work.items);
        let key = key(i);
        let mut right = false;
        let start = Instant::now();
        let found = engine.get(&key, &mut |value| {
            right = value.len() == VALUE && value[..8] == i.to_le_bytes();
        })?;
        times.push(nanos(start));
        if !(found && right) {
            return Err(format!("record {i} is wrong").into());
        }
    }
    Ok(times)
}

fn misses(engine: &dyn Engine, work: Work) -> Result<Vec<u64>> {
    let mut rng = Rng::with_seed(work.round);
    let mut times = Vec::with_capacity(work.operations as usize);
    for _ in 0..work.operations {
        // Numbers above 2^60 have no records.
        let key = key((1 << 60) + rng.u64(..1 << 59));
        let start = Instant::now();
        let found = engine.get(&key, &mut |_| {})?;
        times.push(nanos(start));
        if found {
            return Err("an absent key was found".into());
        }
    }
    Ok(times)
}

fn groups(engine: &dyn Engine, work: Work) -> Result<Vec<u64>> {
    let mut rng = Rng::with_seed(work.round);
    let mut times = Vec::new();
    for _ in 0..work.operations / MANY as u64 {
        let numbers: Vec<u64> =
            (0..MANY).map(|_| rng.u64(..work.items)).collect();
        let keys: Vec<Key> = numbers.iter().map(|&i| key(i)).collect();
        let mut right = 0;
        let start = Instant::now();
        engine.get_many(&keys, &mut |i, value| {
            right += usize::from(value[..8] == numbers[i].to_le_bytes());
        })?;
        times.push(nanos(start));
        if right != MANY {
            return Err(format!("{right} of {MANY} records").into());
        }
    }
    Ok(times)
}

/// Writes `operations` records in batches; the operations of a load are
/// synced once.
fn write(
    engine: &mut dyn Engine,
    work: Work,
    mut operation: impl FnMut(u64, &mut Rng) -> (u64, Option<u64>),
) -> Result<Vec<u64>> {
    let mut rng = Rng::with_seed(work.round);
    let mut times = Vec::new();
    let mut batch = Vec::with_capacity(BATCH);
    for i in 0..work.operations {
        let (record, version) = operation(i, &mut rng);
        let value = version.map(|version| value(record, version));
        batch.push((key(record), value));
        if batch.len() == BATCH || i + 1 == work.operations {
            let start = Instant::now();
            match work.job {
                Job::Load => engine.load(&batch)?,
                _ => engine.write(&batch, true)?,
            }
            times.push(nanos(start));
            batch.clear();
        }
    }
    engine.settle()?;
    Ok(times)
}

/// Counts of the system about this process.
struct Counters {
    cpu: f64,
    syscr: u64,
    rchar: u64,
    wchar: u64,
    read_bytes: u64,
    peak: u64,
}

impl Counters {
    fn now() -> Result<Self> {
        let io = std::fs::read_to_string("/proc/self/io")?;
        let status = std::fs::read_to_string("/proc/self/status")?;
        let number = |text: &str, name: &str| -> u64 {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next())
                .and_then(|number| number.parse().ok())
                .unwrap_or(0)
        };
        let cpu = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            cpu: cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9,
            syscr: number(&io, "syscr:"),
            rchar: number(&io, "rchar:"),
            wchar: number(&io, "wchar:"),
            read_bytes: number(&io, "read_bytes:"),
            peak: number(&status, "VmHWM:") << 10,
        })
    }
}

/// Bytes on the disk of all files below `dir`.
fn files(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += match metadata.is_dir() {
            true => files(&entry.path())?,
            false => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}

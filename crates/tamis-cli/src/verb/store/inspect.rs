//! `tamis store stats`, `verify` and `compact`.

use std::io::Write as _;

use serde_json::{Value, json};
use tamis_store::{QueueState, Stats, Store};

use super::StoreArgs;
use super::read::{counted, records};
use crate::failure::{Exit, Result};
use crate::progress;
use crate::report::{JsonArgs, count, print_json, rate, row, size};

/// Print counts of a store: memory, disk space and the cost of lookups
#[derive(clap::Args)]
pub(super) struct StatsArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    format: JsonArgs,
}

/// Read and check every record and every index entry of a store
///
/// Exit status: 0 if all is intact, 2 at the first damage, with its place.
#[derive(clap::Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    format: JsonArgs,
}

/// Merge all buffered writes, join small segments and shorten the file
#[derive(clap::Args)]
pub(super) struct CompactArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    format: JsonArgs,

    /// Print nothing
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

impl StatsArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let store = self.store.open_to_read()?;
        print(&self.stats(&store)?, self.format.json)?;
        Ok(Exit::Success)
    }

    fn stats(&self, store: &Store) -> Result<Stats> {
        store.stats().map_err(|error| self.store.failure(&error))
    }
}

impl VerifyArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let store = self.store.open_to_read()?;
        let verified = progress::during("verifying", || store.verify())
            .map_err(|error| self.store.failure(&error))?;
        if self.format.json {
            print_json(&json!({
                "segments": verified.segments,
                "records": verified.records,
                "bytes": verified.bytes,
                "large_values": verified.large_values,
            }))?;
        } else {
            writeln!(
                std::io::stdout(),
                "intact: {} in {} ({} read)",
                records(verified.records),
                counted(verified.segments, "segment"),
                size(verified.bytes)
            )?;
        }
        Ok(Exit::Success)
    }
}

impl CompactArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let store = self.store.open()?;
        let failed = |error| self.store.failure(&error);
        progress::during("compacting", || store.compact()).map_err(failed)?;
        let stats = store.stats().map_err(failed)?;
        if !self.quiet {
            print(&stats, self.format.json)?;
        }
        store.close().map_err(failed)?;
        Ok(Exit::Success)
    }
}

fn print(stats: &Stats, as_json: bool) -> Result<()> {
    if as_json {
        return print_json(&report(stats));
    }
    let Stats { ram, disk, .. } = stats;
    let bits = stats
        .bits_per_key
        .map_or_else(|| "-".into(), |bits| format!("{bits:.2}"));
    let rows = [
        (
            "records",
            format!(
                "{} in {}, and {} in runs, {} buffered",
                count(stats.records),
                counted(stats.segments, "segment"),
                counted(stats.spilled, "write"),
                count(stats.buffered)
            ),
        ),
        (
            "lookups",
            format!(
                "1 read if the key is present; if it is absent, a read in {}",
                rate(stats.absent_reads)
            ),
        ),
        (
            "memory",
            format!(
                "{} of {}: filters {}, fences {}, directory {}, buffer {} of \
                 at most {}, merging {}; {bits} bits per record",
                size(ram.total()),
                size(ram.budget),
                size(ram.filters),
                size(ram.fences),
                size(ram.directory),
                size(ram.buffer),
                size(ram.buffer_limit),
                size(ram.reserved),
            ),
        ),
        (
            "disk",
            format!(
                "data {}: records {}, indexes {}, runs {}, large values {}, \
                 free {}; logs {}",
                size(disk.data),
                size(disk.records),
                size(disk.indexes),
                size(disk.runs),
                size(disk.large_values),
                size(disk.free + disk.waiting),
                size(disk.logs),
            ),
        ),
    ];
    let mut out = std::io::stdout().lock();
    for (name, value) in rows {
        row(&mut out, name, &value)?;
    }
    Ok(())
}

fn report(stats: &Stats) -> Value {
    let Stats { ram, disk, .. } = stats;
    json!({
        "records": stats.records,
        "buffered": stats.buffered,
        "spilled": stats.spilled,
        "segments": stats.segments,
        "absent_reads": stats.absent_reads,
        "bits_per_key": stats.bits_per_key,
        "queue": matches!(stats.queue, QueueState::Open),
        "ram": {
            "budget": ram.budget,
            "total": ram.total(),
            "fences": ram.fences,
            "filters": ram.filters,
            "directory": ram.directory,
            "buffer": ram.buffer,
            "buffer_limit": ram.buffer_limit,
            "reserved": ram.reserved,
        },
        "disk": {
            "data": disk.data,
            "records": disk.records,
            "indexes": disk.indexes,
            "runs": disk.runs,
            "large_values": disk.large_values,
            "free": disk.free,
            "waiting": disk.waiting,
            "logs": disk.logs,
        },
    })
}

//! `tamis store plan`.

use std::path::Path;

use serde_json::json;
use tamis_store::{Options, Plan};

use super::{FilterArgs, RamArgs, failure};
use crate::failure::{Exit, Result};
use crate::keys::parse_bytes;
use crate::report::{JsonArgs, count, print_json, rate, row, size};
use crate::verb::parse_items;

/// Show the cost of a store before it is built: memory, disk and reads
#[derive(clap::Args)]
pub(super) struct Args {
    /// Records, such as 1e9
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: u64,

    /// Bytes of key and value together
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    record_bytes: u64,

    #[command(flatten)]
    ram: RamArgs,

    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    format: JsonArgs,
}

/// Length of a key where only that of the record is given.
const KEY: u64 = 16;

/// The plan of a store with records of `record` bytes.
pub(super) fn of(
    items: u64,
    record: u64,
    options: &Options,
) -> tamis_store::Result<Plan> {
    let key = KEY.min(record);
    let value = usize::try_from(record - key).unwrap_or(usize::MAX);
    tamis_store::plan(items, key as usize, value, options)
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let options = self.filter.apply(self.ram.options());
        let plan = of(self.items, self.record_bytes, &options)
            .map_err(|error| failure(Path::new("the plan"), &error))?;
        let total = plan.filters + plan.fences + plan.reserved + plan.buffer;
        if self.format.json {
            print_json(&json!({
                "items": self.items,
                "record_bytes": self.record_bytes,
                "reads_present": plan.reads_present,
                "reads_absent": plan.reads_absent,
                "bits_per_key": plan.bits_per_key,
                "ram": {
                    "total": total,
                    "filters": plan.filters,
                    "fences": plan.fences,
                    "reserved": plan.reserved,
                    "buffer": plan.buffer,
                },
                "file_bytes": plan.file_bytes,
                "buffered_share": plan.buffered_share,
                "spilled_share": plan.spilled_share,
                "written_per_put": plan.written_per_put,
            }))?;
            return Ok(Exit::Success);
        }
        let rows = [
            (
                "lookups",
                format!(
                    "{} if the key is present; if it is absent, a read in {}",
                    match plan.reads_present {
                        1.0 => "1 read".into(),
                        reads => format!("{reads} reads"),
                    },
                    rate(plan.reads_absent)
                ),
            ),
            (
                "memory",
                format!(
                    "{}: filters {} and fences {} ({:.2} bits per key), \
                     buffer {}, directory and merging {}",
                    size(total),
                    size(plan.filters),
                    size(plan.fences),
                    plan.bits_per_key,
                    size(plan.buffer),
                    size(plan.reserved),
                ),
            ),
            ("disk", format!("{} after compaction", size(plan.file_bytes))),
            (
                "writes",
                format!(
                    "{} bytes for each put that replaces a record; the \
                     buffer holds {:.1} % of the records, runs {:.1} %",
                    count(plan.written_per_put as u64),
                    100.0 * plan.buffered_share,
                    100.0 * plan.spilled_share
                ),
            ),
        ];
        let mut out = std::io::stdout().lock();
        for (name, value) in rows {
            row(&mut out, name, &value)?;
        }
        Ok(Exit::Success)
    }
}

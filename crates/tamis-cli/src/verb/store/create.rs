//! `tamis store create`.

use std::path::PathBuf;

use tamis_store::Store;

use super::{FilterArgs, RamArgs, failure, plan};
use crate::failure::{Exit, Result};
use crate::verb::parse_items;

/// Length of the records that `--items` assumes.
const TYPICAL_RECORD: u64 = 116;

/// Create an empty store
#[derive(clap::Args)]
pub(super) struct Args {
    /// Directory of the store, created if it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    #[command(flatten)]
    ram: RamArgs,

    #[command(flatten)]
    filter: FilterArgs,

    /// Expected records: refuse memory that is too small for their index
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: Option<u64>,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let options = self.filter.apply(self.ram.options());
        if let Some(items) = self.items {
            // The length of the records has little effect on the index.
            plan::of(items, TYPICAL_RECORD, &options)
                .map_err(|error| failure(&self.dir, &error))?;
        }
        Store::create(&self.dir, &options)
            .map_err(|error| failure(&self.dir, &error))?;
        Ok(Exit::Success)
    }
}

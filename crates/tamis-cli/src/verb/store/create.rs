//! `tamis store create`.

use std::path::PathBuf;

use tamis_store::Store;

use super::{RamArgs, failure};
use crate::failure::{Exit, Result};
use crate::verb::parse_fpr;

/// Create an empty store
#[derive(clap::Args)]
pub(super) struct Args {
    /// Directory of the store, created if it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    #[command(flatten)]
    ram: RamArgs,

    /// Share of lookups of absent keys that read a page, such as 0.01 or 1%:
    /// fewer take more memory
    #[arg(long, value_name = "P", value_parser = parse_fpr)]
    absent_reads: Option<f64>,

    /// Memory of the filters in bits per key, instead of --absent-reads
    #[arg(long, value_name = "BITS", conflicts_with = "absent_reads")]
    ram_bits_per_key: Option<f64>,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let mut options = self.ram.options();
        if let Some(share) = self.absent_reads {
            options = options.absent_reads(share);
        }
        if let Some(bits) = self.ram_bits_per_key {
            options = options.ram_bits_per_key(bits);
        }
        Store::create(&self.dir, &options)
            .map_err(|error| failure(&self.dir, &error))?;
        Ok(Exit::Success)
    }
}

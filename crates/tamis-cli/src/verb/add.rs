//! `tamis add`: more keys for a filter.

use std::path::PathBuf;

use super::{Change, Threads, insert_all};
use crate::failure::{Outcome, Result};
use crate::keys::{Feed, KeyArgs};
use crate::report::Report;

/// Add keys to a filter
///
/// The file is replaced in one step when all keys are in; until then, and
/// after an error, it stays as it was. If someone else changes it meanwhile,
/// nothing is written and the command fails: run it again. `tamis info` says
/// whether the filter is still within its design.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to change
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    threads: Threads,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let (change, mut filter) = Change::begin(&self.filter)?;
        let sources = self.keys.sources()?;
        let feed = Feed::new("adding", &sources, self.keys.format());
        insert_all(&mut filter, feed, &self.threads)?;
        change.save(&filter)?;
        Report::new(&filter).print(self.json)?;
        Ok(Outcome::Yes)
    }
}

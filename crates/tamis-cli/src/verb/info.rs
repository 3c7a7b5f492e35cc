//! `tamis info`: what a filter holds and how well it does.

use std::path::PathBuf;

use super::open;
use crate::failure::{Outcome, Result};
use crate::report::Report;

/// Show what a filter holds and how well it does
///
/// The false-positive rate shown is computed from the bits really set, not
/// from the target the filter was built for.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to describe
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        Report::new(&open(&self.filter)?).print(self.json)?;
        Ok(Outcome::Yes)
    }
}

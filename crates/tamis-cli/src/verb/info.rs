//! `tamis info`: what a filter holds and how well it does.

use std::path::PathBuf;

use super::open;
use crate::failure::{Outcome, Result};
use crate::report::{Loads, Report};

/// Show what a filter holds and how well it does
///
/// The false-positive rate shown is computed from the bits really set, not
/// from the target the filter was built for. A tinyset filter also shows how
/// many of its blocks hold how many keys.
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
        let filter = open(&self.filter)?;
        let report = Report::new(&filter);
        match (filter.loads(), self.json) {
            (None, json) => report.print(json)?,
            (Some(loads), true) => {
                report.print_json_with(&Loads::from(&loads))?;
            }
            (Some(loads), false) => {
                report.print(false)?;
                Loads::from(&loads).print()?;
            }
        }
        Ok(Outcome::Yes)
    }
}

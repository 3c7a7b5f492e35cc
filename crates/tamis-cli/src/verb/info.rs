//! `tamis info`.

use std::path::PathBuf;

use tamis::{AnyFilter, inspect};

use super::open;
use crate::failure::{Exit, Result};
use crate::report::{FilterReport, JsonArgs, LoadChart};

/// Show the contents and the false-positive rate of a filter
///
/// The current false-positive rate is computed from the stored bits; the
/// rate at the design load is the one chosen for `build`. For a tinyset
/// filter a chart shows the number of blocks by number of keys.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filter to describe
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    format: JsonArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let filter = open(&self.filter)?;
        let report = FilterReport::new(&filter);
        let loads = match &filter {
            AnyFilter::TinySet(filter) => Some(inspect::loads(filter)),
            _ => None,
        };
        match (loads, self.format.json) {
            (None, json) => report.print(json)?,
            (Some(loads), true) => {
                report.print_json_with(&LoadChart::from(&loads))?;
            }
            (Some(loads), false) => {
                report.print(false)?;
                LoadChart::from(&loads).print()?;
            }
        }
        Ok(Exit::Success)
    }
}

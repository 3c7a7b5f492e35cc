//! `tamis grow`: the same keys with room for as many again.

use std::path::PathBuf;

use tamis::Grow;

use super::{Change, Forecast, Output};
use crate::failure::{Failure, Outcome, Result};

/// Double a filter that turned out too small
///
/// Without an output, the file is replaced in one step. The false-positive
/// rate stays about what it is, but every fingerprint gives up one bit:
/// filled to its new design, the filter has twice the rate of the old one.
/// Only tinyset filters of one level can grow.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to grow
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    /// The filter to write, instead of replacing FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the output file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let output = self.output.clone();
        let output = output.map(|output| Output { output, force: self.force });
        if let Some(output) = &output {
            output.check()?;
        }
        let refused =
            |error: tamis::Error| Failure::file(&self.filter, &error);
        let (change, filter) = Change::begin(&self.filter)?;
        let predicted = filter.grown_fpr().map_err(refused)?;
        let forecast = Forecast::tell(predicted, self.json)?;
        let grown = filter.grow().map_err(refused)?;
        match &output {
            Some(output) => output.write(&grown)?,
            None => change.save(&grown)?,
        }
        forecast.report(&grown, self.json)?;
        Ok(Outcome::Yes)
    }
}

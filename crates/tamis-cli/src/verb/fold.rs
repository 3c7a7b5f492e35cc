//! `tamis fold`.

use std::path::PathBuf;

use tamis::{AnyFilter, inspect::Inspector};

use super::{Forecast, OpenArgs, OutputArgs, load};
use crate::failure::{Exit, Failure, Result};
use crate::progress;
use crate::report::{FilterReport, ReportArgs};

/// Halve a filter that is larger than needed
///
/// The result equals a filter of half the size built from the same keys: it
/// needs half the memory and has a higher false-positive rate. For a tinyset
/// filter the new rate is printed before the work starts.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filter to fold
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        self.output.check([&self.filter])?;
        let form = self.output.form(&self.report)?;
        let failed = |error: tamis::Error| Failure::file(&self.filter, &error);
        let filter = load(&self.filter, &self.open)?;
        let predicted = match &filter {
            AnyFilter::TinySet(filter) => {
                Some(Inspector::new(filter).folded_fpr().map_err(failed)?)
            }
            _ => None,
        };
        let forecast = Forecast::print(predicted, form)?;
        let folded =
            progress::during("folding", || filter.halved()).map_err(failed)?;
        self.output.write(&folded)?;
        FilterReport::new(&folded).print_with(form, &forecast)?;
        Ok(Exit::Success)
    }
}

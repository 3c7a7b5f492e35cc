//! `tamis fold`: the same keys in half the memory.

use std::path::PathBuf;

use tamis::Fold;

use super::{Forecast, Output, load};
use crate::failure::{Failure, Outcome, Result};

/// Halve a filter that turned out too large
///
/// The result is the filter of half the size that would have been built from
/// the same keys: smaller, with a higher false-positive rate. A tinyset
/// filter says beforehand which.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to fold
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    output: Output,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        self.output.check()?;
        let refused =
            |error: tamis::Error| Failure::file(&self.filter, &error);
        let filter = load(&self.filter)?;
        let predicted = filter.folded_fpr().map_err(refused)?;
        let forecast = Forecast::tell(predicted, self.json)?;
        let folded = filter.fold().map_err(refused)?;
        self.output.write(&folded)?;
        forecast.report(&folded, self.json)?;
        Ok(Outcome::Yes)
    }
}

//! `tamis merge`: several filters into one.

use std::path::{Path, PathBuf};

use tamis::{AnyFilter, Error, Filter, Mapped, Merge};

use super::{Forecast, Output, load, open};
use crate::failure::{Failure, Outcome, Result};

/// Merge filters of the same kind, size and seed
///
/// The result does what the filter would that was built from all their keys
/// together. Build the parts with the same --items, --seed and size. Tinyset
/// filters say beforehand what the false-positive rate will be.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filters to merge
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    output: Output,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        self.output.check()?;
        let Some((first, others)) = self.filters.split_first() else {
            return Err(Failure::new("nothing to merge"));
        };
        let mut filter = load(first)?;
        // One filter alone stays what it is.
        let mut forecast = Forecast { predicted_fpr: None };
        if let Some((last, others)) = others.split_last() {
            for path in others {
                filter
                    .merge(&part(path)?)
                    .map_err(|error| refusal(first, path, &error))?;
            }
            let part = part(last)?;
            let refused = |error| refusal(first, last, &error);
            let fpr = filter.merged_fpr(&part).map_err(refused)?;
            forecast = Forecast::tell(fpr, self.json)?;
            filter.merge(&part).map_err(refused)?;
        }
        self.output.write(&filter)?;
        forecast.report(&filter, self.json)?;
        Ok(Outcome::Yes)
    }
}

fn part(path: &Path) -> Result<AnyFilter<Mapped>> {
    let part = open(path)?;
    part.verify().map_err(|error| Failure::file(path, &error))?;
    Ok(part)
}

fn refusal(first: &Path, other: &Path, error: &Error) -> Failure {
    let hint = match error {
        Error::Mismatch { .. } => {
            " (build both with the same settings and --seed)"
        }
        _ => "",
    };
    Failure::new(format_args!(
        "{} and {}: {error}{hint}",
        first.display(),
        other.display()
    ))
}

//! `tamis merge`: several filters into one.

use std::path::PathBuf;

use tamis::{Filter, Merge};

use super::{Output, load, open};
use crate::failure::{Failure, Outcome, Result};

/// Merge filters of the same kind, size and seed
///
/// The result is the filter that would have been built from all their keys
/// together. Build the parts with the same --items, --seed and size.
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
        for path in others {
            let other = open(path)?;
            other.verify().map_err(|error| Failure::file(path, &error))?;
            filter.merge(&other).map_err(|error| {
                Failure::new(format_args!(
                    "{} and {}: {error} (build both with the same settings and \
                     --seed)",
                    first.display(),
                    path.display()
                ))
            })?;
        }
        self.output.write(&filter, self.json)?;
        Ok(Outcome::Yes)
    }
}

//! `tamis grow`.

use std::path::PathBuf;

use tamis::{AnyFilter, inspect};

use super::{FileUpdate, Forecast, OutputArgs, WaitArgs, load};
use crate::failure::{Exit, Failure, Result};
use crate::report::JsonArgs;

/// Double the capacity of a filter
///
/// Without --output the file is replaced atomically. The false-positive rate
/// stays about the same at first, but every fingerprint loses one bit: when
/// the filter is filled to its new design, its rate is twice the old one.
/// Only tinyset filters of one level can grow. Grow a filter before it is
/// over its design; growing does not lower the rate afterwards.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filter to grow
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    /// Filter to write [default: replace FILE]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the output file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    format: JsonArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let (forecast, grown) = match self.output.clone() {
            Some(output) => {
                let output = OutputArgs { output, force: self.force };
                output.check([&self.filter])?;
                let (forecast, grown) = self.grow(&load(&self.filter)?)?;
                output.write(&grown)?;
                (forecast, grown)
            }
            None => {
                let (update, filter) =
                    FileUpdate::begin(&self.filter, &self.wait)?;
                let (forecast, grown) = self.grow(&filter)?;
                update.save(&grown)?;
                (forecast, grown)
            }
        };
        forecast.print_report(&grown, self.format.json)
    }

    /// Prints the forecast, then doubles the filter.
    fn grow(&self, filter: &AnyFilter) -> Result<(Forecast, AnyFilter)> {
        let failed = |error: tamis::Error| Failure::file(&self.filter, &error);
        let predicted = match filter {
            AnyFilter::TinySet(filter) => {
                Some(inspect::grown_fpr(filter).map_err(failed)?)
            }
            _ => None,
        };
        let forecast = Forecast::print(predicted, self.format.json)?;
        Ok((forecast, filter.doubled().map_err(failed)?))
    }
}

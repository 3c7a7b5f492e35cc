//! `tamis grow`.

use std::path::PathBuf;

use tamis::{AnyFilter, inspect::Inspector};

use super::{FileUpdate, Forecast, OpenArgs, OutputArgs, WaitArgs, load};
use crate::failure::{Exit, Failure, Result};
use crate::fullness::warn;
use crate::progress;
use crate::report::{FilterReport, ReportArgs, ReportForm, short_rate};

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
    report: ReportArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let form = self.report.form();
        let (form, forecast, grown) = match self.output.clone() {
            Some(output) => {
                let output = OutputArgs { output, force: self.force };
                output.check([&self.filter])?;
                let form = output.form(&self.report)?;
                let filter = load(&self.filter, &OpenArgs::default())?;
                let (forecast, grown) = self.grow(&filter, form)?;
                output.write(&grown)?;
                (form, forecast, grown)
            }
            None => {
                let (update, filter) =
                    FileUpdate::begin(&self.filter, &self.wait)?;
                let (forecast, grown) = self.grow(&filter, form)?;
                update.save(&grown)?;
                (form, forecast, grown)
            }
        };
        FilterReport::new(&grown).print_with(form, &forecast)?;
        Ok(Exit::Success)
    }

    /// Prints the forecast, then doubles the filter.
    fn grow(
        &self,
        filter: &AnyFilter,
        form: ReportForm,
    ) -> Result<(Forecast, AnyFilter)> {
        let path = &self.filter;
        let failed = |error: tamis::Error| Failure::file(path, &error);
        let predicted = match filter {
            AnyFilter::TinySet(filter) => {
                Some(Inspector::new(filter).grown_fpr().map_err(failed)?)
            }
            _ => None,
        };
        let forecast = Forecast::print(predicted, form)?;
        let grown = progress::during("growing", || filter.doubled())
            .map_err(failed)?;
        if let Some(rate) = predicted.filter(|&fpr| fpr > grown.design_fpr()) {
            warn(&format!(
                "warning: {}: growing does not lower the rate of {}: build it \
                 again with --items {}",
                path.display(),
                short_rate(rate),
                filter.len()
            ));
        }
        Ok((forecast, grown))
    }
}

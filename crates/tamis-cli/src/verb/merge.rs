//! `tamis merge`.

use std::path::{Path, PathBuf};

use tamis::{AnyFilter, Error, Mapped, inspect};

use super::{Forecast, OutputArgs, load, open};
use crate::failure::{Exit, Failure, Result};
use crate::keys::StoredFormat;
use crate::report::JsonArgs;

/// Merge filters of equal kind, size and seed
///
/// The result answers like one filter built from all the keys. Build every
/// part with the same --kind, --fpr or --bits-per-key, --seed and --items,
/// where --items is the number of keys of the whole. For tinyset filters the
/// new false-positive rate is printed before the last part is merged.
///
/// Filters with keys of different formats are refused. The result has the
/// note and the other metadata of the first filter.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filters to merge
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    format: JsonArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        self.output.check(&self.filters)?;
        let json = self.format.json;
        let Some((first, others)) = self.filters.split_first() else {
            return Err(Failure::new("expected at least one filter"));
        };
        let mut filter = load(first)?;
        let own_format = StoredFormat::of(first, &filter)?;
        let mut format = own_format;
        let mut check = |path: &Path, part: &AnyFilter<Mapped>| {
            format = format
                .common(StoredFormat::of(path, part)?)
                .map_err(|reason| conflict(first, path, &reason))?;
            Ok::<(), Failure>(())
        };
        // A single filter is copied; its rate does not change.
        let mut forecast = Forecast { predicted_fpr: None };
        if let Some((last, others)) = others.split_last() {
            for path in others {
                let part = part(path)?;
                check(path, &part)?;
                filter
                    .merge_from(&part)
                    .map_err(|error| failure(first, path, &error))?;
            }
            let part = part(last)?;
            check(last, &part)?;
            let failed = |error| failure(first, last, &error);
            let fpr = match (&filter, &part) {
                (AnyFilter::TinySet(ours), AnyFilter::TinySet(theirs)) => {
                    let fpr = inspect::merged_fpr(ours, theirs);
                    Some(fpr.map_err(failed)?)
                }
                _ => None,
            };
            forecast = Forecast::print(fpr, json)?;
            filter.merge_from(&part).map_err(failed)?;
        }
        if format != own_format {
            format.store(&mut filter)?;
        }
        self.output.write(&filter)?;
        forecast.print_report(&filter, json)
    }
}

fn part(path: &Path) -> Result<AnyFilter<Mapped>> {
    let part = open(path)?;
    part.verify().map_err(|error| Failure::file(path, &error))?;
    Ok(part)
}

fn conflict(first: &Path, other: &Path, reason: &str) -> Failure {
    Failure::new(format_args!(
        "{} and {}: {reason}",
        first.display(),
        other.display()
    ))
}

fn failure(first: &Path, other: &Path, error: &Error) -> Failure {
    let hint = match error {
        Error::Mismatch { .. } => {
            " (build both with the same settings, --items and --seed)"
        }
        _ => "",
    };
    conflict(first, other, &format!("{error}{hint}"))
}

//! `tamis merge`.

use std::path::{Path, PathBuf};

use tamis::inspect::Parameter;
use tamis::{AnyFilter, Error, HashId, Mapped, inspect::Inspector};

use super::{Forecast, OpenArgs, OutputArgs, load};
use crate::failure::{Exit, Failure, Result};
use crate::fullness::StrictArgs;
use crate::keys::StoredFormat;
use crate::progress;
use crate::report::{FilterReport, ReportArgs};

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
    open: OpenArgs,

    #[command(flatten)]
    strict: StrictArgs,

    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        self.output.check(&self.filters)?;
        let form = self.output.form(&self.report)?;
        let Some((first, others)) = self.filters.split_first() else {
            return Err(Failure::new("expected at least one filter"));
        };
        let mut filter = load(first, &self.open)?;
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
                let part = self.open.open_verified(path)?;
                check(path, &part)?;
                merge(&mut filter, &part).map_err(|error| {
                    self.failure(&filter, &part, path, &error)
                })?;
            }
            let part = self.open.open_verified(last)?;
            check(last, &part)?;
            let failed = |error| self.failure(&filter, &part, last, &error);
            let fpr = match (&filter, &part) {
                (AnyFilter::TinySet(ours), AnyFilter::TinySet(theirs)) => {
                    let fpr = Inspector::new(ours).merged_fpr(theirs);
                    Some(fpr.map_err(failed)?)
                }
                _ => None,
            };
            forecast = Forecast::print(fpr, form)?;
            merge(&mut filter, &part)
                .map_err(|error| self.failure(&filter, &part, last, &error))?;
        }
        if format != own_format {
            format.store(&mut filter)?;
        }
        let report = FilterReport::new(&filter);
        self.strict.check(self.output.path(), &report, || {
            format!(
                "build every part with --items {}",
                report.sufficient_items()
            )
        })?;
        self.output.write(&filter)?;
        report.print_with(form, &forecast)?;
        Ok(Exit::Success)
    }

    /// Error of merging `part` at `path`, with the cure of the setting that
    /// differs.
    fn failure(
        &self,
        filter: &AnyFilter,
        part: &AnyFilter<Mapped>,
        path: &Path,
        error: &Error,
    ) -> Failure {
        let reason = match error {
            Error::Mismatch { field, .. } => {
                let cure = self.cure(field, filter, part);
                match *field {
                    // The cure has the values, unless they are secret.
                    "seed" => format!("cannot merge: seed differs ({cure})"),
                    _ => format!("{error} ({cure})"),
                }
            }
            _ => error.to_string(),
        };
        let first = self.filters.first().map_or(path, PathBuf::as_path);
        Failure::new(format_args!(
            "{} and {}: {reason}",
            first.display(),
            path.display()
        ))
    }

    fn cure(
        &self,
        field: &str,
        filter: &AnyFilter,
        part: &AnyFilter<Mapped>,
    ) -> String {
        match field {
            "kind" => "build both with the same --kind".into(),
            "hash" => "build both with the same --hash and --seed".into(),
            "seed" if filter.hasher().id() == HashId::SipHash13 => {
                "siphash draws a random key for each filter: build all with \
                 the --seed that `tamis info --show-key` prints for one"
                    .into()
            }
            "seed" => format!(
                "--seed {:#x} and {:#x}: build both with the same one",
                filter.hasher().seed(),
                part.hasher().seed()
            ),
            "blocks" if block_bits(filter) != block_bits(part) => {
                "build both with the same --block-bytes".into()
            }
            "blocks" if filter.capacity() != part.capacity() => format!(
                "build every part with --items {}, enough for the keys of all",
                self.all_items()
            ),
            "block bits" => "build both with the same --block-bytes".into(),
            "elastic form" => {
                "build both with --removable, or none; `tamis grow` both \
                 equally often"
                    .into()
            }
            "removable mode" => "build both with --removable, or none".into(),
            "repeats" => "build both with --repeats, or none".into(),
            // Numbers that the rate or the memory decides, such as probes.
            _ => "build both with the same --fpr or --bits-per-key".into(),
        }
    }

    /// Smallest design for the keys of all parts together, and no smaller
    /// than that of any part.
    fn all_items(&self) -> u64 {
        let parts = || self.filters.iter().flat_map(AnyFilter::open);
        let keys = parts().map(|part| part.len()).sum();
        let designs = parts().map(|part| part.capacity());
        designs.fold(keys, u64::max)
    }
}

fn merge(
    filter: &mut AnyFilter,
    part: &AnyFilter<Mapped>,
) -> tamis::Result<()> {
    progress::during("merging", || filter.merge_from(part))
}

fn block_bits<D: AsRef<[u8]>>(filter: &AnyFilter<D>) -> Option<Parameter> {
    let parameters = Inspector::new(filter).parameters().into_iter();
    let mut bits = parameters.filter(|(name, _)| *name == "block_bits");
    bits.next().map(|(_, value)| value)
}

fn conflict(first: &Path, other: &Path, reason: &str) -> Failure {
    Failure::new(format_args!(
        "{} and {}: {reason}",
        first.display(),
        other.display()
    ))
}

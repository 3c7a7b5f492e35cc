//! One file per verb.

pub(crate) mod add;
pub(crate) mod build;
mod choice;
pub(crate) mod fold;
pub(crate) mod grow;
pub(crate) mod info;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod query;
pub(crate) mod remove;
pub(crate) mod theory;
pub(crate) mod verify;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Serialize;
use tamis::{AnyFilter, Filter, Mapped, Persist};
use tamis_theory::Prediction;

use crate::failure::{Failure, Result};
use crate::keys::{Chunk, Feed};
use crate::report::{self, Report};

/// Where a verb writes its filter.
#[derive(clap::Args)]
pub(crate) struct Output {
    /// The filter to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Overwrite the output file if it exists
    #[arg(long)]
    force: bool,
}

impl Output {
    /// Refuses early what `write` would refuse late.
    pub(crate) fn check(&self) -> Result<()> {
        let path = &self.output;
        // A rename would put a file in the place of a pipe or a device.
        if path.exists() && !path.is_file() {
            return Err(Failure::new(format_args!(
                "{}: not a regular file",
                path.display()
            )));
        }
        if !self.force && path.exists() {
            return Err(Failure::new(format_args!(
                "{}: the file exists (--force overwrites it)",
                path.display()
            )));
        }
        Ok(())
    }

    pub(crate) fn write(&self, filter: &AnyFilter) -> Result<()> {
        save(filter, &self.output, self.force)
    }
}

fn save(filter: &AnyFilter, path: &Path, overwrite: bool) -> Result<()> {
    filter.save(path, overwrite).map_err(|error| Failure::file(path, &error))
}

fn open(path: &Path) -> Result<AnyFilter<Mapped>> {
    AnyFilter::open(path).map_err(|error| Failure::file(path, &error))
}

/// Opens a filter to be changed: complete, or not at all.
fn load(path: &Path) -> Result<AnyFilter> {
    let filter = open(path)?;
    // A damaged filter must not be laundered into one with good checksums.
    filter.verify().map_err(|error| Failure::file(path, &error))?;
    filter.into_owned().map_err(|error| Failure::file(path, &error))
}

/// A filter that is about to be replaced by a changed one.
struct Change<'a> {
    path: &'a Path,
    version: Version,
}

/// What tells one version of a file from the next. Every writer here
/// replaces the file by a new one, so two of them cannot agree in this.
#[derive(PartialEq)]
struct Version {
    changed: Option<std::time::SystemTime>,
    #[cfg(unix)]
    inode: Option<u64>,
}

impl Version {
    fn of(path: &Path) -> Self {
        let metadata = path.metadata().ok();
        Self {
            #[cfg(unix)]
            inode: metadata.as_ref().map(std::os::unix::fs::MetadataExt::ino),
            changed: metadata.and_then(|metadata| metadata.modified().ok()),
        }
    }
}

impl<'a> Change<'a> {
    fn begin(path: &'a Path) -> Result<(Self, AnyFilter)> {
        let version = Version::of(path);
        Ok((Self { path, version }, load(path)?))
    }

    /// Replaces the file in one step, if it still is the one that was read.
    fn save(&self, filter: &AnyFilter) -> Result<()> {
        if Version::of(self.path) != self.version {
            return Err(Failure::new(format_args!(
                "{}: changed by someone else meanwhile (nothing was written: \
                 run the command again)",
                self.path.display()
            )));
        }
        save(filter, self.path, true)
    }
}

/// The false-positive rate of a result, told before there is one.
#[derive(Serialize)]
struct Forecast {
    /// None if it is a kind whose bits have to be put together to know.
    predicted_fpr: Option<f64>,
}

impl Forecast {
    /// People read it before the work is done, machines at the end.
    fn tell(predicted_fpr: Option<f64>, json: bool) -> Result<Self> {
        if let (Some(fpr), false) = (predicted_fpr, json) {
            let value = format!("{} false positives", report::rate(fpr));
            report::row(&mut std::io::stdout().lock(), "predicted", &value)?;
        }
        Ok(Self { predicted_fpr })
    }

    /// Says what came of it.
    fn report(&self, filter: &AnyFilter, json: bool) -> Result<()> {
        let report = Report::new(filter);
        match json {
            true => report.print_json_with(self),
            false => report.print(false),
        }
    }
}

/// What decides the size of a filter: one of the two.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Size {
    /// The false-positive rate wanted, such as 0.001 or 0.1%
    #[arg(long, value_name = "RATE", value_parser = parse_fpr)]
    fpr: Option<f64>,

    /// The memory there is, in bits per key
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

impl Size {
    /// What the theory says, asked by the rate or by the memory.
    fn predict(
        &self,
        by_fpr: impl Fn(f64) -> tamis_theory::Result<Prediction>,
        by_bits: impl Fn(f64) -> tamis_theory::Result<Prediction>,
    ) -> tamis_theory::Result<Prediction> {
        match (self.fpr, self.bits_per_key) {
            (Some(fpr), _) => by_fpr(fpr),
            // clap requires one of the two.
            (None, bits) => by_bits(bits.unwrap_or_default()),
        }
    }
}

/// The size of a block, one way or the other.
#[derive(clap::Args)]
pub(crate) struct BlockSize {
    /// Bytes in a block: 64 (a cache line) or 32, with which tinyset is
    /// faster at 1 % and above, for up to 3.5 % more memory [default: 64]
    #[arg(long, value_name = "BYTES", conflicts_with = "block_bits")]
    block_bytes: Option<u32>,

    /// The same in bits: 512 or 256
    #[arg(long, value_name = "BITS")]
    block_bits: Option<u32>,
}

impl BlockSize {
    fn bits(&self) -> Result<u32> {
        match (self.block_bytes, self.block_bits) {
            (None, None) | (Some(64), _) | (_, Some(512)) => Ok(512),
            (Some(32), _) | (_, Some(256)) => Ok(256),
            (Some(_), _) => {
                Err(Failure::new("--block-bytes: expected 64 or 32"))
            }
            _ => Err(Failure::new("--block-bits: expected 512 or 256")),
        }
    }
}

/// How many threads to use.
#[derive(clap::Args)]
pub(crate) struct Threads {
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

impl Threads {
    fn count(&self) -> NonZero<usize> {
        self.threads
            .or_else(|| std::thread::available_parallelism().ok())
            .unwrap_or(NonZero::<usize>::MIN)
    }
}

/// Inserts every key of `feed`, on all threads.
fn insert_all(
    filter: &mut AnyFilter,
    mut feed: Feed<'_>,
    threads: &Threads,
) -> Result<()> {
    let hasher = *filter.hasher();
    let fault = Mutex::new(None);
    filter.insert_parallel_with(
        // A wrong key ends the input: nothing is written then.
        feed.by_ref()
            .take_while(|_| fault.lock().is_ok_and(|fault| fault.is_none())),
        threads.count(),
        |chunk: Chunk, hashes| {
            if let Err(failure) = chunk.hash(&hasher, hashes) {
                if let Ok(mut fault) = fault.lock() {
                    fault.get_or_insert(failure);
                }
            }
        },
    );
    feed.finish()?;
    match fault.into_inner() {
        Ok(Some(failure)) => Err(failure),
        _ => Ok(()),
    }
}

/// A number of items: 1000000, 1_000_000 or 1e6.
fn parse_items(text: &str) -> std::result::Result<u64, String> {
    let plain = text.replace('_', "");
    if let Ok(items) = plain.parse() {
        return Ok(items);
    }
    match plain.parse::<f64>() {
        // Whole, and small enough that a float counts exactly.
        Ok(items)
            if items >= 0.0
                && items <= 2f64.powi(53)
                && items % 1.0 == 0.0 =>
        {
            Ok(items as u64)
        }
        Ok(items) if items > 2f64.powi(53) => {
            Err("beyond 2^53 only digits are exact: write it out".into())
        }
        _ => Err("expected a whole number such as 1000000 or 1e6".into()),
    }
}

/// A probability strictly between 0 and 1.
fn parse_fpr(text: &str) -> std::result::Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 0.01),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(fpr) if fpr * scale > 0.0 && fpr * scale < 1.0 => Ok(fpr * scale),
        _ => {
            Err("expected a rate between 0 and 1, such as 0.001 or 0.1%"
                .into())
        }
    }
}

fn parse_bits(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bits) if bits.is_finite() && bits > 0.0 => Ok(bits),
        _ => Err("expected a positive number of bits, such as 12".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(parse_items("1_000_000"), Ok(1_000_000));
        assert_eq!(parse_items("1e9"), Ok(1_000_000_000));
        assert_eq!(parse_items("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "-1", "1.5", "x", "1e300", "nan"] {
            assert!(parse_items(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_fpr("0.01"), Ok(0.01));
        assert_eq!(parse_fpr("1%"), Ok(0.01));
        for wrong in ["0", "1", "-0.1", "nan", "150%", ""] {
            assert!(parse_fpr(wrong).is_err(), "{wrong}");
        }
        assert!(parse_bits("inf").is_err() && parse_bits("0").is_err());
    }
}

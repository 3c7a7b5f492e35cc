//! Verbs, one file each, and the arguments and steps they share.

pub(crate) mod add;
pub(crate) mod build;
pub(crate) mod completions;
mod default_kind;
pub(crate) mod explore;
pub(crate) mod fold;
pub(crate) mod grow;
pub(crate) mod info;
#[cfg(feature = "lab")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod query;
pub(crate) mod remove;
pub(crate) mod seen;
#[cfg(all(unix, feature = "store"))]
pub(crate) mod store;
pub(crate) mod theory;
pub(crate) mod verify;

use std::io::IsTerminal as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;
use tamis::{AnyFilter, FileLock, Mapped, Removal, Window};

use crate::failure::{Failure, Result};
use crate::identity::{FileIdentity, FileWatch};
use crate::keys::{Feed, KeyArgs, KeyChunk, KeyInput};
use crate::progress;
use crate::report::{self, ReportArgs, ReportForm};

/// Filter and keys of a verb that queries or changes a filter.
#[derive(clap::Args)]
pub(crate) struct KeysOnFilter {
    /// Filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    keys: KeyArgs,
}

impl KeysOnFilter {
    /// Keys in the format of `filter`.
    fn open_keys<D: AsRef<[u8]>>(
        &self,
        filter: &AnyFilter<D>,
    ) -> Result<KeyInput> {
        self.keys.open_for(&self.filter, filter)
    }
}

/// Output file of a verb that writes a new filter.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Filter to write, `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Overwrite the output file if it exists
    #[arg(long)]
    force: bool,
}

impl OutputArgs {
    /// Checks that `write` can succeed and replaces none of the `inputs`,
    /// before any work is done.
    pub(crate) fn check<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<()> {
        let path = &self.output;
        if self.is_stdout() {
            return match std::io::stdout().is_terminal() {
                true => Err(Failure::new(
                    "-: a filter is not written to a terminal (redirect \
                     standard output)",
                )),
                false => Ok(()),
            };
        }
        let output = FileIdentity::of(path);
        let is_output = |input: &PathBuf| FileIdentity::of(input) == output;
        if output.is_some() && inputs.into_iter().any(is_output) {
            return Err(self.is_input());
        }
        // `write` renames a temporary file to `path`, which would replace a
        // pipe or a device by a regular file.
        if path.exists() && !path.is_file() {
            return Err(Failure::new(format_args!(
                "{}: the output exists and is not a regular file",
                path.display()
            )));
        }
        if !self.force && path.exists() {
            return Err(Failure::new(format_args!(
                "{}: the output exists (--force overwrites it)",
                path.display()
            )));
        }
        Ok(())
    }

    /// Error for an output that a verb also reads.
    fn is_input(&self) -> Failure {
        Failure::new(format_args!(
            "{}: the output is one of the inputs (choose another --output)",
            self.output.display()
        ))
    }

    pub(crate) fn write(&self, filter: &AnyFilter) -> Result<()> {
        if self.is_stdout() {
            let mut out = std::io::stdout().lock();
            return filter.write_to(&mut out).map_err(|error| match error {
                tamis::Error::Io(error) => Failure::from(error),
                error => Failure::from(error),
            });
        }
        save(filter, &self.output, self.force)
    }

    fn is_stdout(&self) -> bool {
        self.output.as_os_str() == "-"
    }

    fn path(&self) -> &Path {
        &self.output
    }

    /// Form of the report. Standard output may be the filter's.
    fn form(&self, report: &ReportArgs) -> Result<ReportForm> {
        match (self.is_stdout(), report.form()) {
            (false, form) => Ok(form),
            (true, ReportForm::Json) => Err(Failure::new(
                "--json: standard output is for the filter (omit --json, or \
                 choose another --output)",
            )),
            (true, _) => Ok(ReportForm::Silent),
        }
    }
}

fn save(filter: &AnyFilter, path: &Path, overwrite: bool) -> Result<()> {
    let saved = progress::during("writing", || match overwrite {
        true => filter.save(path),
        false => filter.save_new(path),
    });
    saved.map_err(|error| Failure::file(path, &error))
}

fn open(path: &Path) -> Result<AnyFilter<Mapped>> {
    OpenArgs::default().open(path)
}

/// Memory of filters that a verb does not change.
#[derive(Default, clap::Args)]
pub(crate) struct OpenArgs {
    /// Read filters into memory and verify them, instead of mapping them: for
    /// files that other programs may shorten or overwrite meanwhile
    #[arg(long)]
    no_mmap: bool,
}

impl OpenArgs {
    fn open(&self, path: &Path) -> Result<AnyFilter<Mapped>> {
        self.filter(path).map_err(|error| self.failure(path, &error))
    }

    fn open_verified(&self, path: &Path) -> Result<AnyFilter<Mapped>> {
        self.verified(path).map_err(|error| self.failure(path, &error))
    }

    /// Error of opening a file, which may have a window instead of a filter.
    fn failure(&self, path: &Path, error: &tamis::Error) -> Failure {
        match self.window(path) {
            Ok(_) => Failure::new(format_args!(
                "{}: a window of recent keys, which only `tamis seen`, info \
                 and verify read",
                path.display()
            )),
            Err(_) => Failure::file(path, error),
        }
    }

    fn filter(&self, path: &Path) -> tamis::Result<AnyFilter<Mapped>> {
        match self.no_mmap {
            true => AnyFilter::read(path),
            false => AnyFilter::open(path),
        }
    }

    /// Opens a filter and verifies it.
    fn verified(&self, path: &Path) -> tamis::Result<AnyFilter<Mapped>> {
        progress::during("verifying", || {
            let filter = self.filter(path)?;
            if !self.no_mmap {
                filter.verify()?;
            }
            Ok(filter)
        })
    }

    fn window(&self, path: &Path) -> tamis::Result<Window> {
        match self.no_mmap {
            true => Window::from_bytes(&Mapped::read(path)?),
            false => Window::open(path),
        }
    }

    /// Watches an open filter, if it is mapped.
    fn watch(&self, path: &Path) -> Option<FileWatch> {
        match self.no_mmap {
            true => None,
            false => FileWatch::new(path),
        }
    }
}

/// Prints a line to standard output.
fn print_line(line: &str) -> Result<()> {
    use std::io::Write as _;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Reads and verifies a filter to be changed. Saving an unverified filter
/// would give damaged bytes valid checksums.
fn load(path: &Path, open: &OpenArgs) -> Result<AnyFilter> {
    let filter = open.open_verified(path)?;
    filter.into_owned().map_err(|error| Failure::file(path, &error))
}

/// Time to wait for other writers of a file that is changed.
#[derive(clap::Args)]
pub(crate) struct WaitArgs {
    /// Seconds to wait while another process changes FILE
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        default_value = "60"
    )]
    wait: Duration,
}

impl WaitArgs {
    /// Excludes all other writers of the file.
    fn lock(&self, path: &Path) -> Result<FileLock> {
        progress::during("waiting for another writer", || {
            FileLock::acquire_within(path, self.wait)
        })
        .map_err(|error| Failure::file(path, &error))
    }
}

/// A filter file that no other process changes meanwhile.
struct FileUpdate<'a> {
    path: &'a Path,
    lock: FileLock,
}

impl<'a> FileUpdate<'a> {
    fn begin(path: &'a Path, wait: &WaitArgs) -> Result<(Self, AnyFilter)> {
        let mut lock = wait.lock(path)?;
        let filter = progress::during("reading the filter", || lock.load())
            .map_err(|error| Failure::file(path, &error))?;
        Ok((Self { path, lock }, filter))
    }

    /// Replaces the file atomically.
    fn save(mut self, filter: &AnyFilter) -> Result<()> {
        let saved = progress::during("writing", || self.lock.save(filter));
        saved.map_err(|error| Failure::file(self.path, &error))
    }
}

/// A filter file whose blocks change in place, and in no other process.
struct InPlaceUpdate<'a> {
    path: &'a Path,
    lock: FileLock,
}

impl<'a> InPlaceUpdate<'a> {
    fn begin(path: &'a Path, wait: &WaitArgs) -> Result<Self> {
        Ok(Self { path, lock: wait.lock(path)? })
    }

    /// Hashes of all keys of `target`, which are read after `check`.
    fn hash_all(
        &self,
        target: &KeysOnFilter,
        verb: &'static str,
        check: impl FnOnce(&AnyFilter<Mapped>) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let filter = open(self.path)?;
        let hasher = *filter.hasher();
        check(&filter)?;
        let input = target.open_keys(&filter)?;
        // The lock of the map would exclude the change.
        drop(filter);
        let mut feed = input.feed(verb);
        let mut hashes = Vec::new();
        while let Some(chunk) = feed.next() {
            if let Err(failure) = chunk.hash(&hasher, &mut hashes) {
                feed.fail(failure);
            }
        }
        feed.finish()?;
        Ok(hashes)
    }

    fn insert(&mut self, hashes: &[u64]) -> Result<()> {
        progress::during("writing", || {
            self.lock.insert_hash_batch_in_place(hashes)
        })
        .map_err(|error| Failure::file(self.path, &error))
    }

    fn remove(&mut self, hashes: &[u64]) -> Result<Vec<Removal>> {
        progress::during("writing", || {
            self.lock.remove_hash_batch_in_place(hashes)
        })
        .map_err(|error| Failure::file(self.path, &error))
    }

    /// Prints the fields of the header: a complete report reads the whole
    /// filter. JSON begins with the fields of `extra`.
    fn print_report(
        &self,
        form: ReportForm,
        extra: &impl Serialize,
    ) -> Result<()> {
        #[derive(Serialize)]
        struct InPlaceReport<'a, E> {
            #[serde(flatten)]
            extra: &'a E,
            items: u64,
            design_items: u64,
        }
        let filter = open(self.path)?;
        let (items, design_items) = (filter.len(), filter.capacity());
        match form {
            ReportForm::Table => {}
            ReportForm::Json => {
                let report = InPlaceReport { extra, items, design_items };
                return report::print_json(&report);
            }
            ReportForm::Silent => return Ok(()),
        }
        let mut out = std::io::stdout().lock();
        report::row(&mut out, "keys", &report::count(items))?;
        let design = format!("{} keys", report::count(design_items));
        report::row(&mut out, "design", &design)
    }
}

/// Predicted false-positive rate of the result of `merge`, `fold` or `grow`.
#[derive(Serialize)]
struct Forecast {
    /// `None` for the Bloom kinds: their rate depends on the combined bits.
    predicted_fpr: Option<f64>,
}

impl Forecast {
    /// Prints the rate before the work starts. JSON output has it in the
    /// report instead.
    fn print(predicted_fpr: Option<f64>, form: ReportForm) -> Result<Self> {
        if let (Some(fpr), ReportForm::Table) = (predicted_fpr, form) {
            let value = format!("{} false positives", report::rate(fpr));
            report::row(&mut std::io::stdout().lock(), "predicted", &value)?;
        }
        Ok(Self { predicted_fpr })
    }
}

/// Rate or memory of a filter; clap requires exactly one of them.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SizeArgs {
    /// False-positive rate, such as 0.001 or 0.1%
    #[arg(long, value_name = "RATE", value_parser = parse_fpr)]
    fpr: Option<f64>,

    /// Memory in bits per key
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

impl SizeArgs {
    fn value(&self) -> tamis::Size {
        match (self.fpr, self.bits_per_key) {
            (Some(fpr), _) => tamis::Size::Fpr(fpr),
            // clap requires one of the two.
            (None, bits) => tamis::Size::BitsPerKey(bits.unwrap_or_default()),
        }
    }
}

/// Size of a block, in bytes or in bits.
#[derive(clap::Args)]
pub(crate) struct BlockArgs {
    /// Bytes per block, 64 (a cache line) or 32. With 32, tinyset is faster
    /// at rates of 1 % and above and needs up to 3.5 % more memory
    /// [default: 64]
    #[arg(long, value_name = "BYTES", conflicts_with = "block_bits")]
    block_bytes: Option<u32>,

    /// Bits per block, 512 or 256, instead of --block-bytes
    #[arg(long, value_name = "BITS")]
    block_bits: Option<u32>,
}

impl BlockArgs {
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

/// Number of threads.
#[derive(clap::Args)]
pub(crate) struct ThreadArgs {
    /// Number of threads [default: one per core]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

impl ThreadArgs {
    fn count(&self) -> NonZero<usize> {
        self.threads
            .or_else(|| std::thread::available_parallelism().ok())
            .unwrap_or(NonZero::<usize>::MIN)
    }
}

/// Inserts every key of `feed`.
fn insert_all(
    filter: &mut AnyFilter,
    mut feed: Feed<'_>,
    threads: &ThreadArgs,
) -> Result<()> {
    let hasher = *filter.hasher();
    let fault = Mutex::new(None);
    filter.insert_parallel_with(
        // An invalid key ends the input; the caller then writes nothing.
        feed.by_ref()
            .take_while(|_| fault.lock().is_ok_and(|fault| fault.is_none())),
        threads.count(),
        |chunk: KeyChunk, hashes| {
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

/// Parses a number of items: 1000000, 1_000_000 or 1e6.
pub(crate) fn parse_items(text: &str) -> std::result::Result<u64, String> {
    let plain = text.replace('_', "");
    if let Ok(items) = plain.parse() {
        return Ok(items);
    }
    match plain.parse::<f64>() {
        // Integers up to 2^53 are exact in an `f64`.
        Ok(items)
            if items >= 0.0
                && items <= 2f64.powi(53)
                && items % 1.0 == 0.0 =>
        {
            Ok(items as u64)
        }
        Ok(items) if items > 2f64.powi(53) => {
            Err("expected all digits of a number above 2^53".into())
        }
        _ => Err("expected a whole number, such as 1000000 or 1e6".into()),
    }
}

/// Parses a rate strictly between 0 and 1, or a percentage.
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

/// Parses a time in seconds.
fn parse_seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds, such as 0.5".into())
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
    fn numbers_are_parsed() {
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
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "-1", "nan", "inf", "1e99", "5 s"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }
}

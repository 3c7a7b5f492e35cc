//! `tamis seen`.

mod memory;

use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use tamis::{AnyFilter, FileLock, Kind, Prefer, Size, TinySet, Window};

use super::{KeysOnFilter, WaitArgs, parse_fpr, parse_items};
use crate::failure::{Exit, Failure, Result};
use crate::fullness::{StrictArgs, cure, hint_nearly_full, warn};
use crate::keys::{KeyInput, StoredFormat};
use crate::progress;
use crate::report::{FilterReport, count, print_json};
use memory::{Losses, Memory};

/// Print the keys that are new, and remember them in a filter
///
/// Removes repeats from a stream in one pass, and repeats of earlier runs: a
/// key that the filter certainly does not contain is printed and added. A new
/// key that is a false positive is lost: it is dropped like a repeat. A line
/// on stderr has the number of keys, and of those that are expected to be
/// lost.
///
/// FILE is created on first use, for --items different keys or for the most
/// recent ones with --window; `tamis build --items N - < /dev/null` creates
/// one with other settings. It is saved at the end, and with --save-every. A
/// run that is stopped has printed the keys since the last save; repeated, it
/// prints them again and loses none.
///
/// Exit status: 0 if a key was selected, 1 if none was, 2 on error.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

    /// Number of different keys to expect; used when FILE is created
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: Option<u64>,

    /// Share of new keys that may be lost; used when FILE is created
    #[arg(long, value_name = "RATE", default_value = "0.1%",
          value_parser = parse_fpr)]
    fpr: f64,

    /// Remember the last N different keys, and forget older ones after N
    /// more at the latest
    #[arg(long, value_name = "N", value_parser = parse_items,
          conflicts_with = "items")]
    window: Option<u64>,

    /// Save after every N keys, such as 1e6, or N seconds, such as 30s
    #[arg(long, value_name = "N", value_parser = parse_interval)]
    save_every: Option<Interval>,

    #[command(flatten)]
    wait: WaitArgs,

    /// Select the repeats instead of the new keys
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of selected keys
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing, not even the line on stderr
    #[arg(short, long)]
    quiet: bool,

    /// Print only the number of keys, of new ones, of repeats and of expected
    /// losses, as JSON
    #[arg(long, conflicts_with_all = ["quiet", "count"])]
    json: bool,
}

/// Work between two saves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Interval {
    Keys(u64),
    Time(Duration),
}

fn parse_interval(text: &str) -> std::result::Result<Interval, String> {
    let interval = match text.strip_suffix('s') {
        Some(seconds) => seconds
            .parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Interval::Time),
        None => parse_items(text).ok().map(Interval::Keys),
    };
    match interval {
        None | Some(Interval::Keys(0) | Interval::Time(Duration::ZERO)) => {
            Err("expected a positive number of keys, such as 1e6, or of \
                 seconds, such as 30s"
                .into())
        }
        Some(interval) => Ok(interval),
    }
}

#[derive(Default, Serialize)]
struct SeenCounts {
    keys: u64,
    new: u64,
    repeats: u64,
    /// Expected number of new keys among the repeats.
    expected_lost: f64,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let (mut lock, mut memory, input) = self.begin()?;
        let failed =
            |error: tamis::Error| Failure::file(&self.target.filter, &error);
        let hasher = *memory.hasher();
        let mut losses = Losses::new(&mut memory);
        let stdout = std::io::stdout().lock();
        let mut out = BufWriter::with_capacity(1 << 16, stdout);
        let list = !(self.count || self.quiet || self.json);
        let mut feed = match list {
            true => input.feed_for_printing("reading"),
            false => input.feed("reading"),
        };
        let mut header = Vec::new();
        let mut counts = SeenCounts::default();
        let mut saved = (0, Instant::now());
        let (mut hashes, mut new) = (Vec::new(), Vec::new());
        while let Some(chunk) = feed.next() {
            let mut rows = Vec::new();
            hashes.clear();
            let hashed = chunk.for_each_key(|key, row| {
                hashes.push(hasher.hash(key));
                if list {
                    rows.push(row);
                }
            });
            if let Err(failure) = hashed {
                feed.fail(failure);
            }
            new.clear();
            losses.insert(&mut memory, &hashes, &mut new);
            if list && chunk.source().header() != header {
                header = chunk.source().header().to_vec();
                out.write_all(&header)?;
            }
            for (row, &new) in rows.iter().zip(&new) {
                if new != self.invert {
                    out.write_all(row.bytes)?;
                    out.write_all(chunk.missing_end(row.bytes))?;
                }
            }
            // The writer of a pipe may wait for the results. Keys are printed
            // before they are saved, so that none is lost.
            out.flush()?;
            counts.keys += new.len() as u64;
            counts.new += new.iter().filter(|&&new| new).count() as u64;
            let due = match self.save_every {
                None => false,
                Some(Interval::Keys(keys)) => counts.keys - saved.0 >= keys,
                Some(Interval::Time(time)) => saved.1.elapsed() >= time,
            };
            if due {
                memory.save(&mut lock).map_err(failed)?;
                saved = (counts.keys, Instant::now());
            }
        }
        feed.finish()?;
        counts.repeats = counts.keys - counts.new;
        counts.expected_lost = losses.among(counts.repeats, &memory);
        let selected = if self.invert { counts.repeats } else { counts.new };
        if self.count {
            writeln!(out, "{selected}")?;
        }
        out.flush()?;
        drop(out);
        progress::during("writing", || memory.save(&mut lock))
            .map_err(failed)?;
        if let Memory::All(filter) = &memory {
            let path = &self.target.filter;
            let report = FilterReport::new(filter);
            let lenient = StrictArgs::default();
            lenient.check(path, &report, || cure(filter, &report))?;
            if !self.quiet {
                hint_nearly_full(path, filter, report.estimated_items);
            }
        }
        if self.json {
            print_json(&counts)?;
        } else if !self.quiet {
            counts.print();
        }
        Ok(Exit::success_if(selected > 0))
    }

    /// Locks the file and loads it; creates it if there is none.
    fn begin(&self) -> Result<(FileLock, Memory, KeyInput)> {
        let path = &self.target.filter;
        let failed = |error: tamis::Error| Failure::file(path, &error);
        let mut lock = self.wait.lock(path)?;
        let (memory, input) = match path.exists() {
            true => {
                let memory = Memory::load(&mut lock).map_err(failed)?;
                let input = match &memory {
                    Memory::All(filter) => self.target.open_keys(filter)?,
                    // Windows have no metadata.
                    Memory::Recent(_) => self.target.keys.open_new()?,
                };
                (memory, input)
            }
            false => {
                let input = self.target.keys.open_new()?;
                let memory = self.create(input.format())?;
                // Fails before keys are read if the file cannot be written.
                progress::during("writing", || memory.save(&mut lock))
                    .map_err(failed)?;
                (memory, input)
            }
        };
        match (self.window, memory.window()) {
            (Some(wanted), None) => Err(Failure::new(format_args!(
                "{}: the filter keeps all keys and not the last {wanted} \
                 (omit --window, or choose another file)",
                path.display()
            ))),
            (Some(wanted), Some(found)) if wanted != found => {
                Err(Failure::new(format_args!(
                    "{}: the filter keeps the last {found} keys and not the \
                     last {wanted} (omit --window, or choose another file)",
                    path.display()
                )))
            }
            _ => Ok((lock, memory, input)),
        }
    }

    fn create(&self, format: StoredFormat) -> Result<Memory> {
        if let Some(window) = self.window {
            let builder = TinySet::builder().items(window).fpr(self.fpr);
            let window = Window::new(builder)?;
            return Ok(Memory::Recent(Box::new(window)));
        }
        let Some(items) = self.items else {
            return Err(Failure::new(format_args!(
                "{}: no such filter (--items N creates it for N different \
                 keys, --window N for the last N)",
                self.target.filter.display()
            )));
        };
        let kind = Kind::recommended(Size::Fpr(self.fpr), 512, Prefer::Space)?;
        let builder = AnyFilter::builder(kind).items(items).fpr(self.fpr);
        let mut filter = builder.build()?;
        format.store(&mut filter)?;
        Ok(Memory::All(Box::new(filter)))
    }
}

impl SeenCounts {
    fn print(&self) {
        let Self { keys, new, repeats, expected_lost } = *self;
        let lost = match expected_lost {
            0.0..9.95 => format!("{expected_lost:.1}"),
            _ => count(expected_lost.round() as u64),
        };
        warn(&format!(
            "{} keys: {} new, {} repeats, about {lost} lost",
            count(keys),
            count(new),
            count(repeats)
        ));
    }
}

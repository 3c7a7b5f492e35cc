//! `tamis query`.

use std::io::{BufWriter, Write};

use serde::Serialize;

use super::{KeysOnFilter, OpenArgs};
use crate::failure::{Exit, Failure, Result};
use crate::fullness::StrictArgs;
use crate::identity::FileWatch;
use crate::keys::{KeyChunk, KeyInput};
use crate::report::print_json;

/// Print the keys that are probably members
///
/// A key printed without -v is a member or a false positive. A key printed
/// with -v is certainly not a member. Keys in fields (--field, --json-field)
/// print their whole row, after the header of the table if there is one. The
/// options follow grep, except that file names are printed only with -H. Exit
/// status: 0 if a key was selected, 1 if none was, 2 on error.
///
/// The filter is mapped into memory, and tamis never changes a mapped file.
/// Another program that shortens or overwrites it (`cp` does) is an error, or,
/// during a lookup, the signal SIGBUS. Rename files into place, or use
/// --no-mmap.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

    #[command(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    strict: StrictArgs,

    /// Select the keys that are certainly not members
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of selected keys; with -H, of each file
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing and stop at the first selected key
    #[arg(short, long)]
    quiet: bool,

    /// Stop reading a file after N selected keys
    #[arg(short = 'm', long, value_name = "N")]
    max_count: Option<u64>,

    /// Print the number of each row, from 1, before it. The header of a table
    /// is row 1
    #[arg(short = 'n', long)]
    line_number: bool,

    /// Print the name of its file before each row
    #[arg(short = 'H', long)]
    with_filename: bool,

    /// Print only the number of keys, of probable members and of certain
    /// non-members, as JSON
    #[arg(
        long,
        conflicts_with_all = [
            "quiet", "count", "max_count", "line_number", "with_filename"
        ]
    )]
    json: bool,
}

#[derive(Serialize)]
struct KeyCounts {
    keys: u64,
    /// Probable members.
    matched: u64,
    /// Certain non-members.
    absent: u64,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let filter = self.open.open(&self.target.filter)?;
        let watch = self.open.watch(&self.target.filter);
        let check = || watch.as_ref().map_or(Ok(()), FileWatch::check);
        self.strict.check_lookups(&self.target.filter, &filter)?;
        let input = self.target.open_keys(&filter)?;
        let list = !(self.count || self.quiet || self.json);
        if list && input.is_binary() && self.has_prefix() {
            return Err(Failure::new(
                "-n and -H need rows of text: omit them with --key-format \
                 u64le",
            ));
        }
        let mut feed = match list {
            true => input.feed_for_printing("querying"),
            false => input.feed("querying"),
        };
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut header = Vec::new();
        let mut counts = KeyCounts { keys: 0, matched: 0, absent: 0 };
        let mut selected = vec![0; input.source_count()];
        let (mut hashes, mut found) = (Vec::new(), Vec::new());
        while let Some(chunk) = feed.next() {
            let mut rows = Vec::new();
            hashes.clear();
            let hashed = chunk.for_each_key(|key, row| {
                hashes.push(filter.hasher().hash(key));
                if list {
                    rows.push(row);
                }
            });
            found.resize(hashes.len(), false);
            // Before the lookups because of the signal, and after them because
            // of the answers.
            check()?;
            filter.contains_hash_batch(&hashes, &mut found);
            check()?;
            let matched = found.iter().filter(|&&found| found).count() as u64;
            counts.keys += found.len() as u64;
            counts.matched += matched;
            counts.absent += found.len() as u64 - matched;

            let of_source = &mut selected[chunk.source().index()];
            let limit = self.max_count.unwrap_or(u64::MAX) - *of_source;
            let here = match self.invert {
                true => found.len() as u64 - matched,
                false => matched,
            };
            *of_source += here.min(limit);
            if list && chunk.source().header() != header {
                header = chunk.source().header().to_vec();
                self.print(&mut out, &chunk, 1, &header)?;
            }
            let here = rows.iter().zip(&found);
            let here = here.filter(|(_, found)| **found != self.invert);
            for (&row, _) in
                here.take(usize::try_from(limit).unwrap_or(usize::MAX))
            {
                let number = chunk.number(row);
                self.print(&mut out, &chunk, number, row.bytes)?;
            }
            // The writer of a pipe may wait for the results.
            out.flush()?;
            if *of_source > 0 && self.quiet {
                return Ok(Exit::Success);
            }
            if Some(*of_source) == self.max_count {
                feed.skip_source();
            } else if let Err(failure) = hashed {
                // The results of keys before an invalid key are printed.
                feed.fail(failure);
            }
        }
        feed.finish()?;
        if self.count {
            self.print_counts(&mut out, &input, &selected)?;
        }
        out.flush()?;
        drop(out);
        if self.json {
            print_json(&counts)?;
        }
        Ok(Exit::success_if(selected.iter().any(|&keys| keys > 0)))
    }

    fn has_prefix(&self) -> bool {
        self.line_number || self.with_filename
    }

    fn print(
        &self,
        out: &mut impl Write,
        chunk: &KeyChunk,
        number: u64,
        row: &[u8],
    ) -> Result<()> {
        if self.with_filename {
            write!(out, "{}:", chunk.source().name())?;
        }
        if self.line_number {
            write!(out, "{number}:")?;
        }
        out.write_all(row)?;
        out.write_all(chunk.missing_end(row))?;
        Ok(())
    }

    fn print_counts(
        &self,
        out: &mut impl Write,
        input: &KeyInput,
        selected: &[u64],
    ) -> Result<()> {
        if !self.with_filename {
            writeln!(out, "{}", selected.iter().sum::<u64>())?;
            return Ok(());
        }
        for (name, selected) in input.source_names().zip(selected) {
            writeln!(out, "{name}:{selected}")?;
        }
        Ok(())
    }
}

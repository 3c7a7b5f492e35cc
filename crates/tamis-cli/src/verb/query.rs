//! `tamis query`: which keys may be members.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;
use tamis::Filter;

use crate::failure::{Outcome, Result};
use crate::keys::{Feed, KeyArgs};
use crate::report::print_json;

/// Print the keys that may be members, like grep
///
/// A key printed without -v is a member, or one of the few false positives;
/// a key printed with -v is certainly not a member. Exit status: 0 if a key
/// was selected, 1 if none was, 2 on error.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to ask
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    keys: KeyArgs,

    /// Select the keys that are certainly not members
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many keys were selected
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing, stop at the first selected key
    #[arg(short, long)]
    quiet: bool,

    /// Print only the counts, as JSON
    #[arg(long, conflicts_with_all = ["quiet", "count"])]
    json: bool,
}

#[derive(Serialize)]
struct Counts {
    keys: u64,
    /// Maybe members.
    matched: u64,
    /// Certainly not members.
    absent: u64,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let filter = super::open(&self.filter)?;
        let sources = self.keys.sources()?;
        let format = self.keys.format();
        let mut feed = Feed::new("asking", &sources, format);
        let mut out = BufWriter::new(std::io::stdout().lock());
        let list = !(self.count || self.quiet || self.json);

        let mut counts = Counts { keys: 0, matched: 0, absent: 0 };
        let (mut hashes, mut found) = (Vec::new(), Vec::new());
        while let Some(chunk) = feed.next() {
            let mut written = Vec::new();
            hashes.clear();
            let hashed = chunk.each(|key, bytes| {
                hashes.push(filter.hasher().hash(key));
                if list {
                    written.push(bytes);
                }
            });
            // Keys before a wrong one are answered, then the error is told.
            if let Err(failure) = hashed {
                feed.fail(failure);
            }
            filter.contains_hash_batch(&hashes, &mut found);
            let matched = found.iter().filter(|&&found| found).count() as u64;
            counts.keys += found.len() as u64;
            counts.matched += matched;
            counts.absent += found.len() as u64 - matched;
            for (bytes, &found) in written.iter().zip(&found) {
                if found != self.invert {
                    out.write_all(bytes)?;
                    out.write_all(format.terminator(bytes))?;
                }
            }
            // Whoever feeds a pipe may wait for the answer.
            out.flush()?;
            if self.quiet && self.selected(&counts) > 0 {
                return Ok(Outcome::Yes);
            }
        }
        feed.finish()?;
        let selected = self.selected(&counts);
        if self.count {
            writeln!(out, "{selected}")?;
        }
        out.flush()?;
        drop(out);
        if self.json {
            print_json(&counts)?;
        }
        Ok(if selected > 0 { Outcome::Yes } else { Outcome::No })
    }

    fn selected(&self, counts: &Counts) -> u64 {
        if self.invert { counts.absent } else { counts.matched }
    }
}

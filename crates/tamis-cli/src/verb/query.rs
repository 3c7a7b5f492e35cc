//! `tamis query`.

use std::io::{BufWriter, Write};

use serde::Serialize;

use super::KeysOnFilter;
use crate::failure::{Exit, Result};
use crate::report::print_json;

/// Print the keys that are probably members
///
/// A key printed without -v is a member or a false positive. A key printed
/// with -v is certainly not a member. The options follow grep. Exit status: 0
/// if a key was selected, 1 if none was, 2 on error.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

    /// Select the keys that are certainly not members
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of selected keys
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing and stop at the first selected key
    #[arg(short, long)]
    quiet: bool,

    /// Print only the number of keys, of probable members and of certain
    /// non-members, as JSON
    #[arg(long, conflicts_with_all = ["quiet", "count"])]
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
        let filter = super::open(&self.target.filter)?;
        let sources = self.target.keys.sources()?;
        let format = self.target.keys.format();
        let mut feed = self.target.keys.feed("querying", &sources);
        let mut out = BufWriter::new(std::io::stdout().lock());
        let list = !(self.count || self.quiet || self.json);

        let mut counts = KeyCounts { keys: 0, matched: 0, absent: 0 };
        let (mut hashes, mut found) = (Vec::new(), Vec::new());
        while let Some(chunk) = feed.next() {
            let mut written = Vec::new();
            hashes.clear();
            let hashed = chunk.for_each_key(|key, bytes| {
                hashes.push(filter.hasher().hash(key));
                if list {
                    written.push(bytes);
                }
            });
            // The results of keys before an invalid key are printed first.
            if let Err(failure) = hashed {
                feed.fail(failure);
            }
            found.resize(hashes.len(), false);
            filter.contains_hash_batch(&hashes, &mut found);
            let matched = found.iter().filter(|&&found| found).count() as u64;
            counts.keys += found.len() as u64;
            counts.matched += matched;
            counts.absent += found.len() as u64 - matched;
            for (bytes, &found) in written.iter().zip(&found) {
                if found != self.invert {
                    out.write_all(bytes)?;
                    out.write_all(format.missing_delimiter(bytes))?;
                }
            }
            // The writer of a pipe may wait for the results.
            out.flush()?;
            if self.quiet && self.selected(&counts) > 0 {
                return Ok(Exit::Success);
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
        Ok(Exit::success_if(selected > 0))
    }

    fn selected(&self, counts: &KeyCounts) -> u64 {
        if self.invert { counts.absent } else { counts.matched }
    }
}

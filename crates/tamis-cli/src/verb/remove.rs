//! `tamis remove`: fewer keys for a filter.

use std::path::PathBuf;

use serde::Serialize;
use tamis::{AnyFilter, Filter, Remove};

use super::Change;
use crate::failure::{Failure, Outcome, Result};
use crate::keys::{Feed, KeyArgs};
use crate::report::{Report, count, row};

/// Remove keys from a filter, one occurrence each
///
/// Only from a filter built with --kind tinyset --removable, and only keys
/// that are in it. A key that certainly is not in the filter is counted as
/// absent and changes nothing. But a key that was never added and happens to
/// be a false positive takes away the entry of another key: that other key
/// is then lost, and the filter says "certainly not" for it. Each key that
/// was never added does so with the probability of a false positive, and so
/// does a key that is removed more often than it was added.
///
/// Fingerprints that were shortened do not grow back, so the rate of false
/// positives rises as keys are replaced by others; a build from the keys
/// brings it back. A saturated block goes on saying "maybe" to every key.
///
/// The file is replaced in one step when all keys are out; until then, and
/// after an error, it stays as it was. If someone else changes it meanwhile,
/// nothing is written and the command fails: run it again.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to change
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    keys: KeyArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Default, Serialize)]
struct Removal {
    removed: u64,
    /// Certainly not members.
    absent: u64,
}

impl Removal {
    fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        row(&mut out, "removed", &count(self.removed))?;
        row(&mut out, "absent", &count(self.absent))
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let (change, mut filter) = Change::begin(&self.filter)?;
        let refused =
            |error: tamis::Error| Failure::file(&self.filter, &error);
        // Before the keys are read.
        must_be_removable(&mut filter).map_err(refused)?;
        let sources = self.keys.sources()?;
        let mut feed = Feed::new("removing", &sources, self.keys.format());
        let hasher = *filter.hasher();
        let mut removal = Removal::default();
        let mut hashes = Vec::new();
        while let Some(chunk) = feed.next() {
            hashes.clear();
            if let Err(failure) = chunk.hash(&hasher, &mut hashes) {
                feed.fail(failure);
            }
            for &hash in &hashes {
                match filter.remove_hash(hash).map_err(refused)? {
                    true => removal.removed += 1,
                    false => removal.absent += 1,
                }
            }
        }
        feed.finish()?;
        change.save(&filter)?;
        let report = Report::new(&filter);
        if self.json {
            report.print_json_with(&removal)?;
        } else {
            removal.print()?;
            report.print(false)?;
        }
        Ok(Outcome::Yes)
    }
}

fn must_be_removable(filter: &mut AnyFilter) -> tamis::Result<()> {
    match filter {
        AnyFilter::TinySet(filter) if filter.is_removable() => Ok(()),
        // Every other one refuses any removal, and knows why.
        other => other.remove_hash(0).map(drop),
    }
}

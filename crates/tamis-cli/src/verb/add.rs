//! `tamis add`: more keys for a filter.

use std::path::PathBuf;

use super::{Threads, insert_all, load, save};
use crate::failure::{Failure, Outcome, Result};
use crate::keys::{Feed, KeyArgs};
use crate::report::Report;

/// Add keys to a filter
///
/// The file is replaced in one step when all keys are in; until then, and
/// after an error, it stays as it was. If someone else changes it meanwhile,
/// nothing is written and the command fails: run it again. `tamis info` says
/// whether the filter is still within its design.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to change
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    threads: Threads,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
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
    fn of(path: &std::path::Path) -> Self {
        let metadata = path.metadata().ok();
        Self {
            #[cfg(unix)]
            inode: metadata.as_ref().map(std::os::unix::fs::MetadataExt::ino),
            changed: metadata.and_then(|metadata| metadata.modified().ok()),
        }
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let version = Version::of(&self.filter);
        let mut filter = load(&self.filter)?;
        let sources = self.keys.sources()?;
        let feed = Feed::new("adding", &sources, self.keys.format());
        insert_all(&mut filter, feed, &self.threads)?;
        if Version::of(&self.filter) != version {
            return Err(Failure::new(format_args!(
                "{}: changed by someone else while keys were added (nothing \
                 was written: run the command again)",
                self.filter.display()
            )));
        }
        save(&filter, &self.filter, true)?;
        Report::new(&filter).print(self.json)?;
        Ok(Outcome::Yes)
    }
}

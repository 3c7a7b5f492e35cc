//! `tamis remove`.

use serde::Serialize;
use tamis::{AnyFilter, Removal};

use super::{FileUpdate, InPlaceUpdate, KeysOnFilter, WaitArgs};
use crate::failure::{Exit, Failure, Result};
use crate::report::{FilterReport, ReportArgs, ReportForm, count, row};

/// Remove keys from a filter, one occurrence each
///
/// Needs a filter built with --kind tinyset --removable. A key that is
/// certainly not in the filter counts as absent and changes nothing.
///
/// Remove only keys that were added. A key that was never added but is a
/// false positive takes the entry of another key; that key is then lost: the
/// filter answers "certainly not" for it. The probability per wrong removal
/// is the false-positive rate. Removing a key more often than it was added
/// has the same effect.
///
/// Shortened fingerprints keep their length, so the false-positive rate rises
/// as keys are replaced; a new build restores it. A key that was added 16 times
/// or more is stuck: it still matches after it was removed. So does every key of
/// a saturated block. A filter that becomes empty forgets both.
///
/// The file is replaced atomically after the last key; after an error it is
/// unchanged. While another `add`, `remove` or `grow` changes the file, this
/// one waits.
///
/// With --in-place only the blocks of the keys are read and written, which is
/// much faster for few keys in a large filter. The change is as atomic:
/// whenever the process is killed, all the keys are removed or none. It waits
/// for readers of the file as well. The message of a disk error has the step
/// that failed, and whether the keys are removed.
///
/// Exit status: 0 if a key was removed, 1 if none was, 2 on error.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

    /// Change the blocks of the keys in FILE, instead of replacing it
    #[arg(long)]
    in_place: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Default, Serialize)]
struct RemovalCounts {
    removed: u64,
    /// Keys that continue to match, because their copies are not counted.
    stuck: u64,
    /// Certain non-members.
    absent: u64,
}

impl RemovalCounts {
    fn add(&mut self, removal: Removal) {
        match removal {
            Removal::Removed => self.removed += 1,
            Removal::Stuck => self.stuck += 1,
            Removal::Absent => self.absent += 1,
        }
    }

    fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        row(&mut out, "removed", &count(self.removed))?;
        if self.stuck > 0 {
            let stuck = count(self.stuck);
            row(&mut out, "stuck", &format!("{stuck}, which still match"))?;
        }
        row(&mut out, "absent", &count(self.absent))
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        if self.in_place {
            return self.run_in_place();
        }
        let path = &self.target.filter;
        let (update, mut filter) = FileUpdate::begin(path, &self.wait)?;
        let failed = |error: tamis::Error| Failure::file(path, &error);
        // Checked before any key is read.
        check_removable(&mut filter).map_err(failed)?;
        let input = self.target.open_keys(&filter)?;
        let mut feed = input.feed("removing");
        let hasher = *filter.hasher();
        let mut counts = RemovalCounts::default();
        let mut hashes = Vec::new();
        while let Some(chunk) = feed.next() {
            hashes.clear();
            if let Err(failure) = chunk.hash(&hasher, &mut hashes) {
                feed.fail(failure);
            }
            for &hash in &hashes {
                counts.add(filter.remove_hash(hash).map_err(failed)?);
            }
        }
        feed.finish()?;
        update.save(&filter)?;
        let form = self.report.form();
        if form == ReportForm::Table {
            counts.print()?;
        }
        FilterReport::new(&filter).print_with(form, &counts)?;
        Ok(Exit::success_if(counts.removed > 0))
    }

    fn run_in_place(&self) -> Result<Exit> {
        let path = &self.target.filter;
        let mut update = InPlaceUpdate::begin(path, &self.wait)?;
        // Checked before any key is read.
        update.remove(&[])?;
        let hashes = update.hash_all(&self.target, "removing", |_| Ok(()))?;
        let mut counts = RemovalCounts::default();
        for removal in update.remove(&hashes)? {
            counts.add(removal);
        }
        let form = self.report.form();
        if form == ReportForm::Table {
            counts.print()?;
        }
        update.print_report(form, &counts)?;
        Ok(Exit::success_if(counts.removed > 0))
    }
}

fn check_removable(filter: &mut AnyFilter) -> tamis::Result<()> {
    match filter {
        AnyFilter::TinySet(filter) if filter.is_removable() => Ok(()),
        // Every other filter refuses any removal with its own error.
        other => other.remove_hash(0).map(drop),
    }
}

//! `tamis add`.

use serde::Serialize;
use tamis::FileLock;

use super::{
    FileUpdate, KeysOnFilter, ThreadArgs, WaitArgs, insert_all, open,
};
use crate::failure::{Exit, Failure, Result};
use crate::fullness::{StrictArgs, cure, hint_nearly_full};
use crate::progress;
use crate::report::{
    FilterReport, ReportArgs, ReportForm, count, print_json, row,
};

/// Add keys to a filter
///
/// The file is replaced atomically after the last key; after an error it is
/// unchanged. While another `add`, `remove` or `grow` changes the file, this
/// one waits: no key is lost. A filter that is over its design is a warning, or
/// an error with --strict.
///
/// With --in-place only the blocks of the keys are read and written, which is
/// much faster for few keys in a large filter. The change is as atomic:
/// whenever the process is killed, all the keys are in the filter or none. It
/// waits for readers of the file as well, and --strict regards the filter
/// before the addition.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

    /// Change the blocks of the keys in FILE, instead of replacing it
    #[arg(long, conflicts_with = "threads")]
    in_place: bool,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    strict: StrictArgs,

    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        if self.in_place {
            return self.run_in_place();
        }
        let path = &self.target.filter;
        let (update, mut filter) = FileUpdate::begin(path, &self.wait)?;
        let input = self.target.open_keys(&filter)?;
        insert_all(&mut filter, input.feed("adding"), &self.threads)?;
        let report = FilterReport::new(&filter);
        self.strict.check(path, &report, || cure(&filter, &report))?;
        update.save(&filter)?;
        report.print(self.report.form())?;
        if self.report.form() != ReportForm::Silent {
            hint_nearly_full(path, &filter, report.estimated_items);
        }
        Ok(Exit::Success)
    }

    fn run_in_place(&self) -> Result<Exit> {
        let path = &self.target.filter;
        let failed = |error: tamis::Error| Failure::file(path, &error);
        let mut lock =
            FileLock::acquire_within(path, self.wait.wait).map_err(failed)?;
        let filter = open(path)?;
        let hasher = *filter.hasher();
        self.strict.check_lookups(path, &filter)?;
        let input = self.target.open_keys(&filter)?;
        // The lock of the map would exclude the insertion.
        drop(filter);
        let mut feed = input.feed("adding");
        let mut hashes = Vec::new();
        while let Some(chunk) = feed.next() {
            if let Err(failure) = chunk.hash(&hasher, &mut hashes) {
                feed.fail(failure);
            }
        }
        feed.finish()?;
        progress::during("writing", || {
            lock.insert_hash_batch_in_place(&hashes).map_err(failed)
        })?;
        let filter = open(path)?;
        let report = InPlaceReport {
            added: hashes.len() as u64,
            items: filter.len(),
            design_items: filter.capacity(),
        };
        report.print(self.report.form())?;
        Ok(Exit::Success)
    }
}

/// The fields of the header: a complete report reads the whole filter.
#[derive(Serialize)]
struct InPlaceReport {
    added: u64,
    items: u64,
    design_items: u64,
}

impl InPlaceReport {
    fn print(&self, form: ReportForm) -> Result<()> {
        match form {
            ReportForm::Table => {}
            ReportForm::Json => return print_json(self),
            ReportForm::Silent => return Ok(()),
        }
        let mut out = std::io::stdout().lock();
        row(&mut out, "added", &count(self.added))?;
        row(&mut out, "keys", &count(self.items))?;
        row(&mut out, "design", &format!("{} keys", count(self.design_items)))
    }
}

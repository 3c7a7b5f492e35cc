//! `tamis add`.

use serde::Serialize;

use super::{
    FileUpdate, InPlaceUpdate, KeysOnFilter, ThreadArgs, WaitArgs, insert_all,
};
use crate::failure::{Exit, Result};
use crate::fullness::{StrictArgs, cure, hint_nearly_full};
use crate::report::{FilterReport, ReportArgs, ReportForm, count, row};

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
/// before the addition. The message of a disk error has the step that failed,
/// and whether the file has the keys.
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
        let mut update = InPlaceUpdate::begin(path, &self.wait)?;
        let check = |filter: &_| self.strict.check_lookups(path, filter);
        let hashes = update.hash_all(&self.target, "adding", check)?;
        update.insert(&hashes)?;
        let added = hashes.len() as u64;
        let form = self.report.form();
        if form == ReportForm::Table {
            row(&mut std::io::stdout().lock(), "added", &count(added))?;
        }
        update.print_report(form, &Addition { added })?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct Addition {
    added: u64,
}

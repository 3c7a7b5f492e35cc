//! `tamis add`.

use super::{FileUpdate, KeysOnFilter, ThreadArgs, WaitArgs, insert_all};
use crate::failure::{Exit, Result};
use crate::fullness::{StrictArgs, cure, hint_nearly_full};
use crate::report::{FilterReport, ReportArgs, ReportForm};

/// Add keys to a filter
///
/// The file is replaced atomically after the last key; after an error it is
/// unchanged. While another `add`, `remove` or `grow` changes the file, this
/// one waits: no key is lost. A filter that is over its design is a warning, or
/// an error with --strict.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

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
}

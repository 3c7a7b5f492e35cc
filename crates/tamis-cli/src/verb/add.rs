//! `tamis add`.

use super::{FileUpdate, KeysOnFilter, ThreadArgs, WaitArgs, insert_all};
use crate::failure::{Exit, Result};
use crate::report::{FilterReport, JsonArgs};

/// Add keys to a filter
///
/// The file is replaced atomically after the last key; after an error it is
/// unchanged. While another `add`, `remove` or `grow` changes the file, this
/// one waits: no key is lost. The report shows whether the filter is over its
/// design.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: KeysOnFilter,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    format: JsonArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let path = &self.target.filter;
        let (update, mut filter) = FileUpdate::begin(path, &self.wait)?;
        let input = self.target.open_keys(&filter)?;
        insert_all(&mut filter, input.feed("adding"), &self.threads)?;
        update.save(&filter)?;
        FilterReport::new(&filter).print(self.format.json)?;
        Ok(Exit::Success)
    }
}

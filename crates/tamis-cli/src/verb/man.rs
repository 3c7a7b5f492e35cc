//! `tamis man`.

use std::io::Write as _;
use std::path::PathBuf;

use clap_mangen::Man;

use crate::failure::{Exit, Failure, Result};

/// Write manual pages
///
/// `tamis man ~/.local/share/man/man1` writes a page for tamis and one for
/// each verb; `tamis man | man -l -` shows the first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory of the pages, which must exist [default: the page of tamis
    /// goes to standard output]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(&self, command: clap::Command) -> Result<Exit> {
        match &self.directory {
            Some(directory) => {
                clap_mangen::generate_to(command, directory).map_err(
                    |error| {
                        let directory = directory.display();
                        Failure::new(format_args!("{directory}: {error}"))
                    },
                )?;
            }
            None => {
                let mut page = Vec::new();
                Man::new(command).render(&mut page)?;
                std::io::stdout().write_all(&page)?;
            }
        }
        Ok(Exit::Success)
    }
}

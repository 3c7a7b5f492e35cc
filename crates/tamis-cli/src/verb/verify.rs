//! `tamis verify`.

use std::io::Write as _;
use std::path::PathBuf;

use tamis::Error;

use crate::failure::{Exit, Failure, Result, printable};

/// Read a whole filter and check its checksums
///
/// Exit status: 0 if the filter is intact, 1 if it is damaged, 2 if it cannot
/// be read or was written by a later version of tamis.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filter to check
    #[arg(value_name = "FILE")]
    filter: PathBuf,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let path = &self.filter;
        let checked = tamis::AnyFilter::open(path)
            .and_then(|filter| filter.verify().map(|()| filter.kind()));
        match checked {
            Ok(kind) => {
                let mut out = std::io::stdout().lock();
                let name = printable(&path.display().to_string());
                writeln!(out, "{name}: intact ({kind})")?;
                Ok(Exit::Success)
            }
            // Unreadable, or of a later version: damage cannot be decided.
            Err(
                error @ (Error::Io(_)
                | Error::UnsupportedVersion { .. }
                | Error::UnknownKind { .. }
                | Error::UnknownHash { .. }),
            ) => Err(Failure::file(path, &error)),
            Err(error) => {
                Failure::file(path, &error).print();
                Ok(Exit::Negative)
            }
        }
    }
}

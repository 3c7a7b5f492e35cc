//! `tamis verify`: is every byte as it was written?

use std::io::Write as _;
use std::path::PathBuf;

use tamis::{Error, Filter};

use crate::failure::{Failure, Outcome, Result};

/// Read a whole filter and check it
///
/// Exit status: 0 if it is intact, 1 if it is damaged, 2 if it could not be
/// read.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter to check
    #[arg(value_name = "FILE")]
    filter: PathBuf,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let path = &self.filter;
        let checked = tamis::AnyFilter::open(path)
            .and_then(|filter| filter.verify().map(|()| filter.kind()));
        match checked {
            Ok(kind) => {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{}: intact ({kind})", path.display())?;
                Ok(Outcome::Yes)
            }
            // Not damaged, as far as this build can tell.
            Err(
                error @ (Error::Io(_)
                | Error::UnsupportedVersion { .. }
                | Error::UnknownKind { .. }
                | Error::UnknownHash { .. }),
            ) => Err(Failure::file(path, &error)),
            Err(error) => {
                Failure::file(path, &error).tell();
                Ok(Outcome::No)
            }
        }
    }
}

//! `tamis verify`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tamis::Error;

use super::OpenArgs;
use crate::failure::{Exit, Failure, Result, printable};
use crate::report::{JsonArgs, print_json};

/// Read whole filters and check their checksums
///
/// Exit status: 0 if all filters are intact, 1 if one is damaged, 2 if one
/// cannot be read or was written by a later version of tamis.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filters to check
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,

    /// Print nothing about intact filters
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    format: JsonArgs,
}

#[derive(Serialize)]
struct Verdict {
    file: String,
    intact: bool,
    /// `None` if the filter is damaged.
    kind: Option<&'static str>,
    /// Damage found.
    damage: Option<String>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let mut exit = Exit::Success;
        for path in &self.filters {
            match self.verify(path) {
                Ok(true) => {}
                Ok(false) if exit == Exit::Success => exit = Exit::Negative,
                Ok(false) => {}
                Err(failure) => exit = failure.continue_after()?,
            }
        }
        Ok(exit)
    }

    /// `true` if the filter is intact. Fails if that cannot be decided.
    fn verify(&self, path: &Path) -> Result<bool> {
        let file = path.display().to_string();
        let checked = self
            .open
            .verified(path)
            .map(|filter| filter.kind().name())
            // Opening a window verifies it.
            .or_else(|error| match self.open.window(path) {
                Ok(_) => Ok("window"),
                Err(_) => Err(error),
            });
        let verdict = match checked {
            Ok(kind) => {
                let kind = Some(kind);
                Verdict { file, intact: true, kind, damage: None }
            }
            // Unreadable, or of a later version: damage cannot be decided.
            Err(
                error @ (Error::Io(_)
                | Error::UnsupportedVersion { .. }
                | Error::UnknownKind { .. }
                | Error::UnknownHash { .. }),
            ) => return Err(Failure::file(path, &error)),
            Err(error) => {
                if !self.format.json {
                    Failure::file(path, &error).print();
                }
                let damage = Some(error.to_string());
                Verdict { file, intact: false, kind: None, damage }
            }
        };
        if self.format.json {
            print_json(&verdict)?;
        } else if let (Some(kind), false) = (verdict.kind, self.quiet) {
            let file = printable(&verdict.file);
            super::print_line(&format!("{file}: intact ({kind})"))?;
        }
        Ok(verdict.intact)
    }
}

//! `tamis info`.

use std::path::{Path, PathBuf};

use tamis::{AnyFilter, inspect::Inspector};

use super::OpenArgs;
use crate::failure::{Exit, Result, printable};
use crate::report::{FilterReport, JsonArgs, LoadChart, ReportForm};

/// Show the contents and the false-positive rate of filters
///
/// The current false-positive rate is computed from the stored bits; the
/// rate at the design load is the one chosen for `build`. For a tinyset
/// filter a chart shows the number of blocks by number of keys.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Filters to describe
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,

    /// Show the secret key of a siphash filter, with which others can choose
    /// keys that collide
    #[arg(long)]
    show_key: bool,

    #[command(flatten)]
    open: OpenArgs,

    #[command(flatten)]
    format: JsonArgs,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let mut exit = Exit::Success;
        for (i, path) in self.filters.iter().enumerate() {
            if self.filters.len() > 1 && !self.format.json {
                let line = if i == 0 { "" } else { "\n" };
                let name = printable(&path.display().to_string());
                super::print_line(&format!("{line}==> {name} <=="))?;
            }
            if let Err(failure) = self.describe(path) {
                exit = failure.continue_after()?;
            }
        }
        Ok(exit)
    }

    fn describe(&self, path: &Path) -> Result<()> {
        let form = ReportForm::from(&self.format);
        let filter = match self.open.open(path) {
            Ok(filter) => filter,
            Err(failure) => {
                let window = self.open.window(path).map_err(|_| failure)?;
                let mut report = FilterReport::of_window(&window);
                if self.show_key {
                    report = report.with_key(window.hasher());
                }
                return report.with_file(path).print(form);
            }
        };
        let mut report = FilterReport::new(&filter).with_file(path);
        if self.show_key {
            report = report.with_key(filter.hasher());
        }
        let AnyFilter::TinySet(filter) = &filter else {
            return report.print(form);
        };
        let chart = LoadChart::from(&Inspector::new(filter).loads());
        report.print_with(form, &chart)?;
        match form {
            ReportForm::Table => chart.print(),
            _ => Ok(()),
        }
    }
}

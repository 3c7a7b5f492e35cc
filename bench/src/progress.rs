//! Progress on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::note;
use crate::race::Cell;
use crate::subject::Result;

/// A bar with one step per cell, hidden unless standard error is a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(cells: usize) -> Result<Self> {
        let bar = ProgressBar::new(cells as u64);
        let template = "{elapsed} [{bar:20}] {pos}/{len} {msg}";
        bar.set_style(ProgressStyle::with_template(template)?);
        bar.enable_steady_tick(Duration::from_secs(1));
        Ok(Self(bar))
    }

    pub(crate) fn show(&self, cell: &Cell, filter: &str, operation: &str) {
        self.0.set_message(format!("{cell}: {filter}: {operation}"));
    }

    pub(crate) fn round(&self, cell: &Cell, round: usize, rounds: usize) {
        let round = round + 1;
        self.0.set_message(format!("{cell}: round {round} of {rounds}"));
    }

    pub(crate) fn step(&self, cell: &Cell) {
        self.0.inc(1);
        if self.0.is_hidden() {
            let seconds = self.0.elapsed().as_secs();
            note(&format!("{cell} done after {seconds} s\n"));
        }
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

//! Target rates of the summaries that are filters.

use super::{Deletion, TableShape};

/// The settings that [`FilterStack`](super::FilterStack) and
/// [`TypeFilter`](super::TypeFilter) share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Share of absent keys for which a bucket is read.
    pub(super) false_positive: f64,
    /// Share of present keys whose level is named wrongly.
    pub(super) misnamed: f64,
    pub(super) deletion: Deletion,
}

impl Rates {
    /// The expected number of misnamed keys in a table at its design load.
    pub(super) fn misnamed_items(&self, shape: &TableShape) -> f64 {
        self.misnamed * shape.items() as f64
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            false_positive: 0.01,
            misnamed: 1e-3,
            deletion: Deletion::default(),
        }
    }
}

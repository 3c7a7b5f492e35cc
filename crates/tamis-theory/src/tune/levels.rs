//! Levels of equally loaded blocks, and a last one that takes the rest.

use alloc::vec::Vec;

use super::arrivals::{self, BlockOutcome};
use crate::coverage;

/// Reads and rate of the levels, without the rate of the last.
pub(crate) struct Levels {
    pub(crate) reads: f64,
    /// Rate of the refusing levels together.
    fpr: f64,
    /// Chance that a non-member gets to the last level.
    reaching: f64,
    /// Keys per block of the last level, if it has any blocks.
    pub(crate) last: Option<f64>,
}

impl Levels {
    /// `choices` levels, all but the last like `block`.
    pub(crate) fn new(load: f64, block: &BlockOutcome, choices: u32) -> Self {
        let (mut reads, mut reaching, mut fpr) = (0.0, 1.0, 0.0);
        let (mut keys, mut blocks) = (1.0, 0.0);
        for _ in 1..choices {
            reads += reaching;
            fpr += reaching * block.outcome.maybe;
            reaching *= block.outcome.passed;
            blocks += keys * load / block.arrivals;
            keys *= block.refused;
        }
        reads += reaching;
        let left = 1.0 - blocks;
        // A level of less than one block in a billion is none.
        let last = (left > 1e-9).then(|| keys * load / left);
        Levels { reads, fpr, reaching, last }
    }

    /// The rate of all levels; none if the last is overloaded.
    pub(crate) fn fpr(&self, last: &Last) -> Option<f64> {
        Some(self.fpr + self.reaching * last.rate(self.last?)?)
    }
}

/// The rate of the last level's blocks by their mean load.
pub(crate) struct Last {
    /// The largest mean load.
    most: f64,
    /// By number of keys.
    rates: Vec<f64>,
}

impl Last {
    pub(crate) fn new(block_bits: u32, load: f64, probes: u32) -> Self {
        // A last level much fuller than the average cannot be good.
        let most = (4.0 * load).max(8.0);
        let keys = most + 10.0 * libm::sqrt(most) + 20.0;
        let rates = coverage::by_items(block_bits, probes, keys as usize);
        Last { most, rates }
    }

    fn rate(&self, mean: f64) -> Option<f64> {
        (mean <= self.most).then(|| arrivals::expect(mean, &self.rates))
    }
}

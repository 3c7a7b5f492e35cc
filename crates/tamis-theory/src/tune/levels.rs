//! Levels of equally loaded blocks, and a last one that takes the rest.

use alloc::vec::Vec;

use super::arrivals::BlockOutcome;
use crate::coverage;
use crate::load::Load;

/// What the levels do, but for the rate of the last.
pub(crate) struct Outcome {
    pub(crate) reads: f64,
    pub(crate) refused: f64,
    /// Rate of the refusing levels together.
    fpr: f64,
    /// Chance that a non-member gets to the last level.
    reaching: f64,
    /// Keys per block of the last level, if it has any blocks.
    last: Option<f64>,
}

impl Outcome {
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
        Outcome { reads, refused: block.refused, fpr, reaching, last }
    }

    /// The whole rate, given that of a block with a mean number of keys.
    pub(crate) fn fpr(
        &self,
        last: impl Fn(f64) -> Option<f64>,
    ) -> Option<f64> {
        Some(self.fpr + self.reaching * last(self.last?)?)
    }
}

/// The rate of the last level's blocks by their mean load.
pub(crate) struct Last {
    /// By number of keys.
    rates: Vec<f64>,
    /// Logarithm of the rate, on a grid of logarithms of the mean load.
    grid: Vec<f64>,
}

const GRID_FROM: f64 = 1e-3;
const GRID_STEP: f64 = 0.04;

impl Last {
    pub(crate) fn new(block_bits: u32, load: f64, probes: u32) -> Self {
        // A last level twice as full as the average cannot be good.
        let most = (2.0 * load).max(4.0);
        let table = Load::poisson(most).max();
        let rates = coverage::by_items(block_bits, probes, table);
        let points = libm::log(most / GRID_FROM) / GRID_STEP;
        let grid = (0..=points as u32)
            .map(|i| {
                let mean = GRID_FROM * libm::exp(GRID_STEP * f64::from(i));
                libm::log(Load::poisson(mean).expect(&rates))
            })
            .collect();
        Last { rates, grid }
    }

    pub(crate) fn exact(&self, mean: f64) -> Option<f64> {
        let load = Load::poisson(mean);
        (load.max() < self.rates.len()).then(|| load.expect(&self.rates))
    }

    /// Good to a few parts in ten thousand.
    pub(crate) fn interpolate(&self, mean: f64) -> Option<f64> {
        let at = (libm::log(mean / GRID_FROM) / GRID_STEP).max(0.0);
        let i = at as usize;
        let (low, high) = (self.grid.get(i)?, self.grid.get(i + 1)?);
        Some(libm::exp(low + (at - i as f64) * (high - low)))
    }
}

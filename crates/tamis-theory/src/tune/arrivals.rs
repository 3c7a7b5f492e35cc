//! Poisson arrivals at a block of a refusing level.

use alloc::vec::Vec;

use crate::balanced::Refuser;
use crate::balanced::refuser::{self, Outcome, Weights};
use crate::dot::dot;

/// Numbers of keys rarer than this, compared with the most likely one, are
/// left out: designs are compared to parts in a million.
const CUT: f64 = 1e-17;

/// Poisson arrivals with a given mean.
pub(crate) struct Arrivals {
    mean: f64,
    chances: Vec<f64>,
    tails: Vec<f64>,
    excesses: Vec<f64>,
    marks: Vec<f64>,
}

impl Arrivals {
    /// For a block that no fewer than `first` keys fill: only tails from
    /// there on are computed.
    pub(crate) fn new(mean: f64, tracking_bits: u32, first: usize) -> Self {
        let chances = chances(mean);
        let mut tails = alloc::vec![0.0; chances.len()];
        let mut excesses = alloc::vec![0.0; chances.len()];
        let (mut above, mut more) = (0.0, 0.0);
        let sums = tails.iter_mut().zip(&mut excesses);
        for ((tail, excess), chance) in sums.zip(&chances).skip(first).rev() {
            more += above;
            above += chance;
            (*tail, *excess) = (above, more);
        }
        let marks = refuser::marks(&tails, tracking_bits, first);
        Arrivals { mean, chances, tails, excesses, marks }
    }

    pub(crate) fn outcome(&self, refuser: &Refuser) -> BlockOutcome {
        let outcome = refuser.outcome(&Weights {
            chances: &self.chances,
            tails: &self.tails,
            excesses: &self.excesses,
            marks: &self.marks,
        });
        let refused = outcome.refused / self.mean;
        BlockOutcome { arrivals: self.mean, refused, outcome }
    }
}

/// P(N = 0), P(N = 1), ...
fn chances(mean: f64) -> Vec<f64> {
    let mode = mean as usize;
    let most = mean + 10.0 * libm::sqrt(mean) + 20.0;
    let mut chances = Vec::with_capacity(most as usize);
    chances.resize(mode + 1, 0.0);
    let mut weight = 1.0;
    for i in (0..=mode).rev() {
        chances[i] = weight;
        if weight < CUT {
            break;
        }
        weight *= i as f64 / mean;
    }
    let (mut i, mut weight) = (mode, mean / (mode + 1) as f64);
    while weight > CUT {
        chances.push(weight);
        i += 1;
        weight *= mean / (i + 1) as f64;
    }
    let scale = 1.0 / chances.iter().sum::<f64>();
    for chance in &mut chances {
        *chance *= scale;
    }
    chances
}

/// The mean of `values[i]` over Poisson numbers i; values that are not
/// listed count as the last one.
pub(crate) fn expect(mean: f64, values: &[f64]) -> f64 {
    let chances = chances(mean);
    let n = chances.len().min(values.len());
    let beyond: f64 = chances[n..].iter().sum();
    dot(&chances, values) + beyond * values.last().copied().unwrap_or(0.0)
}

/// Rates and refusals of a block with given arrivals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockOutcome {
    pub(crate) arrivals: f64,
    /// Share of the arrivals it refuses.
    pub(crate) refused: f64,
    pub(crate) outcome: Outcome,
}

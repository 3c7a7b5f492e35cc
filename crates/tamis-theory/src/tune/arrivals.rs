//! Poisson arrivals at a block of a refusing level.

use alloc::vec::Vec;

use crate::balanced::Refuser;
use crate::balanced::refuser::Outcome;
use crate::dot::dot;

/// Numbers of keys rarer than this, compared with the most likely one, are
/// left out: designs are compared to parts in a million.
const CUT: f64 = 1e-17;

/// P(N = 0), P(N = 1), ...
fn chances(mean: f64) -> Vec<f64> {
    let mode = mean as usize;
    let most = mean + 10.0 * libm::sqrt(mean) + 20.0;
    let mut chances = Vec::with_capacity(most as usize);
    chances.resize(mode + 1, 0.0);
    let (mut weight, inverse) = (1.0, 1.0 / mean);
    for i in (0..=mode).rev() {
        chances[i] = weight;
        if weight < CUT {
            break;
        }
        weight *= i as f64 * inverse;
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

impl BlockOutcome {
    /// With Poisson arrivals.
    pub(crate) fn new(
        refuser: &Refuser,
        arrivals: f64,
        tracking_bits: u32,
    ) -> Self {
        let outcome = refuser.outcome(&chances(arrivals), tracking_bits);
        let refused = outcome.refused / arrivals;
        BlockOutcome { arrivals, refused, outcome }
    }
}

//! Arrivals at a block of a refusing level, prepared for many blocks.

use alloc::vec::Vec;

use super::block::Block;
use crate::balanced::refuser::{self, Outcome};
use crate::poisson::Poisson;

/// Points of the grid: each brings 5% more surplus than the one before,
/// close enough for straight lines between them.
const POINTS: u32 = 320;
/// Smallest and largest surplus of arrivals over the load, relative.
const SURPLUS: (f64, f64) = (1e-6, 3.0);

pub(crate) struct Arrivals {
    poisson: Poisson,
    /// For each number of tracking bits.
    marks: Vec<Vec<f64>>,
}

impl Arrivals {
    pub(crate) fn new(mean: f64, tracking: &[u32]) -> Self {
        let poisson = Poisson::new(mean);
        let marks =
            tracking.iter().map(|t| refuser::marks(&poisson, *t)).collect();
        Arrivals { poisson, marks }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.poisson.mean()
    }

    pub(crate) fn outcome(&self, block: &Block, track: usize) -> BlockOutcome {
        let marks = self.marks.get(track).map_or(&[][..], Vec::as_slice);
        let outcome = block.refuser.outcome(&self.poisson, marks);
        let refused = outcome.refused / self.mean();
        BlockOutcome { arrivals: self.mean(), refused, outcome }
    }
}

/// What a block does with these arrivals.
#[derive(Clone, Copy)]
pub(crate) struct BlockOutcome {
    pub(crate) arrivals: f64,
    /// Share of the arrivals it refuses.
    pub(crate) refused: f64,
    pub(crate) outcome: Outcome,
}

impl BlockOutcome {
    /// A point on the line to another outcome.
    pub(crate) fn towards(&self, other: &Self, part: f64) -> Self {
        let mix = |x: f64, y: f64| x + part * (y - x);
        let (a, b) = (&self.outcome, &other.outcome);
        BlockOutcome {
            arrivals: mix(self.arrivals, other.arrivals),
            refused: mix(self.refused, other.refused),
            outcome: Outcome {
                maybe: mix(a.maybe, b.maybe),
                refused: mix(a.refused, b.refused),
                go_on: mix(a.go_on, b.go_on),
                passed: mix(a.passed, b.passed),
            },
        }
    }
}

/// The mean arrivals at a point between those of the grid.
pub(crate) fn between(grid: &[Arrivals], at: f64) -> f64 {
    let at = at.clamp(0.0, (grid.len() - 1) as f64);
    let below = (at as usize).min(grid.len() - 2);
    let (low, high) = (grid[below].mean(), grid[below + 1].mean());
    low + (at - below as f64) * (high - low)
}

pub(crate) fn grid(load: f64, tracking: &[u32]) -> Vec<Arrivals> {
    let (from, to) = SURPLUS;
    let growth = libm::log(to / from) / f64::from(POINTS - 1);
    (0..POINTS)
        .map(|i| {
            let surplus = from * libm::exp(growth * f64::from(i));
            Arrivals::new(load * (1.0 + surplus), tracking)
        })
        .collect()
}

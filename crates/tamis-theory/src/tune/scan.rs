//! The best arrivals for one block, by interpolation on a grid.

use alloc::vec::Vec;

use super::arrivals::{Arrivals, BlockOutcome};
use super::block::Block;
use super::levels::{Last, Outcome};
use super::search::Search;

/// What one block does along the grid, computed where asked for.
pub(crate) struct Known<'a> {
    grid: &'a [Arrivals],
    block: &'a Block,
    track: usize,
    outcomes: Vec<Option<BlockOutcome>>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(
        grid: &'a [Arrivals],
        block: &'a Block,
        track: usize,
    ) -> Self {
        let outcomes = alloc::vec![None; grid.len()];
        Known { grid, block, track, outcomes }
    }

    pub(crate) fn at(&mut self, at: f64) -> BlockOutcome {
        let below = (at as usize).min(self.grid.len() - 2);
        let (low, high) = (self.point(below), self.point(below + 1));
        low.towards(&high, at - below as f64)
    }

    fn point(&mut self, at: usize) -> BlockOutcome {
        let (grid, block, track) = (self.grid, self.block, self.track);
        let outcome = &mut self.outcomes[at];
        *outcome.get_or_insert_with(|| grid[at].outcome(block, track))
    }
}

pub(crate) struct Scan<'a> {
    search: &'a Search,
    last: &'a Last,
    known: Known<'a>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        search: &'a Search,
        grid: &'a [Arrivals],
        block: &'a Block,
        track: usize,
        last: &'a Last,
    ) -> Self {
        Scan { search, last, known: Known::new(grid, block, track) }
    }

    /// The least rate and where on the grid it is.
    ///
    /// More arrivals per block mean more reads, and more blocks left for the
    /// last level. So the points allowed are an interval, often a narrow
    /// one, and the rate falls and then rises in it.
    pub(crate) fn best(&mut self, choices: u32) -> Option<(f64, f64)> {
        const RATIO: f64 = 0.618_033_988_749_894_8;
        let most = (self.known.grid.len() - 1) as f64;
        let mut high = edge(0.0, most, |at| {
            self.levels(at, choices).reads > self.search.limit
        });
        let mut low = edge(0.0, high, |at| self.rate(at, choices).is_some());
        let mut best = None;
        let mut rate = |at: f64| -> f64 {
            let rate = self.rate(at, choices);
            if let Some(rate) = rate {
                if best.is_none_or(|(least, _)| rate < least) {
                    best = Some((rate, at));
                }
            }
            rate.unwrap_or(f64::INFINITY)
        };
        let (mut left, mut right) = (f64::NAN, f64::NAN);
        while high - low > 0.02 {
            let at = [high - RATIO * (high - low), low + RATIO * (high - low)];
            if left.is_nan() {
                left = rate(at[0]);
            }
            if right.is_nan() {
                right = rate(at[1]);
            }
            if left < right {
                (high, right, left) = (at[1], left, f64::NAN);
            } else {
                (low, left, right) = (at[0], right, f64::NAN);
            }
        }
        rate(low);
        best
    }

    fn rate(&mut self, at: f64, choices: u32) -> Option<f64> {
        let last = self.last;
        self.levels(at, choices).fpr(|mean| last.interpolate(mean))
    }

    fn levels(&mut self, at: f64, choices: u32) -> Outcome {
        Outcome::new(self.search.load, &self.known.at(at), choices)
    }
}

/// Where in an interval a predicate begins to hold, or its end.
pub(crate) fn edge(
    mut low: f64,
    mut high: f64,
    mut holds: impl FnMut(f64) -> bool,
) -> f64 {
    if holds(low) {
        return low;
    }
    while high - low > 0.005 {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

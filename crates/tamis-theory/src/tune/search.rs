//! The search for a filter without a list.
//!
//! First every block with every number of levels, the arrivals per block
//! found by interpolation on a grid; then the arrivals exactly, for the few
//! that came close; then the thresholds in between, where the first pass
//! left some out.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::arrivals::{self, Arrivals};
use super::block::{Block, Kind};
use super::levels::{Last, Outcome};
use super::scan::Scan;
use super::{MAX_LEVELS, Mode, TRACKING};
use crate::balanced::absorbing::Refuse;

/// The first pass is good to about 0.1%: refine what comes this close to its
/// best, but no more than so many.
const CLOSE: f64 = 1.03;
const MOST_REFINED: usize = 160;
/// Kinds of blocks whose other thresholds are tried.
const MOST_POLISHED: usize = 20;

pub(crate) struct Search {
    pub(crate) block_bits: u32,
    pub(crate) load: f64,
    /// Most reads per non-member.
    pub(crate) limit: f64,
}

pub(crate) struct Found {
    pub(crate) level_shares: Vec<f64>,
    pub(crate) refuse: Refuse,
    pub(crate) probes: u32,
    pub(crate) tracking_bits: u32,
}

/// A result of the first pass.
struct Coarse {
    fpr: f64,
    /// Index of the block.
    block: usize,
    choices: u32,
    /// Where on the grid of arrivals.
    at: f64,
}

/// A result of the second.
#[derive(Clone, Copy)]
struct Fine {
    fpr: f64,
    choices: u32,
    arrivals: f64,
    /// Share of its arrivals that each refusing level refuses.
    refused: f64,
}

impl Search {
    pub(crate) fn run(
        &self,
        modes: &[Mode],
        probes: RangeInclusive<u32>,
    ) -> Option<Found> {
        let lasts: Vec<Last> = probes
            .clone()
            .map(|k| Last::new(self.block_bits, self.load, k))
            .collect();
        let first = *probes.start();
        let last =
            |block: &Block| &lasts[(block.kind.probes - first) as usize];
        let grid = arrivals::grid(self.load, &TRACKING);
        let (blocks, coarse) = self.coarse(modes, probes, &grid, &last);
        let mut fine: Vec<(Fine, &Block)> = Vec::new();
        for candidate in coarse.iter().take(MOST_REFINED) {
            let block = &blocks[candidate.block];
            let span = [-0.6, 0.6]
                .map(|by| arrivals::between(&grid, candidate.at + by));
            let found =
                self.refine(block, candidate.choices, last(block), span);
            fine.extend(found.map(|found| (found, block)));
        }
        fine.sort_by(|x, y| x.0.fpr.total_cmp(&y.0.fpr));
        let polished = self.polish(&fine, &last);
        let (best, block) = match &polished {
            Some((best, block)) => (best, block),
            None => fine.first().map(|(best, block)| (best, *block))?,
        };
        Some(Found {
            level_shares: self.level_shares(best),
            refuse: block.refuse,
            probes: block.kind.probes,
            tracking_bits: block.kind.tracking_bits,
        })
    }

    /// All blocks worth a second look, and where to look, best first.
    fn coarse<'a>(
        &self,
        modes: &[Mode],
        probes: RangeInclusive<u32>,
        grid: &[Arrivals],
        last: &impl Fn(&Block) -> &'a Last,
    ) -> (Vec<Block>, Vec<Coarse>) {
        let mut blocks: Vec<Block> = Vec::new();
        let mut all: Vec<Coarse> = Vec::new();
        let mut least = f64::INFINITY;
        for mode in modes {
            for (track, tracking_bits) in TRACKING.into_iter().enumerate() {
                for probes in probes.clone() {
                    let kind = Kind {
                        block_bits: self.block_bits,
                        load: self.load,
                        mode: *mode,
                        probes,
                        tracking_bits,
                    };
                    for block in kind.candidates() {
                        let mut scan =
                            Scan::new(self, grid, &block, track, last(&block));
                        let before = all.len();
                        for choices in 2..=MAX_LEVELS {
                            let Some((fpr, at)) = scan.best(choices) else {
                                continue;
                            };
                            least = least.min(fpr);
                            if fpr <= CLOSE * least {
                                let block = blocks.len();
                                all.push(Coarse { fpr, block, choices, at });
                            }
                        }
                        if all.len() > before {
                            blocks.push(block);
                        }
                    }
                }
            }
        }
        all.retain(|candidate| candidate.fpr <= CLOSE * least);
        all.sort_by(|x, y| x.fpr.total_cmp(&y.fpr));
        (blocks, all)
    }

    /// Anything better between the thresholds of the first pass.
    fn polish<'a>(
        &self,
        fine: &[(Fine, &Block)],
        last: &impl Fn(&Block) -> &'a Last,
    ) -> Option<(Fine, Block)> {
        let mut least = fine.first()?.0.fpr;
        let mut best = None;
        let mut seen: Vec<(u32, u32, u32)> = Vec::new();
        for (found, block) in fine {
            let kind = &block.kind;
            let kind = (kind.probes, kind.tracking_bits, found.choices);
            if seen.len() == MOST_POLISHED {
                break;
            }
            if seen.contains(&kind) {
                continue;
            }
            seen.push(kind);
            let surplus = found.arrivals - self.load;
            let span = [0.8, 1.25].map(|by| self.load + by * surplus);
            for other in block.between() {
                let tried =
                    self.refine(&other, found.choices, last(block), span);
                if let Some(tried) = tried.filter(|t| t.fpr < least) {
                    least = tried.fpr;
                    best = Some((tried, other));
                }
            }
        }
        best
    }

    /// Golden-section search over the arrivals.
    fn refine(
        &self,
        block: &Block,
        choices: u32,
        last: &Last,
        [mut low, mut high]: [f64; 2],
    ) -> Option<Fine> {
        const RATIO: f64 = 0.618_033_988_749_894_8;
        const STEPS: usize = 24;
        let at = |mean: f64| -> Fine {
            let arrivals = Arrivals::new(mean, &[block.kind.tracking_bits]);
            let outcome = arrivals.outcome(block, 0);
            let levels = Outcome::new(self.load, &outcome, choices);
            let fpr = if levels.reads > self.limit {
                // Beyond the limit: point back towards fewer arrivals.
                2.0 + levels.reads
            } else {
                levels.fpr(|mean| last.exact(mean)).unwrap_or(2.0)
            };
            let refused = levels.refused;
            Fine { fpr, choices, arrivals: mean, refused }
        };
        let mut left = at(high - RATIO * (high - low));
        let mut right = at(low + RATIO * (high - low));
        for _ in 0..STEPS {
            if left.fpr < right.fpr {
                high = right.arrivals;
                right = left;
                left = at(high - RATIO * (high - low));
            } else {
                low = left.arrivals;
                left = right;
                right = at(low + RATIO * (high - low));
            }
        }
        let best = if left.fpr < right.fpr { left } else { right };
        (best.fpr <= 1.0).then_some(best)
    }

    fn level_shares(&self, found: &Fine) -> Vec<f64> {
        let mut shares = Vec::with_capacity(found.choices as usize);
        let mut share = self.load / found.arrivals;
        for _ in 1..found.choices {
            shares.push(share);
            share *= found.refused;
        }
        let sum: f64 = shares.iter().sum();
        shares.push(1.0 - sum);
        shares
    }
}

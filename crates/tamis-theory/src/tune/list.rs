//! The search with a list for the keys that every level refused.

use alloc::vec::Vec;

use super::arrivals::{self, Arrivals, BlockOutcome};
use super::block::{Block, Kind};
use super::{Design, MAX_LEVELS, Mode, TRACKING, limit, load, probes, scan};
use crate::balanced::{Stage, Walk};
use crate::{Error, Prediction, Result, check};

/// Designs computed exactly, the most promising first.
const MOST_REFINED: usize = 64;
/// The first pass may be wrong by this much.
const SLACK: f64 = 1.01;

/// Finds the filter of least false-positive rate that keeps at most a share
/// `max_overflow_fraction` of the keys in a list and reads at most
/// `max_reads_miss` blocks per non-member.
///
/// Blocks count their keys. Every level refuses, all of them equally loaded;
/// one level is allowed. Neither the memory of the list nor the reads of it
/// are counted.
///
/// ```
/// use tamis_theory::tune;
///
/// let design = tune::with_list(512, 24.0, 1.25, 0.005)?;
/// assert!(design.overflow_fraction <= 0.005);
/// assert!(design.prediction.fpr < 2.48e-5);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn with_list(
    block_bits: u32,
    bits_per_key: f64,
    max_reads_miss: f64,
    max_overflow_fraction: f64,
) -> Result<Design> {
    let load = load(block_bits, bits_per_key)?;
    limit(max_reads_miss)?;
    check::overflow_fraction(max_overflow_fraction)?;
    let allowed = |design: &Filter, slack: f64| {
        design.overflow_fraction <= slack * max_overflow_fraction
            && design.walk.reads <= slack * max_reads_miss
    };
    let grid = arrivals::grid(load, &TRACKING);
    let mut blocks: Vec<Block> = Vec::new();
    let mut coarse: Vec<(f64, usize, u32, f64)> = Vec::new();
    for (track, tracking_bits) in TRACKING.into_iter().enumerate() {
        for probes in probes(block_bits, bits_per_key)? {
            let mode = Mode::Dynamic;
            let kind = Kind { block_bits, load, mode, probes, tracking_bits };
            for block in kind.candidates() {
                let mut known = scan::Known::new(&grid, &block, track);
                for choices in 1..=MAX_LEVELS {
                    let most = (grid.len() - 1) as f64;
                    let at = scan::edge(0.0, most, |at| {
                        let one = known.at(at);
                        one.arrivals >= load * reads(one.refused, choices)
                    });
                    let design = Filter::new(&known.at(at), choices);
                    if allowed(&design, SLACK) {
                        let fpr = design.walk.fpr;
                        coarse.push((fpr, blocks.len(), choices, at));
                    }
                }
                blocks.push(block);
            }
        }
    }
    coarse.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut best: Option<(Filter, &Block)> = None;
    for (_, block, choices, at) in coarse.into_iter().take(MOST_REFINED) {
        let block = &blocks[block];
        let near = arrivals::between(&grid, at);
        let Some(one) = balance(load, block, choices, near) else {
            continue;
        };
        let design = Filter::new(&one, choices);
        let better = best
            .as_ref()
            .is_none_or(|(best, _)| design.walk.fpr < best.walk.fpr);
        if better && allowed(&design, 1.0) {
            best = Some((design, block));
        }
    }
    let (design, block) = best.ok_or(Error::NoDesign { max_reads_miss })?;
    Ok(design.into_design(block, bits_per_key))
}

/// Levels that all refuse.
struct Filter {
    walk: Walk,
    choices: u32,
    /// Share of its arrivals that each level refuses.
    refused: f64,
    overflow_fraction: f64,
}

impl Filter {
    fn new(one: &BlockOutcome, choices: u32) -> Self {
        let stage = Stage {
            maybe: one.outcome.maybe,
            go_on: one.outcome.go_on,
            passed: one.outcome.passed,
        };
        let path = core::iter::repeat_n(stage, choices as usize);
        let overflow_fraction = libm::pow(one.refused, f64::from(choices));
        Filter {
            walk: Walk::exact(path),
            choices,
            refused: one.refused,
            overflow_fraction,
        }
    }

    fn into_design(self, block: &Block, bits_per_key: f64) -> Design {
        let access_budget = reads(self.refused, self.choices);
        let probes = block.kind.probes;
        Design {
            access_budget,
            choices: self.choices,
            level_shares: (0..self.choices)
                .map(|j| libm::pow(self.refused, f64::from(j)) / access_budget)
                .collect(),
            refuse: block.refuse,
            probes,
            tracking_bits: block.kind.tracking_bits,
            overflow_fraction: self.overflow_fraction,
            prediction: Prediction {
                bits_per_key,
                probes,
                fpr: self.walk.fpr,
                reads_hit: access_budget,
                reads_miss: self.walk.reads,
            },
        }
    }
}

/// 1+q+...+q^(d-1), by a member.
fn reads(q: f64, choices: u32) -> f64 {
    (0..choices).fold(0.0, |sum, _| 1.0 + q * sum)
}

/// The block where the levels need exactly all blocks,
/// load (1+q+...+q^(d-1)) = arrivals, by repetition from nearby.
fn balance(
    load: f64,
    block: &Block,
    choices: u32,
    near: f64,
) -> Option<BlockOutcome> {
    let mut mean = if choices == 1 { load } else { near };
    for _ in 0..200 {
        let arrivals = Arrivals::new(mean, &[block.kind.tracking_bits]);
        let one = arrivals.outcome(block, 0);
        let next = load * reads(one.refused, choices);
        if (next - mean).abs() <= 1e-13 * mean {
            return Some(one);
        }
        mean = next;
    }
    None
}

//! Designs with a list for the keys that every level refused.

use core::cell::Cell;

use super::arrivals::BlockOutcome;
use super::search::{Goal, Search};
use super::trial::Found;
use super::{Design, Mode, limit, load, probes, start};
use crate::balanced::{Stage, Walk};
use crate::{Error, Prediction, Result, check};

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
    let max_reads = limit(max_reads_miss)?;
    let max_overflow = check::overflow_fraction(max_overflow_fraction)?;
    let probes = probes(bits_per_key);
    let start = start(&probes, bits_per_key, load, max_reads);
    let goal = Goal::List { max_reads, max_overflow };
    let cost = Cell::default();
    let search = Search { block_bits, load, probes, goal, cost };
    let found = search.run(&[Mode::Dynamic], start);
    let found = found.ok_or(Error::NoDesign { max_reads_miss })?;
    Ok(design(&found, bits_per_key))
}

fn design(found: &Found, bits_per_key: f64) -> Design {
    let Listed { walk, overflow_fraction } =
        Listed::new(&found.block, found.choices);
    let access_budget = reads(found.block.refused, found.choices);
    let share =
        |j: u32| libm::pow(found.block.refused, f64::from(j)) / access_budget;
    let probes = found.kind.probes;
    Design {
        access_budget,
        choices: found.choices,
        level_shares: (0..found.choices).map(share).collect(),
        refuse: found.kind.refuse(found.threshold),
        probes,
        tracking_bits: found.kind.tracking_bits,
        overflow_fraction,
        prediction: Prediction {
            bits_per_key,
            probes,
            fpr: walk.fpr,
            reads_hit: access_budget,
            reads_miss: walk.reads,
        },
    }
}

/// Levels that all refuse.
pub(crate) struct Listed {
    pub(crate) walk: Walk,
    pub(crate) overflow_fraction: f64,
}

impl Listed {
    pub(crate) fn new(block: &BlockOutcome, choices: u32) -> Self {
        let stage = Stage {
            maybe: block.outcome.maybe,
            go_on: block.outcome.go_on,
            passed: block.outcome.passed,
        };
        let path = core::iter::repeat_n(stage, choices as usize);
        let overflow_fraction = libm::pow(block.refused, f64::from(choices));
        Listed { walk: Walk::exact(path), overflow_fraction }
    }
}

/// 1+q+...+q^(d-1), the reads of a member.
pub(crate) fn reads(q: f64, choices: u32) -> f64 {
    (0..choices).fold(0.0, |sum, _| 1.0 + q * sum)
}

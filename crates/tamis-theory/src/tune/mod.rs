//! The best balanced filter for a memory budget and a limit on reads.
//!
//! [`best`] considers filters without a list, whose last level takes every
//! key ([`crate::balanced::absorbing`]): two to four levels, any threshold,
//! any division of the blocks such that the refusing levels are equally
//! loaded, any number of probes, and 0 to 32 tracking bits. [`with_list`]
//! does the same for filters whose refused keys go to a list.
//!
//! The best *balanced* filter is not always the best filter. Below about 12
//! bits per key a blocked filter is as good, and a
//! split one is better up to 24; compare with [`crate::blocked::best`] and
//! [`crate::split::best`].
//!
//! ```
//! use tamis_theory::tune;
//!
//! let design = tune::best(256, 24.0, 1.25, Some(tune::Mode::Dynamic))?;
//! assert!(design.prediction.reads_miss <= 1.25);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

mod arrivals;
mod block;
mod levels;
mod list;
mod search;
mod whole;

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::RangeInclusive;

use crate::balanced::absorbing::{self, Refuse};
use crate::{Error, MAX_PROBES, Prediction, Result, blocked, check};
use block::Kind;
use search::{Cost, Found, Goal, Search, Start};

pub use list::with_list;
pub use whole::{Proportions, Whole};

/// The state by which a block decides that it is full.
///
/// ```
/// use tamis_theory::tune::{Mode, best};
///
/// let fpr = |mode| -> tamis_theory::Result<f64> {
///     Ok(best(512, 20.0, 1.25, Some(mode))?.prediction.fpr)
/// };
/// assert!(fpr(Mode::Static)? < fpr(Mode::Dynamic)?);
/// assert!(fpr(Mode::Popcount)? < fpr(Mode::Static)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A counter in the block, so that keys can be inserted at any time.
    Dynamic,
    /// A counter beside the filter, kept only while it is built.
    Static,
    /// The number of bits set in the block.
    Popcount,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Dynamic, Mode::Static, Mode::Popcount];
}

/// A filter found by the search.
///
/// ```
/// let design = tamis_theory::tune::best(512, 24.0, 1.25, None)?;
/// assert_eq!(design.level_shares.len(), design.choices as usize);
/// assert!(design.prediction.reads_miss <= 1.25);
/// assert_eq!(design.overflow_fraction, 0.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Average blocks read per insertion.
    pub access_budget: f64,
    /// Blocks proposed per key, one in each level.
    pub choices: u32,
    /// Share of blocks in each level.
    pub level_shares: Vec<f64>,
    /// When a block refuses a key.
    pub refuse: Refuse,
    /// Bits set per key.
    pub probes: u32,
    /// Bits in each block that remember refusals.
    pub tracking_bits: u32,
    /// Share of keys in the list; zero without a list.
    pub overflow_fraction: f64,
    /// Rates and reads.
    pub prediction: Prediction,
}

/// Tracking bits considered: a lookup takes its class from its hash, so
/// powers of two.
const TRACKING: [u32; 7] = [0, 1, 2, 4, 8, 16, 32];
/// Most levels considered, which is also the most blocks any lookup reads.
/// Six would lower the rate by 0 to 13% up to 32 bits per key and by as much
/// as one half beyond, for two more reads in the worst case.
const MAX_LEVELS: u32 = 4;
/// Below this a balanced filter gains nothing over a blocked one.
const LEAST_BITS_PER_KEY: f64 = 4.0;
/// A non-member reads at least one block and, however rarely, another.
const LEAST_READS: f64 = 1.0 + 1e-6;

/// Finds the filter of least false-positive rate that reads at most
/// `max_reads_miss` blocks per non-member, of any mode or of the one given.
///
/// The prediction is exact; that nothing in the family described above is
/// better is the result of a search, not a proof. The answer is the same on
/// every machine. `bits_per_key` must be at least 4.
///
/// ```
/// use tamis_theory::{blocked, tune};
///
/// let design = tune::best(512, 20.0, 1.25, None)?;
/// let plain = blocked::best(512, 20.0)?;
/// assert!(design.prediction.fpr < 0.7 * plain.fpr);
/// assert!(design.prediction.reads_hit < 1.2);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best(
    block_bits: u32,
    bits_per_key: f64,
    max_reads_miss: f64,
    mode: Option<Mode>,
) -> Result<Design> {
    search(block_bits, bits_per_key, max_reads_miss, mode, None)
        .map(|(design, _)| design)
}

/// As [`best`], from the probes and tracking bits of a design for slightly
/// more or less memory: a third of the cost. Only neighbours of that design
/// are compared.
///
/// ```
/// use tamis_theory::tune;
///
/// let mode = Some(tune::Mode::Popcount);
/// let design = tune::best(512, 20.0, 1.25, mode)?;
/// let near = (design.probes, design.tracking_bits);
/// let larger = tune::best_near(512, 20.5, 1.25, mode, near)?;
/// assert!(larger.prediction.fpr < design.prediction.fpr);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best_near(
    block_bits: u32,
    bits_per_key: f64,
    max_reads_miss: f64,
    mode: Option<Mode>,
    near: (u32, u32),
) -> Result<Design> {
    search(block_bits, bits_per_key, max_reads_miss, mode, Some(near))
        .map(|(design, _)| design)
}

fn search(
    block_bits: u32,
    bits_per_key: f64,
    max_reads_miss: f64,
    mode: Option<Mode>,
    near: Option<(u32, u32)>,
) -> Result<(Design, Cost)> {
    let load = load(block_bits, bits_per_key)?;
    // The search drops negligible masses, so its reads may be too low by
    // this share.
    let max_reads = limit(max_reads_miss)? * (1.0 - 1e-11);
    let probes = probes(block_bits, bits_per_key)?;
    let mut start = start(&probes, bits_per_key);
    if let Some((probes, tracking_bits)) = near {
        let mut at_most = TRACKING.iter().rev();
        let tracking_bits = at_most.find(|t| **t <= tracking_bits);
        let tracking_bits = tracking_bits.copied().unwrap_or(0);
        start = Start { probes, tracking_bits, near: true };
    }
    let goal = Goal::Absorb { max_reads };
    let cost = Cell::new(Cost::default());
    let search = Search { block_bits, load, probes, goal, cost };
    let found = match mode {
        Some(mode) => search.run(&[mode], start),
        None => search.run(&Mode::ALL, start),
    };
    let found = found.ok_or(Error::NoDesign { max_reads_miss })?;
    let level_shares = level_shares(load, &found);
    let refuse = found.kind.refuse(found.threshold);
    let Kind { probes, tracking_bits, .. } = found.kind;
    let whole = absorbing::predict(
        block_bits,
        bits_per_key,
        &level_shares,
        refuse,
        probes,
        tracking_bits,
    )?;
    let design = Design {
        access_budget: whole.prediction.reads_hit,
        choices: found.choices,
        level_shares,
        refuse,
        probes,
        tracking_bits,
        overflow_fraction: 0.0,
        prediction: whole.prediction,
    };
    Ok((design, search.cost.get()))
}

/// Equally loaded levels, and the rest of the blocks for the last.
fn level_shares(load: f64, found: &Found) -> Vec<f64> {
    let mut shares = Vec::with_capacity(found.choices as usize);
    let mut share = load / found.block.arrivals;
    for _ in 1..found.choices {
        shares.push(share);
        share *= found.block.refused;
    }
    let sum: f64 = shares.iter().sum();
    shares.push(1.0 - sum);
    shares
}

/// Where to look first: balanced filters have about 0.63 probes per bit, and
/// more tracking bits the fewer reads are allowed.
fn start(probes: &RangeInclusive<u32>, bits_per_key: f64) -> Start {
    let guess = libm::round(0.63 * bits_per_key) as u32;
    let probes = guess.clamp(*probes.start(), *probes.end());
    Start { probes, tracking_bits: 8, near: false }
}

fn load(block_bits: u32, bits_per_key: f64) -> Result<f64> {
    let bits = f64::from(check::block_bits(block_bits)?);
    let most = check::MAX_BITS_PER_KEY;
    let name = "bits_per_key";
    check::in_range(name, bits_per_key, LEAST_BITS_PER_KEY, most)?;
    Ok(bits / bits_per_key)
}

fn limit(max_reads_miss: f64) -> Result<f64> {
    let most = f64::from(check::MAX_CHOICES);
    check::in_range("max_reads_miss", max_reads_miss, LEAST_READS, most)
}

/// Probes to compare: those of the best blocked filter are too few, those
/// of the best standard filter too many.
fn probes(block_bits: u32, bits_per_key: f64) -> Result<RangeInclusive<u32>> {
    let fewest = blocked::best(block_bits, bits_per_key)?.probes;
    let standard = libm::ceil(bits_per_key * core::f64::consts::LN_2);
    let most = (standard as u32 + 1).min(MAX_PROBES).max(fewest);
    Ok(fewest.saturating_sub(1).max(1)..=most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented cost of a search, counted: clocks differ.
    #[test]
    fn a_search_by_popcount_stays_below_its_documented_cost() {
        let mode = Some(Mode::Popcount);
        let mut most = Cost::default();
        for block_bits in [256, 512] {
            for max_reads in [1.02, 1.25, 2.0] {
                for beta in [4.0, 8.0, 12.0, 16.0, 24.0, 40.0, 60.0] {
                    let mut find = |near| {
                        let found =
                            search(block_bits, beta, max_reads, mode, near);
                        let (design, cost) = found.unwrap();
                        most.evaluations =
                            most.evaluations.max(cost.evaluations);
                        most.tables = most.tables.max(cost.tables);
                        (design, cost)
                    };
                    let (design, cold) = find(None);
                    let near = (design.probes, design.tracking_bits);
                    let (_, warm) = find(Some(near));
                    assert!(warm.tables <= cold.tables);
                }
            }
        }
        assert!(most.evaluations <= 8000, "{most:?}");
        assert!(most.tables <= 32, "{most:?}");
    }
}

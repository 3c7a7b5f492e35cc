//! The best balanced filter for a memory budget and a limit on reads.
//!
//! [`best`] considers filters without a list, whose last level takes every
//! key ([`crate::balanced::absorbing`]): two to four levels, any threshold,
//! any division of the blocks such that the refusing levels are equally
//! loaded, any number of probes, and 0 to 32 tracking bits. [`with_list`]
//! does the same for filters whose refused keys go to a list.
//!
//! What comes out is the best *balanced* filter, which is not always worth
//! having. Below about 12 bits per key a blocked filter is as good, and a
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
mod scan;
mod search;

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::balanced::absorbing::{self, Refuse};
use crate::{Error, MAX_PROBES, Prediction, Result, blocked, check};
use search::Search;

pub use list::with_list;

/// What may tell a block that it is full.
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
    /// Share of keys in the list; zero where there is none.
    pub overflow_fraction: f64,
    /// What it is predicted to do.
    pub prediction: Prediction,
}

/// Tracking bits considered: a lookup takes its class from its hash, so
/// powers of two.
const TRACKING: [u32; 7] = [0, 1, 2, 4, 8, 16, 32];
/// Most levels considered, which is also the most blocks any lookup reads.
/// Six would lower the rate by 0 to 13% up to 32 bits per key and by as much
/// as one half beyond, for two more reads in the worst case.
const MAX_LEVELS: u32 = 4;
/// Below this no balanced filter is worth a thought, and the search would
/// take seconds.
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
    let load = load(block_bits, bits_per_key)?;
    // The final prediction may differ from the search's by rounding.
    let limit = limit(max_reads_miss)? * (1.0 - 1e-12);
    let search = Search { block_bits, load, limit };
    let probes = probes(block_bits, bits_per_key)?;
    let found = match mode {
        Some(mode) => search.run(&[mode], probes),
        None => search.run(&Mode::ALL, probes),
    };
    let found = found.ok_or(Error::NoDesign { max_reads_miss })?;
    let whole = absorbing::predict(
        block_bits,
        bits_per_key,
        &found.level_shares,
        found.refuse,
        found.probes,
        found.tracking_bits,
    )?;
    Ok(Design {
        access_budget: whole.prediction.reads_hit,
        choices: found.level_shares.len() as u32,
        level_shares: found.level_shares,
        refuse: found.refuse,
        probes: found.probes,
        tracking_bits: found.tracking_bits,
        overflow_fraction: 0.0,
        prediction: whole.prediction,
    })
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

/// A balanced filter wants at least as many probes as a blocked one and no
/// more than a standard one.
fn probes(block_bits: u32, bits_per_key: f64) -> Result<RangeInclusive<u32>> {
    let fewest = blocked::best(block_bits, bits_per_key)?.probes;
    let standard = libm::ceil(bits_per_key * core::f64::consts::LN_2);
    let most = (standard as u32 + 1).min(MAX_PROBES).max(fewest);
    Ok(fewest.saturating_sub(1).max(1)..=most)
}

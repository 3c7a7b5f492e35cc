//! TinySet: blocks of fingerprints that become shorter as a block fills.
//!
//! Every key lives in one block of one cache line. The block divides its bits
//! among its keys: its rate rises with its load, but it never refuses a key.
//! Section numbers are those of Einziger and Friedman, *TinySet: An Access
//! Efficient Self Adjusting Bloom Filter Construction*. Deviations from the
//! printed formulas are noted beside the code.
//!
//! ```
//! use tamis_theory::{blocked, tinyset};
//!
//! let line = tinyset::Block::new(512, 64);
//! let tiny = tinyset::for_fpr(line, 0.001)?;
//! let bloom = blocked::for_fpr(512, 0.001)?;
//! assert!((tiny.bits_per_key - 12.816).abs() < 5e-4);
//! assert!((bloom.bits_per_key - 15.5).abs() < 0.1);
//! assert_eq!((tiny.reads_hit, tiny.reads_miss), (1.0, 1.0));
//! # Ok::<(), tamis_theory::Error>(())
//! ```

mod block;
mod change;
mod once;
pub mod two_level;

use alloc::vec::Vec;

use crate::check::{self, MAX_BITS_PER_KEY, MIN_BITS_PER_KEY};
use crate::load::Load;
use crate::{Error, Prediction, Result, search};

pub use block::{Block, rate};
pub use change::{Churned, churned, folded, grown, merged, refilled};

/// Predicts a filter of many blocks, whose loads are Poisson.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let p = tinyset::predict(Block::new(512, 64), 40.0)?;
/// assert!((p.fpr - 0.001008983).abs() < 1e-9);
/// assert_eq!(p.bits_per_key, 12.8);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(block: Block, load: f64) -> Result<Prediction> {
    let block = block.check()?;
    let load = check::load(load)?;
    let bits_per_key = f64::from(block.block_bits) / load;
    let fpr = mean(&Load::poisson(load), |entries| block.fpr(entries));
    Ok(one_read(bits_per_key, fpr))
}

/// [`predict`] for a filter that does not store keys which it matches already,
/// at `load` different keys per block.
///
/// At a rate of 2 % and less this is `predict` itself, at most 0.8 % above the
/// rate.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64);
/// let (all, once) =
///     (tinyset::predict(line, 100.0)?, tinyset::predict_once(line, 100.0)?);
/// assert!((all.fpr - 0.1400).abs() < 1e-4);
/// assert!((once.fpr - 0.1294).abs() < 1e-4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict_once(block: Block, load: f64) -> Result<Prediction> {
    let block = block.check()?;
    let all = predict(block, load)?;
    if all.fpr <= LEAST_FOR_ONCE {
        return Ok(all);
    }
    let load = Load::poisson(load);
    let fpr = load.expect(&once::rates(&block, load.max()));
    Ok(one_read(all.bits_per_key, fpr))
}

/// Rate from which on predictions count on keys that are not stored because
/// they match already. Below, they are worth at most 0.4 % of memory.
const LEAST_FOR_ONCE: f64 = 0.02;

/// Predicts a filter of `blocks` blocks, whose loads are binomial.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64);
/// // A single block has no imbalance.
/// let one = tinyset::predict_finite(line, 1, 40)?;
/// let many = tinyset::predict_finite(line, 1000, 40_000)?;
/// assert_eq!(one.fpr, line.fpr(40));
/// assert!(one.fpr < many.fpr);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict_finite(
    block: Block,
    blocks: u64,
    items: u64,
) -> Result<Prediction> {
    let block = block.check()?;
    let bits = block.block_bits;
    let bits_per_key = check::finite_bits_per_key(bits, blocks, items)?;
    let load = Load::binomial(items as f64, blocks);
    let fpr = mean(&load, |entries| block.fpr(entries));
    Ok(one_read(bits_per_key, fpr))
}

/// Finds the smallest memory that reaches a false-positive rate.
///
/// The rate is at most `target`, and `bits_per_key` is within 1e-12 of the
/// smallest with such a rate. Fails with [`Error::Unreachable`] if even nearly
/// empty blocks exceed `target`, because remainders have at most
/// [`Block::remainder_bits`] bits.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let p = tinyset::for_fpr(Block::new(512, 64), 0.01)?;
/// assert!((p.bits_per_key - 8.980).abs() < 5e-4);
/// assert!(p.fpr <= 0.01 && p.fpr > 0.00999999);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_fpr(block: Block, target: f64) -> Result<Prediction> {
    // The rate is 1 from `array_bits` + 1 entries on.
    least_memory(block, target, |block, most| {
        (0..=most).map(|entries| block.fpr(entries as u32)).collect()
    })
}

/// [`for_fpr`] for a filter that does not store keys which it matches
/// already: 5.5 % less memory at 30 %, 1.6 % at 10 %. At 2 % and less this is
/// `for_fpr` itself.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64);
/// let (all, once) =
///     (tinyset::for_fpr(line, 0.3)?, tinyset::for_fpr_once(line, 0.3)?);
/// assert!((all.bits_per_key - 4.051).abs() < 5e-4);
/// assert!((once.bits_per_key - 3.828).abs() < 5e-4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_fpr_once(block: Block, target: f64) -> Result<Prediction> {
    match target <= LEAST_FOR_ONCE {
        true => for_fpr(block, target),
        false => least_memory(block, target, once::rates),
    }
}

/// The smallest memory for a rate, given the rates of blocks by load.
fn least_memory(
    block: Block,
    target: f64,
    rates: impl FnOnce(&Block, usize) -> Vec<f64>,
) -> Result<Prediction> {
    let block = block.check()?;
    let target = check::target(target)?;
    let bits = f64::from(block.block_bits);
    let most = Load::poisson(bits / MIN_BITS_PER_KEY).max();
    let rates = rates(&block, most);
    let at = |bits_per_key: f64| {
        let fpr = Load::poisson(bits / bits_per_key).expect(&rates);
        one_read(bits_per_key, fpr)
    };
    search::least_memory(at, target)
}

/// The number of chains that needs the least memory, and its prediction.
///
/// Blocks with fewer keys have fewer chains: their bits go to longer
/// fingerprints.
///
/// ```
/// use tamis_theory::tinyset;
///
/// let (chains, p) = tinyset::best_chains(512, 0.01)?;
/// assert_eq!(chains, 92);
/// assert!((p.bits_per_key - 8.901).abs() < 5e-4);
/// assert_eq!(tinyset::best_chains(512, 0.001)?.0, 68);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best_chains(block_bits: u32, target: f64) -> Result<(u32, Prediction)> {
    Block::new(block_bits, 1).check()?;
    check::target(target)?;
    let most = block_bits.saturating_sub(2).max(1);
    // Memory has one minimum in `chains`: finer steps around the best.
    let mut step = (block_bits / 16).max(1);
    let (mut low, mut high) = (1, most);
    let mut best: Option<(u32, Prediction)> = None;
    let mut failure = Error::Unreachable {
        target,
        best: 1.0,
        bits_per_key: MAX_BITS_PER_KEY,
    };
    loop {
        let mut chains = low;
        while chains <= high {
            match for_fpr(Block::new(block_bits, chains), target) {
                Ok(found) => {
                    let less = |(_, p): &(u32, Prediction)| {
                        found.bits_per_key < p.bits_per_key
                    };
                    if best.as_ref().is_none_or(less) {
                        best = Some((chains, found));
                    }
                }
                Err(error) => failure = error,
            }
            chains += step;
        }
        let centre = best.map_or(1, |(chains, _)| chains);
        if step == 1 {
            return best.ok_or(failure);
        }
        low = centre.saturating_sub(step).max(1);
        high = (centre + step).min(most);
        step = step.div_ceil(8);
    }
}

/// Section 4.1: bits per key of one very large block, or of blocks with
/// equal loads, by keys per chain.
///
/// With one key per chain the index takes two bits of each key, and the total
/// is log2(1/`target`) + 2 if all fingerprints have one width. Fewer keys per
/// chain are better: the overhead is 1.914 bits at ln 2, because the index
/// distinguishes keys of two chains but not those of one.
///
/// ```
/// use tamis_theory::tinyset;
///
/// let target = 1.0 / 1024.0;
/// let one = tinyset::single_block(1.0, target)?;
/// let fewer = tinyset::single_block(core::f64::consts::LN_2, target)?;
/// assert!((one - 12.0).abs() < 0.01);
/// assert!(fewer > 11.91 && fewer < one);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn single_block(keys_per_chain: f64, target: f64) -> Result<f64> {
    let mean = check::in_range("keys_per_chain", keys_per_chain, 1e-3, 1e3)?;
    // Mean of the Poisson number of matches.
    let matches = -libm::log1p(-check::target(target)?);
    let base = libm::floor(libm::log2(mean / matches)).max(0.0);
    // `2 rest` is the share of entries with one more bit.
    let rest = 1.0 - matches * libm::exp2(base) / mean;
    Ok(1.0 / mean + 1.0 + base + (2.0 * rest).max(0.0))
}

/// Section 4.3: the sum of the chances of all entries, averaged over the
/// loads.
///
/// An upper bound on the rate of [`predict`]: 0.1 % above it at 1e-3, 4 % at
/// 0.06. Misprints of the paper: the binomial of 4.2 exchanges balls and bins,
/// and the second sum of 4.3 runs over the wrong loads. Entries that have S
/// bits with the extra bit are in blocks of base S - 1.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let bound = tinyset::union_bound(Block::new(512, 64), 40.0)?;
/// assert!((bound - 0.001010417).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn union_bound(block: Block, load: f64) -> Result<f64> {
    let block = block.check()?;
    let load = Load::poisson(check::load(load)?);
    Ok(mean(&load, |entries| block.union_bound(entries)))
}

/// Section 4.2: the rate of blocks whose entries all have the base width, so
/// that `A mod X` bits stay unused.
///
/// Exact, like [`predict`]; the paper gives the sum of chances.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let bound = tinyset::one_size(Block::new(512, 64), 40.0)?;
/// assert!((bound - 0.001426095).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn one_size(block: Block, load: f64) -> Result<f64> {
    let block = block.check()?;
    let load = Load::poisson(check::load(load)?);
    Ok(mean(&load, |entries| block.one_size(entries)))
}

/// Section 4.4: the decimal logarithm of the chance that one block gets more
/// than `limit` keys.
///
/// A filter of n blocks has such a block with at most n times that chance.
/// The paper's binomial tail has the mean in place of the number of all
/// keys.
///
/// ```
/// use tamis_theory::tinyset;
///
/// // In the paper: less than -13 and -23.
/// assert!((tinyset::overflow_tail(64.0, 127)? + 11.90).abs() < 0.01);
/// assert!((tinyset::overflow_tail(64.0, 255)? + 72.22).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn overflow_tail(load: f64, limit: u32) -> Result<f64> {
    let load = check::load(load)?;
    // Sums outwards from the largest term of the tail to avoid underflow.
    let first = f64::from(limit) + 1.0;
    let top = first.max(libm::floor(load));
    let mut sum = 1.0;
    let (mut i, mut chance) = (top, 1.0);
    while chance > 1e-20 {
        i += 1.0;
        chance *= load / i;
        sum += chance;
    }
    (i, chance) = (top, 1.0);
    while i > first && chance > 1e-20 {
        chance *= i / load;
        i -= 1.0;
        sum += chance;
    }
    let largest = top * libm::log(load) - load - libm::lgamma(top + 1.0);
    let log = (largest + libm::log(sum)) * core::f64::consts::LOG10_E;
    Ok(log.min(0.0))
}

fn mean(load: &Load, rate: impl Fn(u32) -> f64) -> f64 {
    let rates = load.chance.iter().enumerate().map(|(i, chance)| {
        // Loads are far below `u32::MAX`.
        chance * rate((load.first + i) as u32)
    });
    rates.sum()
}

fn one_read(bits_per_key: f64, fpr: f64) -> Prediction {
    // Rounding may put the sum above 1.
    let fpr = fpr.min(1.0);
    Prediction {
        bits_per_key,
        probes: 0,
        fpr,
        reads_hit: 1.0,
        reads_miss: 1.0,
    }
}

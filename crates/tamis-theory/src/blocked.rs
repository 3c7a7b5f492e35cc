//! The blocked Bloom filter: every key in one block, one read per lookup.
//!
//! The rate is exact, E[(X/B)^k] over the number X of set bits. Probes are
//! uniform, independent and may repeat.
//!
//! ```
//! use tamis_theory::blocked;
//!
//! assert!(blocked::best(512, 10.0)?.fpr < blocked::best(256, 10.0)?.fpr);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::load::Load;
use crate::search::{self, Family};
use crate::{Prediction, Result, check, checked, coverage};

/// Predicts a filter of many blocks, whose loads are Poisson with mean
/// `block_bits / bits_per_key`.
///
/// ```
/// let p = tamis_theory::blocked::predict(256, 40.0, 28)?;
/// assert!((p.fpr - 3.01892e-5).abs() < 1e-10);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(
    block_bits: u32,
    bits_per_key: f64,
    probes: u32,
) -> Result<Prediction> {
    checked::predict(&Blocked::new(block_bits)?, bits_per_key, probes)
}

/// Predicts a filter at its best number of probes.
///
/// Fewer than `bits_per_key` ln 2: the fullest blocks dominate the rate, and
/// their optimum has fewer probes.
///
/// ```
/// let p = tamis_theory::blocked::best(512, 40.0)?;
/// assert_eq!(p.probes, 16);
/// assert!((p.fpr - 7.6806e-7).abs() < 1e-11);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best(block_bits: u32, bits_per_key: f64) -> Result<Prediction> {
    checked::best(&Blocked::new(block_bits)?, bits_per_key)
}

/// Finds the smallest memory that reaches a false-positive rate.
///
/// The rate is at most `target`, and `bits_per_key` is within 1e-12 of the
/// smallest with such a rate. Fails with [`crate::Error::Unreachable`] if no
/// number of probes reaches it: the lowest rate of 64-bit blocks is 4.5e-9.
///
/// ```
/// let p = tamis_theory::blocked::for_fpr(512, 0.01)?;
/// assert!(p.fpr <= 0.01 && p.fpr > 0.00999999);
/// assert!((p.bits_per_key - 9.92).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_fpr(block_bits: u32, target: f64) -> Result<Prediction> {
    checked::for_fpr(&Blocked::new(block_bits)?, target)
}

/// Predicts a filter of `blocks` blocks, whose loads are binomial.
///
/// ```
/// use tamis_theory::blocked;
///
/// // A single block has no imbalance.
/// let one = blocked::predict_finite(512, 1, 51, 6)?;
/// let many = blocked::predict_finite(512, 1000, 51_000, 6)?;
/// assert!(one.fpr < many.fpr);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict_finite(
    block_bits: u32,
    blocks: u64,
    items: u64,
    probes: u32,
) -> Result<Prediction> {
    let block_bits = check::block_bits(block_bits)?;
    let bits_per_key = check::finite_bits_per_key(block_bits, blocks, items)?;
    let probes = check::probes(probes, 1)?;
    let load = Load::binomial(items as f64, blocks);
    let fpr = load.expect(&coverage::by_items(block_bits, probes, load.max()));
    Ok(one_read(bits_per_key, probes, fpr))
}

/// The rate of a block with Poisson arrivals; the caller checks the range.
pub(crate) fn rate(block_bits: u32, arrivals: f64, probes: u32) -> f64 {
    let load = Load::poisson(arrivals);
    load.expect(&coverage::by_items(block_bits, probes, load.max()))
}

struct Blocked {
    block_bits: u32,
}

impl Blocked {
    fn new(block_bits: u32) -> Result<Self> {
        Ok(Blocked { block_bits: check::block_bits(block_bits)? })
    }

    fn load(&self, bits_per_key: f64) -> Load {
        Load::poisson(f64::from(self.block_bits) / bits_per_key)
    }
}

impl Family for Blocked {
    type Table = Vec<f64>;

    fn effective_probes(&self, probes: u32) -> f64 {
        search::distinct_cells(self.block_bits, probes)
    }

    fn table(&self, probes: u32, least_bits_per_key: f64) -> Vec<f64> {
        let most = self.load(least_bits_per_key).max();
        coverage::by_items(self.block_bits, probes, most)
    }

    fn predict(
        &self,
        table: &Vec<f64>,
        probes: u32,
        bits_per_key: f64,
    ) -> Prediction {
        let fpr = self.load(bits_per_key).expect(table);
        one_read(bits_per_key, probes, fpr)
    }
}

fn one_read(bits_per_key: f64, probes: u32, fpr: f64) -> Prediction {
    // Rounding may put the sum above 1.
    let fpr = fpr.min(1.0);
    Prediction { bits_per_key, probes, fpr, reads_hit: 1.0, reads_miss: 1.0 }
}

//! The split Bloom filter: half of a key's bits in each of two blocks.
//!
//! The first block gets ceil(k/2) positions and the second floor(k/2); both
//! blocks are in the same array. The second is read only if all bits in the
//! first are set, which is rare for a non-member. A block holds Poisson(r)
//! first halves and Poisson(r) second halves, r = `block_bits` /
//! `bits_per_key`.
//!
//! ```
//! use tamis_theory::{blocked, split};
//!
//! assert!(split::best(512, 20.0)?.fpr < 0.5 * blocked::best(512, 20.0)?.fpr);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::load::{Load, mean_over_throws};
use crate::search::{self, Family};
use crate::{Prediction, Result, check, checked, coverage};

/// Predicts a filter of many blocks. `probes` is the total over both.
///
/// FPR = E[(X/B)^k1] E[(X/B)^k2], `reads_miss` = 1 + E[(X/B)^k1].
///
/// ```
/// let p = tamis_theory::split::predict(512, 10.0, 7)?;
/// assert!((p.fpr - 0.0084896).abs() < 1e-7);
/// assert!((p.reads_miss - 1.0658).abs() < 1e-4);
/// assert_eq!(p.reads_hit, 2.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(
    block_bits: u32,
    bits_per_key: f64,
    probes: u32,
) -> Result<Prediction> {
    checked::predict(&Split::new(block_bits)?, bits_per_key, probes)
}

/// Predicts a filter at its best number of probes.
///
/// ```
/// let p = tamis_theory::split::best(512, 40.0)?;
/// assert_eq!(p.probes, 22);
/// assert!((p.fpr - 3.9137e-8).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best(block_bits: u32, bits_per_key: f64) -> Result<Prediction> {
    checked::best(&Split::new(block_bits)?, bits_per_key)
}

/// Finds the smallest memory that reaches a false-positive rate.
///
/// The rate is at most `target`, and `bits_per_key` is within 1e-12 of the
/// smallest with such a rate. Fails with [`crate::Error::Unreachable`] if no
/// number of probes reaches it.
///
/// ```
/// let p = tamis_theory::split::for_fpr(512, 1e-6)?;
/// assert!(p.fpr <= 1e-6);
/// assert!((p.bits_per_key - 31.1).abs() < 0.1);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_fpr(block_bits: u32, target: f64) -> Result<Prediction> {
    checked::for_fpr(&Split::new(block_bits)?, target)
}

/// Predicts a filter of `blocks` blocks, whose loads are binomial.
///
/// First and second halves are modelled as independent, which ignores only
/// that the two blocks of a key differ.
///
/// ```
/// use tamis_theory::split;
///
/// let few = split::predict_finite(512, 64, 3264, 8)?;
/// let many = split::predict(512, few.bits_per_key, 8)?;
/// assert!(few.fpr < many.fpr && few.fpr > 0.9 * many.fpr);
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
    let probes = check::probes(probes, Split::MIN_PROBES)?;
    let halves = halves(probes);
    let load = Load::binomial(items as f64, blocks);
    let throws = load.max() * probes as usize;
    let table = coverage::by_throws(block_bits, halves, throws);
    let mut pass = [0.0; 2];
    let [first, second] = halves.map(|k| k as usize);
    for (i, one) in load.chance.iter().enumerate() {
        let from_first = first * (load.first + i);
        for (j, other) in load.chance.iter().enumerate() {
            let chance = one * other;
            let value = table[from_first + second * (load.first + j)];
            pass[0] += chance * value[0];
            pass[1] += chance * value[1];
        }
    }
    Ok(two_reads(bits_per_key, probes, pass))
}

fn halves(probes: u32) -> [u32; 2] {
    [probes.div_ceil(2), probes / 2]
}

struct Split {
    block_bits: u32,
}

impl Split {
    fn new(block_bits: u32) -> Result<Self> {
        Ok(Split { block_bits: check::block_bits(block_bits)? })
    }

    fn load(&self, bits_per_key: f64) -> f64 {
        f64::from(self.block_bits) / bits_per_key
    }
}

impl Family for Split {
    /// At least one bit in each block.
    const MIN_PROBES: u32 = 2;
    type Table = Vec<[f64; 2]>;

    fn effective_probes(&self, probes: u32) -> f64 {
        halves(probes)
            .map(|k| search::distinct_cells(self.block_bits, k))
            .iter()
            .sum()
    }

    fn table(&self, probes: u32, least_bits_per_key: f64) -> Self::Table {
        let halves = halves(probes);
        let most = Load::poisson(2.0 * self.load(least_bits_per_key)).max();
        let throws = most * halves[0] as usize;
        coverage::by_throws(self.block_bits, halves, throws)
    }

    fn predict(
        &self,
        table: &Self::Table,
        probes: u32,
        bits_per_key: f64,
    ) -> Prediction {
        let load = self.load(bits_per_key);
        let pass = mean_over_throws(load, halves(probes), table);
        two_reads(bits_per_key, probes, pass)
    }
}

fn two_reads(bits_per_key: f64, probes: u32, pass: [f64; 2]) -> Prediction {
    // Rounding may put the sums above 1.
    let pass = pass.map(|chance| chance.min(1.0));
    Prediction {
        bits_per_key,
        probes,
        fpr: pass[0] * pass[1],
        reads_hit: 2.0,
        reads_miss: 1.0 + pass[0],
    }
}

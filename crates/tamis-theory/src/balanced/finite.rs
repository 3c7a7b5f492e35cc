//! A balanced filter without a list whose blocks and keys are counted.
//!
//! [`absorbing`](super::absorbing) is the limit of many blocks. With few
//! blocks, arrivals at a block of the first level are binomial, and the
//! number of keys that reach a later level varies. A lookup that goes on has
//! met a crowded block, so that number is followed along the path of a
//! lookup: by its mean and variance, which are exact up to terms of second
//! order in 1/blocks, and a law that is nearly normal. Rates of designs above
//! 1e-6 agree with simulations to 2 %. Lower rates, and those of a last level
//! with far more keys per block than the others, are dominated by rare sets of
//! keys; predictions of 1e-8 are up to 10 % too low, of such levels by half.
//!
//! ```
//! use tamis_theory::balanced::absorbing::{self, Refuse};
//! use tamis_theory::balanced::finite;
//!
//! let refuse = Refuse::Popcount(250);
//! let few = finite::predict(400, 512, &[16, 2, 1], refuse, 16, 16)?;
//! assert!(few.fpr > 2.3e-5 && few.fpr < 2.4e-5);
//!
//! let many = [1_600_000, 200_000, 100_000];
//! let many = finite::predict(40_000_000, 512, &many, refuse, 16, 16)?;
//! let shares = [16.0 / 19.0, 2.0 / 19.0, 1.0 / 19.0];
//! let limit = absorbing::predict(512, 24.32, &shares, refuse, 16, 16)?;
//! assert!((many.fpr / limit.prediction.fpr - 1.0).abs() < 1e-4);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use super::absorbing::Refuse;
use super::refuser::Passed;
use super::{Refuser, bits_to_count, payload_bits};
use crate::load::Load;
use crate::poisson::sums_above;
use crate::{Error, Prediction, Result, check, coverage};

/// Predicts a filter with `items` keys; `levels` are the blocks of each level.
///
/// One level is a blocked filter.
///
/// ```
/// use tamis_theory::balanced::{absorbing::Refuse, finite};
/// use tamis_theory::blocked;
///
/// let one = finite::predict(90, 512, &[4], Refuse::Popcount(250), 12, 8)?;
/// assert_eq!(one, blocked::predict_finite(512, 4, 90, 12)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(
    items: u64,
    block_bits: u32,
    levels: &[u64],
    refuse: Refuse,
    probes: u32,
    tracking_bits: u32,
) -> Result<Prediction> {
    let block_bits = check::block_bits(block_bits)?;
    let probes = check::probes(probes, 1)?;
    let counter_bits = match refuse {
        Refuse::Counter(threshold) => bits_to_count(threshold),
        Refuse::BuildCounter(_) | Refuse::Popcount(_) => 0,
    };
    let payload_bits = payload_bits(block_bits, counter_bits, tracking_bits)?;
    let mut filter = Finite::new(block_bits, probes, tracking_bits);
    let refuser = |most| match refuse {
        Refuse::Counter(h) | Refuse::BuildCounter(h) => {
            Ok(Refuser::at_load(payload_bits, probes, check::threshold(h)?))
        }
        Refuse::Popcount(set_bits) => {
            Ok(Refuser::at_popcount(payload_bits, probes, set_bits, most))
        }
    };
    // Later levels may have more arrivals than the first.
    let first = levels.first().copied().unwrap_or(1).max(1);
    let mut covered = arrivals(items as f64, first)?.max();
    loop {
        let found = filter.predict(items, levels, &refuser(covered)?)?;
        if filter.most <= covered {
            return Ok(found);
        }
        covered = filter.most + filter.most / 8;
    }
}

/// Filters that differ in their levels and in the rule by which the blocks of
/// all levels but the last refuse.
pub(crate) struct Finite {
    block_bits: u32,
    probes: u32,
    tracking_bits: u32,
    /// Rates of a block of the last level by its keys.
    rates: Vec<f64>,
    /// Most arrivals at a refusing block so far, but for negligible chances.
    most: usize,
}

impl Finite {
    pub(crate) fn new(
        block_bits: u32,
        probes: u32,
        tracking_bits: u32,
    ) -> Self {
        Self { block_bits, probes, tracking_bits, rates: Vec::new(), most: 0 }
    }

    pub(crate) fn predict(
        &mut self,
        items: u64,
        levels: &[u64],
        block: &Refuser,
    ) -> Result<Prediction> {
        let sum = levels.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
        let (Some(blocks), Some((&last, refusing)), false) =
            (sum, levels.split_last(), levels.contains(&0))
        else {
            return Err(Error::LevelShares { levels: levels.len(), sum: 0.0 });
        };
        let bits_per_key =
            check::finite_bits_per_key(self.block_bits, blocks, items)?;
        let all = items as f64;
        let mut walk = (0.0, 0.0, 1.0);
        let (mut reads_hit, mut arriving) = (0.0, all);
        let mut keys = Keys::exactly(all);
        for &blocks in refusing {
            let (fpr, reads, reach) = walk;
            let level = Level { blocks, block, classes: self.tracking_bits };
            let most = keys.points.iter().map(|(_, keys)| *keys);
            let most = arrivals(most.fold(0.0, f64::max), blocks)?.max();
            self.most = self.most.max(most);
            let (maybe, passed, next) = level.follow(&keys)?;
            walk = (fpr + reach * maybe, reads + reach, reach * passed);
            reads_hit += arriving / all;
            arriving = level.refused(arriving)?;
            keys = next;
        }
        let (fpr, reads, reach) = walk;
        let fpr = fpr + reach * self.last(&keys, last)?;
        Ok(Prediction {
            bits_per_key,
            probes: self.probes,
            fpr: fpr.min(1.0),
            reads_hit: reads_hit + arriving / all,
            reads_miss: reads + reach,
        })
    }

    /// The rate of the last level.
    fn last(&mut self, keys: &Keys, blocks: u64) -> Result<f64> {
        let mut rate = 0.0;
        for &(weight, keys) in &keys.points {
            let load = arrivals(keys, blocks)?;
            if load.max() >= self.rates.len() {
                let most = load.max() + load.max() / 4;
                self.rates =
                    coverage::by_items(self.block_bits, self.probes, most);
            }
            rate += weight * load.expect(&self.rates);
        }
        Ok(rate)
    }
}

/// The number of keys that reach a level, where a lookup reaches it.
struct Keys {
    /// Weights, whose sum is 1, and numbers.
    points: Vec<(f64, f64)>,
}

impl Keys {
    fn exactly(keys: f64) -> Self {
        Self { points: alloc::vec![(1.0, keys)] }
    }

    /// Nearly normal, as skewed as Poisson numbers of the same coefficient of
    /// variation. The trapezoidal rule is exact to 1e-3 at this spacing; the
    /// rate rises fast, so that it covers more of the upper tail.
    fn normal(mean: f64, variance: f64) -> Self {
        const SPACING: f64 = 1.5;
        let deviation = libm::sqrt(variance.max(0.0));
        if mean <= 0.0 || deviation < 1e-6 * mean {
            return Self::exactly(mean.max(0.0));
        }
        let skew = deviation / mean;
        let point = |i: i32| {
            let x = SPACING * f64::from(i);
            let keys = x + skew * (x * x - 1.0) / 6.0;
            (libm::exp(-0.5 * x * x), (mean + deviation * keys).max(0.0))
        };
        let mut points: Vec<(f64, f64)> = (-3..=5).map(point).collect();
        let sum: f64 = points.iter().map(|(weight, _)| weight).sum();
        for (weight, _) in &mut points {
            *weight /= sum;
        }
        Self { points }
    }
}

/// Arrivals at one of `blocks` blocks.
fn arrivals(keys: f64, blocks: u64) -> Result<Load> {
    check::arrivals(keys / blocks as f64)?;
    Ok(Load::binomial(keys, blocks))
}

/// A level whose blocks refuse.
struct Level<'a> {
    blocks: u64,
    block: &'a Refuser,
    /// Tracking bits of a block.
    classes: u32,
}

impl Level<'_> {
    /// The keys it refuses.
    fn refused(&self, keys: f64) -> Result<f64> {
        let chances = arrivals(keys, self.blocks)?.dense();
        let outcome = self.block.outcome(&chances, self.classes);
        Ok(self.blocks as f64 * outcome.refused)
    }

    /// The chances that a lookup ends here with "maybe" and that it goes on,
    /// and the keys that reach the next level where it does.
    fn follow(&self, keys: &Keys) -> Result<(f64, f64, Keys)> {
        let (mut maybe, mut passed) = (0.0, 0.0);
        let (mut mean, mut square) = (0.0, 0.0);
        for &(weight, keys) in &keys.points {
            let chances = arrivals(keys, self.blocks)?.dense();
            let outcome = self.block.outcome(&chances, self.classes);
            maybe += weight * outcome.maybe;
            // Sums over blocks that a lookup passes.
            let here = self.block.passed(&chances, self.classes);
            let chance = weight * here.chance;
            if chance <= 0.0 {
                continue;
            }
            passed += chance;
            let rest = self.rest(keys - here.arrived)?;
            let (refused, spread) = here.beyond(rest.slope);
            let next = refused + rest.mean;
            mean += chance * next;
            square += chance * (spread + rest.variance + next * next);
        }
        if passed <= 0.0 {
            return Ok((maybe, 0.0, Keys::exactly(0.0)));
        }
        let (mean, square) = (mean / passed, square / passed);
        Ok((maybe, passed, Keys::normal(mean, square - mean * mean)))
    }

    /// The keys that all blocks but one refuse of those that arrive at them.
    fn rest(&self, keys: f64) -> Result<Rest> {
        let blocks = self.blocks - 1;
        if blocks == 0 || keys <= 0.0 {
            return Ok(Rest { mean: 0.0, slope: 0.0, variance: 0.0 });
        }
        let chances = arrivals(keys, blocks)?.dense();
        let (tails, excesses) = sums_above(&chances);
        let (n, block) = (blocks as f64, self.block);
        let arrived = keys / n;
        let refused = block.mean(&excesses);
        // E[((N-i)^+)^2] = 2 sum of E(N-j)^+ over j >= i, less E(N-i)^+.
        let mut above = 0.0;
        let mut squares = excesses.clone();
        for square in squares.iter_mut().rev() {
            above += *square;
            *square = 2.0 * above - *square;
        }
        let products = (0..).zip(squares.iter().zip(&excesses));
        let products: Vec<f64> = products
            .map(|(i, (square, excess))| square + f64::from(i) * excess)
            .collect();
        let variance = block.mean(&squares) - refused * refused;
        let covariance = block.mean(&products) - refused * arrived;
        // The numbers of arrivals at all blocks have a fixed sum.
        let spread = arrived * (1.0 - 1.0 / n);
        let explained = match blocks {
            1 => 0.0,
            _ => covariance * covariance / spread,
        };
        Ok(Rest {
            mean: n * refused,
            slope: block.mean(&tails),
            variance: n * (variance - explained).max(0.0),
        })
    }
}

/// Keys refused by the blocks that a lookup does not read.
struct Rest {
    mean: f64,
    /// More refused keys per key that arrives.
    slope: f64,
    variance: f64,
}

impl Passed {
    /// Mean and variance of the keys that the block refuses, less `slope`
    /// times the keys that arrive at it beyond their mean: those do not arrive
    /// elsewhere.
    fn beyond(&self, slope: f64) -> (f64, f64) {
        let [refused, cross, arrived] = self.covariances;
        let spread = refused + slope * (slope * arrived - 2.0 * cross);
        (self.refused, spread.max(0.0))
    }
}

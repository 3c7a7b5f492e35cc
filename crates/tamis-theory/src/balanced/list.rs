//! Balanced filters whose refused keys go to an overflow list.
//!
//! As in section 9.1 of the paper, which leaves out counters and reads. A
//! block of `block_bits` spends ceil(log2(k0+2)) bits on its counter, and
//! the bits of [`Lookup::Tracking`] on tracking. A non-member goes on past a block
//! with chance F and reads E(P) = 1+F+...+F^(d-1) of them, which the paper
//! never states. `bits_per_key` counts the blocks, not the list: an entry of
//! 64 bits per listed key adds 0.32 bits per key at an overflow of 0.5 %.
//!
//! ```
//! use tamis_theory::balanced::{Lookup, list};
//!
//! let scheme = list::Scheme::Sequential { access_budget: 1.1, choices: 3 };
//! let p = list::best(512, 24.0, scheme, Lookup::Tracking(8))?;
//! assert!(p.prediction.reads_miss < 1.5 && p.overflow_fraction > 0.0);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use super::{Lookup, Stage, Walk, best_probes, bits_to_count, payload_bits};
use crate::single::Refusal;
use crate::{
    Distribution, Prediction, Result, block, blocked, check, multilevel,
    sequential, single,
};

/// Which scheme places the keys, at the boundary of its optimality region.
///
/// ```
/// use tamis_theory::balanced::{Lookup, list};
///
/// let one = list::Scheme::Single { overflow_fraction: 0.005 };
/// let p = list::best(512, 24.0, one, Lookup::Plain)?;
/// assert_eq!(p.prediction.reads_miss, 1.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheme {
    /// One block per key.
    Single {
        /// Share of keys in the list.
        overflow_fraction: f64,
    },
    /// Several blocks of one array.
    Sequential {
        /// Average blocks read per insertion.
        access_budget: f64,
        /// Blocks proposed per key.
        choices: u32,
    },
    /// One block in each of several levels.
    Multilevel {
        /// Average blocks read per insertion.
        access_budget: f64,
        /// Levels.
        choices: u32,
    },
}

/// Prediction for a filter with a list.
///
/// ```
/// use tamis_theory::balanced::{Lookup, list};
///
/// let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
/// let p = list::predict(256, 40.0, scheme, Lookup::Plain, 28)?;
/// assert_eq!((p.threshold, p.counter_bits), (Some(7), 4));
/// assert!((p.summed.fpr - 2.13579e-7).abs() < 1e-12);
/// assert!((p.approximate_fpr - 1.39146e-7).abs() < 1e-12);
/// assert!((p.summed.reads_miss - 2.06332).abs() < 1e-5);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Rates and reads of a lookup that stops at the first "maybe".
    pub prediction: Prediction,
    /// Chance that a non-member consults the list.
    pub list_reads: f64,
    /// The paper's sums, E(P) and E(P) FPR, of a lookup that continues past
    /// a full block even after a "maybe". The difference matters below 10
    /// bits per key.
    pub summed: Prediction,
    /// Chance that such a lookup consults the list.
    pub summed_list_reads: f64,
    /// The paper's false-positive rate, from the approximation
    /// (1-e^{-ki/B})^k.
    pub approximate_fpr: f64,
    /// Chance that one block makes a non-member go on.
    pub go_on: f64,
    /// Share of keys in the list.
    pub overflow_fraction: f64,
    /// A block below it takes every key; none if no block refuses any.
    pub threshold: Option<u32>,
    /// Chance that a block exactly at the threshold takes one more.
    pub admission: f64,
    /// Bits of each block that count its keys.
    pub counter_bits: u32,
    /// Bits of each block left for the filter.
    pub payload_bits: u32,
    /// Loads of the blocks.
    pub distribution: Distribution,
}

/// Predicts a filter with a given number of probes.
///
/// ```
/// use tamis_theory::balanced::{Lookup, list};
///
/// let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
/// let p = list::predict(512, 8.0, scheme, Lookup::Plain, 6)?;
/// assert!((p.summed.reads_miss - 2.859).abs() < 1e-3);
/// assert!((p.prediction.reads_miss - 2.795).abs() < 1e-3);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(
    block_bits: u32,
    bits_per_key: f64,
    scheme: Scheme,
    lookup: Lookup,
    probes: u32,
) -> Result<Listed> {
    let design = Design::new(block_bits, bits_per_key, scheme, lookup)?;
    design.predict(check::probes(probes, 1)?)
}

/// Predicts a filter at its best number of probes.
///
/// ```
/// use tamis_theory::balanced::{Lookup, list};
///
/// let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
/// let p = list::best(256, 40.0, scheme, Lookup::Plain)?;
/// assert_eq!(p.prediction.probes, 22);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best(
    block_bits: u32,
    bits_per_key: f64,
    scheme: Scheme,
    lookup: Lookup,
) -> Result<Listed> {
    let design = Design::new(block_bits, bits_per_key, scheme, lookup)?;
    design.predict(best_probes(bits_per_key, |probes| {
        Ok(design.predict(probes)?.prediction.fpr)
    })?)
}

struct Design {
    block_bits: u32,
    bits_per_key: f64,
    lookup: Lookup,
    choices: u32,
    access_budget: f64,
    overflow_fraction: f64,
    refusal: Option<Refusal>,
}

impl Design {
    fn new(
        block_bits: u32,
        bits_per_key: f64,
        scheme: Scheme,
        lookup: Lookup,
    ) -> Result<Self> {
        let block_bits = check::block_bits(block_bits)?;
        let bits_per_key = check::bits_per_key(bits_per_key)?;
        lookup.tracking_bits()?;
        let load = f64::from(block_bits) / bits_per_key;
        let (access_budget, choices, overflow_fraction, threshold, admission);
        match scheme {
            Scheme::Single { overflow_fraction: overflow } => {
                let bound = single::optimal(load, overflow)?;
                (access_budget, choices) = (1.0, 1);
                overflow_fraction = overflow;
                (threshold, admission) =
                    (bound.threshold(), bound.admission());
            }
            Scheme::Sequential { access_budget: budget, choices: d } => {
                let run = sequential::optimal(budget, load, d)?;
                (access_budget, choices) = (budget, d);
                overflow_fraction = run.overflow_fraction;
                (threshold, admission) = (run.threshold, run.admission);
            }
            Scheme::Multilevel { access_budget: budget, choices: d } => {
                let (levels, bound) = multilevel::optimal(budget, load, d)?;
                (access_budget, choices) = (budget, d);
                overflow_fraction = levels.overflow_fraction;
                (threshold, admission) =
                    (bound.threshold(), bound.admission());
            }
        }
        let arrivals = access_budget * load;
        let refusal = threshold
            .map(|threshold| Refusal::new(arrivals, threshold, admission))
            .transpose()?;
        Ok(Design {
            block_bits,
            bits_per_key,
            lookup,
            choices,
            access_budget,
            overflow_fraction,
            refusal,
        })
    }

    fn predict(&self, probes: u32) -> Result<Listed> {
        let Some(refusal) = &self.refusal else {
            return self.never_refuses(probes);
        };
        let threshold = refusal.threshold();
        let counter_bits = bits_to_count(threshold as u32 + 1);
        let tracking_bits = self.lookup.tracking_bits()?;
        let payload_bits =
            payload_bits(self.block_bits, counter_bits, tracking_bits)?;
        let rate = block::exact(payload_bits, probes, threshold as u32 + 1)?;
        let distribution = refusal.distribution();
        let shares = distribution.as_slice();
        let at = [threshold, threshold + 1];
        let go_on = match self.lookup {
            // With an admission of one, a block at the threshold takes
            // every key and stops every lookup.
            Lookup::Plain if refusal.admission() < 1.0 => {
                at.map(|i| shares[i])
            }
            Lookup::Plain | Lookup::Coin => {
                [(1.0 - refusal.admission()) * shares[at[0]], shares[at[1]]]
            }
            Lookup::Tracking(classes) => refusal.tracked(classes),
        };
        let stage = Stage {
            maybe: distribution.cost(|i| rate[i]),
            go_on: go_on[0] + go_on[1],
            passed: go_on[0] * (1.0 - rate[at[0]])
                + go_on[1] * (1.0 - rate[at[1]]),
        };
        let path = || core::iter::repeat_n(stage, self.choices as usize);
        let (exact, summed) = (Walk::exact(path()), Walk::summed(path()));
        let approximate = distribution
            .cost(|i| block::averaged(payload_bits, probes, i as f64));
        let prediction = |walk: Walk| Prediction {
            bits_per_key: self.bits_per_key,
            probes,
            fpr: walk.fpr,
            reads_hit: self.access_budget,
            reads_miss: walk.reads,
        };
        Ok(Listed {
            prediction: prediction(exact),
            list_reads: exact.beyond,
            summed: prediction(summed),
            summed_list_reads: summed.beyond,
            approximate_fpr: summed.reads * approximate,
            go_on: stage.go_on,
            overflow_fraction: self.overflow_fraction,
            threshold: Some(threshold as u32),
            admission: refusal.admission(),
            counter_bits,
            payload_bits,
            distribution,
        })
    }

    /// A blocked filter: without a threshold a block needs neither counter
    /// nor tracking bits.
    fn never_refuses(&self, probes: u32) -> Result<Listed> {
        let (bits, beta) = (self.block_bits, self.bits_per_key);
        let prediction = blocked::predict(bits, beta, probes)?;
        let bound = single::optimal(f64::from(bits) / beta, 0.0)?;
        let distribution = bound.distribution().clone();
        let approximate_fpr =
            distribution.cost(|i| block::averaged(bits, probes, i as f64));
        Ok(Listed {
            prediction,
            list_reads: 0.0,
            summed: prediction,
            summed_list_reads: 0.0,
            approximate_fpr,
            go_on: 0.0,
            overflow_fraction: 0.0,
            threshold: None,
            admission: 1.0,
            counter_bits: 0,
            payload_bits: bits,
            distribution,
        })
    }
}

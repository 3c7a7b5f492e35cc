//! Balanced filters without a list: a key that every block refused goes into
//! one of them after all.
//!
//! Section 9.2 of the paper takes one of the d at random. Back into the
//! first is far better: the last level has few blocks, and a third of all
//! refused keys overloads it. At 40 bits per key, 256-bit blocks and 1.2
//! reads per key, the rate grows by a factor 1.24 with the first, 8 at
//! random, 300 with the last. Counters must saturate: loads now exceed
//! the threshold by more than one.
//!
//! Whether a key comes back to a block depends on how full the later levels
//! are at that moment, so the loads follow differential equations: (A.5)
//! with one more transition up from the threshold.
//!
//! ```
//! use tamis_theory::balanced::{Lookup, returned};
//!
//! let place = returned::Place::First;
//! let p = returned::best(256, 24.0, 1.1, 3, place, Lookup::Plain)?;
//! assert!(p.prediction.reads_hit < p.access_budget);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;
use core::ops::Range;

use super::{Lookup, Stage, Walk, best_probes, bits_to_count, payload_bits};
use crate::{
    Distribution, Prediction, Result, block, blocked, check, multilevel, ode,
};

/// Which of its blocks takes a key that all of them refused.
///
/// ```
/// use tamis_theory::balanced::{Lookup, returned};
///
/// let fpr = |place| -> tamis_theory::Result<f64> {
///     let p = returned::predict(
///         256, 40.0, 1.2, 3, place, Lookup::Plain, 28,
///     )?;
///     Ok(p.prediction.fpr)
/// };
/// assert!(5.0 * fpr(returned::Place::First)? < fpr(returned::Place::Random)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The one in the first level, where every lookup begins.
    First,
    /// Any of them, with equal chances.
    Random,
    /// The one in the last level.
    Last,
}

/// Prediction for a filter whose refused keys return to a block.
///
/// ```
/// use tamis_theory::balanced::{Lookup, returned};
///
/// let p = returned::predict(
///     256, 40.0, 1.2, 3, returned::Place::First, Lookup::Plain, 28,
/// )?;
/// assert!((p.returned_fraction - 0.005).abs() < 1e-3);
/// assert!(p.distributions[0].at_least(9) > 0.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// Rates and reads.
    pub prediction: Prediction,
    /// Average blocks read per insertion.
    pub access_budget: f64,
    /// Share of keys that all blocks refused.
    pub returned_fraction: f64,
    /// A block below it takes every key; none if no block refuses any.
    pub threshold: Option<u32>,
    /// Chance that a block exactly at the threshold takes one more.
    pub admission: f64,
    /// Share of blocks in each level.
    pub level_shares: Vec<f64>,
    /// Bits of each block that count its keys.
    pub counter_bits: u32,
    /// Bits of each block left for the filter.
    pub payload_bits: u32,
    /// Loads of each level.
    pub distributions: Vec<Distribution>,
}

/// Predicts a filter with the levels, threshold and admission of
/// [`multilevel::optimal`].
///
/// With tracking bits, a block marks the keys it refused that ended in a
/// later block; those that came back to it or to an earlier one are found
/// there.
///
/// ```
/// use tamis_theory::balanced::{Lookup, list, returned};
///
/// let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
/// let with_list = list::predict(512, 40.0, scheme, Lookup::Plain, 28)?;
/// let without = returned::predict(
///     512, 40.0, 1.2, 3, returned::Place::First, Lookup::Plain, 28,
/// )?;
/// let price = without.prediction.fpr / with_list.prediction.fpr;
/// assert!(price > 1.05 && price < 1.25);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(
    block_bits: u32,
    bits_per_key: f64,
    access_budget: f64,
    choices: u32,
    place: Place,
    lookup: Lookup,
    probes: u32,
) -> Result<Returned> {
    let probes = check::probes(probes, 1)?;
    let memory = (block_bits, bits_per_key);
    let scheme = (access_budget, choices);
    Filter::new(memory, scheme, place, lookup)?.predict(probes)
}

/// Predicts a filter at its best number of probes.
///
/// ```
/// use tamis_theory::balanced::{Lookup, returned};
///
/// let p = returned::best(
///     512, 24.0, 1.2, 3, returned::Place::First, Lookup::Tracking(8),
/// )?;
/// assert!(p.prediction.reads_miss < 1.55);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best(
    block_bits: u32,
    bits_per_key: f64,
    access_budget: f64,
    choices: u32,
    place: Place,
    lookup: Lookup,
) -> Result<Returned> {
    let memory = (block_bits, bits_per_key);
    let scheme = (access_budget, choices);
    let filter = Filter::new(memory, scheme, place, lookup)?;
    filter.predict(best_probes(bits_per_key, |probes| {
        Ok(filter.predict(probes)?.prediction.fpr)
    })?)
}

/// Everything that does not depend on the number of probes.
struct Filter {
    block_bits: u32,
    bits_per_key: f64,
    lookup: Lookup,
    threshold: Option<u32>,
    admission: f64,
    level_shares: Vec<f64>,
    access_budget: f64,
    reads_hit: f64,
    returned_fraction: f64,
    levels: Vec<Level>,
}

/// Shares of the blocks of one level, by load, without and with a mark in
/// the class of a given lookup.
struct Level {
    clean: Vec<f64>,
    marked: Vec<f64>,
}

impl Filter {
    fn new(
        (block_bits, bits_per_key): (u32, f64),
        (access_budget, choices): (f64, u32),
        place: Place,
        lookup: Lookup,
    ) -> Result<Self> {
        let block_bits = check::block_bits(block_bits)?;
        let bits_per_key = check::bits_per_key(bits_per_key)?;
        let load = f64::from(block_bits) / bits_per_key;
        // Fuller blocks would need very many equations.
        check::in_range("load", load, 0.0, 1000.0)?;
        let (shares, bound) =
            multilevel::optimal(access_budget, load, choices)?;
        let classes = lookup.tracking_bits()?;
        let mut filter = Filter {
            block_bits,
            bits_per_key,
            lookup,
            threshold: bound.threshold(),
            admission: bound.admission(),
            level_shares: shares.level_shares,
            access_budget: 1.0,
            reads_hit: 1.0,
            returned_fraction: 0.0,
            levels: Vec::new(),
        };
        if let Some(threshold) = bound.threshold() {
            let flow = Flow {
                load,
                h: threshold as usize,
                p: bound.admission(),
                shares: &filter.level_shares,
                place,
                mark: if classes > 0 { 1.0 / f64::from(classes) } else { 0.0 },
            };
            let end = flow.follow(shares.overflow_fraction)?;
            filter.access_budget = end.access_budget;
            filter.reads_hit = end.reads_hit;
            filter.returned_fraction = end.returned_fraction;
            filter.levels = end.levels;
        }
        Ok(filter)
    }

    fn predict(&self, probes: u32) -> Result<Returned> {
        let Some(threshold) = self.threshold else {
            return self.never_refuses(probes);
        };
        let counter_bits = bits_to_count(threshold + 1);
        let tracking_bits = self.lookup.tracking_bits()?;
        let payload_bits =
            payload_bits(self.block_bits, counter_bits, tracking_bits)?;
        let most = self.levels.iter().map(|l| l.clean.len()).max();
        let most = most.unwrap_or(1) as u32 - 1;
        let rate = block::exact(payload_bits, probes, most)?;
        let h = threshold as usize;
        let stages = self.levels.iter().map(|level| {
            let mut stage = Stage { maybe: 0.0, go_on: 0.0, passed: 0.0 };
            for (i, rate) in rate.iter().take(level.clean.len()).enumerate() {
                let share = level.clean[i] + level.marked[i];
                let go_on = match self.lookup {
                    Lookup::Tracking(_) => level.marked[i],
                    Lookup::Coin if i == h => (1.0 - self.admission) * share,
                    Lookup::Plain if i == h && self.admission >= 1.0 => 0.0,
                    Lookup::Plain | Lookup::Coin if i >= h => share,
                    Lookup::Plain | Lookup::Coin => 0.0,
                };
                stage.maybe += share * rate;
                stage.go_on += go_on;
                stage.passed += go_on * (1.0 - rate);
            }
            stage
        });
        let walk = Walk::exact(stages);
        let distributions = self.levels.iter().map(|level| {
            let pairs = level.clean.iter().zip(&level.marked);
            Distribution::new(pairs.map(|(c, m)| c + m).collect())
        });
        Ok(Returned {
            prediction: Prediction {
                bits_per_key: self.bits_per_key,
                probes,
                fpr: walk.fpr,
                reads_hit: self.reads_hit,
                reads_miss: walk.reads,
            },
            access_budget: self.access_budget,
            returned_fraction: self.returned_fraction,
            threshold: self.threshold,
            admission: self.admission,
            level_shares: self.level_shares.clone(),
            counter_bits,
            payload_bits,
            distributions: distributions.collect(),
        })
    }

    fn never_refuses(&self, probes: u32) -> Result<Returned> {
        let (bits, beta) = (self.block_bits, self.bits_per_key);
        Ok(Returned {
            prediction: blocked::predict(bits, beta, probes)?,
            access_budget: 1.0,
            returned_fraction: 0.0,
            threshold: None,
            admission: 1.0,
            level_shares: self.level_shares.clone(),
            counter_bits: 0,
            payload_bits: bits,
            distributions: Vec::new(),
        })
    }
}

/// The equations.
struct Flow<'a> {
    load: f64,
    h: usize,
    p: f64,
    shares: &'a [f64],
    place: Place,
    /// Chance that a refused key falls into the class of a given lookup.
    mark: f64,
}

struct End {
    access_budget: f64,
    reads_hit: f64,
    returned_fraction: f64,
    levels: Vec<Level>,
}

impl Flow<'_> {
    /// Chance that a key all blocks refused comes back to level `j`, and to
    /// a later one.
    fn comes_back(&self, j: usize) -> (f64, f64) {
        let d = self.shares.len();
        match self.place {
            Place::First => (f64::from(j == 0), 0.0),
            Place::Last => (f64::from(j + 1 == d), f64::from(j + 1 < d)),
            Place::Random => {
                let each = 1.0 / d as f64;
                (each, each * (d - 1 - j) as f64)
            }
        }
    }

    /// Loads followed in each level: the threshold, and room for the keys
    /// that come back, which are nearly Poisson.
    fn loads(&self, overflow: f64) -> Vec<usize> {
        let levels = self.shares.iter().enumerate();
        levels
            .map(|(j, share)| {
                let more = self.load * overflow * self.comes_back(j).0 / share;
                let tail = 12.0 * libm::sqrt(more) + 25.0;
                self.h + 2 + (more + tail).min(4000.0) as usize
            })
            .collect()
    }

    fn follow(&self, overflow: f64) -> Result<End> {
        let loads = self.loads(overflow);
        let d = loads.len();
        // Clean states, then marked ones, level by level.
        let mut ranges: Vec<[Range<usize>; 2]> = Vec::with_capacity(d);
        let mut start = 0;
        for n in &loads {
            let (middle, end) = (start + n, start + 2 * n);
            ranges.push([start..middle, middle..end]);
            start = end;
        }
        let totals = start;
        let mut y = alloc::vec![0.0; totals + 3];
        for [clean, _] in &ranges {
            y[clean.start] = 1.0;
        }
        let mut refuses = alloc::vec![0.0; d];
        ode::solve(&mut y, 1.0, |_, y, dy| {
            for (refuses, [clean, marked]) in refuses.iter_mut().zip(&ranges) {
                let all = y[clean.clone()].iter().zip(&y[marked.clone()]);
                let mut full = all.skip(self.h).map(|(c, m)| c + m);
                let at = full.next().unwrap_or(0.0);
                *refuses = (1.0 - self.p) * at + full.sum::<f64>();
            }
            let (mut reaching, mut reads, mut hit) = (1.0, 0.0, 0.0);
            let all: f64 = refuses.iter().product();
            for (j, [clean, marked]) in ranges.iter().enumerate() {
                let later: f64 = refuses[j + 1..].iter().product();
                let (here, beyond) = self.comes_back(j);
                let rates = Rates {
                    arrive: self.load * reaching / self.shares[j],
                    back: later * here,
                    mark: self.mark * (1.0 - later + later * beyond),
                };
                let (clean, marked) = (clean.clone(), marked.clone());
                self.flow(y, dy, clean, marked, &rates);
                reads += reaching;
                let place = (j + 1) as f64;
                hit += place * (reaching * (1.0 - refuses[j]) + all * here);
                reaching *= refuses[j];
            }
            dy[totals] = reads;
            dy[totals + 1] = hit;
            dy[totals + 2] = all;
        })?;
        let levels = ranges.iter().map(|[clean, marked]| Level {
            clean: y[clean.clone()].to_vec(),
            marked: y[marked.clone()].to_vec(),
        });
        Ok(End {
            access_budget: y[totals],
            reads_hit: y[totals + 1],
            returned_fraction: y[totals + 2],
            levels: levels.collect(),
        })
    }

    fn flow(
        &self,
        y: &[f64],
        dy: &mut [f64],
        clean: Range<usize>,
        marked: Range<usize>,
        rates: &Rates,
    ) {
        dy[clean.start..marked.end].fill(0.0);
        let states = clean.len();
        for i in 0..states {
            // Chances that a key arriving here raises the load, and that
            // it leaves a mark instead; none does both.
            let refused = match i.cmp(&self.h) {
                core::cmp::Ordering::Less => 0.0,
                core::cmp::Ordering::Equal => 1.0 - self.p,
                core::cmp::Ordering::Greater => 1.0,
            };
            let mut up = 1.0 - refused + refused * rates.back;
            if i + 1 == states {
                up = 0.0;
            }
            let mark = refused * rates.mark;
            let (c, m) = (clean.start + i, marked.start + i);
            let risen = [c, m].map(|s| rates.arrive * up * y[s]);
            let turned = rates.arrive * mark * y[c];
            dy[c] -= risen[0] + turned;
            dy[m] += turned - risen[1];
            if i + 1 < states {
                dy[c + 1] += risen[0];
                dy[m + 1] += risen[1];
            }
        }
    }
}

/// How fast the blocks of a level change.
struct Rates {
    /// Keys arriving per block.
    arrive: f64,
    /// Chance that a refused key comes back to this block.
    back: f64,
    /// Chance that a refused key ends in a later block and in the class of
    /// a given lookup.
    mark: f64,
}

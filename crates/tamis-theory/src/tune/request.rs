//! Designs without a list for a memory or for a rate.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::RangeInclusive;

use super::block::Kind;
use super::search::{Cost, Goal, Search, Start};
use super::trial::Found;
use super::{Design, LEAST_BITS_PER_KEY, Mode, limit, load, probes, start};
use crate::balanced::absorbing;
use crate::{Error, MAX_PROBES, Result, check};

/// A rate this close below the target (in its logarithm) is as good.
const CLOSE: f64 = 0.005;
/// So close to the target the best design hardly changes any more.
const SETTLED: f64 = 0.02;
/// Differences of memory below this are nothing, relative.
const NARROW: f64 = 3e-4;
/// The best design for a memory is the best for this many bits per key more or
/// less; if the rate is uneven, for fewer.
const NEAR: (f64, f64) = (0.06, 0.003);

/// Everything but the memory.
pub(crate) struct Request {
    block_bits: u32,
    max_reads_miss: f64,
    max_reads: f64,
    modes: Vec<Mode>,
    pub(crate) cost: Cell<Cost>,
}

/// A design for some memory.
#[derive(Clone, Copy)]
struct Point {
    bits: f64,
    found: Found,
    /// Logarithm of the rate over the target.
    excess: f64,
}

impl Request {
    pub(crate) fn new(
        block_bits: u32,
        max_reads_miss: f64,
        mode: Option<Mode>,
    ) -> Result<Self> {
        Ok(Self {
            block_bits: check::block_bits(block_bits)?,
            max_reads_miss,
            // The search drops negligible masses, so its reads may be too low
            // by this share.
            max_reads: limit(max_reads_miss)? * (1.0 - 1e-11),
            modes: mode.map_or(Mode::ALL.to_vec(), |mode| alloc::vec![mode]),
            cost: Cell::default(),
        })
    }

    /// The best design for a memory.
    pub(crate) fn for_memory(&self, bits_per_key: f64) -> Result<Design> {
        let found = self.search(bits_per_key, None)?;
        self.design(bits_per_key, &found)
    }

    /// The design that reaches a rate with the least memory: the best for a
    /// guess at the memory, then the memory at which that design reaches the
    /// rate, and the best design there, which is hardly better.
    pub(crate) fn for_fpr(&self, target: f64) -> Result<Design> {
        const ROUNDS: usize = 8;
        // The search drops negligible masses, so its rate may be too low by
        // less than this share.
        let goal = check::target(target)? * (1.0 - 1e-9);
        let mut bits = self.guess(target);
        let mut near: Option<Found> = None;
        let mut least: Option<Point> = None;
        for _ in 0..ROUNDS {
            let found = self.search(bits, near)?;
            let excess = libm::log(found.fpr / goal);
            if excess <= 0.0 && bits <= LEAST_BITS_PER_KEY {
                let (value, min) = (target, check::MIN_FPR);
                // Three digits for the message.
                let (name, max) = ("target", libm::floor(1e3 * found.fpr));
                let max = max / 1e3;
                return Err(Error::OutOfRange { name, value, min, max });
            }
            let solved = self.solve(&Point { bits, found, excess }, goal);
            let even = solved.found.uneven.max(found.uneven) < 1.003;
            let near_enough = if even { NEAR.0 } else { NEAR.1 };
            let moved = libm::fabs(solved.bits - bits);
            // The search before was close, too.
            let settled = near.is_some() && libm::fabs(excess) < SETTLED;
            (bits, near) = (solved.bits, Some(solved.found));
            if solved.excess <= 0.0 {
                if least.is_none_or(|least| solved.bits < least.bits) {
                    least = Some(solved);
                }
                if settled || moved < near_enough {
                    break;
                }
            }
        }
        let best = near.map_or(1.0, |found| found.fpr);
        let unreachable =
            Error::Unreachable { target, best, bits_per_key: bits };
        let least = least.ok_or(unreachable)?;
        self.design(least.bits, &least.found)
    }

    /// The bits per key for a rate, fitted to the best designs: first hardly
    /// better than blocked filters, then better.
    fn guess(&self, target: f64) -> f64 {
        let more = self.max_reads - 1.0;
        let blocks = 512.0 / f64::from(self.block_bits);
        let digits = -libm::log10(target);
        let blocked = 5.08 * digits - 0.24;
        let balanced = 5.25 * digits - 0.45;
        let few_reads = 0.045 / (more + 0.012) * blocks;
        rounded_up(
            blocked.max(balanced) * (0.962 + 0.038 * blocks)
                + few_reads * (digits - 3.5).max(0.0),
        )
    }

    /// The best design for a memory, from one for about as much.
    fn search(&self, bits_per_key: f64, near: Option<Found>) -> Result<Found> {
        let load = load(self.block_bits, bits_per_key)?;
        let probes = probes(bits_per_key);
        let start = match near {
            Some(near) => Start::Near(near),
            None => start(&probes, bits_per_key, load, self.max_reads),
        };
        let search = self.at(load, probes);
        let found = search.run(&self.modes, start);
        self.cost.set(search.cost.get());
        let max_reads_miss = self.max_reads_miss;
        found.ok_or(Error::NoDesign { max_reads_miss })
    }

    /// The least rate of all designs for a memory.
    #[cfg(test)]
    pub(crate) fn exhaustive(&self, bits_per_key: f64) -> Result<f64> {
        let load = load(self.block_bits, bits_per_key)?;
        let found = self.at(load, probes(bits_per_key)).exhaustive();
        let max_reads_miss = self.max_reads_miss;
        let found = found.ok_or(Error::NoDesign { max_reads_miss })?;
        Ok(self.design(bits_per_key, &found)?.prediction.fpr)
    }

    fn at(&self, load: f64, probes: RangeInclusive<u32>) -> Search {
        let goal = Goal::Absorb { max_reads: self.max_reads };
        let cost = self.cost.clone();
        Search { block_bits: self.block_bits, load, probes, goal, cost }
    }

    /// The least memory at which a kind of design reaches a rate, and the
    /// design there, from a design for some memory.
    ///
    /// By secants: the logarithm of the rate is a straight line but for small
    /// steps where the threshold changes.
    fn solve(&self, start: &Point, goal: f64) -> Point {
        const STEPS: usize = 16;
        let (mut low, mut high): (Option<Point>, Option<Point>) = (None, None);
        let mut last = *start;
        for step in 0..STEPS {
            match last.excess <= 0.0 {
                true => high = Some(last),
                false => low = Some(last),
            }
            // Aims a little below the target.
            let aim = last.excess + 0.5 * CLOSE;
            let bits = match (low, high) {
                (_, Some(high)) if high.excess > -CLOSE => break,
                (Some(low), Some(high)) => {
                    let width = high.bits - low.bits;
                    if width < NARROW * high.bits {
                        break;
                    }
                    let part = low.excess + 0.5 * CLOSE;
                    let part = part / (low.excess - high.excess);
                    let part = if step % 3 == 2 { 0.5 } else { part };
                    low.bits + width * part.clamp(0.1, 0.9)
                }
                _ => last.bits + (aim / 0.45).clamp(-3.0, 3.0),
            };
            let bits = rounded_up(bits);
            let Some(next) = self.again(&last.found, bits, goal) else {
                break;
            };
            if next.bits == last.bits {
                break;
            }
            last = next;
        }
        high.unwrap_or(last)
    }

    /// A kind of design with another memory.
    fn again(&self, found: &Found, bits: f64, goal: f64) -> Option<Point> {
        let load = load(self.block_bits, bits).ok()?;
        let search = self.at(load, 1..=MAX_PROBES);
        let found = search.again(found);
        self.cost.set(search.cost.get());
        let found = found?;
        let excess = libm::log(found.fpr / goal);
        Some(Point { bits, found, excess })
    }

    fn design(&self, bits_per_key: f64, found: &Found) -> Result<Design> {
        let load = load(self.block_bits, bits_per_key)?;
        let level_shares = level_shares(load, found);
        let refuse = found.kind.refuse(found.threshold);
        let Kind { probes, tracking_bits, .. } = found.kind;
        let whole = absorbing::predict(
            self.block_bits,
            bits_per_key,
            &level_shares,
            refuse,
            probes,
            tracking_bits,
        )?;
        Ok(Design {
            access_budget: whole.prediction.reads_hit,
            choices: found.choices,
            level_shares,
            refuse,
            probes,
            tracking_bits,
            overflow_fraction: 0.0,
            prediction: whole.prediction,
        })
    }
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

/// The next multiple of 2^-12 and at least the least memory.
fn rounded_up(bits_per_key: f64) -> f64 {
    let most = check::MAX_BITS_PER_KEY;
    let bits = libm::ceil(bits_per_key * 4096.0) / 4096.0;
    bits.clamp(LEAST_BITS_PER_KEY, most)
}

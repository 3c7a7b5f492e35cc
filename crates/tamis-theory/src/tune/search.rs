//! The search for the best design.
//!
//! A design has five parameters: probes, tracking bits, choices, threshold
//! and arrivals per block. The kinds of blocks (probes and tracking bits) are
//! the outer loop. For one kind and each number of choices the search strides
//! over the thresholds, and finds the arrivals of each by parabolas
//! ([`Goal::Absorb`]) or secants ([`Goal::List`]). Every kind begins where
//! the one before ended.
//!
//! With popcounts the rate has one valley in each parameter, and the search
//! descends: 15 to 25 kinds and some thousand evaluations. Numbers of keys
//! are too coarse for that, one more or less changes the reads by a tenth:
//! there all kinds and thresholds are compared, a hundred times as many.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::RangeInclusive;

use super::arrivals::{Arrivals, BlockOutcome};
use super::block::{Blocks, Kind};
use super::levels::{Last, Levels};
use super::list::Listed;
use super::{MAX_LEVELS, Mode, TRACKING};
use crate::balanced::Refuser;
use crate::search::lowest;

/// Tracking bits that come this close to the best with the same probes get
/// probes of their own.
const CLOSE: f64 = 1.03;
/// Tracking bits that are worse by this much are the last in their
/// direction.
const FAR: f64 = 1.15;
/// Numbers of choices that come this close in a neighbouring kind are tried.
const CLOSE_CHOICES: f64 = 1.1;
/// Thresholds are integers, which makes the valley over the probes uneven by
/// this much.
const UNEVEN: f64 = 1.006;
/// Relative error of a rate while designs are compared.
const COARSE: f64 = 2e-4;
/// The same for the design that is returned.
const FINE: f64 = 1e-9;
/// Smallest and largest surplus of arrivals over the load, relative.
const SURPLUS: (f64, f64) = (1e-6, 3.0);
/// Narrower intervals of allowed arrivals are not searched for.
const NARROW: f64 = 0.03;
/// Rates from here on are penalties of designs that exceed a limit. They
/// fall towards the designs that do not.
const PENALTY: f64 = 2.0;

pub(crate) struct Search {
    pub(crate) block_bits: u32,
    pub(crate) load: f64,
    pub(crate) probes: RangeInclusive<u32>,
    pub(crate) goal: Goal,
    pub(crate) cost: Cell<Cost>,
}

/// Where keys go that every block refused, and the limits.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// To a last level that takes every key.
    Absorb { max_reads: f64 },
    /// To a list.
    List { max_reads: f64, max_overflow: f64 },
}

/// Number of computations of a search.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Blocks evaluated at one number of arrivals, about 1 us each.
    pub(crate) evaluations: u32,
    /// Tables of one kind of block, about 50 us each.
    pub(crate) tables: u32,
}

/// Where a search begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) probes: u32,
    pub(crate) tracking_bits: u32,
    /// Compare only neighbours of these probes and tracking bits.
    pub(crate) near: bool,
}

/// A design and its rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The rate, or a penalty.
    pub(crate) fpr: f64,
    pub(crate) kind: Kind,
    pub(crate) choices: u32,
    pub(crate) threshold: u32,
    /// The block of a refusing level.
    pub(crate) block: BlockOutcome,
    /// Reads per non-member.
    reads: f64,
    /// Logarithm of the relative surplus of arrivals.
    surplus: f64,
    /// The keys that the threshold stands for.
    keys: f64,
}

/// The kinds compared so far.
#[derive(Default)]
struct Seen {
    /// The best design of each kind for each number of choices.
    best: Vec<(Kind, Vec<Found>)>,
    /// The last level by number of probes.
    lasts: Vec<(u32, Last)>,
}

impl Seen {
    fn least(&self) -> Option<Found> {
        let all = self.best.iter().flat_map(|(_, best)| best);
        all.min_by(|x, y| x.fpr.total_cmp(&y.fpr)).copied()
    }

    /// The designs of the kind most like another.
    fn nearest(&self, kind: Kind) -> &[Found] {
        let distance = |other: &Kind| {
            let bits = |kind: &Kind| (2 * kind.tracking_bits + 1).ilog2();
            other.probes.abs_diff(kind.probes)
                + 2 * bits(other).abs_diff(bits(&kind))
        };
        let allowed = |(_, best): &&(Kind, Vec<Found>)| {
            best.iter().any(|found| found.fpr < PENALTY)
        };
        let known = self.best.iter().filter(allowed);
        let near = known.min_by_key(|(other, _)| distance(other));
        near.map_or(&[], |(_, best)| best)
    }
}

impl Search {
    /// The best design of any of the modes.
    pub(crate) fn run(&self, modes: &[Mode], start: Start) -> Option<Found> {
        let found = modes.iter().filter_map(|m| self.one_mode(*m, start));
        let found = found.filter(|found| found.fpr < PENALTY);
        found.min_by(|x, y| x.fpr.total_cmp(&y.fpr))
    }

    fn one_mode(&self, mode: Mode, start: Start) -> Option<Found> {
        let mut seen = Seen::default();
        if mode != Mode::Popcount {
            for tracking_bits in TRACKING {
                for probes in self.probes.clone() {
                    let kind = Kind { mode, probes, tracking_bits };
                    self.rate(kind, &mut seen);
                }
            }
            return self.refined(&mut seen);
        }
        let middle = self.probes(mode, start.tracking_bits, start, &mut seen);
        let at = TRACKING.iter().position(|t| *t == start.tracking_bits)?;
        // From the start outwards, until it gets worse.
        let (low, high) = TRACKING.split_at(at);
        let (up, down) = (high[1..].iter(), low.iter().rev());
        let few = if start.near { 1 } else { TRACKING.len() };
        let mut others: Vec<(f64, u32)> = Vec::new();
        let mut outwards = |all: &mut dyn Iterator<Item = &u32>| {
            for tracking_bits in all.take(few).copied() {
                let kind = Kind { mode, probes: middle, tracking_bits };
                let rate = self.rate(kind, &mut seen);
                others.push((rate, tracking_bits));
                let least = seen.least().map_or(rate, |best| best.fpr);
                if rate > FAR * least && rate < PENALTY {
                    break;
                }
            }
        };
        outwards(&mut { up });
        outwards(&mut { down });
        others.sort_by(|x, y| x.0.total_cmp(&y.0));
        let start = Start { probes: middle, near: true, ..start };
        for (other, tracking_bits) in others {
            if other > CLOSE * seen.least()?.fpr {
                break;
            }
            self.probes(mode, tracking_bits, start, &mut seen);
        }
        self.refined(&mut seen)
    }

    /// The best design so far, computed more exactly.
    fn refined(&self, seen: &mut Seen) -> Option<Found> {
        let best = seen.least()?;
        let last = self.last(&mut seen.lasts, best.kind.probes);
        let mut blocks = self.blocks(best.kind);
        let last = &seen.lasts[last].1;
        let choices = best.choices;
        self.threshold(&mut blocks, choices, last, Some(best), FINE)
    }

    /// The best number of probes with some tracking bits.
    fn probes(
        &self,
        mode: Mode,
        tracking_bits: u32,
        start: Start,
        seen: &mut Seen,
    ) -> u32 {
        let (low, high) = (*self.probes.start(), *self.probes.end());
        let mut rate = |probes: u32| {
            self.rate(Kind { mode, probes, tracking_bits }, seen)
        };
        let mut best = lowest(start.probes, (low, high), 1, &mut rate);
        for by in [-2i32, 2] {
            let beyond = best.saturating_add_signed(by);
            let between = best.saturating_add_signed(by / 2);
            if (low..=high).contains(&beyond)
                && rate(between) < UNEVEN * rate(best)
                && rate(beyond) < rate(best)
            {
                best = beyond;
            }
        }
        best
    }

    fn blocks(&self, kind: Kind) -> Blocks {
        Blocks::new(self.block_bits, self.load, kind)
    }

    /// The index of the last level with a number of probes.
    fn last(&self, lasts: &mut Vec<(u32, Last)>, probes: u32) -> usize {
        let known = lasts.iter().position(|(k, _)| *k == probes);
        known.unwrap_or_else(|| {
            let last = Last::new(self.block_bits, self.load, probes);
            lasts.push((probes, last));
            lasts.len() - 1
        })
    }

    /// The least rate of a kind.
    fn rate(&self, kind: Kind, seen: &mut Seen) -> f64 {
        let known = seen.best.iter().find(|(other, _)| *other == kind);
        if known.is_none() && kind.possible(self.block_bits) {
            let best = self.compare_choices(kind, seen);
            seen.best.push((kind, best));
        }
        let known = seen.best.iter().find(|(other, _)| *other == kind);
        let known = known.map_or(&[][..], |(_, best)| best);
        known.iter().map(|found| found.fpr).fold(f64::INFINITY, f64::min)
    }

    fn compare_choices(&self, kind: Kind, seen: &mut Seen) -> Vec<Found> {
        let last = self.last(&mut seen.lasts, kind.probes);
        let last = &seen.lasts[last].1;
        let mut blocks = self.blocks(kind);
        let near = seen.nearest(kind);
        let least = near.iter().map(|found| found.fpr);
        let close = CLOSE_CHOICES * least.fold(f64::INFINITY, f64::min);
        let mut best: Vec<Found> = Vec::new();
        for choices in self.goal.choices().rev() {
            let start = near.iter().find(|found| found.choices == choices);
            // More or fewer probes with the same tracking bits change little.
            let same = seen
                .best
                .iter()
                .any(|(other, _)| other.tracking_bits == kind.tracking_bits);
            let popcount = kind.mode == Mode::Popcount;
            if popcount && same && start.is_none_or(|f| f.fpr > close) {
                continue;
            }
            let all = seen.best.iter().rev().flat_map(|(_, best)| best);
            let mut all = all.filter(|found| found.fpr < PENALTY);
            let start = start.or(all.find(|f| f.choices == choices));
            let start = start.or(best.last()).copied();
            best.extend(self.threshold(
                &mut blocks,
                choices,
                last,
                start,
                COARSE,
            ));
        }
        let mut cost = self.cost.get();
        cost.tables += blocks.tables;
        self.cost.set(cost);
        best
    }

    /// The best threshold, from that of another design.
    fn threshold(
        &self,
        blocks: &mut Blocks,
        choices: u32,
        last: &Last,
        start: Option<Found>,
        tolerance: f64,
    ) -> Option<Found> {
        let near = self.load + 0.2 * libm::sqrt(self.load);
        let keys = start.map_or(near, |start| start.keys);
        let stride = if start.is_some() { 1 } else { 8 };
        let first = blocks.threshold(keys);
        let mut surplus = start.map(|start| start.surplus);
        let mut best: Option<Found> = None;
        let range = blocks.range();
        let blocks_count_bits = blocks.kind.mode == Mode::Popcount;
        let mut rate = |threshold: u32| {
            let Some(refuser) = blocks.refuser(threshold) else {
                return f64::INFINITY;
            };
            let trial = Trial {
                search: self,
                refuser,
                kind: blocks.kind,
                choices,
                last,
                tolerance,
            };
            let mut found = match self.goal {
                Goal::Absorb { max_reads } => trial.least(max_reads, surplus),
                Goal::List { .. } => trial.balanced(surplus),
            };
            found.threshold = threshold;
            found.keys = blocks.keys(threshold);
            if best.is_none_or(|best| found.fpr < best.fpr) {
                best = Some(found);
                surplus = Some(found.surplus);
            }
            found.fpr
        };
        if blocks_count_bits {
            lowest(first, range, stride, rate);
        } else {
            // Few thresholds, each far from the next: all of them.
            for threshold in range.0..=range.1 {
                rate(threshold);
            }
        }
        best
    }
}

impl Goal {
    fn choices(self) -> RangeInclusive<u32> {
        match self {
            Goal::Absorb { .. } => 2..=MAX_LEVELS,
            Goal::List { .. } => 1..=MAX_LEVELS,
        }
    }
}

/// One block and number of choices, with any number of arrivals.
struct Trial<'a> {
    search: &'a Search,
    refuser: Refuser,
    kind: Kind,
    choices: u32,
    last: &'a Last,
    tolerance: f64,
}

impl Trial<'_> {
    /// The design with a logarithm of the surplus.
    fn at(&self, surplus: f64) -> Found {
        let ends = (libm::log(SURPLUS.0), libm::log(SURPLUS.1));
        let surplus = surplus.clamp(ends.0, ends.1);
        self.with_arrivals(self.search.load * (1.0 + libm::exp(surplus)))
    }

    fn with_arrivals(&self, mean: f64) -> Found {
        let mut cost = self.search.cost.get();
        cost.evaluations += 1;
        self.search.cost.set(cost);
        let load = self.search.load;
        let surplus = libm::log((mean / load - 1.0).max(SURPLUS.0));
        let arrivals =
            Arrivals::new(mean, self.kind.tracking_bits, self.refuser.first());
        let block = arrivals.outcome(&self.refuser);
        let (fpr, reads) = match self.search.goal {
            Goal::Absorb { max_reads } => {
                let levels = Levels::new(load, &block, self.choices);
                let fpr = if levels.reads > max_reads {
                    // Fewer arrivals mean fewer reads.
                    PENALTY + levels.reads
                } else {
                    // More arrivals leave more blocks for the last level.
                    levels.fpr(self.last).unwrap_or(40.0 - surplus)
                };
                (fpr, levels.reads)
            }
            Goal::List { max_reads, max_overflow } => {
                let listed = Listed::new(&block, self.choices);
                let excess = (listed.walk.reads / max_reads)
                    .max(listed.overflow_fraction / max_overflow);
                let fpr = match excess <= 1.0 {
                    true => listed.walk.fpr,
                    false => PENALTY + libm::log(excess),
                };
                (fpr, listed.walk.reads)
            }
        };
        Found {
            fpr,
            kind: self.kind,
            choices: self.choices,
            threshold: 0,
            block,
            reads,
            surplus,
            keys: 0.0,
        }
    }

    /// The arrivals with the least rate.
    ///
    /// More arrivals mean more reads, and more blocks left for the last
    /// level. So the arrivals allowed are an interval, often a narrow one,
    /// and the rate falls and then rises in it.
    fn least(&self, max_reads: f64, near: Option<f64>) -> Found {
        const STEPS: usize = 40;
        let mut stride = if near.is_some() { 0.15 } else { 0.8 };
        let mut middle = self.at(near.unwrap_or(-2.0));
        let mut left = self.at(middle.surplus - stride);
        let mut right = self.at(middle.surplus + stride);
        for _ in 0..STEPS {
            stride *= 1.7;
            if left.fpr < middle.fpr {
                let next = self.at(left.surplus - stride);
                (left, middle, right) = (next, left, middle);
            } else if right.fpr < middle.fpr {
                let next = self.at(right.surplus + stride);
                (left, middle, right) = (middle, right, next);
            } else {
                break;
            }
        }
        let steps = if self.tolerance < COARSE { STEPS } else { 12 };
        for _ in 0..steps {
            let (a, b, c) = (left.surplus, middle.surplus, right.surplus);
            let allowed = [&left, &middle, &right].map(|f| f.fpr < PENALTY);
            let step = match allowed {
                [true, true, true] => parabola(&left, &middle, &right),
                [_, true, false] if right.reads > max_reads => {
                    let spare = (max_reads - 1.0) * self.tolerance;
                    to_reads(&middle, &right, max_reads - 0.5 * spare)
                }
                _ => f64::NAN,
            };
            // Without such a step, a golden section of the longer side.
            let step = match step > a - b && step < c - b {
                true => step,
                false if b - a > c - b => -0.382 * (b - a),
                false => 0.382 * (c - b),
            };
            let next = self.at(b + step);
            let gain = next.fpr / middle.fpr - 1.0;
            match (gain < 0.0, step < 0.0) {
                (true, true) => (middle, right) = (next, middle),
                (true, false) => (left, middle) = (middle, next),
                (false, true) => left = next,
                (false, false) => right = next,
            }
            // The last step changed nothing, so another will not.
            let done = gain.abs() < self.tolerance || step.abs() < 1e-7;
            // Too many reads on one side and too few blocks on the other.
            let none =
                middle.fpr >= PENALTY && right.surplus - left.surplus < NARROW;
            if done || none {
                break;
            }
        }
        middle
    }

    /// The arrivals with which the levels need exactly all blocks,
    /// load (1+q+...+q^(d-1)) = arrivals.
    fn balanced(&self, near: Option<f64>) -> Found {
        const STEPS: usize = 60;
        let load = self.search.load;
        let mean = match (self.choices, near) {
            (1, _) => load,
            (_, Some(near)) => load * (1.0 + libm::exp(near)),
            (_, None) => 1.1 * load,
        };
        let missing = |found: &Found| {
            let q = found.block.refused;
            load * super::list::reads(q, self.choices) - found.block.arrivals
        };
        let mut before = self.with_arrivals(mean);
        let mut error = missing(&before);
        let mut found = self.with_arrivals(mean + error);
        for _ in 0..STEPS {
            let now = missing(&found);
            let mean = found.block.arrivals;
            if now.abs() <= 1e-4 * self.tolerance * mean {
                break;
            }
            let step = mean - before.block.arrivals;
            let secant = now * step / (error - now);
            let step = if secant.is_finite() { secant } else { now };
            (before, error) = (found, now);
            let next = (mean + step).clamp(load, 16.0 * load);
            found = self.with_arrivals(next);
        }
        found
    }
}

/// The step from the middle to the least of the parabola through the
/// logarithms of three rates.
fn parabola(left: &Found, middle: &Found, right: &Found) -> f64 {
    let rise = |other: &Found| libm::log(other.fpr / middle.fpr);
    let (a, b) =
        (left.surplus - middle.surplus, right.surplus - middle.surplus);
    let (at_a, at_b) = (rise(left), rise(right));
    0.5 * (a * a * at_b - b * b * at_a) / (a * at_b - b * at_a)
}

/// The step from `from` towards `to` that reaches `goal` reads: the
/// logarithm of the reads after the first is nearly linear.
fn to_reads(from: &Found, to: &Found, goal: f64) -> f64 {
    let log = |reads: f64| libm::log((reads - 1.0).max(1e-15));
    let part =
        (log(goal) - log(from.reads)) / (log(to.reads) - log(from.reads));
    part * (to.surplus - from.surplus)
}

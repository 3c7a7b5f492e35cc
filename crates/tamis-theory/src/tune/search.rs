//! The search for the best design.
//!
//! A design has five parameters: probes, tracking bits, choices, threshold
//! and arrivals per block. The kinds of blocks (probes and tracking bits) are
//! the outer loop. For one kind and each number of choices the search strides
//! over the thresholds, and finds the arrivals of each ([`Trial`]). Every kind
//! begins where a similar one ended.
//!
//! With popcounts the search goes from kind to better neighbours until none
//! is left: some 15 kinds and a thousand evaluations. Thresholds are integers,
//! so that the rate is uneven over the kinds, by as much as it changes from
//! one threshold to the next; the more it is, the more neighbours are
//! compared. Numbers of keys are too coarse for that, one more or less changes
//! the reads by a tenth: there all kinds and thresholds are compared, fifty
//! times as many.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::RangeInclusive;

use super::block::{Blocks, Kind};
use super::levels::Last;
use super::trial::{Found, PENALTY, Parabola, Trial};
use super::{MAX_LEVELS, Mode, TRACKING};

/// Numbers of choices this close to the best in a similar kind are tried;
/// similar kinds have the same tracking bits, or half or double.
const CLOSE_CHOICES: f64 = 1.02;
const CLOSE_CHOICES_OTHERWISE: f64 = 1.05;
/// Other tracking bits this close to the best get several numbers of probes.
const CLOSE_TRACKING: f64 = 1.006;
/// Designs this close to the best are compared more exactly.
const CLOSE: f64 = 1.008;
const MOST_CLOSE: usize = 4;
/// Unevenness beyond this is not made up for by more neighbours.
const UNEVEN: f64 = 1.2;
/// Unevenness from which numbers of probes two apart, three apart, ... are
/// compared.
const RING: [f64; 4] = [1.004, 1.02, 1.05, 1.1];
/// Relative error of a rate while designs are compared, the close ones again,
/// and of the design that is returned.
const COARSE: f64 = 1e-3;
const MIDDLE: f64 = 1e-4;
const FINE: f64 = 1e-7;

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
    /// Blocks evaluated at one number of arrivals.
    pub(crate) evaluations: u32,
    /// Tables of one kind of block, each as long as some 30 evaluations.
    pub(crate) tables: u32,
}

/// Where a search begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    /// At a kind and a number of keys per block.
    Guess { probes: u32, tracking_bits: u32, keys: f64 },
    /// At a design for slightly more or less memory.
    Near(Found),
}

/// The designs compared so far.
struct Seen {
    start: Start,
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

    fn has(&self, kind: Kind) -> bool {
        self.best.iter().any(|(other, _)| *other == kind)
    }

    /// The least rate with some tracking bits.
    fn rate_with(&self, tracking_bits: u32) -> f64 {
        let kinds = self.best.iter();
        let kinds = kinds.filter(|(k, _)| k.tracking_bits == tracking_bits);
        let rates = kinds.flat_map(|(_, best)| best).map(|found| found.fpr);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// The design with some choices of the most similar kind that has one,
    /// and its rate relative to the best of that kind.
    fn similar(&self, kind: Kind, choices: u32) -> Option<(Found, f64)> {
        let log = |bits: u32| (2 * bits + 1).ilog2();
        let distance = |other: &Kind| {
            let tracking = log(other.tracking_bits);
            other.probes.abs_diff(kind.probes)
                + 2 * tracking.abs_diff(log(kind.tracking_bits))
        };
        let known = self.best.iter().filter_map(|(other, best)| {
            let mut allowed = best.iter().filter(|found| found.is_allowed());
            let found = allowed.find(|found| found.choices == choices)?;
            let rates = best.iter().map(|found| found.fpr);
            let least = rates.fold(f64::INFINITY, f64::min);
            Some((distance(other), *found, found.fpr / least))
        });
        let nearest = known.min_by_key(|(distance, ..)| *distance);
        nearest.map(|(_, found, ratio)| (found, ratio))
    }
}

impl Search {
    /// The best design of any of the modes.
    pub(crate) fn run(&self, modes: &[Mode], start: Start) -> Option<Found> {
        let found = modes.iter().filter_map(|mode| {
            let (best, lasts) = (Vec::new(), Vec::new());
            let mut seen = Seen { start, best, lasts };
            match mode {
                Mode::Popcount => self.descend(&mut seen),
                _ => self.compare_all(*mode, &mut seen),
            }
            self.refined(&mut seen)
        });
        let found = found.filter(Found::is_allowed);
        found.min_by(|x, y| x.fpr.total_cmp(&y.fpr))
    }

    /// A design for another memory: the same kind and choices.
    pub(crate) fn again(&self, found: &Found) -> Option<Found> {
        let last = Last::new(self.block_bits, self.load, found.kind.probes);
        let mut blocks = self.blocks(found.kind);
        let (choices, start) = (found.choices, Start::Near(*found));
        let again = self.threshold(&mut blocks, choices, &last, start, MIDDLE);
        again.filter(Found::is_allowed)
    }

    pub(crate) fn count_evaluation(&self) {
        let mut cost = self.cost.get();
        cost.evaluations += 1;
        self.cost.set(cost);
    }

    fn compare_all(&self, mode: Mode, seen: &mut Seen) {
        for tracking_bits in TRACKING {
            for probes in self.probes.clone() {
                self.add(Kind { mode, probes, tracking_bits }, seen);
            }
        }
    }

    /// From kind to better neighbours.
    fn descend(&self, seen: &mut Seen) {
        let (probes, tracking_bits) = match seen.start {
            Start::Guess { probes, tracking_bits, .. } => {
                (probes, tracking_bits)
            }
            Start::Near(found) => {
                (found.kind.probes, found.kind.tracking_bits)
            }
        };
        let mode = Mode::Popcount;
        self.add(Kind { mode, probes, tracking_bits }, seen);
        if !seen.least().is_some_and(|found| found.is_allowed()) {
            for tracking_bits in TRACKING {
                self.add(Kind { mode, probes, tracking_bits }, seen);
            }
        }
        while let Some(best) = seen.least() {
            if let Some(kind) = self.next_neighbour(&best, seen) {
                self.add(kind, seen);
            } else if !self.add_choices(&best, seen) {
                break;
            }
        }
    }

    /// A kind similar to the best that has not been compared.
    fn next_neighbour(&self, best: &Found, seen: &Seen) -> Option<Kind> {
        let Kind { mode, probes, tracking_bits } = best.kind;
        let at = TRACKING.iter().position(|t| *t == tracking_bits)?;
        let less = at.checked_sub(1).and_then(|at| TRACKING.get(at));
        let others = [TRACKING.get(at + 1), less];
        let others = others.into_iter().flatten().copied();
        let ring = RING.iter().take_while(|from| best.uneven > **from);
        let ring = 1 + ring.count() as i32;
        let around = |tracking_bits: u32, ring: i32| {
            let by = (1..=ring).flat_map(|by| [by, -by]);
            by.map(move |by| {
                let probes = probes.saturating_add_signed(by);
                Kind { mode, probes, tracking_bits }
            })
        };
        let same = |tracking_bits| Kind { mode, probes, tracking_bits };
        let close = (CLOSE_TRACKING * best.uneven).min(UNEVEN) * best.fpr;
        let close = others.clone().filter(|t| seen.rate_with(*t) < close);
        let mut near = around(tracking_bits, 1)
            .chain(others.map(same))
            // Few tracking bits can be worse than none and than many.
            .chain((tracking_bits <= 4).then_some(same(0)))
            .chain(around(tracking_bits, ring))
            .chain(close.flat_map(|t| around(t, ring)));
        near.find(|kind| {
            self.probes.contains(&kind.probes)
                && kind.possible(self.block_bits)
                && !seen.has(*kind)
        })
    }

    /// Compares the best design with other numbers of choices. If one is
    /// better, returns `true` and forgets kinds without that number.
    fn add_choices(&self, best: &Found, seen: &mut Seen) -> bool {
        let Some(at) = seen.best.iter().position(|(k, _)| *k == best.kind)
        else {
            return false;
        };
        let mut blocks = self.blocks(best.kind);
        let mut more = Vec::new();
        for choices in self.goal.choices() {
            if !seen.best[at].1.iter().any(|f| f.choices == choices) {
                let start = Start::Near(*best);
                more.extend(self.design(&mut blocks, choices, start, seen));
            }
        }
        seen.best[at].1.extend(more);
        let Some(least) = seen.least().filter(|f| f.fpr < best.fpr) else {
            return false;
        };
        seen.best.retain(|(kind, found)| {
            *kind == best.kind
                || found.iter().any(|f| f.choices == least.choices)
        });
        true
    }

    /// The best design so far, computed more exactly.
    fn refined(&self, seen: &mut Seen) -> Option<Found> {
        let least = seen.least()?.fpr;
        let all = seen.best.iter().flat_map(|(_, best)| best);
        let close = all.filter(|found| found.fpr <= CLOSE * least);
        let mut close: Vec<Found> = close.copied().collect();
        close.sort_by(|x, y| x.fpr.total_cmp(&y.fpr));
        close.truncate(MOST_CLOSE);
        let mut best: Option<Found> = None;
        for found in close {
            let mut blocks = self.blocks(found.kind);
            let (choices, start) = (found.choices, Start::Near(found));
            let last = self.last(&mut seen.lasts, found.kind.probes);
            let found =
                self.threshold(&mut blocks, choices, last, start, MIDDLE);
            let found = found
                .filter(|found| best.is_none_or(|best| found.fpr < best.fpr));
            best = found.or(best);
        }
        let best = best?;
        let mut blocks = self.blocks(best.kind);
        let last = self.last(&mut seen.lasts, best.kind.probes);
        let fine = self.arrivals(
            &mut blocks,
            (best.choices, best.threshold),
            last,
            Some(best.surplus),
            FINE,
        );
        fine.filter(|fine| fine.fpr < best.fpr).or(Some(best))
    }

    fn blocks(&self, kind: Kind) -> Blocks {
        Blocks::new(self.block_bits, self.load, kind)
    }

    /// The last level with a number of probes.
    fn last<'a>(
        &self,
        lasts: &'a mut Vec<(u32, Last)>,
        probes: u32,
    ) -> &'a Last {
        let known = lasts.iter().position(|(k, _)| *k == probes);
        let at = known.unwrap_or_else(|| {
            let last = Last::new(self.block_bits, self.load, probes);
            lasts.push((probes, last));
            lasts.len() - 1
        });
        &lasts[at].1
    }

    /// Adds the designs of a kind.
    fn add(&self, kind: Kind, seen: &mut Seen) {
        if seen.has(kind) || !kind.possible(self.block_bits) {
            return;
        }
        let mut blocks = self.blocks(kind);
        let mut best: Vec<Found> = Vec::new();
        for choices in self.goal.choices() {
            let similar = seen.similar(kind, choices);
            let start = match (similar, seen.start, best.last()) {
                (Some((found, _)), ..) => Start::Near(found),
                (None, Start::Near(near), None) => Start::Near(near),
                (None, _, Some(best)) => Start::Near(*best),
                (None, start, None) => start,
            };
            if kind.mode == Mode::Popcount {
                let try_it = match similar {
                    Some((found, ratio)) => {
                        let close = match found.kind.tracking_bits {
                            t if t == kind.tracking_bits => CLOSE_CHOICES,
                            _ => CLOSE_CHOICES_OTHERWISE,
                        };
                        ratio <= close.max(found.uneven.min(UNEVEN))
                    }
                    None => seen.best.is_empty(),
                };
                if !try_it {
                    continue;
                }
            }
            best.extend(self.design(&mut blocks, choices, start, seen));
        }
        seen.best.push((kind, best));
    }

    /// The best design of a kind with some choices.
    fn design(
        &self,
        blocks: &mut Blocks,
        choices: u32,
        start: Start,
        seen: &mut Seen,
    ) -> Option<Found> {
        let last = self.last(&mut seen.lasts, blocks.kind.probes);
        self.threshold(blocks, choices, last, start, COARSE)
    }

    /// The best threshold.
    fn threshold(
        &self,
        blocks: &mut Blocks,
        choices: u32,
        last: &Last,
        start: Start,
        tolerance: f64,
    ) -> Option<Found> {
        let (keys, mut surplus, stride) = match start {
            Start::Guess { keys, .. } => (keys, None, 8),
            Start::Near(found) => {
                let t = blocks.kind.tracking_bits;
                let stride = if found.kind.tracking_bits == t { 1 } else { 3 };
                (found.keys, Some(found.surplus), stride)
            }
        };
        let (first, range) = (blocks.threshold(keys), blocks.range());
        let is_popcount = blocks.kind.mode == Mode::Popcount;
        let mut best: Option<Found> = None;
        let mut rate = |threshold: u32| {
            let at = (choices, threshold);
            let found = self.arrivals(blocks, at, last, surplus, tolerance);
            let Some(found) = found else { return f64::INFINITY };
            if best.is_none_or(|best| found.fpr < best.fpr) {
                best = Some(found);
                surplus = Some(found.surplus);
            }
            found.fpr
        };
        if is_popcount {
            let uneven = valley(first, range, stride, tolerance, rate);
            if let Some(best) = &mut best {
                best.uneven = uneven;
            }
        } else {
            // Few thresholds, each far from the next: all of them.
            for threshold in range.0..=range.1 {
                rate(threshold);
            }
        }
        best
    }

    /// The best arrivals; none if counter and tracking bits leave no room.
    fn arrivals(
        &self,
        blocks: &mut Blocks,
        (choices, threshold): (u32, u32),
        last: &Last,
        near: Option<f64>,
        tolerance: f64,
    ) -> Option<Found> {
        let tables = blocks.tables;
        let refuser = blocks.refuser(threshold)?;
        let mut cost = self.cost.get();
        cost.tables += blocks.tables - tables;
        self.cost.set(cost);
        let kind = blocks.kind;
        let trial =
            Trial { search: self, refuser, kind, choices, last, tolerance };
        let mut found = trial.best(near);
        found.threshold = threshold;
        found.keys = blocks.keys(threshold);
        Some(found)
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

/// Finds where `f` is least near `start`, in strides that begin with
/// `stride`, grow while they succeed and shrink while they do not. With a
/// coarse tolerance, ends at the vertex of a parabola. Returns the lower of the
/// two neighbours relative to the least, 1 if none was computed.
fn valley(
    start: u32,
    (low, high): (u32, u32),
    stride: u32,
    tolerance: f64,
    mut f: impl FnMut(u32) -> f64,
) -> f64 {
    /// A rate is a parabola only where it rises by less than this.
    const SMOOTH: f64 = 1.02;
    let mut values: Vec<(u32, f64)> = Vec::new();
    let mut at = |x: u32| -> f64 {
        if let Some((_, value)) = values.iter().find(|(y, _)| *y == x) {
            return *value;
        }
        let value = f(x);
        values.push((x, value));
        value
    };
    let is_coarse = tolerance >= COARSE;
    let better = if is_coarse { 1.0 - 0.3 * tolerance } else { 1.0 - 1e-6 };
    let mut x = start.clamp(low, high);
    let mut stride = stride;
    while stride > 0 {
        let up = x.saturating_add(stride).min(high);
        let down = x.saturating_sub(stride).max(low);
        let here = at(x);
        let above = at(up);
        if above < better * here {
            (x, stride) = (up, 2 * stride);
            continue;
        }
        let below = at(down);
        if below < better * here {
            (x, stride) = (down, 2 * stride);
            continue;
        }
        if stride == 1 {
            break;
        }
        let smooth = above.max(below) < SMOOTH * here && here < PENALTY;
        if is_coarse && smooth && down < x && x < up {
            let parabola = Parabola::new(
                (-f64::from(x - down), libm::log(below / here)),
                (f64::from(up - x), libm::log(above / here)),
            );
            if parabola.gain() >= tolerance {
                let vertex = f64::from(x) + parabola.vertex();
                let vertex = (libm::round(vertex) as u32).clamp(down, up);
                if at(vertex) < here {
                    x = vertex;
                }
            }
            break;
        }
        stride /= 2;
    }
    let here = at(x);
    let near = values
        .iter()
        .filter(|(y, value)| y.abs_diff(x) == 1 && *value < PENALTY);
    let near = near.map(|(_, value)| value / here);
    let near = near.fold(f64::INFINITY, f64::min);
    if near.is_finite() { near.max(1.0) } else { 1.0 }
}

#[cfg(test)]
impl Search {
    /// The best design by popcount of all: every kind, number of choices and
    /// threshold, the last by steps of three and then one by one near the
    /// three best.
    pub(crate) fn exhaustive(&self) -> Option<Found> {
        let mut least: Option<Found> = None;
        for probes in self.probes.clone() {
            let last = Last::new(self.block_bits, self.load, probes);
            for tracking_bits in TRACKING {
                let mode = Mode::Popcount;
                let kind = Kind { mode, probes, tracking_bits };
                if !kind.possible(self.block_bits) {
                    continue;
                }
                let mut blocks = self.blocks(kind);
                let (low, high) = blocks.range();
                for choices in self.goal.choices() {
                    let mut near = None;
                    let mut at = |threshold, tolerance| {
                        let at = (choices, threshold);
                        let found = self.arrivals(
                            &mut blocks,
                            at,
                            &last,
                            near,
                            tolerance,
                        )?;
                        near = found.is_allowed().then_some(found.surplus);
                        Some(found)
                    };
                    let mut rough: Vec<Found> = (low..=high)
                        .step_by(3)
                        .filter_map(|threshold| at(threshold, COARSE))
                        .filter(Found::is_allowed)
                        .collect();
                    rough.sort_by(|x, y| x.fpr.total_cmp(&y.fpr));
                    rough.truncate(3);
                    let near = rough.iter().flat_map(|found| {
                        let at = found.threshold;
                        at.saturating_sub(2).max(low)..=(at + 2).min(high)
                    });
                    let fine = near.filter_map(|at_| at(at_, MIDDLE));
                    let fine = fine.filter(Found::is_allowed);
                    let best = fine.min_by(|x, y| x.fpr.total_cmp(&y.fpr));
                    least = best
                        .filter(|b| least.is_none_or(|l| b.fpr < l.fpr))
                        .or(least);
                }
            }
        }
        least
    }
}

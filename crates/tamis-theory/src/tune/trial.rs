//! The best number of arrivals for one block and number of levels.

use super::arrivals::BlockOutcome;
use super::block::Kind;
use super::levels::{Last, Levels};
use super::list::{self, Listed};
use super::search::{Goal, Search};
use crate::balanced::Refuser;

/// Smallest and largest surplus of arrivals over the load, relative.
const SURPLUS: (f64, f64) = (1e-6, 3.0);
/// Rates from here on are penalties of designs that exceed a limit. They
/// fall towards the designs that do not.
pub(crate) const PENALTY: f64 = 2.0;
/// The penalty of too many reads is above that of an overloaded last level: a
/// higher threshold mends the first, and more arrivals the second.
const MANY_READS: f64 = 50.0;
/// The limit of reads is met to this share of the reads after the first. The
/// rate can be steep there.
const SPARE: f64 = 2.5e-5;

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
    /// Logarithm of the relative surplus of arrivals.
    pub(crate) surplus: f64,
    /// The keys that the threshold stands for.
    pub(crate) keys: f64,
    /// The rate at the next threshold, relative: thresholds are integers, so
    /// that the rates of neighbouring kinds scatter as much.
    pub(crate) uneven: f64,
    /// Reads per non-member.
    reads: f64,
    /// Logarithm of the blocks of the last level per key in it.
    room: f64,
}

impl Found {
    /// Whether the design meets the limits.
    pub(crate) fn is_allowed(&self) -> bool {
        self.fpr < PENALTY
    }
}

/// One block and number of choices, with any number of arrivals.
pub(crate) struct Trial<'a> {
    pub(crate) search: &'a Search,
    pub(crate) refuser: Refuser,
    pub(crate) kind: Kind,
    pub(crate) choices: u32,
    pub(crate) last: &'a Last,
    /// Relative error of the rate.
    pub(crate) tolerance: f64,
}

impl Trial<'_> {
    /// The design with the least rate, searched from a surplus.
    pub(crate) fn best(&self, near: Option<f64>) -> Found {
        match self.search.goal {
            Goal::Absorb { max_reads } => self.least(max_reads, near),
            Goal::List { .. } => self.balanced(near),
        }
    }

    /// The design with a logarithm of the surplus.
    fn at(&self, surplus: f64) -> Found {
        let ends = (libm::log(SURPLUS.0), libm::log(SURPLUS.1));
        let surplus = surplus.clamp(ends.0, ends.1);
        self.with_arrivals(self.search.load * (1.0 + libm::exp(surplus)))
    }

    fn with_arrivals(&self, mean: f64) -> Found {
        self.search.count_evaluation();
        let load = self.search.load;
        let surplus = libm::log((mean / load - 1.0).max(SURPLUS.0));
        let tracking_bits = self.kind.tracking_bits;
        let block = BlockOutcome::new(&self.refuser, mean, tracking_bits);
        let mut room = surplus;
        let (fpr, reads) = match self.search.goal {
            Goal::Absorb { max_reads } => {
                let levels = Levels::new(load, &block, self.choices);
                let reads = levels.reads;
                room = -levels.last.map_or(room, libm::log);
                let fpr = if reads > max_reads {
                    let excess = (reads - 1.0) / (max_reads - 1.0);
                    PENALTY + MANY_READS * (1.0 + libm::log(excess))
                } else {
                    let overload = || match levels.last {
                        Some(mean) => PENALTY + libm::log(mean / load),
                        None => PENALTY + 0.8 * MANY_READS - surplus,
                    };
                    levels.fpr(self.last).unwrap_or_else(overload)
                };
                (fpr, reads)
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
            surplus,
            keys: 0.0,
            uneven: 1.0,
            reads,
            room,
        }
    }

    /// The arrivals with the least rate.
    ///
    /// More arrivals mean more reads, and more blocks left for the last
    /// level. So the arrivals allowed are an interval, often a narrow one,
    /// and the rate falls and then rises in it.
    fn least(&self, max_reads: f64, near: Option<f64>) -> Found {
        const STEPS: usize = 40;
        let bracket = match self.allowed(max_reads, near) {
            Ok(bracket) => bracket,
            Err(found) => return found,
        };
        let Bracket { mut left, mut middle, mut right } = bracket;
        let mut stride = if near.is_some() { 0.12 } else { 0.4 };
        for _ in 0..STEPS {
            let step = match (&left, &right) {
                (_, None) => Step::by(stride),
                (None, _) => Step::by(-stride),
                (Some(left), Some(right)) => {
                    self.step(max_reads, left, &middle, right)
                }
            };
            let Some(Step { by, settles }) = step else { break };
            let next = self.at(middle.surplus + by);
            let gain = libm::fabs(next.fpr / middle.fpr - 1.0);
            let bracketed = left.is_some() && right.is_some();
            match (next.fpr < middle.fpr, by < 0.0) {
                (true, true) => (middle, right) = (next, Some(middle)),
                (true, false) => (left, middle) = (Some(middle), next),
                (false, true) => left = Some(next),
                (false, false) => right = Some(next),
            }
            if !bracketed {
                stride *= 1.7;
            } else if libm::fabs(by) < 1e-7
                || (settles && gain < self.tolerance)
            {
                break;
            }
        }
        middle
    }

    /// Arrivals that meet the limits, between such that overload the last
    /// level and such that read too much; an overloaded design if none do.
    fn allowed(
        &self,
        max_reads: f64,
        near: Option<f64>,
    ) -> Result<Bracket, Found> {
        const STEPS: usize = 40;
        /// Wider intervals are bisected: the reads are not yet straight.
        const WIDE: f64 = 0.4;
        let spare = SPARE * (max_reads - 1.0);
        let mut stride = if near.is_some() { 0.12 } else { 0.6 };
        let mut middle = self.at(near.unwrap_or(-2.0));
        let (mut left, mut right): (Option<Found>, Option<Found>) =
            (None, None);
        for _ in 0..STEPS {
            if middle.is_allowed() {
                return Ok(Bracket { left, middle, right });
            }
            let reads_too_much = middle.reads > max_reads;
            match reads_too_much {
                true => right = Some(middle),
                false => left = Some(middle),
            }
            let next = match (&left, &right) {
                (Some(a), Some(_)) if a.reads > max_reads - 4.0 * spare => {
                    return Err(*a);
                }
                (Some(a), Some(b)) if b.surplus - a.surplus > WIDE => {
                    0.5 * (a.surplus + b.surplus)
                }
                (Some(a), Some(b)) => {
                    a.surplus + to_reads(a, b, max_reads - 2.0 * spare)
                }
                _ if reads_too_much => middle.surplus - stride,
                _ => middle.surplus + stride,
            };
            stride *= 2.0;
            let next = self.at(next);
            if next.surplus == middle.surplus {
                return Err(next);
            }
            middle = next;
        }
        Err(left.unwrap_or(middle))
    }

    /// The next step from the middle; none if it would gain too little.
    fn step(
        &self,
        max_reads: f64,
        left: &Found,
        middle: &Found,
        right: &Found,
    ) -> Option<Step> {
        let (a, c) =
            (left.surplus - middle.surplus, right.surplus - middle.surplus);
        let spare = SPARE * (max_reads - 1.0);
        let by = if !right.is_allowed() {
            if middle.reads <= max_reads - 3.0 * spare {
                to_reads(middle, right, max_reads - spare)
            } else if -a < 30.0 * self.tolerance {
                // The rate is least at the limit of reads.
                return None;
            } else {
                0.3 * a
            }
        } else if !left.is_allowed() {
            // Halves the last level, which is soon overloaded.
            let slope = (right.room - middle.room) / c;
            (-0.7 / slope).max(0.7 * a)
        } else {
            let vertex = Vertex::new(left, middle, right);
            if vertex.gain < self.tolerance {
                return None;
            }
            vertex.step
        };
        // Without such a step, a golden section of the longer side.
        let settles = by > a && by < c && right.is_allowed();
        let by = match by > a && by < c {
            true => by,
            false if -a > c => 0.382 * a,
            false => 0.382 * c,
        };
        Some(Step { by, settles })
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
            load * list::reads(q, self.choices) - found.block.arrivals
        };
        let mut before = self.with_arrivals(mean);
        let mut error = missing(&before);
        let mut found = self.with_arrivals(mean + error);
        for _ in 0..STEPS {
            let now = missing(&found);
            let mean = found.block.arrivals;
            if libm::fabs(now) <= 1e-4 * self.tolerance * mean {
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

/// A design that meets the limits, and worse ones with fewer and with more
/// arrivals.
struct Bracket {
    left: Option<Found>,
    middle: Found,
    right: Option<Found>,
}

/// A step in the logarithm of the surplus.
struct Step {
    by: f64,
    /// Whether to stop if it gains too little.
    settles: bool,
}

impl Step {
    fn by(by: f64) -> Option<Self> {
        Some(Self { by, settles: false })
    }
}

/// The least of the parabola through the logarithms of three rates over the
/// room in the last level. Over the surplus the rate has a wall on its left.
struct Vertex {
    /// Its surplus, less that of the middle.
    step: f64,
    /// By how much the rate is lower there, relative; infinite if the three
    /// are too far apart to tell.
    gain: f64,
}

impl Vertex {
    fn new(left: &Found, middle: &Found, right: &Found) -> Self {
        /// The rate is not a parabola over more than this.
        const CURVED: f64 = 0.1;
        let rise = |other: &Found| libm::log(other.fpr / middle.fpr);
        let rises = (rise(left), rise(right));
        let (a, b) = (left.room - middle.room, right.room - middle.room);
        let rate = Parabola::new((a, rises.0), (b, rises.1));
        let surplus = Parabola::new(
            (a, left.surplus - middle.surplus),
            (b, right.surplus - middle.surplus),
        );
        Self {
            step: surplus.at(rate.vertex()),
            gain: match rises.0.max(rises.1) < CURVED {
                true => rate.gain(),
                false => f64::INFINITY,
            },
        }
    }
}

/// A parabola through the origin.
pub(crate) struct Parabola {
    linear: f64,
    square: f64,
}

impl Parabola {
    /// Through two more points.
    pub(crate) fn new((a, at_a): (f64, f64), (b, at_b): (f64, f64)) -> Self {
        let scale = 1.0 / (a * b * (b - a));
        Self {
            linear: (b * b * at_a - a * a * at_b) * scale,
            square: (a * at_b - b * at_a) * scale,
        }
    }

    fn at(&self, x: f64) -> f64 {
        x * (self.linear + x * self.square)
    }

    pub(crate) fn vertex(&self) -> f64 {
        -0.5 * self.linear / self.square
    }

    /// How far the vertex is below the origin.
    pub(crate) fn gain(&self) -> f64 {
        0.25 * self.linear * self.linear / self.square
    }
}

/// The step from `from` towards `to` that reaches `goal` reads: the
/// logarithm of the reads after the first is nearly linear.
fn to_reads(from: &Found, to: &Found, goal: f64) -> f64 {
    let log = |reads: f64| libm::log((reads - 1.0).max(1e-15));
    let part =
        (log(goal) - log(from.reads)) / (log(to.reads) - log(from.reads));
    part * (to.surplus - from.surplus)
}

//! Any balanced filter, followed key by key in the limit of many blocks.
//!
//! The closed forms of [`list`](super::list), [`returned`](super::returned)
//! and [`absorbing`](super::absorbing) cover the designs worth having. This
//! module covers all: every scheme, threshold, overflow and number of
//! tracking bits, at the design load or past it. It also covers an effect
//! that the closed forms leave out: a key that looks present on arrival is
//! not inserted, which shows below 10 bits per key.
//!
//! The state is the distribution of a block over the keys it has, times
//! whether the tracking bit of one fixed class is set. Keys arrive at a
//! constant rate; the equations are those of the paper's (6) and (A.1),
//! integrated by a Runge-Kutta method of order 6. A step is at most half
//! an arrival at the busiest level: the small last level gets most of its
//! keys in the final moments. A prediction takes 0.2 to 2 ms.
//!
//! Blocks that count set bits are followed by arrivals instead of bits, which
//! is 30 to 1000 times faster. Rates then agree with the distribution over
//! all numbers of set bits mostly to 1e-3, and to 2e-3 for rates below 1e-10.
//!
//! ```
//! use tamis_theory::balanced::fluid::{
//!     Choices, Design, Overflow, Refuse, predict,
//! };
//!
//! let outcome = predict(&Design {
//!     block_bits: 512,
//!     bits_per_key: 24.0,
//!     choices: Choices::Sequential(3),
//!     refuse: Refuse::Count { threshold: 22, admission: 0.5 },
//!     overflow: Overflow::First,
//!     probes: 15,
//!     tracking_bits: 8,
//! })?;
//! assert!(outcome.prediction.reads_miss < 1.5);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::refuser::power;
use super::{bits_to_count, payload_bits};
use crate::dot::dot;
use crate::poisson::Poisson;
use crate::{Prediction, Result, block, check};

/// Which blocks are proposed to a key.
///
/// ```
/// use tamis_theory::balanced::fluid::Choices;
/// let single = Choices::Sequential(1);
/// let levels = Choices::Multilevel(vec![0.8, 0.2]);
/// assert_ne!(single, levels);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Choices {
    /// This many of one array; one is SINGLE.
    Sequential(u32),
    /// One of each level; the shares of blocks in the levels.
    Multilevel(Vec<f64>),
}

/// When a block refuses a key.
///
/// ```
/// use tamis_theory::balanced::fluid::Refuse;
/// assert_ne!(Refuse::Popcount(240), Refuse::Popcount(241));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Refuse {
    /// At this many keys, with this chance of taking one more there.
    Count {
        /// h
        threshold: u32,
        /// p
        admission: f64,
    },
    /// At this many set bits.
    Popcount(u32),
}

/// Where a key goes that every block refused.
///
/// ```
/// use tamis_theory::balanced::fluid::Overflow;
/// assert_ne!(Overflow::List, Overflow::First);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// To a list.
    List,
    /// Back to its first block.
    First,
    /// To any of its blocks.
    Random,
    /// None: the last choice takes every key.
    Absorb,
}

/// A balanced filter in full.
///
/// ```
/// use tamis_theory::balanced::fluid::{Choices, Design, Overflow, Refuse};
/// let design = Design {
///     block_bits: 512,
///     bits_per_key: 20.0,
///     choices: Choices::Sequential(2),
///     refuse: Refuse::Popcount(250),
///     overflow: Overflow::List,
///     probes: 12,
///     tracking_bits: 0,
/// };
/// assert_eq!(design.clone(), design);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Size of a block (B).
    pub block_bits: u32,
    /// Memory of the blocks per key offered (beta); the list is extra.
    pub bits_per_key: f64,
    /// Which blocks are proposed.
    pub choices: Choices,
    /// When they refuse.
    pub refuse: Refuse,
    /// Where keys go that every block refused.
    pub overflow: Overflow,
    /// Bits set per key (k).
    pub probes: u32,
    /// Tracking bits per block (t).
    pub tracking_bits: u32,
}

/// Prediction for a design. The coin at the threshold is a hash of
/// the key, and lookups repeat it.
///
/// ```
/// use tamis_theory::balanced::fluid::{
///     Choices, Design, Overflow, Refuse, predict,
/// };
/// // Never refused: a blocked filter.
/// let outcome = predict(&Design {
///     block_bits: 512,
///     bits_per_key: 16.0,
///     choices: Choices::Sequential(1),
///     refuse: Refuse::Popcount(512),
///     overflow: Overflow::Absorb,
///     probes: 9,
///     tracking_bits: 0,
/// })?;
/// let blocked = tamis_theory::blocked::predict(512, 16.0, 9)?;
/// assert!((outcome.prediction.fpr / blocked.fpr - 1.0).abs() < 0.002);
/// assert_eq!(outcome.overflow_fraction, 0.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Rates and reads.
    pub prediction: Prediction,
    /// Average blocks read per insertion (a).
    pub access_budget: f64,
    /// Share of keys that every block refused (gamma).
    pub overflow_fraction: f64,
    /// Bits of a block that count its keys.
    pub counter_bits: u32,
    /// Chance that a non-member consults the list.
    pub list_reads: f64,
}

/// Follows a design from the first key to the last.
///
/// ```
/// use tamis_theory::balanced::fluid::{
///     Choices, Design, Overflow, Refuse, predict,
/// };
/// let outcome = predict(&Design {
///     block_bits: 256,
///     bits_per_key: 40.0,
///     choices: Choices::Multilevel(vec![0.833333, 0.14235, 0.024317]),
///     refuse: Refuse::Count { threshold: 7, admission: 0.112824 },
///     overflow: Overflow::List,
///     probes: 28,
///     tracking_bits: 0,
/// })?;
/// assert!((outcome.access_budget - 1.2).abs() < 1e-5);
/// assert!((outcome.overflow_fraction - 0.00498447).abs() < 1e-6);
/// assert!((outcome.prediction.fpr / 2.00334e-7 - 1.0).abs() < 1e-4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(design: &Design) -> Result<Outcome> {
    let model = Model::new(design)?;
    let end = model.integrate();
    Ok(model.outcome(design, &end))
}

/// Butcher's Runge-Kutta method of order 6 with 7 stages.
const STAGES: [&[f64]; 7] = [
    &[],
    &[1.0 / 3.0],
    &[0.0, 2.0 / 3.0],
    &[1.0 / 12.0, 1.0 / 3.0, -1.0 / 12.0],
    &[-1.0 / 16.0, 9.0 / 8.0, -3.0 / 16.0, -3.0 / 8.0],
    &[0.0, 9.0 / 8.0, -3.0 / 8.0, -3.0 / 4.0, 1.0 / 2.0],
    &[9.0 / 44.0, -9.0 / 11.0, 63.0 / 44.0, 18.0 / 11.0, 0.0, -16.0 / 11.0],
];
const WEIGHTS: [f64; 7] = [
    11.0 / 120.0,
    0.0,
    27.0 / 40.0,
    27.0 / 40.0,
    -4.0 / 15.0,
    -4.0 / 15.0,
    11.0 / 120.0,
];
/// Most arrivals per step at a block of the busiest level, also as a share
/// of their standard deviation: the rate is then exact to about 1e-8.
const STRIDE: (f64, f64) = (0.5, 0.1);
/// Fewest steps, and a bound that no sensible design comes near.
const STEPS: (f64, usize) = (40.0, 100_000);
/// Shares of blocks that never show.
const NOTHING: f64 = 1e-40;

/// Blocks that take every key, followed arrival by arrival.
///
/// State i is "i keys stored" where blocks count keys, and "i keys arrived"
/// where they count set bits: the number of set bits after i arrivals has a
/// fixed distribution, which costs one state instead of one for every number
/// of bits. An arrival that looks present already is not stored; one that
/// is certainly new always is, so it counts as 1/(1-claims) arrivals.
/// That is exact for the first choice of a key and for all without tracking
/// bits, and good to 1e-4 of the rate otherwise.
struct Open {
    /// Share of the blocks in a state that are not full yet.
    open: Vec<f64>,
    /// Chance that such a block claims a key it does not have, times `open`.
    claimed: Vec<f64>,
    /// Steps per key that may be present, and per key that is new.
    maybe: Vec<f64>,
    new: Vec<f64>,
    /// Share of the blocks that the next step fills.
    fills: Vec<f64>,
    /// Their bits beyond the threshold, where blocks count bits.
    beyond: Vec<f64>,
    /// The first state that has any such.
    first_fill: usize,
    /// Where blocks count bits: the number of set bits of the blocks each
    /// step fills, from the threshold on.
    filled: Vec<Vec<f64>>,
}

/// Blocks that have reached the threshold, by the keys they took since.
struct Full {
    claims: Vec<f64>,
    takes: Vec<f64>,
}

struct Level {
    /// Blocks of this level per block of the filter.
    share: f64,
    tracking_bits: u32,
    payload_bits: u32,
    open: Open,
    full: Full,
    /// Where its unknowns begin: open blocks, full ones without the tracking
    /// bit of a fixed class, full ones with it; and of the full ones, the
    /// bits beyond the threshold with which they became full, per block.
    at: usize,
}

impl Level {
    fn open<'a>(&self, y: &'a [f64]) -> &'a [f64] {
        &y[self.at..self.at + self.open.open.len()]
    }

    /// Full blocks without and with the tracking bit.
    fn full<'a>(&self, y: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        let at = self.at + self.open.open.len();
        y[at..at + 2 * self.full.claims.len()].split_at(self.full.claims.len())
    }

    /// Bits beyond the threshold of full blocks when they became full.
    fn beyond<'a>(&self, y: &'a [f64]) -> &'a [f64] {
        &y[self.end() - self.full.claims.len()..self.end()]
    }

    fn end(&self) -> usize {
        self.at + self.open.open.len() + 3 * self.full.claims.len()
    }
}

struct Model {
    levels: Vec<Level>,
    /// The level of each choice.
    level_of: Vec<usize>,
    overflow: Overflow,
    probes: u32,
    load: f64,
    counter_bits: u32,
    /// The set bits at which blocks refuse, if they count those.
    set_bits: Option<u32>,
}

/// The states of a level that have mass.
#[derive(Clone)]
struct Active {
    open: Range<usize>,
    full: usize,
}

impl Model {
    fn new(design: &Design) -> Result<Self> {
        let block_bits = check::block_bits(design.block_bits)?;
        let bits_per_key = check::bits_per_key(design.bits_per_key)?;
        let probes = check::probes(design.probes, 1)?;
        let tracking = f64::from(design.tracking_bits);
        check::in_range("tracking_bits", tracking, 0.0, 64.0)?;
        let (shares, level_of) = match &design.choices {
            Choices::Sequential(choices) => {
                let choices = check::choices(*choices, 1)? as usize;
                (vec![1.0], vec![0; choices])
            }
            Choices::Multilevel(shares) => {
                let shares = check::level_shares(shares)?;
                (shares.to_vec(), (0..shares.len()).collect())
            }
        };
        let counter_bits = match design.refuse {
            Refuse::Count { threshold, admission } => {
                check::threshold(threshold)?;
                check::in_range("admission", admission, 0.0, 1.0)?;
                bits_to_count(threshold + 1)
            }
            Refuse::Popcount(_) => 0,
        };
        let load = f64::from(block_bits) / bits_per_key;
        let payload =
            payload_bits(block_bits, counter_bits, design.tracking_bits)?;
        let expected = expected_arrivals(design, payload, load, &shares);
        let single = level_of.len() == 1 || shares.len() > 1;
        let mut levels: Vec<Level> = Vec::with_capacity(shares.len());
        for (index, &share) in shares.iter().enumerate() {
            let bare = design.overflow == Overflow::Absorb
                && single
                && index + 1 == shares.len();
            let (arrivals, returned) = expected[index];
            let most = room(arrivals);
            let at = levels.last().map_or(0, Level::end);
            let level = if bare {
                let open = match design.refuse {
                    Refuse::Count { .. } => {
                        Open::by_count(block_bits, probes, most, true)?
                    }
                    Refuse::Popcount(_) => {
                        Open::by_popcount(block_bits, probes, None, most)
                    }
                };
                let full = Full { claims: Vec::new(), takes: Vec::new() };
                let (tracking_bits, payload_bits) = (0, block_bits);
                Level { share, tracking_bits, payload_bits, open, full, at }
            } else {
                let (open, full) =
                    refusing(design, payload, most, room(returned), arrivals)?;
                let tracking_bits = design.tracking_bits;
                let payload_bits = payload;
                Level { share, tracking_bits, payload_bits, open, full, at }
            };
            levels.push(level);
        }
        Ok(Self {
            levels,
            level_of,
            overflow: design.overflow,
            probes,
            load,
            counter_bits,
            set_bits: match design.refuse {
                Refuse::Count { .. } => None,
                Refuse::Popcount(set_bits) => Some(set_bits),
            },
        })
    }

    /// Behind the levels: keys placed by each choice and refused by all, per
    /// key offered.
    fn totals(&self) -> usize {
        self.levels.last().map_or(0, Level::end)
    }

    fn integrate(&self) -> Vec<f64> {
        let size = self.totals() + self.level_of.len() + 1;
        let mut y = vec![0.0; size];
        for level in &self.levels {
            // The first open state, or the first full one without any.
            y[level.at] = 1.0;
        }
        let mut slopes: [Vec<f64>; 7] = core::array::from_fn(|_| y.clone());
        let mut trial = y.clone();
        let mut flow = vec![0.0; size];
        let deviation = libm::sqrt(self.load);
        let stride = STRIDE.0.min(STRIDE.1 * deviation);
        let mut now = 0.0;
        for _ in 0..STEPS.1 {
            let active = self.active(&y);
            let ranges = self.ranges(&active);
            let busiest = self.rate(&y, &active, &mut flow, &mut slopes[0]);
            let step = (stride / busiest.max(1e-9)).min(1.0 / STEPS.0);
            let left = 1.0 - now;
            // No last step of rounding size.
            let step = if 1.001 * step >= left { left } else { step };
            for (stage, factors) in STAGES.iter().enumerate().skip(1) {
                let (before, rest) = slopes.split_at_mut(stage);
                add(&ranges, &y, step, factors, before, &mut trial);
                self.rate(&trial, &active, &mut flow, &mut rest[0]);
            }
            add(&ranges, &y, step, &WEIGHTS, &slopes, &mut trial);
            for range in &ranges {
                y[range.clone()].copy_from_slice(&trial[range.clone()]);
            }
            now += step;
            if step >= left {
                break;
            }
        }
        y
    }

    /// The states that have mass or get some in the next step.
    fn active(&self, y: &[f64]) -> Vec<Active> {
        let active = |level: &Level| {
            let has = |mass: &f64| *mass > NOTHING;
            let open = level.open(y);
            let low = open.iter().position(has).unwrap_or(open.len());
            let high = open.iter().rposition(has).map_or(0, |i| i + 8);
            let high = high.min(open.len());
            let (plain, marked) = level.full(y);
            let full = plain.iter().rposition(has);
            let full = full.max(marked.iter().rposition(has));
            let full = full.map_or(8, |i| i + 8).min(plain.len());
            Active { open: low.min(high)..high, full }
        };
        self.levels.iter().map(active).collect()
    }

    /// The unknowns that change.
    fn ranges(&self, active: &[Active]) -> Vec<Range<usize>> {
        let mut ranges = Vec::with_capacity(4 * active.len() + 1);
        for (level, active) in self.levels.iter().zip(active) {
            let at = level.at;
            ranges.push(at + active.open.start..at + active.open.end);
            let at = at + level.open.open.len();
            ranges.push(at..at + active.full);
            for part in 1..3 {
                let at = at + part * level.full.claims.len();
                ranges.push(at..at + active.full);
            }
        }
        let totals = self.totals();
        ranges.push(totals..totals + self.level_of.len() + 1);
        ranges
    }

    /// The chance that choice `choice` takes a key in a full state.
    fn takes(&self, choice: usize, state: usize) -> f64 {
        let last = choice + 1 == self.level_of.len();
        if self.overflow == Overflow::Absorb && last {
            return 1.0;
        }
        self.levels[self.level_of[choice]].full.takes[state]
    }

    /// The derivatives of the active unknowns; returns the keys that arrive
    /// at a block of the busiest level per unit of time.
    fn rate(
        &self,
        y: &[f64],
        active: &[Active],
        flow: &mut [f64],
        dy: &mut [f64],
    ) -> f64 {
        let choices = self.level_of.len();
        let refused: Vec<f64> = (0..choices)
            .map(|choice| {
                let index = self.level_of[choice];
                let (plain, marked) = self.levels[index].full(y);
                (0..active[index].full)
                    .map(|s| {
                        (plain[s] + marked[s]) * (1.0 - self.takes(choice, s))
                    })
                    .sum()
            })
            .collect();
        // Share of open blocks, and the chance that one claims a key.
        let open: Vec<[f64; 2]> = self
            .levels
            .iter()
            .zip(active)
            .map(|(level, active)| {
                let (plain, marked) = level.full(y);
                let full: f64 = plain[..active.full]
                    .iter()
                    .chain(&marked[..active.full])
                    .sum();
                let range = active.open.clone();
                let claimed = dot(
                    &level.open(y)[range.clone()],
                    &level.open.claimed[range],
                );
                [1.0 - full, claimed]
            })
            .collect();
        for (level, active) in self.levels.iter().zip(active) {
            let at = level.at + level.open.open.len();
            let states = level.full.claims.len();
            for part in 0..3 {
                let at = at + part * states;
                dy[at..at + active.full].fill(0.0);
            }
        }
        // Keys that reach a choice and may be present as far as a lookup
        // can tell, and those that certainly are new.
        let (mut maybe, mut new) = (1.0, 0.0);
        let mut arrivals = vec![[0.0; 2]; self.levels.len()];
        let totals = self.totals();
        for choice in 0..choices {
            let index = self.level_of[choice];
            let level = &self.levels[index];
            let per_block = self.load / level.share;
            arrivals[index][0] += per_block * maybe;
            arrivals[index][1] += per_block * new;
            // All later choices refuse as well, and it comes back here.
            let all_later: f64 = refused[choice + 1..].iter().product();
            let comes_back = match self.overflow {
                Overflow::First if choice == 0 => all_later,
                Overflow::Random => all_later / choices as f64,
                _ => 0.0,
            };
            // It ends in a later block or in the list, and leaves its mark.
            let earlier = (choice + 1) as f64 / choices as f64;
            let leaves_mark = match self.overflow {
                Overflow::List | Overflow::Absorb => 1.0,
                Overflow::First => 1.0 - all_later,
                Overflow::Random => 1.0 - all_later * earlier,
            };
            let tracked = level.tracking_bits > 0;
            let classes = f64::from(level.tracking_bits.max(1));
            let mark = if tracked { leaves_mark / classes } else { 0.0 };
            let [share, claimed] = open[index];
            let mut placed = maybe * (share - claimed) + new * share;
            let (mut next_maybe, mut next_new) = (0.0, 0.0);
            let (plain, marked) = level.full(y);
            let beyond = level.beyond(y);
            let at = level.at + level.open.open.len();
            let states = level.full.claims.len();
            for s in 0..active[index].full {
                let mass = plain[s] + marked[s];
                let maybe_here = maybe * (1.0 - level.full.claims[s]);
                let offered = maybe_here + new;
                let takes = self.takes(choice, s);
                let accepted = offered * takes;
                let turned_away = offered * (1.0 - takes);
                let stays = accepted + turned_away * comes_back;
                placed += accepted * mass;
                let marking = per_block * turned_away * mark * plain[s];
                let (p, m) = (at + s, at + states + s);
                let b = m + states;
                dy[p] -= marking;
                dy[m] += marking;
                // The last state absorbs all later keys.
                if s + 1 < states {
                    let up = per_block * stays;
                    dy[p] -= up * plain[s];
                    dy[m] -= up * marked[s];
                    dy[b] -= up * beyond[s];
                    dy[p + 1] += up * plain[s];
                    dy[m + 1] += up * marked[s];
                    dy[b + 1] += up * beyond[s];
                }
                let still_maybe = if tracked { marked[s] } else { mass };
                next_maybe += maybe_here * (1.0 - takes) * still_maybe;
                next_new += (1.0 - takes)
                    * (new * mass + maybe_here * (mass - still_maybe));
            }
            dy[totals + choice] = placed;
            (maybe, new) = (next_maybe, next_new);
        }
        dy[totals + choices] = maybe + new;
        let all = self.levels.iter().zip(active).zip(&arrivals);
        for ((level, active), arrivals) in all {
            let [filled, beyond] = level.open.advance(
                level.open(y),
                active.open.clone(),
                *arrivals,
                flow,
                &mut dy[level.at..],
            );
            let states = level.full.claims.len();
            if states > 0 {
                dy[level.at + level.open.open.len()] += filled;
                dy[level.end() - states] += beyond;
            }
        }
        arrivals.iter().map(|a| a[0] + a[1]).fold(0.0, f64::max)
    }

    fn outcome(&self, design: &Design, end: &[f64]) -> Outcome {
        let choices = self.level_of.len();
        let claims: Vec<Vec<f64>> =
            self.levels.iter().map(|l| self.final_claims(l, end)).collect();
        let (mut fpr, mut reads_miss, mut reach) = (0.0, 0.0, 1.0);
        for choice in 0..choices {
            let index = self.level_of[choice];
            let level = &self.levels[index];
            let mut claimed = dot(level.open(end), &level.open.claimed);
            let mut passed = 0.0;
            let (plain, marked) = level.full(end);
            for (s, claims) in claims[index].iter().enumerate() {
                let goes_on = match level.tracking_bits {
                    0 => plain[s] + marked[s],
                    _ => marked[s],
                };
                claimed += (plain[s] + marked[s]) * claims;
                passed +=
                    goes_on * (1.0 - claims) * (1.0 - self.takes(choice, s));
            }
            reads_miss += reach;
            fpr += reach * claimed;
            reach *= passed;
        }
        let totals = &end[self.totals()..];
        let (placed_by, refused) = (&totals[..choices], totals[choices]);
        let items = placed_by.iter().sum::<f64>() + refused;
        let placed: f64 = (1..)
            .zip(placed_by)
            .map(|(j, p): (u32, _)| f64::from(j) * p)
            .sum();
        let all = choices as f64;
        let reads_of_refused = match self.overflow {
            Overflow::List => all,
            Overflow::First => 1.0,
            Overflow::Random => (all + 1.0) / 2.0,
            Overflow::Absorb => 0.0,
        };
        let mean =
            |refused_reads: f64| (placed + refused_reads * refused) / items;
        Outcome {
            prediction: Prediction {
                bits_per_key: design.bits_per_key,
                probes: self.probes,
                fpr,
                reads_hit: mean(reads_of_refused),
                reads_miss,
            },
            access_budget: mean(all),
            overflow_fraction: refused / items,
            counter_bits: self.counter_bits,
            list_reads: match self.overflow {
                Overflow::List => reach,
                _ => 0.0,
            },
        }
    }

    /// The claims of full blocks at the end. Where blocks count bits, these
    /// are those of the blocks that really filled up, not of those expected
    /// to.
    fn final_claims(&self, level: &Level, end: &[f64]) -> Vec<f64> {
        let Some(set_bits) = self.set_bits else {
            return level.full.claims.clone();
        };
        if level.full.claims.is_empty() {
            return Vec::new();
        }
        let mut beyond = 1.0;
        let weights = level.open(end).iter().map(|share| {
            beyond -= share;
            beyond
        });
        let law = first_full(&level.open.filled, weights);
        let expected = mean_index(&law);
        let states = level.full.claims.len();
        let bits = level.payload_bits;
        let mut claims =
            full_claims(bits, self.probes, set_bits, &law, states);
        // Blocks that became full early took more keys since, and have a
        // few bits more or less than the average: of (x/bits)^k, the
        // logarithm is about straight in x.
        let (bits, k) = (f64::from(bits), f64::from(self.probes));
        let (plain, marked) = level.full(end);
        let all = claims.iter_mut().zip(level.beyond(end));
        let all = all.zip(plain.iter().zip(marked));
        for (j, ((claims, beyond), (plain, marked))) in all.enumerate() {
            let mass = plain + marked;
            if mass > NOTHING && *claims > 0.0 {
                let throws = k * j as f64;
                let left = libm::exp(throws * libm::log1p(-1.0 / bits));
                let set = bits * libm::pow(*claims, 1.0 / k);
                let bits_more = (beyond / mass - expected) * left;
                *claims *= libm::exp(k * bits_more / set);
                *claims = claims.min(1.0);
            }
        }
        claims
    }
}

/// The sum of i `law[i]`.
fn mean_index(law: &[f64]) -> f64 {
    law.iter().enumerate().map(|(i, chance)| i as f64 * chance).sum()
}

/// `sum` = `y` + `step` * (`factors` * `slopes`) in the ranges.
fn add(
    ranges: &[Range<usize>],
    y: &[f64],
    step: f64,
    factors: &[f64],
    slopes: &[Vec<f64>],
    sum: &mut [f64],
) {
    for range in ranges {
        let sum = &mut sum[range.clone()];
        sum.copy_from_slice(&y[range.clone()]);
        for (factor, slope) in factors.iter().zip(slopes) {
            if *factor == 0.0 {
                continue;
            }
            let factor = step * factor;
            for (sum, slope) in sum.iter_mut().zip(&slope[range.clone()]) {
                *sum += factor * slope;
            }
        }
    }
}

impl Open {
    /// `most` states of blocks that count their keys; if they are `bare`
    /// the last state absorbs all later keys, otherwise it fills up.
    fn by_count(
        bits: u32,
        probes: u32,
        most: usize,
        bare: bool,
    ) -> Result<Self> {
        let most_keys = most.saturating_sub(1) as u32;
        let mut claims = block::exact(bits, probes, most_keys)?;
        claims.truncate(most);
        let mut open = Open {
            open: vec![1.0; most],
            maybe: claims.iter().map(|claims| 1.0 - claims).collect(),
            new: vec![1.0; most],
            claimed: claims,
            fills: vec![0.0; most],
            beyond: Vec::new(),
            first_fill: most.saturating_sub(1),
            filled: Vec::new(),
        };
        if let Some(last) = most.checked_sub(1) {
            if bare {
                (open.maybe[last], open.new[last]) = (0.0, 0.0);
            } else {
                open.fills[last] = 1.0;
            }
        }
        Ok(open)
    }

    /// Up to `most` arrivals at blocks that refuse from `set_bits` set bits
    /// on, or never.
    fn by_popcount(
        bits: u32,
        probes: u32,
        set_bits: Option<u32>,
        most: usize,
    ) -> Self {
        const CUT: f64 = 1e-22;
        let bits = bits as usize;
        let end = set_bits.map_or(bits + 1, |n| (n as usize).min(bits + 1));
        let throws = Throws::new(bits, probes);
        let mut open = Open {
            open: Vec::new(),
            claimed: Vec::new(),
            maybe: Vec::new(),
            new: Vec::new(),
            fills: Vec::new(),
            beyond: Vec::new(),
            first_fill: usize::MAX,
            filled: Vec::new(),
        };
        let mut mass = vec![0.0; bits + 1];
        mass[0] = 1.0;
        let (mut low, mut high) = (0, 0);
        let mut stored = mass.clone();
        for i in 0..most {
            let range = low..(high + 1).min(end);
            let here = &mass[range.clone()];
            let share: f64 = here.iter().sum();
            if share < 1e-16 {
                break;
            }
            let claimed = dot(here, &throws.claims[range.clone()]);
            open.open.push(share);
            open.claimed.push(claimed);
            open.maybe.push(1.0);
            open.new.push(share / (share - claimed).max(1e-9 * share));
            stored.fill(0.0);
            for x in range.clone() {
                stored[x] = mass[x] * (1.0 - throws.claims[x]);
                mass[x] *= throws.claims[x];
            }
            let top = throws.key(&mut stored, (low, high));
            for x in low..=top {
                mass[x] += stored[x];
            }
            high = top;
            let law: Vec<f64> =
                mass.get(end..=high).map_or_else(Vec::new, <[f64]>::to_vec);
            if high >= end {
                mass[end..=high].fill(0.0);
                high = end.saturating_sub(1);
            }
            let fills: f64 = law.iter().sum();
            if fills > 0.0 {
                open.first_fill = open.first_fill.min(i);
            }
            open.fills.push(fills);
            open.beyond.push(mean_index(&law));
            open.filled.push(law);
            while low < high && mass[low] < CUT {
                mass[low] = 0.0;
                low += 1;
            }
            while high > low && mass[high] < CUT {
                mass[high] = 0.0;
                high -= 1;
            }
        }
        if let (None, Some(last)) = (set_bits, open.open.len().checked_sub(1))
        {
            (open.maybe[last], open.new[last]) = (0.0, 0.0);
        }
        open
    }

    /// Moves blocks one state up; returns how many become full, and how many
    /// bits beyond the threshold they have.
    fn advance(
        &self,
        y: &[f64],
        range: Range<usize>,
        [maybe, new]: [f64; 2],
        flow: &mut [f64],
        dy: &mut [f64],
    ) -> [f64; 2] {
        let (low, high) = (range.start, range.end);
        if low == high {
            return [0.0; 2];
        }
        let flow = &mut flow[..=high - low];
        flow[0] = 0.0;
        let steps = self.maybe[range.clone()].iter();
        let steps = steps.zip(&self.new[range.clone()]);
        let all = steps.zip(&y[range.clone()]);
        for (flow, ((m, n), y)) in flow[1..].iter_mut().zip(all) {
            *flow = (maybe * m + new * n) * y;
        }
        for (dy, flow) in dy[range].iter_mut().zip(flow.windows(2)) {
            *dy = flow[0] - flow[1];
        }
        let first = self.first_fill.max(low).min(high);
        let flow = &flow[first + 1 - low..];
        [&self.fills, &self.beyond]
            .map(|fills| fills.get(first..high).map_or(0.0, |f| dot(flow, f)))
    }
}

/// Uniform throws into a block.
struct Throws {
    probes: u32,
    /// x/bits.
    hit: Vec<f64>,
    /// The chance to get from x - 1 to x.
    rise: Vec<f64>,
    /// (x/bits)^probes.
    claims: Vec<f64>,
}

impl Throws {
    fn new(bits: usize, probes: u32) -> Self {
        let share = |x: usize| x as f64 / bits as f64;
        let hit: Vec<f64> = (0..=bits).map(share).collect();
        let claims = hit.iter().map(|hit| power(*hit, probes as usize));
        Throws {
            probes,
            rise: (0..=bits).map(|x| share(bits + 1 - x.max(1))).collect(),
            claims: claims.collect(),
            hit,
        }
    }

    /// Stores a key in blocks with `low` to `high` set bits; returns the
    /// most set bits then.
    fn key(&self, mass: &mut [f64], (low, mut high): (usize, usize)) -> usize {
        for _ in 0..self.probes {
            high = (high + 1).min(mass.len() - 1);
            let mut below = 0.0;
            let states = mass[low..=high].iter_mut();
            let chances = self.hit[low..=high].iter().zip(&self.rise[low..]);
            for (mass, (hit, rise)) in states.zip(chances) {
                let here = *mass;
                *mass = here * hit + below * rise;
                below = here;
            }
        }
        high
    }
}

/// Open and full blocks of a level that refuses.
fn refusing(
    design: &Design,
    payload: u32,
    most: usize,
    returned: usize,
    arrivals: f64,
) -> Result<(Open, Full)> {
    let probes = design.probes;
    // A full block that takes nothing has one state.
    let extra = match design.overflow {
        Overflow::List => 0,
        Overflow::First | Overflow::Random | Overflow::Absorb => returned,
    };
    match design.refuse {
        Refuse::Count { threshold, admission } => {
            let h = threshold as usize;
            let open = Open::by_count(payload, probes, h, false)?;
            let states = 2 + extra;
            let claims =
                block::exact(payload, probes, threshold + states as u32)?;
            let mut takes = vec![0.0; states];
            takes[0] = admission;
            let claims = claims[h..h + states].to_vec();
            Ok((open, Full { claims, takes }))
        }
        Refuse::Popcount(set_bits) => {
            let at = Some(set_bits);
            let open = Open::by_popcount(payload, probes, at, most);
            let expected = Poisson::new(arrivals);
            let weights = expected.tails().iter().skip(1).copied();
            let law = first_full(&open.filled, weights);
            let states = 1 + extra;
            let claims = full_claims(payload, probes, set_bits, &law, states);
            Ok((open, Full { claims, takes: vec![0.0; states] }))
        }
    }
}

/// The set bits of blocks when they become full, from the threshold on,
/// weighted by how many do so at each arrival.
fn first_full(
    filled: &[Vec<f64>],
    weights: impl Iterator<Item = f64>,
) -> Vec<f64> {
    let longest = filled.iter().map(Vec::len).max().unwrap_or(0);
    let mut law = vec![0.0; longest.max(1)];
    for (filled, weight) in filled.iter().zip(weights) {
        for (law, filled) in law.iter_mut().zip(filled) {
            *law += weight * filled;
        }
    }
    let total: f64 = law.iter().sum();
    if total > 0.0 {
        law.iter_mut().for_each(|law| *law /= total);
    } else {
        law[0] = 1.0;
    }
    law
}

/// The chance that a full block claims a key, after 0, 1, .. keys more.
fn full_claims(
    bits: u32,
    probes: u32,
    set_bits: u32,
    law: &[f64],
    states: usize,
) -> Vec<f64> {
    let throws = Throws::new(bits as usize, probes);
    let first = (set_bits as usize).min(bits as usize);
    let mut mass = vec![0.0; bits as usize + 1];
    let mut high = (first + law.len() - 1).min(bits as usize);
    mass[first..=high].copy_from_slice(&law[..=high - first]);
    let mut claims = Vec::with_capacity(states);
    for state in 0..states {
        let range = first..=high;
        let total: f64 = mass[range.clone()].iter().sum();
        let claimed = dot(&mass[range.clone()], &throws.claims[range.clone()]);
        claims.push((claimed / total).min(1.0));
        if state + 1 < states {
            for x in range {
                mass[x] *= (1.0 - throws.claims[x]) / total;
            }
            high = throws.key(&mut mass, (first, high));
        }
        if claimed >= 0.999_999 * total {
            break;
        }
    }
    claims.resize(states, 1.0);
    claims
}

/// Keys that arrive at a block of each level, and those that come back to it,
/// if no key looks present: upper bounds that decide the number of states.
fn expected_arrivals(
    design: &Design,
    payload: u32,
    load: f64,
    shares: &[f64],
) -> Vec<(f64, f64)> {
    let threshold = match design.refuse {
        Refuse::Count { threshold, .. } => f64::from(threshold),
        Refuse::Popcount(set_bits) => {
            let bits = f64::from(payload);
            let clear = 1.0 - f64::from(set_bits).min(bits - 0.5) / bits;
            let throws = libm::log(clear) / libm::log1p(-1.0 / bits);
            throws / f64::from(design.probes)
        }
    };
    let choices = match design.choices {
        Choices::Sequential(choices) => f64::from(choices),
        Choices::Multilevel(_) => shares.len() as f64,
    };
    if shares.len() == 1 {
        return vec![(load * choices.min(2.0), load)];
    }
    let mut reaching = 1.0;
    let mut expected = Vec::with_capacity(shares.len());
    for share in shares {
        let mean = (load * reaching / share).min(1e4);
        expected.push((mean, 0.0));
        let excess = Poisson::new(mean).excess(threshold as usize);
        reaching *= (excess / mean.max(1e-300)).min(1.0);
    }
    for (index, (expected, share)) in
        expected.iter_mut().zip(shares).enumerate()
    {
        let chance = match design.overflow {
            Overflow::First => f64::from(index == 0),
            Overflow::Random => 1.0 / choices,
            Overflow::List | Overflow::Absorb => 0.0,
        };
        expected.1 = load * reaching * chance / share;
    }
    expected
}

/// States for a mean number of keys, and those that more blocks than one in
/// 10^20 have.
fn room(mean: f64) -> usize {
    (1.2 * mean + 11.0 * libm::sqrt(mean) + 25.0).min(4000.0) as usize
}

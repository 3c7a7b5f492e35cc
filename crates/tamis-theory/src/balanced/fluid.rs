//! Any balanced filter, followed key by key in the limit of many blocks.
//!
//! The closed forms of [`list`](super::list), [`returned`](super::returned)
//! and [`absorbing`](super::absorbing) cover the designs worth having. This
//! one covers all: every scheme, threshold, overflow and number of tracking
//! bits, at the design load or past it, and what the closed forms leave out:
//! a key that looks present when it comes is not inserted again, which shows
//! below 10 bits per key.
//!
//! The state is the distribution of a block over its loads (or set bits),
//! times whether the tracking bit of one fixed class is set. Keys arrive at a
//! constant rate and move it; the equations are those of the paper's (6) and
//! (A.1), integrated by the classic Runge-Kutta method with a step that is a
//! fixed fraction of the time between two arrivals at the busiest level: the
//! small last level gets most of its keys in the final moments.
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

use super::{bits_to_count, payload_bits};
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
    /// There is none: the last choice takes everything.
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
    /// What then.
    pub overflow: Overflow,
    /// Bits set per key (k).
    pub probes: u32,
    /// Tracking bits per block (t).
    pub tracking_bits: u32,
}

/// What a design is predicted to do. The coin at the threshold is a hash of
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

/// Runge-Kutta steps per key that arrives at a block of the busiest level.
const STEPS_PER_ARRIVAL: f64 = 5.0;
/// Steps at least, and a bound that no sensible design comes near.
const STEPS: (f64, usize) = (100.0, 100_000);

/// What one level's blocks look like and do.
struct LevelModel {
    /// Blocks of this level per block of the filter.
    share: f64,
    /// Chance that a block in a state claims a key it does not have.
    claims: Vec<f64>,
    /// Chance that a block in a state takes a key.
    takes: Vec<f64>,
    tracking_bits: u32,
    /// Bits behind the claims; the step from state to state if the state is
    /// a number of set bits.
    bits: u32,
}

struct Model {
    levels: Vec<LevelModel>,
    /// The level of each choice.
    level_of: Vec<usize>,
    overflow: Overflow,
    by_popcount: bool,
    probes: u32,
    load: f64,
    counter_bits: u32,
}

/// The unknowns: for each level the states without and with the tracking
/// bit, and what has been counted so far.
#[derive(Clone)]
struct State {
    /// `plain[level][state]`, `marked[level][state]`.
    plain: Vec<Vec<f64>>,
    marked: Vec<Vec<f64>>,
    /// Keys placed by each choice, and refused by all, per key offered.
    placed: Vec<f64>,
    refused: f64,
}

impl State {
    /// self + factor * rate
    fn plus(&self, factor: f64, rate: &Self) -> Self {
        let mut sum = self.clone();
        let add = |sum: &mut [Vec<f64>], rate: &[Vec<f64>]| {
            for (sum, rate) in sum.iter_mut().zip(rate) {
                for (sum, rate) in sum.iter_mut().zip(rate) {
                    *sum += factor * rate;
                }
            }
        };
        add(&mut sum.plain, &rate.plain);
        add(&mut sum.marked, &rate.marked);
        for (sum, rate) in sum.placed.iter_mut().zip(&rate.placed) {
            *sum += factor * rate;
        }
        sum.refused += factor * rate.refused;
        sum
    }
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
        let by_popcount = matches!(design.refuse, Refuse::Popcount(_));
        let last = shares.len() - 1;
        let mut levels = Vec::new();
        for (level, &share) in shares.iter().enumerate() {
            let own_level = matches!(design.choices, Choices::Multilevel(_))
                || level_of.len() == 1;
            let bare = design.overflow == Overflow::Absorb
                && own_level
                && level == last;
            let (counter, tracking_bits) = if bare {
                (0, 0)
            } else {
                (counter_bits, design.tracking_bits)
            };
            let bits = payload_bits(block_bits, counter, tracking_bits)?;
            levels.push(LevelModel {
                share,
                claims: claims(design, bits, load / share)?,
                takes: Vec::new(),
                tracking_bits,
                bits,
            });
            let states = levels[level].claims.len();
            levels[level].takes = (0..states)
                .map(|state| if bare { 1.0 } else { takes(design, state) })
                .collect();
        }
        Ok(Self {
            levels,
            level_of,
            overflow: design.overflow,
            by_popcount,
            probes,
            load,
            counter_bits,
        })
    }

    fn integrate(&self) -> State {
        let empty = |first: f64| -> Vec<Vec<f64>> {
            let states = |level: &LevelModel| {
                let mut states = vec![0.0; level.claims.len()];
                states[0] = first;
                states
            };
            self.levels.iter().map(states).collect()
        };
        let mut state = State {
            plain: empty(1.0),
            marked: empty(0.0),
            placed: vec![0.0; self.level_of.len()],
            refused: 0.0,
        };
        let mut now = 0.0;
        for _ in 0..STEPS.1 {
            let (k1, arrivals) = self.rate(&state);
            let fraction = (arrivals * STEPS_PER_ARRIVAL).max(STEPS.0);
            let step = (1.0 / fraction).min(1.0 - now);
            let rate = |state: &State| self.rate(state).0;
            let k2 = rate(&state.plus(step / 2.0, &k1));
            let k3 = rate(&state.plus(step / 2.0, &k2));
            let k4 = rate(&state.plus(step, &k3));
            state = state
                .plus(step / 6.0, &k1)
                .plus(step / 3.0, &k2)
                .plus(step / 3.0, &k3)
                .plus(step / 6.0, &k4);
            now += step;
            if now >= 1.0 {
                break;
            }
        }
        state
    }

    /// What choice `choice` does when a share of 1 arrives.
    fn takes_at(&self, choice: usize, state: usize) -> f64 {
        let last = choice + 1 == self.level_of.len();
        if self.overflow == Overflow::Absorb && last {
            return 1.0;
        }
        self.levels[self.level_of[choice]].takes[state]
    }

    /// The share of keys that choice `choice` refuses.
    fn refused_at(&self, choice: usize, state: &State) -> f64 {
        let level = self.level_of[choice];
        (0..state.plain[level].len())
            .map(|s| {
                let mass = state.plain[level][s] + state.marked[level][s];
                mass * (1.0 - self.takes_at(choice, s))
            })
            .sum()
    }

    /// How the state changes, and how many keys arrive at a block of the
    /// busiest level, per unit of time.
    fn rate(&self, state: &State) -> (State, f64) {
        let choices = self.level_of.len();
        let refused: Vec<f64> =
            (0..choices).map(|j| self.refused_at(j, state)).collect();
        let mut rate = State {
            plain: self
                .levels
                .iter()
                .map(|l| vec![0.0; l.claims.len()])
                .collect(),
            marked: self
                .levels
                .iter()
                .map(|l| vec![0.0; l.claims.len()])
                .collect(),
            placed: vec![0.0; choices],
            refused: 0.0,
        };
        // Keys that reach a choice and may be present as far as a lookup
        // knows, and those that certainly are new.
        let (mut maybe, mut new) = (1.0, 0.0);
        let mut arrivals = vec![0.0; self.levels.len()];
        for choice in 0..choices {
            let index = self.level_of[choice];
            let level = &self.levels[index];
            let per_block = self.load / level.share;
            arrivals[index] += per_block * (maybe + new);
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
            let classes = f64::from(level.tracking_bits.max(1));
            let mark = match level.tracking_bits {
                0 => 0.0,
                _ => leaves_mark / classes,
            };
            let (mut next_maybe, mut next_new) = (0.0, 0.0);
            let states = level.claims.len();
            let mut flow_plain = vec![0.0; states];
            let mut flow_marked = vec![0.0; states];
            for s in 0..states {
                let (plain, marked) =
                    (state.plain[index][s], state.marked[index][s]);
                if plain + marked <= 0.0 {
                    continue;
                }
                let offered = maybe * (1.0 - level.claims[s]) + new;
                let takes = self.takes_at(choice, s);
                let accepted = offered * takes;
                let turned_away = offered * (1.0 - takes);
                let stays = accepted + turned_away * comes_back;
                flow_plain[s] = per_block * stays * plain;
                flow_marked[s] = per_block * stays * marked;
                rate.placed[choice] += accepted * (plain + marked);
                let marking = per_block * turned_away * mark * plain;
                rate.plain[index][s] -= marking;
                rate.marked[index][s] += marking;
                let still_maybe = match level.tracking_bits {
                    0 => plain + marked,
                    _ => marked,
                };
                let maybe_here = maybe * (1.0 - level.claims[s]);
                next_maybe += maybe_here * (1.0 - takes) * still_maybe;
                next_new += (1.0 - takes)
                    * (new * (plain + marked)
                        + maybe_here * (plain + marked - still_maybe));
            }
            self.advance(level, &flow_plain, &mut rate.plain[index]);
            self.advance(level, &flow_marked, &mut rate.marked[index]);
            (maybe, new) = (next_maybe, next_new);
        }
        rate.refused = maybe + new;
        let busiest = arrivals.into_iter().fold(0.0, f64::max);
        (rate, busiest)
    }

    /// Moves a flow of blocks from their state to that of one more key.
    fn advance(&self, level: &LevelModel, flow: &[f64], rate: &mut [f64]) {
        let top = flow.len() - 1;
        for (rate, flow) in rate.iter_mut().zip(flow) {
            *rate -= flow;
        }
        if !self.by_popcount {
            for (state, flow) in flow.iter().enumerate() {
                rate[(state + 1).min(top)] += flow;
            }
            return;
        }
        let bits = f64::from(level.bits);
        let mut thrown = flow.to_vec();
        for _ in 0..self.probes {
            for set in (0..=top).rev() {
                let hit = set as f64 / bits;
                let new = match set {
                    0 => 0.0,
                    _ => {
                        let before = (set - 1) as f64 / bits;
                        thrown[set - 1] * (1.0 - before)
                    }
                };
                thrown[set] = thrown[set] * hit + new;
            }
        }
        for (rate, thrown) in rate.iter_mut().zip(thrown) {
            *rate += thrown;
        }
    }

    fn outcome(&self, design: &Design, end: &State) -> Outcome {
        let choices = self.level_of.len();
        let (mut fpr, mut reads_miss, mut reach) = (0.0, 0.0, 1.0);
        for choice in 0..choices {
            let index = self.level_of[choice];
            let level = &self.levels[index];
            let (mut claimed, mut passed) = (0.0, 0.0);
            for s in 0..level.claims.len() {
                let (plain, marked) =
                    (end.plain[index][s], end.marked[index][s]);
                let goes_on = match level.tracking_bits {
                    0 => plain + marked,
                    _ => marked,
                };
                claimed += (plain + marked) * level.claims[s];
                passed += goes_on
                    * (1.0 - level.claims[s])
                    * (1.0 - self.takes_at(choice, s));
            }
            reads_miss += reach;
            fpr += reach * claimed;
            reach *= passed;
        }
        let items = end.placed.iter().sum::<f64>() + end.refused;
        let placed: f64 = (1..)
            .zip(&end.placed)
            .map(|(j, p): (u32, _)| f64::from(j) * p)
            .sum();
        let all = choices as f64;
        let reads_of_refused = match self.overflow {
            Overflow::List => all,
            Overflow::First => 1.0,
            Overflow::Random => (all + 1.0) / 2.0,
            Overflow::Absorb => 0.0,
        };
        let mean = |refused_reads: f64| {
            (placed + refused_reads * end.refused) / items
        };
        Outcome {
            prediction: Prediction {
                bits_per_key: design.bits_per_key,
                probes: self.probes,
                fpr,
                reads_hit: mean(reads_of_refused),
                reads_miss,
            },
            access_budget: mean(all),
            overflow_fraction: end.refused / items,
            counter_bits: self.counter_bits,
            list_reads: match self.overflow {
                Overflow::List => reach,
                _ => 0.0,
            },
        }
    }
}

/// The chance that a block claims a key, for each of its states.
fn claims(design: &Design, bits: u32, load: f64) -> Result<Vec<f64>> {
    match design.refuse {
        Refuse::Count { threshold, .. } => {
            // Room for what comes back or is absorbed; the last state keeps
            // whatever goes beyond.
            let room = 3.0 * load + 12.0 * libm::sqrt(load) + 40.0;
            let most = (room as u32).min(1000) + threshold.min(200);
            block::exact(bits, design.probes, most)
        }
        Refuse::Popcount(_) => Ok((0..=bits)
            .map(|set| {
                let fill = f64::from(set) / f64::from(bits);
                libm::pow(fill, f64::from(design.probes))
            })
            .collect()),
    }
}

/// The chance that a block takes a key, for each of its states.
fn takes(design: &Design, state: usize) -> f64 {
    match design.refuse {
        Refuse::Count { threshold, admission } => {
            match state.cmp(&(threshold as usize)) {
                core::cmp::Ordering::Less => 1.0,
                core::cmp::Ordering::Equal => admission,
                core::cmp::Ordering::Greater => 0.0,
            }
        }
        Refuse::Popcount(set_bits) => f64::from(state < set_bits as usize),
    }
}

//! What a filter becomes when it is merged, folded, grown or kept in use.
//!
//! Remainders are cut so that short ones are beginnings of long ones. That
//! makes merging and folding the same as inserting anew, and lets a filter
//! grow at the price of one bit of every fingerprint.

use alloc::vec;
use alloc::vec::Vec;

use super::block::{Block, none_spared};
use super::predict;
use crate::load::Load;
use crate::{Prediction, Result, check};

/// Beyond this the chances of a block no longer fit in a few megabytes.
const MAX_LOAD: f64 = 256.0;
/// Chances below this are dropped.
const NEGLIGIBLE: f64 = 1e-18;

/// Predicts the union of two filters of the same geometry and hash, by their
/// mean loads.
///
/// A block of the union holds the entries of both. They are as long as in a
/// filter that was given all keys one by one, so this is [`predict`] at the
/// sum of the loads.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64);
/// let union = tinyset::merged(line, 5.0, 34.0)?;
/// assert_eq!(union, tinyset::predict(line, 39.0)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn merged(block: Block, a: f64, b: f64) -> Result<Prediction> {
    // Also refuses a load that only the other one makes up for.
    predict(block, check::load(a)? + check::load(b)?)
}

/// Predicts a filter that was folded in half, by its load before.
///
/// Two blocks become one; the address bit that told them apart becomes the
/// first bit of every fingerprint, so nothing is lost but the memory. This
/// is [`predict`] at twice the load.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64);
/// let half = tinyset::folded(line, 20.0)?;
/// assert_eq!(half, tinyset::predict(line, 40.0)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn folded(block: Block, load: f64) -> Result<Prediction> {
    predict(block, 2.0 * check::load(load)?)
}

/// Predicts the false-positive rate right after the last of so many
/// doublings, each made when the mean load was `load` again.
///
/// A doubling itself changes nothing. An entry of s bits hands its first one
/// to the address and matches twice as often, in half as many lookups: with
/// half of X entries on each side, the mean of (1-2p)^Y over Y is (1-p)^X.
/// (Once in a while an extra bit finds no wider slot in its half; that is
/// not counted.) What costs is filling up again, see [`refilled`].
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64).removable();
/// let full = tinyset::predict(line, 39.0)?.fpr;
/// let grown = tinyset::grown(line, 39.0, 1)?;
/// assert!((grown / full - 1.0).abs() < 1e-9);
/// assert_eq!(
///     tinyset::grown(line, 39.0, 3)?,
///     tinyset::refilled(line, 39.0, 2)?,
/// );
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn grown(block: Block, load: f64, doublings: u32) -> Result<f64> {
    refilled(block, load, doublings.saturating_sub(1))
}

/// Predicts the false-positive rate of a filter that was doubled so many
/// times, each time when its mean load was `load`, and has that load again.
///
/// A block never widens its fingerprints: they have the width of the fullest
/// time the block or one of its ancestors had, less a bit for each doubling
/// since. About twice the rate for each doubling.
///
/// Loads and widths are exact for a block that tells freed slots from used
/// ones ([`Block::removable`]) and spreads its array over as few slots as
/// those widths allow. How many of the entries in the wider slots do have a
/// bit for it is an estimate; the result is within 2 % of a simulation.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64).removable();
/// let rates: Vec<f64> = (0..=4)
///     .map(|times| tinyset::refilled(line, 39.0, times))
///     .collect::<Result<_, _>>()?;
/// for pair in rates.windows(2) {
///     assert!(pair[1] > 1.85 * pair[0] && pair[1] < 2.05 * pair[0]);
/// }
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn refilled(block: Block, load: f64, doublings: u32) -> Result<f64> {
    let block = block.check()?;
    let load = check::in_range("load", load, 1e-6, MAX_LOAD)?;
    let most = f64::from(block.remainder_bits);
    check::in_range("doublings", f64::from(doublings), 0.0, most)?;
    let mut family = Family::new(block, load);
    for _ in 0..doublings {
        family.double();
        family.fill();
    }
    Ok(family.rate())
}

/// Blocks by the width of their fingerprints and their entries.
struct Family {
    block: Block,
    /// `chance[w][x]`.
    chance: Vec<Vec<f64>>,
    /// The same times the entries that have the extra bit.
    extra: Vec<Vec<f64>>,
    /// Chance of more entries than are kept track of.
    crowded: f64,
    /// Arrivals from one doubling to the next.
    arrivals: Vec<f64>,
    most: usize,
}

impl Family {
    fn new(block: Block, load: f64) -> Self {
        let first = chances(load);
        let mut arrivals = chances(0.5 * load);
        let most = first.len() - 1;
        arrivals.truncate(first.len());
        let widths = block.remainder_bits as usize + 1;
        let nothing = vec![vec![0.0; first.len()]; widths];
        let mut family = Family {
            block,
            chance: nothing.clone(),
            extra: nothing,
            crowded: 0.0,
            arrivals,
            most,
        };
        for (x, chance) in first.into_iter().enumerate() {
            let (base, extended) = block.widths(x as u32);
            let w = base as usize;
            family.chance[w][x] = chance;
            family.extra[w][x] = chance * f64::from(extended);
        }
        family
    }

    /// Wider slots of a block with fingerprints of `w` bits and x entries.
    fn extended(&self, w: usize, x: usize) -> f64 {
        // The fewest slots that have no more bits than the fingerprints.
        let array = self.block.array_bits();
        let slots = (array / (w as u32 + 2) + 1).max(x as u32);
        let (_, extended) = self.block.widths(slots);
        f64::from(extended.min(x as u32))
    }

    /// Every block becomes two.
    fn double(&mut self) {
        let nothing = vec![vec![0.0; self.most + 1]; self.chance.len()];
        let (mut chance, mut extra) = (nothing.clone(), nothing);
        for (w, row) in self.chance.iter().enumerate() {
            for (x, mass) in row.iter().enumerate() {
                if *mass < NEGLIGIBLE {
                    continue;
                }
                let known = self.extra[w][x];
                // Without a bit to tell the side, an entry goes to both.
                let Some(less) = w.checked_sub(1) else {
                    chance[0][x] += mass;
                    extra[0][x] += known;
                    continue;
                };
                let mut part = libm::exp2(-(x as f64));
                for y in 0..=x {
                    chance[less][y] += mass * part;
                    let share = if x > 0 { y as f64 / x as f64 } else { 0.0 };
                    extra[less][y] += known * share * part;
                    part *= (x - y) as f64 / (y + 1) as f64;
                }
            }
        }
        (self.chance, self.extra) = (chance, extra);
    }

    /// As many new keys arrive as there are.
    fn fill(&mut self) {
        let nothing = vec![vec![0.0; self.most + 1]; self.chance.len()];
        let (mut chance, mut extra) = (nothing.clone(), nothing);
        for (w, row) in self.chance.iter().enumerate() {
            for (x, mass) in row.iter().enumerate() {
                if *mass < NEGLIGIBLE {
                    continue;
                }
                let known = self.extra[w][x] / mass;
                let mut left = 1.0;
                for (new, part) in self.arrivals.iter().enumerate() {
                    let all = x + new;
                    if all > self.most {
                        break;
                    }
                    left -= part;
                    let natural = self.block.widths(all as u32).0 as usize;
                    let width = w.min(natural);
                    chance[width][all] += mass * part;
                    // Old entries in the wider slots have the bit if they
                    // had it before; those that do are in front.
                    let wide = self.extended(width, all);
                    let share = wide / (all as f64).max(1.0);
                    let old = if width < w {
                        // All had this bit, now the extra one.
                        x as f64 * share
                    } else {
                        known.min(x as f64 * share)
                    };
                    let bits = old + new as f64 * share;
                    extra[width][all] += mass * part * bits;
                }
                self.crowded += mass * left.max(0.0);
            }
        }
        (self.chance, self.extra) = (chance, extra);
    }

    fn rate(&self) -> f64 {
        let mut sum = self.crowded;
        for (w, row) in self.chance.iter().enumerate() {
            let [long, short] = self.block.matches(w as u32);
            for (x, mass) in row.iter().enumerate() {
                if *mass < NEGLIGIBLE {
                    continue;
                }
                if x as u32 > self.block.array_bits() {
                    sum += mass;
                    continue;
                }
                let known = self.extra[w][x] / mass;
                let log = known * libm::log1p(-long)
                    + (x as f64 - known) * libm::log1p(-short.min(NEARLY));
                sum -= mass * libm::expm1(log);
            }
        }
        sum.min(1.0)
    }
}

/// One chain whose entries have no bit: everything matches.
const NEARLY: f64 = 1.0 - 1e-16;

/// P(N = 0), P(N = 1), ... until it no longer matters.
fn chances(mean: f64) -> Vec<f64> {
    let load = Load::poisson_from_zero(mean);
    let mut all = vec![0.0; load.first];
    all.extend_from_slice(&load.chance);
    let keep = all.iter().rposition(|p| *p > NEGLIGIBLE).map_or(1, |i| i + 1);
    all.truncate(keep);
    all
}

/// A filter in which keys have been replaced.
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64).removable();
/// let used = tinyset::churned(line, 40.0, 1.0)?;
/// assert!((used.freed_slots - 0.156).abs() < 0.001);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Churned {
    /// Chance that a key never inserted is reported as present.
    pub fpr: f64,
    /// Slots kept for keys that are gone, for each key that is there.
    pub freed_slots: f64,
}

/// Section 3.5 and Figure 15: predicts a filter with removals after
/// `replaced` times as many keys as it holds were replaced, one by one and
/// chosen at random.
///
/// The keys of a block come and go, and its fingerprints keep the width of
/// the most it ever held. Exact but for one thing: a key that a removal
/// moves into a wider slot has no bit for it, which is not followed; a
/// simulation gives up to 2 % more. To remove always the oldest key costs 1
/// to 7 % more than this (more keys of a block go at a time).
///
/// ```
/// use tamis_theory::tinyset::{self, Block};
///
/// let line = Block::new(512, 64).removable();
/// let fresh = tinyset::predict(line, 39.0)?.fpr;
/// for (replaced, times) in [(0.0, 1.0), (0.5, 1.76), (1.0, 2.13)] {
///     let used = tinyset::churned(line, 39.0, replaced)?;
///     assert!((used.fpr / fresh - times).abs() < 0.01);
/// }
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn churned(block: Block, load: f64, replaced: f64) -> Result<Churned> {
    let block = block.check()?;
    let load = check::in_range("load", load, 1e-6, MAX_LOAD)?;
    check::in_range("replaced", replaced, 0.0, 20.0)?;
    let mut peaks = Peaks::new(load);
    // In time `replaced`, every key is removed at rate one and keys arrive
    // at rate `load`. Steps come at one rate for all blocks, and some of
    // them do nothing.
    let rate = load + peaks.most() as f64;
    let steps = Load::poisson(rate * replaced);
    let mut sum = Peaks::none(peaks.most());
    for step in 0..=steps.max() {
        let weight = step
            .checked_sub(steps.first)
            .and_then(|i| steps.chance.get(i))
            .copied()
            .unwrap_or(0.0);
        if weight > 1e-15 {
            sum.add(&peaks, weight);
        } else if step as f64 > rate * replaced {
            break;
        }
        peaks.step(load, rate);
    }
    Ok(sum.weigh(block, load))
}

/// Blocks by the most entries they ever had, and those they have.
struct Peaks {
    /// `chance[z][x]`, x from 0 to z.
    chance: Vec<Vec<f64>>,
    /// Room for one row.
    next: Vec<f64>,
    /// 0, 1, 2, ...
    counts: Vec<f64>,
}

impl Peaks {
    fn new(load: f64) -> Self {
        let first = chances(load);
        // A block passes this many entries less than once in 1e11 times its
        // keys are replaced; the fullest take no more.
        let rare = |p: &f64| *p > 1e-14;
        let most = first.iter().rposition(rare).map_or(8, |i| i + 8);
        let mut peaks = Self::none(most);
        for (x, p) in first.into_iter().enumerate().take(most + 1) {
            peaks.chance[x][x] = p;
        }
        peaks
    }

    fn none(most: usize) -> Self {
        let chance = (0..=most).map(|z| vec![0.0; z + 1]).collect();
        let counts = (0..=most + 1).map(|x| x as f64).collect();
        Peaks { chance, next: vec![0.0; most + 1], counts }
    }

    fn most(&self) -> usize {
        self.chance.len() - 1
    }

    fn add(&mut self, other: &Peaks, weight: f64) {
        for (sum, row) in self.chance.iter_mut().zip(&other.chance) {
            for (sum, chance) in sum.iter_mut().zip(row) {
                *sum += weight * chance;
            }
        }
    }

    /// A key arrives, one goes, or nothing happens.
    fn step(&mut self, load: f64, rate: f64) {
        let (up, each) = (load / rate, 1.0 / rate);
        // What passes its peak starts the next row.
        let mut higher = 0.0;
        for (z, row) in self.chance.iter_mut().enumerate() {
            let passes = row[z] * up;
            let next = &mut self.next[..=z];
            let stays = row.iter().zip(&self.counts);
            for (new, (old, x)) in next.iter_mut().zip(stays) {
                *new = old * (1.0 - up - x * each);
            }
            let goes = row[1..].iter().zip(&self.counts[1..]);
            for (new, (old, x)) in next.iter_mut().zip(goes) {
                *new += old * (x * each);
            }
            for (new, old) in next.iter_mut().skip(1).zip(&*row) {
                *new += old * up;
            }
            next[z] += higher;
            row.copy_from_slice(next);
            higher = passes;
        }
        if let Some(last) = self.chance.last_mut().and_then(|r| r.last_mut()) {
            *last += higher;
        }
    }

    fn weigh(&self, block: Block, load: f64) -> Churned {
        let (mut fpr, mut slots, mut all) = (0.0, 0.0, 0.0);
        for (z, row) in self.chance.iter().enumerate() {
            let (base, extended) = block.widths(z as u32);
            let matches = block.matches(base);
            for (x, chance) in (0..).zip(row) {
                let rate = if z as u32 > block.array_bits() {
                    1.0
                } else {
                    let long = extended.min(x);
                    none_spared(matches, long, x - long)
                };
                fpr += chance * rate;
                slots += chance * z as f64;
                all += chance;
            }
        }
        let freed_slots = (slots / all / load - 1.0).max(0.0);
        Churned { fpr: (fpr / all).min(1.0), freed_slots }
    }
}

//! Filters after merging, folding, growing, or replacing keys.
//!
//! A short remainder is a prefix of the long one. Merging and folding are
//! therefore equivalent to inserting all keys again, and a filter doubles at
//! the price of one bit of every fingerprint.

use alloc::vec;
use alloc::vec::Vec;

use super::block::{Block, some_match};
use super::predict;
use crate::load::Load;
use crate::{Prediction, Result, check};

/// Beyond this load the table of a block exceeds a few megabytes.
const MAX_LOAD: f64 = 256.0;
/// Chances below this are dropped.
const NEGLIGIBLE: f64 = 1e-18;

/// Predicts the union of two filters of the same geometry and hash, by their
/// mean loads.
///
/// A block of the union holds the entries of both, at the width of a filter
/// into which all keys were inserted. This is [`predict`] at the sum of the
/// loads.
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
    // Each load must be in range, not only the sum.
    predict(block, check::load(a)? + check::load(b)?)
}

/// Predicts a filter folded in half, by its load before.
///
/// Two blocks become one. The address bit that distinguished them becomes the
/// first bit of every fingerprint, so no information is lost. This is
/// [`predict`] at twice the load.
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

/// Predicts the false-positive rate right after the last of `doublings`
/// doublings, each made at the mean load `load`.
///
/// A doubling does not change the rate. The first bit of each fingerprint
/// becomes an address bit, so an entry matches twice as often in half of the
/// lookups: with half of X entries on each side, the mean of (1-2p)^Y over Y
/// is (1-p)^X. (Rarely an extra bit has no wider slot in its half; this is
/// not modelled.) The rate grows only while the filter fills up again, see
/// [`refilled`].
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

/// Predicts the false-positive rate of a filter that was doubled `doublings`
/// times, each time at the mean load `load`, and has that load again.
///
/// A block never widens its fingerprints: their width is that of the fullest
/// time of the block or one of its ancestors, less one bit for each doubling
/// since. Each doubling about doubles the rate.
///
/// Loads and widths are exact for a block that marks freed slots
/// ([`Block::removable`]) and divides its array into the fewest slots those
/// widths allow. The share of entries in wider slots that have the extra bit
/// is an estimate; the result is within 2 % of a simulation.
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
    /// `extra[w][x]`: `chance[w][x]` times the mean number of entries that
    /// have the extra bit.
    extra: Vec<Vec<f64>>,
    /// Chance of more than `most` entries.
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
        // The fewest slots of base width at most `w`.
        let array = self.block.array_bits();
        let slots = (array / (w as u32 + 2) + 1).max(x as u32);
        let (_, extended) = self.block.widths(slots);
        f64::from(extended.min(x as u32))
    }

    /// Splits every block in two.
    fn double(&mut self) {
        let nothing = vec![vec![0.0; self.most + 1]; self.chance.len()];
        let (mut chance, mut extra) = (nothing.clone(), nothing);
        for (w, row) in self.chance.iter().enumerate() {
            for (x, mass) in row.iter().enumerate() {
                if *mass < NEGLIGIBLE {
                    continue;
                }
                let known = self.extra[w][x];
                // An entry without a bit goes to both halves.
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

    /// Inserts new keys until the load is `load` again.
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
                    // Old entries with the extra bit come first, so they
                    // get the wider slots.
                    let wide = self.extended(width, all);
                    let share = wide / (all as f64).max(1.0);
                    let old = if width < w {
                        // Every old entry has the next bit, now the extra
                        // one.
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

/// Just below 1: entries of 0 bits in a single chain match every key, and
/// ln(0) would be infinite.
const NEARLY: f64 = 1.0 - 1e-16;

/// P(N = 0), P(N = 1), ... down to [`NEGLIGIBLE`].
fn chances(mean: f64) -> Vec<f64> {
    let load = Load::poisson_from_zero(mean);
    let mut all = vec![0.0; load.first];
    all.extend_from_slice(&load.chance);
    let keep = all.iter().rposition(|p| *p > NEGLIGIBLE).map_or(1, |i| i + 1);
    all.truncate(keep);
    all
}

/// A filter some of whose keys were replaced.
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
    /// Slots of removed keys, per key present.
    pub freed_slots: f64,
}

/// Section 3.5 and Figure 15: predicts a filter with removals after
/// `replaced` n of its n keys were replaced, one by one, each chosen at
/// random.
///
/// The fingerprints of a block keep the width of its fullest time. Exact
/// except for keys that a removal moves into a wider slot, for which they
/// have no extra bit: a simulation gives up to 2 % more. Removing the oldest
/// key each time costs 1 to 7 % more (more keys of a block leave at a time).
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
    // During the time `replaced` every key is removed at rate 1 and keys
    // arrive at rate `load`. Uniformisation: all blocks step at one rate, and
    // some steps leave the block as it is.
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

/// Blocks by their largest and their current number of entries.
struct Peaks {
    /// `chance[z][x]`, x from 0 to z.
    chance: Vec<Vec<f64>>,
    /// Buffer for one row.
    next: Vec<f64>,
    /// 0, 1, 2, ...
    counts: Vec<f64>,
}

impl Peaks {
    fn new(load: f64) -> Self {
        let first = chances(load);
        // A block exceeds `most` entries less than once in 1e11
        // replacements of its keys; a block at `most` refuses arrivals.
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

    /// One step: an arrival, a removal, or neither.
    fn step(&mut self, load: f64, rate: f64) {
        let (up, each) = (load / rate, 1.0 / rate);
        // Blocks that exceed their peak move to the next row.
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
                    some_match(matches, long, x - long)
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

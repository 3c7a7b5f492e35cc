//! Two levels: a full block moves its last chain to a second filter.
//!
//! A primary block holds at most `cap` keys. When one more arrives, its
//! highest non-empty chain moves to a block of level 2. A hash of block and
//! chain selects that block and the chain in it, and the flag bit of the
//! primary is set. From then on the primary has the widths of `cap` keys, and
//! keys whose chain is above the highest one left are in level 2 only. A
//! lookup therefore decides from the primary alone whether to read level 2.
//!
//! All keys of a chain move together, so a lookup in level 2 compares all
//! keys of its own chain there, and those of other chains that share the
//! block by chance. Remainders were cut to the widths of the primary; level 2
//! keeps at most those bits.
//!
//! ```
//! use tamis_theory::tinyset::{self, Block, two_level};
//!
//! let line = Block::new(512, 64);
//! let plain = tinyset::for_fpr(line, 1e-4)?;
//! let (design, p) = two_level::for_fpr(line, 1e-4, 1.06)?;
//! assert!(p.bits_per_key < plain.bits_per_key - 0.6);
//! assert!(p.reads_miss <= 1.06 && p.fpr <= 1e-4);
//! assert!(design.cap > 30 && design.cap < 40);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

mod profile;

use alloc::vec;
use alloc::vec::Vec;

use profile::Profile;

use super::block::Block;
use crate::load::Load;
use crate::{Error, Prediction, Result, check};

/// Mean lines read by a miss in filters that are built: less than the 1.06
/// documented, because a filter differs from its design by chance.
///
/// ```
/// assert_eq!(tamis_theory::tinyset::two_level::MOST_READS, 1.055);
/// ```
pub const MOST_READS: f64 = 1.055;

/// A design of two levels.
///
/// ```
/// use tamis_theory::tinyset::{Block, two_level::{self, TwoLevel}};
///
/// let design =
///     TwoLevel { block: Block::new(512, 64), cap: 34, ratio: 12.0 };
/// assert_eq!(design.primary().array_bits(), 447);
/// assert_eq!(design.second().array_bits(), 448);
/// // 447 bits for 34 keys: 12 for each remainder, 13 for the first 5.
/// assert_eq!(design.second().remainder_bits, 12);
/// assert!(two_level::predict(design, 33.0)?.reads_miss < 1.1);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoLevel {
    /// A block of either level; the primary has one flag bit more.
    pub block: Block,
    /// C: most keys of a primary block.
    pub cap: u32,
    /// Primary blocks for each block of level 2.
    pub ratio: f64,
}

impl TwoLevel {
    /// Geometry of a primary block.
    ///
    /// ```
    /// use tamis_theory::tinyset::{Block, two_level::TwoLevel};
    ///
    /// let block = Block::new(512, 64);
    /// let primary = TwoLevel { block, cap: 44, ratio: 20.0 }.primary();
    /// assert_eq!((primary.flag_bits, primary.wildcard), (1, false));
    /// ```
    #[must_use]
    pub const fn primary(&self) -> Block {
        Block { flag_bits: 1, wildcard: false, ..self.block }
    }

    /// Geometry of a block of level 2.
    ///
    /// ```
    /// use tamis_theory::tinyset::{Block, two_level::TwoLevel};
    ///
    /// let block = Block::new(512, 64);
    /// let design = TwoLevel { block, cap: 44, ratio: 20.0 };
    /// let second = design.second();
    /// assert_eq!(second.remainder_bits, design.primary().widths(44).0);
    /// ```
    #[must_use]
    pub const fn second(&self) -> Block {
        Block {
            flag_bits: 0,
            wildcard: false,
            remainder_bits: self.primary().widths(self.cap).0,
            ..self.block
        }
    }

    /// Whether the remainders of a full primary block have a whole byte.
    /// Filters of shorter ones are as small with one level.
    ///
    /// ```
    /// use tamis_theory::tinyset::{Block, two_level::TwoLevel};
    ///
    /// let block = Block::new(512, 64);
    /// let with = |cap| TwoLevel { block, cap, ratio: 20.0 };
    /// assert!(with(44).pays() && !with(60).pays());
    /// ```
    #[must_use]
    pub const fn pays(&self) -> bool {
        self.second().remainder_bits >= 8
    }

    fn check(self) -> Result<Self> {
        self.primary().check()?;
        let chains = f64::from(self.block.chains);
        check::in_range("chains", chains, 2.0, MAX_CHAINS)?;
        check::in_range("cap", f64::from(self.cap), 1.0, MAX_CAP)?;
        check::in_range("ratio", self.ratio, 1.0, MAX_RATIO)?;
        let most = self.primary().array_bits();
        let cap = f64::from(self.cap);
        check::in_range("cap", cap, 1.0, f64::from(most))?;
        Ok(self)
    }

    /// Keys per primary block at `bits_per_key`, both levels counted.
    ///
    /// Fails with [`Error::OutOfRange`] outside 0.5 to 1000 bits per key.
    ///
    /// ```
    /// use tamis_theory::tinyset::{Block, two_level::TwoLevel};
    ///
    /// let block = Block::new(512, 64);
    /// let design = TwoLevel { block, cap: 44, ratio: 20.0 };
    /// assert_eq!(design.load(12.8)?, 42.0);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn load(&self, bits_per_key: f64) -> Result<f64> {
        let bits_per_key = check::bits_per_key(bits_per_key)?;
        let bits = f64::from(self.block.block_bits);
        Ok(bits * (1.0 + 1.0 / self.ratio) / bits_per_key)
    }

    fn check_load(&self, load: f64) -> Result<f64> {
        let most = MOST_OVER * f64::from(self.cap);
        check::in_range("load", load, 1e-6, most)
    }
}

/// Above `MOST_OVER` times `cap` keys per primary, most keys are in level 2.
const MOST_OVER: f64 = 2.0;
/// Beyond these the table of a block exceeds a few megabytes.
const MAX_CHAINS: f64 = 256.0;
const MAX_CAP: f64 = 128.0;
/// Beyond this ratio level 2 holds next to no keys.
const MAX_RATIO: f64 = 65_536.0;

/// Predicts a filter of many blocks.
///
/// Memory counts both levels; a lookup that reads level 2 reads two blocks.
/// The primary is exact. Arrivals at a block of level 2 are modelled as
/// independent chains, which holds if level 2 has many more blocks than one
/// primary moves chains.
///
/// ```
/// use tamis_theory::tinyset::{Block, two_level::{self, TwoLevel}};
///
/// let block = Block::new(512, 64);
/// let design = TwoLevel { block, cap: 44, ratio: 20.0 };
/// let p = two_level::predict(design, 42.5)?;
/// assert!((p.bits_per_key - 12.65).abs() < 0.01);
/// assert!((p.fpr - 1e-3).abs() < 3e-5);
/// assert!((p.reads_miss - 1.044).abs() < 0.002);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(design: TwoLevel, load: f64) -> Result<Prediction> {
    let design = design.check()?;
    let load = design.check_load(load)?;
    let mut profile = Profile::new(design.primary(), design.cap);
    let mut second = Second::new(design);
    let average = Average::new(&mut profile, load);
    Ok(average.prediction(&mut second, design.ratio))
}

/// Share of the keys that live in level 2.
///
/// ```
/// use tamis_theory::tinyset::{Block, two_level::{self, TwoLevel}};
///
/// let block = Block::new(512, 64);
/// let design = TwoLevel { block, cap: 44, ratio: 20.0 };
/// let share = two_level::spilled(design, 42.5)?;
/// let p = two_level::predict(design, 42.5)?;
/// assert_eq!(p.reads_hit, 1.0 + share);
/// assert!(share > 0.03 && share < 0.06);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn spilled(design: TwoLevel, load: f64) -> Result<f64> {
    let design = design.check()?;
    let load = design.check_load(load)?;
    let mut profile = Profile::new(design.primary(), design.cap);
    Ok(Average::new(&mut profile, load).spilled())
}

/// Finds the design with the fewest bits per key that reaches a
/// false-positive rate with at most `most_reads` reads per non-member on
/// average.
///
/// `cap` and `ratio` are searched, the latter as a real number; chains and
/// block size are those of `block`.
///
/// ```
/// use tamis_theory::tinyset::{Block, two_level};
///
/// let (design, p) = two_level::for_fpr(Block::new(512, 64), 1e-3, 1.05)?;
/// assert!(p.fpr <= 1e-3 && p.reads_miss <= 1.05);
/// assert!(p.bits_per_key < 12.7);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_fpr(
    block: Block,
    target: f64,
    most_reads: f64,
) -> Result<(TwoLevel, Prediction)> {
    // With a single read no chain can move.
    check::in_range("most_reads", most_reads, 1.0 + 1e-6, 2.0)?;
    let one = TwoLevel { block, cap: 1, ratio: 1.0 }.check()?;
    let plain = super::for_fpr(one.primary(), target)?;
    let load = f64::from(block.block_bits) / plain.bits_per_key;
    let most = MAX_CAP.min(f64::from(one.primary().array_bits())) as u32;
    let mut tried: Vec<(u32, Option<Found>)> = Vec::new();
    let mut bits = |cap: u32| {
        let cached = tried.iter().find(|(c, _)| *c == cap);
        let found = match cached {
            Some((_, found)) => *found,
            None => {
                let found =
                    best_of(TwoLevel { cap, ..one }, target, most_reads);
                tried.push((cap, found));
                found
            }
        };
        found.map_or(f64::INFINITY, |(_, p)| p.bits_per_key)
    };
    // Memory falls as `cap` grows towards the last one of each width, then
    // jumps: one more key shortens every remainder in level 2 by a bit. Over
    // these last ones memory has one minimum, up to small ripples; a search
    // in one direction stops after two caps without improvement.
    let array = one.primary().array_bits();
    let mut last: Vec<u32> = (1..=array).map(|width| array / width).collect();
    last.retain(|cap| *cap <= most);
    last.dedup();
    let start = last.partition_point(|cap| f64::from(*cap) > 1.15 * load);
    let (above, below) = last.split_at(start);
    let (mut best, mut least) = (1, f64::INFINITY);
    let directions: [&mut dyn Iterator<Item = &u32>; 2] =
        [&mut below.iter(), &mut above.iter().rev()];
    for caps in directions {
        let mut worse = 0;
        for cap in caps {
            let here = bits(*cap);
            if here < least {
                (best, least, worse) = (*cap, here, 0);
                continue;
            }
            worse += 1;
            if worse == 2 {
                break;
            }
        }
    }
    for step in [2, 1] {
        loop {
            let before = best;
            let down = best.saturating_sub(step).max(1);
            let up = best.saturating_add(step).min(most);
            for cap in [down, up] {
                let here = bits(cap);
                if here < least {
                    (best, least) = (cap, here);
                }
            }
            if best == before {
                break;
            }
        }
    }
    tried
        .into_iter()
        .find(|(cap, _)| *cap == best)
        .and_then(|(_, found)| found)
        .ok_or(Error::NoDesign { max_reads_miss: most_reads })
}

type Found = (TwoLevel, Prediction);

/// The best load and ratio for one cap.
fn best_of(design: TwoLevel, target: f64, most_reads: f64) -> Option<Found> {
    let mut profile = Profile::new(design.primary(), design.cap);
    let mut second = Second::new(design);
    let cap = f64::from(design.cap);
    // The load at which reads reach `most_reads` if all blocks are equal.
    let mut high = cap / (2.0 - most_reads).max(1.0 / MOST_OVER);
    let mut low = 0.05 * high;
    if Average::new(&mut profile, low).reads() > most_reads {
        return None;
    }
    // Reads grow with the load.
    let (mut a, mut b) = (low, high);
    if Average::new(&mut profile, b).reads() > most_reads {
        for _ in 0..30 {
            let middle = 0.5 * (a + b);
            if Average::new(&mut profile, middle).reads() > most_reads {
                b = middle;
            } else {
                a = middle;
            }
        }
        high = a;
    }
    let mut at = |load: f64| {
        let average = Average::new(&mut profile, load);
        average.for_fpr(&mut second, target)
    };
    let bits = |found: &Option<(f64, Prediction)>| {
        found.map_or(f64::INFINITY, |(_, p)| p.bits_per_key)
    };
    // Golden section: memory falls with the load until level 2 or the
    // primaries become too inaccurate.
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let end = at(high);
    let mut left = high - GOLDEN * (high - low);
    let mut right = low + GOLDEN * (high - low);
    let (mut at_left, mut at_right) = (at(left), at(right));
    for _ in 0..24 {
        if bits(&at_left) < bits(&at_right) || at_right.is_none() {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = at(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = at(right);
        }
    }
    let mut best = end;
    for other in [at_left, at_right] {
        if bits(&other) < bits(&best) {
            best = other;
        }
    }
    best.map(|(ratio, p)| (TwoLevel { ratio, ..design }, p))
}

/// Averages over the primaries of a filter.
struct Average {
    bits: f64,
    chains: f64,
    load: f64,
    /// Rate of the primaries alone.
    rate: f64,
    /// `above[j]`: mean chains per primary that are in level 2 with j keys.
    above: Vec<f64>,
}

impl Average {
    fn new(profile: &mut Profile, load: f64) -> Self {
        // Below the rates of filters with 64-bit hashes.
        const CUT: f64 = 1e-17;
        let chances = Load::poisson(load);
        let len =
            chances.chance.iter().rposition(|p| *p > CUT).map_or(0, |i| i + 1);
        profile.extend(chances.first + len);
        let mut rate = 0.0;
        let mut above = Vec::new();
        for (i, chance) in chances.chance[..len].iter().enumerate() {
            let n = chances.first + i;
            rate += chance * profile.rates[n];
            let here = &profile.above[n];
            if above.len() < here.len() {
                above.resize(here.len(), 0.0);
            }
            for (sum, x) in above.iter_mut().zip(here) {
                *sum += chance * x;
            }
        }
        let keep = above.iter().rposition(|x| *x > CUT).map_or(0, |i| i + 1);
        above.truncate(keep);
        let block = profile.block();
        Average {
            bits: f64::from(block.block_bits),
            chains: f64::from(block.chains),
            load,
            rate,
            above,
        }
    }

    /// Reads of a non-member.
    fn reads(&self) -> f64 {
        1.0 + self.above.iter().sum::<f64>() / self.chains
    }

    /// Share of the keys in level 2.
    fn spilled(&self) -> f64 {
        let keys = self.above.iter().enumerate().map(|(j, x)| j as f64 * x);
        keys.sum::<f64>() / self.load
    }

    fn prediction(&self, second: &mut Second, ratio: f64) -> Prediction {
        let fpr = self.rate + second.rate(&self.above, ratio);
        Prediction {
            bits_per_key: self.bits * (1.0 + 1.0 / ratio) / self.load,
            probes: 0,
            fpr: fpr.min(1.0),
            reads_hit: 1.0 + self.spilled(),
            reads_miss: self.reads(),
        }
    }

    /// The smallest level 2 that reaches the target, as a ratio.
    fn for_fpr(
        &self,
        second: &mut Second,
        target: f64,
    ) -> Option<(f64, Prediction)> {
        if self.rate >= target {
            return None;
        }
        let goal = libm::log(target - self.rate);
        let mut error = |log_ratio: f64| {
            let rate = second.rate(&self.above, libm::exp(log_ratio));
            libm::log(rate.max(1e-300)) - goal
        };
        let (mut low, mut high) = (0.0, libm::log(MAX_RATIO));
        let (mut error_low, mut error_high) = (error(low), error(high));
        if error_low > 0.0 {
            return None;
        }
        if error_high <= 0.0 {
            low = high;
        }
        // Illinois method in ln(ratio), with a bisection every eighth step.
        // 1e-9 is far below one block in any filter.
        let mut moved = 0;
        for step in 0..60 {
            if high - low < 1e-9 {
                break;
            }
            let x = if step % 8 == 7 {
                0.5 * (low + high)
            } else {
                low - (high - low) * error_low / (error_high - error_low)
            };
            let x = x.clamp(low + 4e-10, high - 4e-10);
            let here = error(x);
            if here <= 0.0 {
                if moved == -1 {
                    error_high *= 0.5;
                }
                (low, error_low, moved) = (x, here, -1);
            } else {
                if moved == 1 {
                    error_low *= 0.5;
                }
                (high, error_high, moved) = (x, here, 1);
            }
        }
        let low = libm::exp(low);
        Some((low, self.prediction(second, low)))
    }
}

/// False-positive rates of level 2.
struct Second {
    block: Block,
    /// `rates[j][y]`: false-positive rate of a key whose own chain has j keys
    /// in a block with y others.
    rates: Vec<Vec<f64>>,
    /// Chances of y keys in a block; a buffer.
    chance: Vec<f64>,
}

impl Second {
    fn new(design: TwoLevel) -> Self {
        let block = design.second();
        let chance = vec![0.0; block.array_bits() as usize + 1];
        Second { block, rates: Vec::new(), chance }
    }

    /// Rate that level 2 adds for each lookup of the filter.
    fn rate(&mut self, above: &[f64], ratio: f64) -> f64 {
        let chains = f64::from(self.block.chains);
        self.extend_rates(above.len());
        let weights = above.iter().enumerate().skip(1);
        let mut arrivals: Vec<f64> = Vec::with_capacity(above.len());
        arrivals.push(0.0);
        let mut lists = 0.0;
        for (j, x) in weights {
            lists += ratio * x;
            arrivals.push(j as f64 * ratio * x);
        }
        let everywhere = above.iter().sum::<f64>() / chains;
        // With more keys than bits on average, nearly every block answers
        // "maybe".
        let mean: f64 = arrivals.iter().sum();
        if mean > f64::from(self.block.array_bits()) {
            return everywhere;
        }
        // Chains arrive as a Poisson process, each with its keys: Panjer's
        // recursion, with positive terms only.
        let mut left = 1.0;
        for y in 0..self.chance.len() {
            let here = if y == 0 {
                libm::exp(-lists)
            } else {
                let many = y.min(arrivals.len() - 1);
                let terms = arrivals[1..=many]
                    .iter()
                    .zip(self.chance[y - many..y].iter().rev());
                terms.map(|(n, p)| n * p).sum::<f64>() / y as f64
            };
            self.chance[y] = here;
            left -= here;
            if y as f64 > mean && here < 1e-20 {
                // The chances decrease from here on.
                self.chance[y + 1..].fill(0.0);
                left = 0.0;
                break;
            }
        }
        let mut sum = everywhere * left.max(0.0);
        for (x, rates) in above.iter().zip(&self.rates) {
            sum += x / chains * crate::dot::dot(&self.chance, rates);
        }
        sum
    }

    /// Extends `rates` to chains of fewer than `len` keys.
    fn extend_rates(&mut self, len: usize) {
        let chains = f64::from(self.block.chains);
        let block = self.block;
        for own in self.rates.len()..len {
            let row = (0..self.chance.len()).map(|others| {
                let entries = (own + others) as u32;
                if entries == 0 {
                    return 0.0;
                }
                if entries > block.array_bits() {
                    return 1.0;
                }
                let (base, extended) = block.widths(entries);
                let share = f64::from(extended) / f64::from(entries);
                // Any entry is equally likely to have an extra bit.
                let one = libm::exp2(-f64::from(base)) * (1.0 - 0.5 * share);
                let mine = own as f64 * libm::log1p(-one.min(NEARLY));
                let theirs = others as f64 * libm::log1p(-one / chains);
                -libm::expm1(mine + theirs)
            });
            self.rates.push(row.collect());
        }
    }
}

/// Just below 1: entries of 0 bits match every key of their chain, and ln(0)
/// would be infinite.
const NEARLY: f64 = 1.0 - 1e-16;

//! Designs for a given number of whole blocks.

use alloc::vec::Vec;

use super::block::{Blocks, Kind};
use super::{Mode, limit, load};
use crate::balanced::absorbing::Refuse;
use crate::balanced::finite::Finite;
use crate::search::lowest;
use crate::{Error, MAX_PROBES, Prediction, Result, blocked, check};

/// A design without a list, to be cut into whole blocks.
///
/// The rate of a filter of few blocks differs from the design's: levels are
/// rounded to whole blocks, and the keys that reach the last one vary.
///
/// ```
/// use tamis_theory::tune::{self, Mode, Proportions};
///
/// let design = tune::best(512, 20.0, 1.25, Some(Mode::Popcount))?;
/// let filter = Proportions {
///     block_bits: 512,
///     level_shares: &design.level_shares,
///     refuse: design.refuse,
///     probes: design.probes,
///     tracking_bits: design.tracking_bits,
///     max_reads_miss: 1.25,
/// };
/// let whole = filter.whole(1000, 40, 0.0)?;
/// assert_eq!(whole.levels.iter().sum::<u64>(), 40);
/// assert!(whole.prediction.reads_miss <= 1.25);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportions<'a> {
    /// Size of a block (B).
    pub block_bits: u32,
    /// Share of blocks in each level.
    pub level_shares: &'a [f64],
    /// When a block refuses a key.
    pub refuse: Refuse,
    /// Bits set per key.
    pub probes: u32,
    /// Bits in each block that remember refusals.
    pub tracking_bits: u32,
    /// Most blocks that a non-member reads on average.
    pub max_reads_miss: f64,
}

/// A filter of whole blocks.
///
/// ```
/// use tamis_theory::balanced::{absorbing::Refuse, finite};
/// use tamis_theory::tune::Proportions;
///
/// let filter = Proportions {
///     block_bits: 512,
///     level_shares: &[0.86, 0.11, 0.03],
///     refuse: Refuse::Popcount(250),
///     probes: 16,
///     tracking_bits: 16,
///     max_reads_miss: 1.25,
/// };
/// let whole = filter.whole(2000, 94, 0.0)?;
/// let again =
///     finite::predict(2000, 512, &whole.levels, whole.refuse, 16, 16)?;
/// assert!((whole.prediction.fpr / again.fpr - 1.0).abs() < 1e-6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Blocks of each level.
    pub levels: Vec<u64>,
    /// When a block refuses a key.
    pub refuse: Refuse,
    /// Bits set per key.
    pub probes: u32,
    /// Rates and reads, as of [`finite::predict`](crate::balanced::finite).
    pub prediction: Prediction,
}

impl Proportions<'_> {
    /// The filter of `blocks` blocks for `items` keys with the least rate, or
    /// one whose rate is at most `enough`.
    ///
    /// Considered are the levels of the design, fewer, and one, which is a
    /// blocked filter; the threshold is that of the design unless a
    /// neighbour is better.
    ///
    /// ```
    /// use tamis_theory::balanced::absorbing::Refuse;
    /// use tamis_theory::tune::Proportions;
    ///
    /// let filter = Proportions {
    ///     block_bits: 512,
    ///     level_shares: &[0.96, 0.04],
    ///     refuse: Refuse::Popcount(261),
    ///     probes: 10,
    ///     tracking_bits: 1,
    ///     max_reads_miss: 1.25,
    /// };
    /// assert_eq!(filter.whole(30, 1, 0.0)?.levels, [1]);
    /// assert_eq!(filter.whole(32_000, 1000, 8e-4)?.levels, [960, 40]);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn whole(
        &self,
        items: u64,
        blocks: u64,
        enough: f64,
    ) -> Result<Whole> {
        let mut pieces = Pieces::new(self, items, blocks)?;
        let mut best = pieces.plain();
        for choices in (2..=self.level_shares.len()).rev() {
            if best.as_ref().is_some_and(|b| b.prediction.fpr <= enough) {
                break;
            }
            let shares = &self.level_shares[..choices];
            if let Some(levels) = levels(shares, blocks) {
                best = pieces.threshold(&levels, best);
            }
        }
        match best {
            Some(best) if best.prediction.fpr <= enough => Ok(best),
            best => pieces.one_level(best),
        }
    }

    /// The filter for `items` keys that reaches a rate with few more than
    /// `blocks` blocks.
    ///
    /// ```
    /// use tamis_theory::tune::{self, Mode, Proportions};
    ///
    /// let design = tune::best(512, 20.66, 1.25, Some(Mode::Popcount))?;
    /// let filter = Proportions {
    ///     block_bits: 512,
    ///     level_shares: &design.level_shares,
    ///     refuse: design.refuse,
    ///     probes: design.probes,
    ///     tracking_bits: design.tracking_bits,
    ///     max_reads_miss: 1.25,
    /// };
    /// let whole = filter.whole_for_fpr(2000, 81, 1e-4)?;
    /// assert!(whole.prediction.fpr <= 1e-4);
    /// assert!(whole.levels.iter().sum::<u64>() <= 83);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn whole_for_fpr(
        &self,
        items: u64,
        blocks: u64,
        target: f64,
    ) -> Result<Whole> {
        const STEPS: usize = 64;
        let target = check::target(target)?;
        let mut blocks = blocks;
        let mut least = f64::INFINITY;
        for _ in 0..STEPS {
            // A little more memory is cheaper than a search.
            let plain = Pieces::new(self, items, blocks)?.plain();
            let found = match plain {
                Some(plain) if plain.prediction.fpr < 1.1 * target => plain,
                _ => self.whole(items, blocks, target)?,
            };
            let fpr = found.prediction.fpr;
            if fpr <= target {
                return Ok(found);
            }
            least = least.min(fpr);
            // A bit more per key divides the rate by 1.5 or so.
            let bits = 2.5 * libm::log(fpr / target) * items as f64;
            let more = libm::ceil(bits / f64::from(self.block_bits));
            blocks = blocks.saturating_add(more.max(1.0) as u64);
        }
        let bits_per_key =
            check::finite_bits_per_key(self.block_bits, blocks, items)?;
        Err(Error::Unreachable { target, best: least, bits_per_key })
    }
}

/// Filters of some blocks and keys.
struct Pieces<'a> {
    design: &'a Proportions<'a>,
    items: u64,
    blocks: u64,
    max_reads: f64,
    kind: Kind,
    threshold: u32,
    /// The range of thresholds.
    thresholds: (u32, u32),
    /// None with too few bits per key to balance.
    table: Option<Blocks>,
    filter: Finite,
}

impl<'a> Pieces<'a> {
    fn new(
        design: &'a Proportions<'_>,
        items: u64,
        blocks: u64,
    ) -> Result<Self> {
        let Proportions { block_bits, probes, tracking_bits, .. } = *design;
        let bits_per_key =
            check::finite_bits_per_key(block_bits, blocks, items)?;
        check::level_shares(design.level_shares)?;
        let (mode, threshold) = match design.refuse {
            Refuse::Counter(threshold) => (Mode::Dynamic, threshold),
            Refuse::BuildCounter(threshold) => (Mode::Static, threshold),
            Refuse::Popcount(threshold) => (Mode::Popcount, threshold),
        };
        let probes = check::probes(probes, 1)?;
        let kind = Kind { mode, probes, tracking_bits };
        let load = load(block_bits, bits_per_key).ok();
        let load = load.filter(|_| kind.possible(block_bits));
        let table = load.map(|load| Blocks::new(block_bits, load, kind));
        let most = table.as_ref().map_or(1, |table| table.range().1);
        Ok(Self {
            design,
            items,
            blocks,
            max_reads: limit(design.max_reads_miss)?,
            kind,
            thresholds: (1, most),
            threshold: threshold.clamp(1, most),
            table,
            filter: Finite::new(block_bits, probes, tracking_bits),
        })
    }

    /// The design's levels and threshold. One block more in the first level,
    /// if that meets the limit on reads.
    fn plain(&mut self) -> Option<Whole> {
        let mut levels = levels(self.design.level_shares, self.blocks)?;
        if let Ok(plain) = self.at(&levels, self.threshold) {
            return Some(plain);
        }
        let (last, others) = levels.split_last_mut()?;
        let first = others.first_mut()?;
        (*first, *last) = (*first + 1, last.checked_sub(1)?);
        self.at(&levels, self.threshold).ok()
    }

    /// The best threshold for some levels, if better than another filter.
    fn threshold(
        &mut self,
        levels: &[u64],
        mut best: Option<Whole>,
    ) -> Option<Whole> {
        lowest(self.threshold, self.thresholds, 2, |threshold| {
            match self.at(levels, threshold) {
                Ok(found) => {
                    let fpr = found.prediction.fpr;
                    let least = best.as_ref().map(|b| b.prediction.fpr);
                    if least.is_none_or(|least| fpr < least) {
                        best = Some(found);
                    }
                    fpr
                }
                Err(penalty) => penalty,
            }
        });
        best
    }

    /// The filter with some levels and threshold, or, if it reads more blocks
    /// than allowed, their number.
    fn at(
        &mut self,
        levels: &[u64],
        threshold: u32,
    ) -> core::result::Result<Whole, f64> {
        let table = self.table.as_mut().ok_or(f64::INFINITY)?;
        let block = table.refuser(threshold).ok_or(f64::INFINITY)?;
        let found = self.filter.predict(self.items, levels, &block);
        let found = found.map_err(|_| f64::INFINITY)?;
        if found.reads_miss > self.max_reads {
            return Err(found.reads_miss);
        }
        Ok(Whole {
            levels: levels.to_vec(),
            refuse: self.kind.refuse(threshold),
            probes: self.kind.probes,
            prediction: found,
        })
    }

    /// The best blocked filter, if better than another filter.
    fn one_level(self, best: Option<Whole>) -> Result<Whole> {
        let Self { design, items, blocks, .. } = self;
        let at = |probes| {
            blocked::predict_finite(design.block_bits, blocks, items, probes)
        };
        let bits = at(1)?.bits_per_key;
        let start = blocked::best(design.block_bits, bits)?.probes;
        let probes = lowest(start, (1, MAX_PROBES), 2, |probes| {
            at(probes).map_or(f64::INFINITY, |found| found.fpr)
        });
        let one = at(probes)?;
        Ok(match best {
            Some(best) if best.prediction.fpr <= one.fpr => best,
            _ => Whole {
                levels: alloc::vec![blocks],
                refuse: design.refuse,
                probes,
                prediction: one,
            },
        })
    }
}

/// The blocks of some levels, at least one of each; the last gets the blocks of
/// all that follow as well. None if there are too few.
fn levels(shares: &[f64], blocks: u64) -> Option<Vec<u64>> {
    let mut left = blocks.checked_sub(shares.len() as u64)?;
    let (_, refusing) = shares.split_last()?;
    let mut levels = Vec::with_capacity(shares.len());
    for share in refusing {
        let size = libm::round(blocks as f64 * share) as u64;
        let more = size.saturating_sub(1).min(left);
        levels.push(1 + more);
        left -= more;
    }
    levels.push(1 + left);
    Some(levels)
}

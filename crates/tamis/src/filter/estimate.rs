//! The number of different keys of a filter, estimated from its blocks.

use alloc::vec::Vec;

use crate::block::bloom::{FillHistogram, power};
use crate::block::fingerprint::{Form, Union};

/// Standard errors between an estimate and its bounds: one bound in three
/// million fails by chance.
const ERRORS: f64 = 5.0;

/// Clear bits, or intervals without an entry, of which at least one remains
/// with near certainty where this number is expected.
const FEW: f64 = 64.0;

/// Number of different keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) least: f64,
    pub(super) best: f64,
    /// Infinite if the blocks are too full for a bound.
    pub(super) most: f64,
}

impl Estimate {
    /// `least`, `best` and `most` for a filter that counted `items`
    /// insertions, repeats included.
    pub(super) fn of_insertions(self, items: u64) -> (u64, f64, u64) {
        // Any insertion stores a key.
        let first = items.min(1);
        let most = (libm::ceil(self.most) as u64).clamp(first, items);
        let least = (libm::floor(self.least) as u64).clamp(first, most);
        (least, self.best.clamp(least as f64, most as f64), most)
    }

    /// The upper bound, if the blocks give one.
    pub(super) fn finite_most(self) -> Option<u64> {
        self.most.is_finite().then(|| libm::ceil(self.most) as u64)
    }

    /// Keys of a Bloom kind. `visits` are the bits of one key: pairs of a
    /// number of blocks and the bits in each.
    pub(super) fn of_bits(
        fill: &FillHistogram,
        visits: &[(u32, u32)],
    ) -> Self {
        let (blocks, block_bits) = (fill.total() as f64, fill.block_bits());
        let clear = 1.0 - fill.mean(|fill| fill);
        if !fill.has_full() && clear >= 1.0 / 16.0 {
            let probes: u32 = visits.iter().map(|(n, bits)| n * bits).sum();
            let probes = f64::from(probes);
            // x throws per bit leave exp(-x) clear; the variance of their
            // estimate is exp(x) - 1 - x per bit.
            let variance = fill.mean(|fill| {
                let clear = 1.0 - fill;
                block_bits * (1.0 / clear - 1.0 + libm::log(clear))
            });
            let error = libm::sqrt(blocks * variance) / probes;
            let best = fill.estimated_throws() / probes;
            let slack = 1.0 + ERRORS * error;
            let (least, most) = (best - slack, best + slack);
            return Self { least, best, most };
        }
        // Too full to invert block by block. The loads of blocks are
        // Poisson: a visit multiplies the clear bits of its block by
        // `1 - lost`, hence their mean by exp(-lost / blocks).
        let (mut decay, mut scatter) = (0.0, 0.0);
        for &(n, bits) in visits {
            let lost = 1.0 - power(1.0 - 1.0 / block_bits, bits);
            decay += f64::from(n) * lost;
            scatter += f64::from(n) * lost * lost;
        }
        let keys = |clear: f64| -libm::log(clear) * blocks / decay;
        let bits = blocks * block_bits;
        let load = keys(clear.max(0.5 / bits)) / blocks;
        let variance = libm::expm1(load * scatter) * clear * clear / blocks
            + clear / bits;
        let slack = ERRORS * libm::sqrt(variance);
        let low = clear - slack;
        Self {
            least: keys((clear + slack + FEW / bits).min(1.0)),
            best: keys(clear),
            most: if low > 0.0 { keys(low) } else { f64::INFINITY },
        }
    }

    /// Keys of a balanced filter that counted `items`, at a false-positive
    /// rate of `fpr` now: a key that looked present was not counted.
    pub(super) fn of_counted(items: u64, fpr: f64) -> Self {
        let (items, free) = (items as f64, (1.0 - fpr).max(0.0));
        // ln(1 / free) grew about evenly from 0, and a key was counted with
        // a chance of `free` at the time.
        let grown = -libm::log(free);
        // A filter without a free block has an infinite `grown`: the counted
        // keys are all that it shows.
        let best = match grown.is_normal() {
            true => items * libm::expm1(grown) / grown,
            false => items,
        };
        // No key was counted with a lower chance than `free`.
        let slack = ERRORS * (libm::sqrt(items * fpr) + ERRORS * fpr);
        Self { least: items, best, most: (items + slack) / free }
    }
}

/// Blocks of fingerprints, by level and base.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pools([Vec<Pool>; 2]);

/// Blocks whose shortest fingerprints have the same length.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pool {
    blocks: u64,
    /// Entries, and those of them that no other covers.
    stored: u64,
    entries: u64,
    /// Half intervals with an entry, and all.
    covered: u64,
    all: f64,
}

impl Pools {
    /// Adds a block of level 0 or 1 with `chains` chains.
    pub(super) fn add(
        &mut self,
        level: usize,
        (base, chains): (u32, u32),
        slots: u32,
        union: Union,
    ) {
        let pools = &mut self.0[level];
        let at = base as usize;
        if at >= pools.len() {
            pools.resize(at + 1, Pool::default());
        }
        let pool = &mut pools[at];
        pool.blocks += 1;
        pool.stored += u64::from(slots);
        pool.entries += u64::from(union.entries);
        pool.covered += u64::from(union.half_intervals);
        pool.all += f64::from(chains) * (1u64 << (base + 1)) as f64;
    }

    /// Keys in these blocks of the form `form`, and in `saturated` others
    /// with at least `room` entries each. With `repeats`
    /// several entries may be of one key.
    pub(super) fn estimate(
        &self,
        (saturated, room): (u64, u32),
        form: Form,
        repeats: bool,
    ) -> Estimate {
        let (mut best, mut slack, mut variance) = (0.0, 0.0, 0.0);
        let (mut full, mut densest, mut stored) =
            (saturated, f64::INFINITY, 0);
        // The second level of an overfull filter has most of the keys.
        let mut unknown = saturated > 0 && matches!(form, Form::Capped(_));
        for (level, pools) in self.0.iter().enumerate() {
            // From the sparsest blocks to the densest.
            for pool in pools.iter().rev().filter(|pool| pool.entries > 0) {
                stored += pool.stored;
                if pool.all - (pool.covered as f64) < FEW {
                    full += pool.blocks;
                    unknown |= level == 1;
                    continue;
                }
                let entries = pool.entries as f64;
                let rate = pool.covered as f64 / pool.all;
                // Keys whose fractions fell into intervals that had an entry
                // left none: n throws into m intervals leave
                // m (1 - exp(-n / m)) with an entry.
                let grown = -libm::log1p(-rate);
                let (intervals, keys) =
                    (entries / rate, entries * grown / rate);
                best += keys;
                let spread = rate / (1.0 - rate) - grown;
                variance += intervals * spread.max(0.0);
                // Intervals differ in length, those of worn blocks the most,
                // and the keys of a chain move to the second level together.
                // The measured bias is at most 2/3 of this.
                let even = level == 0 && form != Form::Elastic;
                slack += 0.5 * keys * rate * if even { rate } else { 1.0 };
                if level == 0 {
                    densest = keys / pool.blocks as f64;
                }
            }
        }
        slack += ERRORS * libm::sqrt(variance);
        // Merging and doubling may have kept an entry twice.
        let entries = stored + saturated * u64::from(room);
        let by_entries = if repeats { 0.0 } else { 0.5 * entries as f64 };
        let least = (best - slack).max(by_entries);
        if full == 0 {
            return Estimate { least, best, most: best + slack };
        }
        // The densest blocks with an estimate are a floor for the full ones;
        // without any, only the insertions are left.
        let best = match unknown {
            true => f64::INFINITY,
            false => best + full as f64 * densest,
        };
        Estimate { least, best, most: f64::INFINITY }
    }
}

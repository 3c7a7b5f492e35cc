//! The blocks of one kind, one for each threshold.

use alloc::vec::Vec;

use super::Mode;
use crate::balanced::absorbing::Refuse;
use crate::balanced::refuser::PopcountChain;
use crate::balanced::{Refuser, bits_to_count};
use crate::coverage;

/// Blocks that differ in their threshold only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) mode: Mode,
    pub(crate) probes: u32,
    pub(crate) tracking_bits: u32,
}

impl Kind {
    /// Tracking may take a quarter of a block. Without counter and tracking
    /// bits nothing shows that a block is full.
    pub(crate) fn possible(&self, block_bits: u32) -> bool {
        self.tracking_bits <= block_bits / 4
            && (self.mode != Mode::Static || self.tracking_bits > 0)
    }

    pub(crate) fn refuse(&self, threshold: u32) -> Refuse {
        match self.mode {
            Mode::Dynamic => Refuse::Counter(threshold),
            Mode::Static => Refuse::BuildCounter(threshold),
            Mode::Popcount => Refuse::Popcount(threshold),
        }
    }
}

/// The blocks of one kind.
pub(crate) struct Blocks {
    pub(crate) kind: Kind,
    block_bits: u32,
    load: f64,
    chain: Option<(u32, PopcountChain)>,
    /// Rates by number of keys for each number of payload bits.
    rates: Vec<(u32, Vec<f64>)>,
    /// Tables computed so far.
    pub(crate) tables: u32,
}

impl Blocks {
    pub(crate) fn new(block_bits: u32, load: f64, kind: Kind) -> Self {
        let rates = Vec::new();
        Blocks { kind, block_bits, load, chain: None, rates, tables: 0 }
    }

    /// The threshold that stands for `keys` keys.
    pub(crate) fn threshold(&self, keys: f64) -> u32 {
        let (low, high) = self.range();
        let at = match self.kind.mode {
            Mode::Popcount => self.set_bits(keys),
            Mode::Dynamic | Mode::Static => keys,
        };
        (libm::round(at) as u32).clamp(low, high)
    }

    /// The inverse of [`threshold`](Self::threshold).
    pub(crate) fn keys(&self, threshold: u32) -> f64 {
        if self.kind.mode != Mode::Popcount {
            return f64::from(threshold);
        }
        let bits = f64::from(self.block_bits - self.kind.tracking_bits);
        let clear = 1.0 - f64::from(threshold).min(bits - 0.5) / bits;
        let throws = libm::log(clear) / libm::log1p(-1.0 / bits);
        throws / f64::from(self.kind.probes)
    }

    /// Thresholds from a little below the load, where nearly every block is
    /// full, to where nearly none is.
    pub(crate) fn range(&self) -> (u32, u32) {
        let width = libm::sqrt(self.load);
        let low = (self.load - 2.0 * width).max(1.0);
        let high = self.load + 5.0 * width + 5.0;
        match self.kind.mode {
            Mode::Popcount => {
                let low = self.set_bits(low).max(1.0);
                (low as u32, self.set_bits(high) as u32)
            }
            Mode::Dynamic | Mode::Static => (low as u32, high as u32),
        }
    }

    /// The bits that `keys` keys set on average.
    fn set_bits(&self, keys: f64) -> f64 {
        let bits = f64::from(self.block_bits - self.kind.tracking_bits);
        let throws = keys * f64::from(self.kind.probes);
        -bits * libm::expm1(throws * libm::log1p(-1.0 / bits))
    }

    /// The block with a threshold in [`range`](Self::range); none if its
    /// counter and tracking bits leave no room.
    pub(crate) fn refuser(&mut self, threshold: u32) -> Option<Refuser> {
        match self.kind.mode {
            Mode::Popcount => Some(self.by_popcount(threshold)),
            Mode::Dynamic | Mode::Static => self.by_load(threshold),
        }
    }

    fn by_load(&mut self, threshold: u32) -> Option<Refuser> {
        let counter_bits = match self.kind.mode {
            Mode::Dynamic => bits_to_count(threshold),
            Mode::Static | Mode::Popcount => 0,
        };
        let used = counter_bits + self.kind.tracking_bits;
        let payload = self.block_bits.checked_sub(used).filter(|n| *n > 0)?;
        let at = self.rates.iter().position(|(bits, _)| *bits == payload);
        let at = at.unwrap_or_else(|| {
            let most = self.range().1 as usize;
            let rates = coverage::by_items(payload, self.kind.probes, most);
            self.rates.push((payload, rates));
            self.tables += 1;
            self.rates.len() - 1
        });
        Some(Refuser::from_rates(&self.rates[at].1, threshold as usize))
    }

    fn by_popcount(&mut self, threshold: u32) -> Refuser {
        // Masses below this do not show in a comparison of rates.
        const CUT: f64 = 1e-14;
        let (_, end) = self.range();
        let covered =
            self.chain.take().filter(|(highest, _)| *highest >= threshold);
        let (highest, chain) = covered.unwrap_or_else(|| {
            // Most searches stay near the load: half the table will do.
            let near = self.set_bits(self.load + libm::sqrt(self.load) + 2.0);
            let near = (near as u32).min(end);
            let highest = if threshold <= near { near } else { end };
            let bits = self.block_bits - self.kind.tracking_bits;
            // Blocks that more keys reach than this are too rare to matter.
            let most = 4.0 * self.load + 40.0 * libm::sqrt(self.load) + 60.0;
            let probes = self.kind.probes;
            self.tables += 1;
            (
                highest,
                PopcountChain::new(bits, probes, highest, most as usize, CUT),
            )
        });
        let refuser = chain.refuser(threshold);
        self.chain = Some((highest, chain));
        refuser
    }
}

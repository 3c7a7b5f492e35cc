//! Blocks worth trying.

use alloc::vec::Vec;

use super::Mode;
use crate::balanced::absorbing::Refuse;
use crate::balanced::refuser::PopcountChain;
use crate::balanced::{Refuser, bits_to_count};
use crate::coverage;

/// Thresholds and popcounts tried in the first pass: all of them up to 512
/// bits, where one more or less makes a difference of a percent.
fn most(block_bits: u32) -> u32 {
    if block_bits <= 1024 { 400 } else { 112 }
}

/// What all blocks of one candidate list have in common.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) block_bits: u32,
    pub(crate) load: f64,
    pub(crate) mode: Mode,
    pub(crate) probes: u32,
    pub(crate) tracking_bits: u32,
}

/// A block of a refusing level.
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) refuse: Refuse,
    pub(crate) refuser: Refuser,
    /// Thresholds or popcounts skipped on each side.
    skipped: u32,
}

impl Block {
    /// The blocks that the first pass skipped on both sides of this one.
    pub(crate) fn between(&self) -> Vec<Block> {
        let (Refuse::Counter(at)
        | Refuse::BuildCounter(at)
        | Refuse::Popcount(at)) = self.refuse;
        let others: Vec<u32> = (at.saturating_sub(self.skipped)
            ..=at + self.skipped)
            .filter(|other| *other != at)
            .collect();
        self.kind.blocks(&others, 0)
    }
}

impl Kind {
    pub(crate) fn candidates(&self) -> Vec<Block> {
        // Tracking may take a quarter of the block, not more; and without
        // counter and tracking nothing would show that a block is full.
        if self.tracking_bits > self.block_bits / 4
            || (self.mode == Mode::Static && self.tracking_bits == 0)
        {
            return Vec::new();
        }
        let (low, high) = self.range();
        let step = (high - low).div_ceil(most(self.block_bits)).max(1);
        let all: Vec<u32> = (low..=high).step_by(step as usize).collect();
        self.blocks(&all, step - 1)
    }

    /// Thresholds from a little below the load, where nearly every block is
    /// full, to where nearly none is; or popcounts that correspond to them.
    fn range(&self) -> (u32, u32) {
        let width = libm::sqrt(self.load);
        let low = (self.load - 2.0 * width).max(1.0);
        let high = self.load + 5.0 * width + 5.0;
        if self.mode != Mode::Popcount {
            return (low as u32, high as u32);
        }
        let bits = f64::from(self.block_bits - self.tracking_bits);
        let set = |keys: f64| {
            let throws = keys * f64::from(self.probes);
            -bits * libm::expm1(throws * libm::log1p(-1.0 / bits))
        };
        (set(low).max(1.0) as u32, set(high).min(bits) as u32)
    }

    fn blocks(&self, at: &[u32], skipped: u32) -> Vec<Block> {
        if at.is_empty() {
            return Vec::new();
        }
        match self.mode {
            Mode::Popcount => self.by_popcount(at, skipped),
            Mode::Dynamic | Mode::Static => self.by_load(at, skipped),
        }
    }

    fn by_load(&self, at: &[u32], skipped: u32) -> Vec<Block> {
        let most = at.iter().max().copied().unwrap_or(0) as usize;
        // One table of rates for each counter width.
        let mut known: Option<(u32, Vec<f64>)> = None;
        let mut out = Vec::with_capacity(at.len());
        for h in at {
            let (counter_bits, refuse) = match self.mode {
                Mode::Dynamic => (bits_to_count(*h), Refuse::Counter(*h)),
                _ => (0, Refuse::BuildCounter(*h)),
            };
            let used = counter_bits + self.tracking_bits;
            if used >= self.block_bits {
                break;
            }
            let payload = self.block_bits - used;
            let rates = match known.take() {
                Some((bits, rates)) if bits == payload => rates,
                _ => coverage::by_items(payload, self.probes, most),
            };
            let refuser = Refuser::from_rates(&rates, *h as usize);
            out.push(Block { kind: *self, refuse, refuser, skipped });
            known = Some((payload, rates));
        }
        out
    }

    fn by_popcount(&self, at: &[u32], skipped: u32) -> Vec<Block> {
        let payload = self.block_bits - self.tracking_bits;
        let chain = PopcountChain::new(payload, self.probes);
        // Blocks that more keys reach than this are too rare to matter.
        let most = 4.0 * self.load + 40.0 * libm::sqrt(self.load) + 60.0;
        let refusers = chain.refusers(at, most as usize);
        at.iter()
            .zip(refusers)
            .map(|(at, refuser)| Block {
                kind: *self,
                refuse: Refuse::Popcount(*at),
                refuser,
                skipped,
            })
            .collect()
    }
}

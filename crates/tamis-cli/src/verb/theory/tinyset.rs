//! The filter of fingerprints, as `tamis theory fpr` shows it.

use serde::Serialize;
use tamis_theory::tinyset::two_level::{self, TwoLevel};
use tamis_theory::tinyset::{self, Block};
use tamis_theory::{Prediction, Result};

use super::digits;

/// One level, or two.
#[derive(Clone, Copy)]
pub(super) enum Tinyset {
    One(Block),
    Two(TwoLevel),
}

/// What other filters do not have.
#[derive(Serialize)]
pub(super) struct Facts {
    bits_per_key: f64,
    load: f64,
    chains: u32,
    array_bits: u32,
    fpr_union: Option<f64>,
    fpr_one_size: Option<f64>,
    fpr_fresh: Option<f64>,
    spilled: f64,
    fpr_replaced: Option<f64>,
    freed_slots: Option<f64>,
    fpr_refilled: Option<f64>,
}

/// What happens to a filter after it was filled.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub(super) replaced: Option<f64>,
    pub(super) doublings: Option<u32>,
}

impl Tinyset {
    /// Bits of the primary block that fingerprints share.
    pub(super) fn array_bits(self) -> u32 {
        match self {
            Tinyset::One(block) => block.array_bits(),
            Tinyset::Two(design) => design.primary().array_bits(),
        }
    }

    /// Keys per (primary) block at a given memory.
    pub(super) fn load(self, bits_per_key: f64) -> f64 {
        match self {
            Tinyset::One(block) => f64::from(block.block_bits) / bits_per_key,
            Tinyset::Two(TwoLevel { block, ratio, .. }) => {
                let bits = f64::from(block.block_bits);
                bits * (1.0 + 1.0 / ratio) / bits_per_key
            }
        }
    }

    /// The same, refusing a memory out of range.
    pub(super) fn checked_load(self, bits_per_key: f64) -> Result<f64> {
        match self {
            Tinyset::One(block) => block.load(bits_per_key),
            Tinyset::Two(design) => design.load(bits_per_key),
        }
    }

    pub(super) fn predict(self, load: f64) -> Result<Prediction> {
        match self {
            Tinyset::One(block) => tinyset::predict(block, load),
            Tinyset::Two(design) => two_level::predict(design, load),
        }
    }

    pub(super) fn facts(
        self,
        load: f64,
        prediction: &Prediction,
        later: Use,
    ) -> Result<Facts> {
        let (chains, fpr_union, fpr_one_size) = match self {
            Tinyset::One(block) => (
                block.chains,
                Some(tinyset::union_bound(block, load)?),
                Some(tinyset::one_size(block, load)?),
            ),
            // The paper has no second level.
            Tinyset::Two(design) => (design.block.chains, None, None),
        };
        // Built to be removable, a block has two flags and pads nothing
        // until it has lost an entry.
        let fpr_fresh = match self {
            Tinyset::One(block) if block.wildcard => {
                let flags = Block { flag_bits: 2, wildcard: false, ..block };
                Some(tinyset::predict(flags, load)?.fpr)
            }
            _ => None,
        };
        let (churned, fpr_refilled) = match self {
            Tinyset::One(block) => (
                later
                    .replaced
                    .map(|times| tinyset::churned(block, load, times))
                    .transpose()?,
                later
                    .doublings
                    .map(|times| tinyset::refilled(block, load, times))
                    .transpose()?,
            ),
            // Neither removes keys nor grows.
            Tinyset::Two(_) => (None, None),
        };
        Ok(Facts {
            bits_per_key: prediction.bits_per_key,
            load,
            chains,
            array_bits: self.array_bits(),
            fpr_union,
            fpr_one_size,
            fpr_fresh,
            // A member reads a second block if that is where it lives.
            spilled: prediction.reads_hit - 1.0,
            fpr_replaced: churned.map(|used| used.fpr),
            freed_slots: churned.map(|used| used.freed_slots),
            fpr_refilled,
        })
    }
}

impl Facts {
    pub(super) fn union(&self) -> Option<f64> {
        self.fpr_union
    }

    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("bits per key beta", digits(self.bits_per_key)),
            ("keys per block r", digits(self.load)),
            ("chains of a block L", self.chains.to_string()),
            ("fingerprint bits of a block", self.array_bits.to_string()),
        ];
        match self.fpr_one_size {
            Some(rate) => rows.push(("rate with one width", digits(rate))),
            None => rows.push(("keys in level 2", digits(self.spilled))),
        }
        for (name, value) in [
            ("rate as built here, fresh", self.fpr_fresh),
            ("rate after replacing keys", self.fpr_replaced),
            ("  free slots per key", self.freed_slots),
            ("rate after doubling, refilled", self.fpr_refilled),
        ] {
            rows.extend(value.map(|value| (name, digits(value))));
        }
        rows
    }
}

//! Tinyset filters in `tamis theory fpr`.

use serde::Serialize;
use tamis_theory::tinyset::two_level::{self, TwoLevel};
use tamis_theory::tinyset::{self, Block};
use tamis_theory::{Prediction, Result};

use super::digits;

/// Tinyset filter of one or two levels.
#[derive(Clone, Copy)]
pub(super) enum TinysetModel {
    One(Block),
    Two(TwoLevel),
}

/// Fields of the report that only tinyset filters have.
#[derive(Serialize)]
pub(super) struct TinysetFields {
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

/// Changes of a filter after it was filled.
#[derive(Clone, Copy, clap::Args)]
// clap drops a required argument that conflicts with another one: `removable`
// conflicts with `cap`.
#[group(requires = "removable", conflicts_with = "cap", multiple = true)]
pub(super) struct AgingArgs {
    /// Random replacements since the filter was filled, as a multiple of its
    /// keys
    #[arg(long, value_name = "X")]
    replaced: Option<f64>,

    /// Number of times the filter was doubled when full and filled again
    #[arg(long, value_name = "G")]
    doublings: Option<u32>,
}

impl TinysetModel {
    /// Bits of a first-level block shared by its fingerprints.
    pub(super) fn array_bits(self) -> u32 {
        match self {
            TinysetModel::One(block) => block.array_bits(),
            TinysetModel::Two(design) => design.primary().array_bits(),
        }
    }

    /// Keys per first-level block at `bits_per_key`. Its own inverse: also
    /// returns the bits per key at a load.
    pub(super) fn load(self, bits_per_key: f64) -> f64 {
        match self {
            TinysetModel::One(block) => {
                f64::from(block.block_bits) / bits_per_key
            }
            TinysetModel::Two(TwoLevel { block, ratio, .. }) => {
                let bits = f64::from(block.block_bits);
                bits * (1.0 + 1.0 / ratio) / bits_per_key
            }
        }
    }

    /// Keys per first-level block; fails if the memory is out of range.
    pub(super) fn checked_load(self, bits_per_key: f64) -> Result<f64> {
        match self {
            TinysetModel::One(block) => block.load(bits_per_key),
            TinysetModel::Two(design) => design.load(bits_per_key),
        }
    }

    pub(super) fn predict(self, load: f64) -> Result<Prediction> {
        match self {
            TinysetModel::One(block) => tinyset::predict(block, load),
            TinysetModel::Two(design) => two_level::predict(design, load),
        }
    }

    pub(super) fn fields(
        self,
        load: f64,
        prediction: &Prediction,
        aging: AgingArgs,
    ) -> Result<TinysetFields> {
        let (chains, fpr_union, fpr_one_size) = match self {
            TinysetModel::One(block) => (
                block.chains,
                Some(tinyset::union_bound(block, load)?),
                Some(tinyset::one_size(block, load)?),
            ),
            // The paper gives no formulas for a second level.
            TinysetModel::Two(design) => (design.block.chains, None, None),
        };
        // A block written by `build --removable` has two flag bits, and no
        // padding until an entry is removed.
        let fpr_fresh = match self {
            TinysetModel::One(block) if block.wildcard => {
                let flags = Block { flag_bits: 2, wildcard: false, ..block };
                Some(tinyset::predict(flags, load)?.fpr)
            }
            _ => None,
        };
        let (churned, fpr_refilled) = match self {
            TinysetModel::One(block) => (
                aging
                    .replaced
                    .map(|times| tinyset::churned(block, load, times))
                    .transpose()?,
                aging
                    .doublings
                    .map(|times| tinyset::refilled(block, load, times))
                    .transpose()?,
            ),
            // Filters of two levels support neither `remove` nor `grow`.
            TinysetModel::Two(_) => (None, None),
        };
        Ok(TinysetFields {
            bits_per_key: prediction.bits_per_key,
            load,
            chains,
            array_bits: self.array_bits(),
            fpr_union,
            fpr_one_size,
            fpr_fresh,
            // A member reads a second block only if it is stored there.
            spilled: prediction.reads_hit - 1.0,
            fpr_replaced: churned.map(|used| used.fpr),
            freed_slots: churned.map(|used| used.freed_slots),
            fpr_refilled,
        })
    }
}

impl TinysetFields {
    pub(super) fn union(&self) -> Option<f64> {
        self.fpr_union
    }

    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("bits per key beta", digits(self.bits_per_key)),
            ("keys per block r", digits(self.load)),
            ("chains per block L", self.chains.to_string()),
            ("fingerprint bits per block", self.array_bits.to_string()),
        ];
        match self.fpr_one_size {
            Some(rate) => rows.push(("rate with equal widths", digits(rate))),
            None => rows.push(("keys in level 2", digits(self.spilled))),
        }
        for (name, value) in [
            ("rate of `build --removable`", self.fpr_fresh),
            ("rate after replacing keys", self.fpr_replaced),
            ("  freed slots per key", self.freed_slots),
            ("rate after doubling and refill", self.fpr_refilled),
        ] {
            rows.extend(value.map(|value| (name, digits(value))));
        }
        rows
    }
}

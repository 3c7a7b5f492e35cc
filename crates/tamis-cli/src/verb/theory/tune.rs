//! `tamis theory tune`: the best balanced filter.

use serde::Serialize;
use tamis_theory::balanced::absorbing::Refuse;
use tamis_theory::{blocked, split, tune};

use super::{Answer, Show, digits, shares};
use crate::failure::{Outcome, Result};

/// Find the best balanced filter for a memory and a limit on reads
///
/// Searches filters without a list, whose last level takes every key: two
/// to four levels, any threshold h, any level shares alpha with equally
/// loaded refusing levels, any number of probes k and 0 to 32 tracking bits.
/// The one of least false-positive rate that reads at most X blocks per
/// non-member, E(P) <= X, is compared with a blocked and a split filter of
/// the same memory.
#[derive(clap::Args)]
pub(super) struct Args {
    /// B: bits of a block, a power of two
    #[arg(long, value_name = "B", default_value_t = 512)]
    block_bits: u32,

    /// beta: memory per key, everything counted; at least 4
    #[arg(long, value_name = "BETA", allow_negative_numbers = true)]
    bits_per_key: f64,

    /// Most blocks a non-member may read on average, above 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    max_reads_miss: f64,

    /// What tells a block that it is full [default: the best of the three]
    #[arg(long)]
    mode: Option<Mode>,

    #[command(flatten)]
    show: Show,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Mode {
    /// A counter in the block: keys can be inserted at any time
    Dynamic,
    /// A counter beside the filter, kept only while it is built
    Static,
    /// The number of bits set in the block
    Popcount,
}

#[derive(Serialize)]
struct Report {
    access_budget: f64,
    choices: u32,
    level_shares: Vec<f64>,
    threshold: u32,
    threshold_by: &'static str,
    probes: u32,
    tracking_bits: u32,
    fpr: f64,
    reads_hit: f64,
    reads_miss: f64,
    overflow_fraction: f64,
    fpr_of_blocked: f64,
    ratio_to_blocked: f64,
    fpr_of_split: f64,
    ratio_to_split: f64,
}

impl Args {
    pub(super) fn run(&self) -> Result<Outcome> {
        let (bits, beta) = (self.block_bits, self.bits_per_key);
        let mode = self.mode.map(|mode| match mode {
            Mode::Dynamic => tune::Mode::Dynamic,
            Mode::Static => tune::Mode::Static,
            Mode::Popcount => tune::Mode::Popcount,
        });
        let design = tune::best(bits, beta, self.max_reads_miss, mode)?;
        let (threshold, threshold_by) = match design.refuse {
            Refuse::Counter(keys) => (keys, "count"),
            Refuse::BuildCounter(keys) => (keys, "count while building"),
            Refuse::Popcount(bits) => (bits, "popcount"),
        };
        let fpr = design.prediction.fpr;
        let fpr_of_blocked = blocked::best(bits, beta)?.fpr;
        let fpr_of_split = split::best(bits, beta)?.fpr;
        self.show.print(&Report {
            access_budget: design.access_budget,
            choices: design.choices,
            level_shares: design.level_shares,
            threshold,
            threshold_by,
            probes: design.probes,
            tracking_bits: design.tracking_bits,
            fpr,
            reads_hit: design.prediction.reads_hit,
            reads_miss: design.prediction.reads_miss,
            overflow_fraction: design.overflow_fraction,
            fpr_of_blocked,
            ratio_to_blocked: fpr / fpr_of_blocked,
            fpr_of_split,
            ratio_to_split: fpr / fpr_of_split,
        })
    }
}

impl Answer for Report {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let unit = match self.threshold_by {
            "popcount" => "set bits",
            "count" => "keys, counted in the block",
            _ => "keys, counted while building",
        };
        let beside =
            |fpr, ratio| format!("{}  ({} of it)", digits(fpr), digits(ratio));
        vec![
            ("reads per insertion a", digits(self.access_budget)),
            ("levels d", self.choices.to_string()),
            ("level shares alpha", shares(&self.level_shares)),
            ("threshold h", format!("{} {unit}", self.threshold)),
            ("probes k", self.probes.to_string()),
            ("tracking bits of a block", self.tracking_bits.to_string()),
            ("false-positive rate", digits(self.fpr)),
            ("reads of a member", digits(self.reads_hit)),
            ("reads of a non-member", digits(self.reads_miss)),
            ("overflow fraction gamma", digits(self.overflow_fraction)),
            (
                "rate of a blocked filter",
                beside(self.fpr_of_blocked, self.ratio_to_blocked),
            ),
            (
                "rate of a split filter",
                beside(self.fpr_of_split, self.ratio_to_split),
            ),
        ]
    }
}

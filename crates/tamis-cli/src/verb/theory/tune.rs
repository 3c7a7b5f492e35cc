//! `tamis theory tune`.

use serde::Serialize;
use tamis_theory::balanced::absorbing::Refuse;
use tamis_theory::{blocked, split, tune};

use super::{TheoryReport, digits, digits_list};
use crate::failure::{Exit, Result};
use crate::report::JsonArgs;

/// Find the best balanced filter for a memory and a limit on reads
///
/// Searches filters without an overflow list, whose last level accepts every
/// key: two to four levels, any threshold h, any level shares alpha with
/// equally loaded refusing levels, any number of probes k, 0 to 32 tracking
/// bits. Prints the design of least false-positive rate whose lookups of
/// non-members read at most X blocks on average, E(P) <= X, and the rates of
/// a blocked and a split filter of the same memory.
#[derive(clap::Args)]
pub(super) struct Args {
    /// B: bits per block, a power of two
    #[arg(long, value_name = "B", default_value_t = 512)]
    block_bits: u32,

    /// beta: total memory in bits per key, at least 4
    #[arg(long, value_name = "BETA")]
    bits_per_key: f64,

    /// Limit on the average blocks read by a lookup of a non-member, above 1
    #[arg(long, value_name = "X")]
    max_reads_miss: f64,

    /// Measure by which a block is full [default: the best of the three]
    #[arg(long)]
    mode: Option<FullnessMode>,

    #[command(flatten)]
    format: JsonArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FullnessMode {
    /// Counter in the block: keys can be inserted at any time
    Dynamic,
    /// Counter outside the filter, discarded after building
    Static,
    /// Number of set bits in the block
    Popcount,
}

#[derive(Serialize)]
struct TuneReport {
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
    pub(super) fn run(&self) -> Result<Exit> {
        let (bits, beta) = (self.block_bits, self.bits_per_key);
        let mode = self.mode.map(|mode| match mode {
            FullnessMode::Dynamic => tune::Mode::Dynamic,
            FullnessMode::Static => tune::Mode::Static,
            FullnessMode::Popcount => tune::Mode::Popcount,
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
        let report = TuneReport {
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
        };
        report.print(&self.format)
    }
}

impl TheoryReport for TuneReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let unit = match self.threshold_by {
            "popcount" => "set bits",
            "count" => "keys, counted in the block",
            _ => "keys, counted while building",
        };
        let compare =
            |fpr, ratio| format!("{}  (ratio {})", digits(fpr), digits(ratio));
        vec![
            ("reads per insertion a", digits(self.access_budget)),
            ("levels d", self.choices.to_string()),
            ("level shares alpha", digits_list(&self.level_shares)),
            ("threshold h", format!("{} {unit}", self.threshold)),
            ("probes k", self.probes.to_string()),
            ("tracking bits per block", self.tracking_bits.to_string()),
            ("false-positive rate", digits(self.fpr)),
            ("reads of a member", digits(self.reads_hit)),
            ("reads of a non-member", digits(self.reads_miss)),
            ("overflow fraction gamma", digits(self.overflow_fraction)),
            (
                "rate of a blocked filter",
                compare(self.fpr_of_blocked, self.ratio_to_blocked),
            ),
            (
                "rate of a split filter",
                compare(self.fpr_of_split, self.ratio_to_split),
            ),
        ]
    }
}

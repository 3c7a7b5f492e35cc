//! `tamis plan`.

use std::io::Write as _;

use serde::Serialize;
use tamis::{Plan, PlannedDesign};

use super::default_kind::Prefer;
use super::{BlockArgs, SizeArgs, parse_items};
use crate::failure::{Exit, Result};
use crate::report::{JsonArgs, count, print_json, short_rate, size, wrap};

/// Compare the memory, rate and reads of all kinds of filters
///
/// Reads no keys: all numbers are exact predictions. Reads are blocks read
/// per lookup: of a member (hit), of a non-member (miss), and on average for
/// the given --miss-share.
///
/// The recommendation starts from the default kind of `build`, which reads
/// one block: tinyset at rates from 0.01% to 3% if it is smaller than
/// blocked, otherwise blocked; always blocked with --prefer speed. The other
/// kinds follow in order of their reads, up to 1.3 per lookup. Each replaces
/// the recommendation if it saves 5 % of the memory (with --bits-per-key: 25 %
/// of the false positives). With --prefer speed, tinyset is left out.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of keys
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: u64,

    #[command(flatten)]
    size: SizeArgs,

    /// Share of lookups for keys not in the set, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.9,
          value_parser = parse_share)]
    miss_share: f64,

    /// Objective of the recommendation
    #[arg(long, value_name = "OBJECTIVE", default_value = "space")]
    prefer: Prefer,

    #[command(flatten)]
    block: BlockArgs,

    #[command(flatten)]
    format: JsonArgs,
}

/// One kind of filter with its settings, a row of the comparison.
#[derive(Serialize)]
struct Row {
    kind: &'static str,
    /// Levels of a tinyset filter, `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<u32>,
    bits_per_key: f64,
    bytes: u64,
    fpr: f64,
    probes: u32,
    reads_hit: f64,
    reads_miss: f64,
    /// Average over hits and misses.
    reads: f64,
    removable: bool,
    mergeable: bool,
}

impl From<&PlannedDesign> for Row {
    fn from(design: &PlannedDesign) -> Self {
        let prediction = design.prediction;
        Self {
            kind: design.kind.name(),
            levels: design.levels,
            bits_per_key: prediction.bits_per_key,
            bytes: design.bytes,
            fpr: prediction.fpr,
            probes: prediction.probes,
            reads_hit: prediction.reads_hit,
            reads_miss: prediction.reads_miss,
            reads: design.reads,
            removable: design.removable,
            mergeable: design.mergeable,
        }
    }
}

#[derive(Serialize)]
struct Comparison<'a> {
    items: u64,
    miss_share: f64,
    prefer: &'static str,
    designs: Vec<Row>,
    recommended: &'static str,
    /// Options of `build` for the recommended design.
    options: &'a str,
    reason: &'a str,
    /// Comparison of every other design with the recommended one.
    notes: &'a [String],
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let block_bits = self.block.bits()?;
        let plan = Plan::new(
            self.items,
            self.size.value(),
            block_bits,
            self.miss_share,
            self.prefer.into(),
        )?;
        let options = options(plan.recommended(), block_bits);
        if self.format.json {
            print_json(&Comparison {
                items: self.items,
                miss_share: self.miss_share,
                prefer: match self.prefer {
                    Prefer::Space => "space",
                    Prefer::Speed => "speed",
                },
                designs: plan.designs.iter().map(Row::from).collect(),
                recommended: plan.recommended().kind.name(),
                options: &options,
                reason: &plan.reason,
                notes: &plan.notes,
            })?;
        } else {
            self.print(&plan, &options)?;
        }
        Ok(Exit::Success)
    }

    fn print(&self, plan: &Plan, options: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "{} keys, {:.0} % of lookups miss; reads: blocks per lookup\n",
            count(self.items),
            100.0 * self.miss_share
        )?;
        writeln!(
            out,
            "{:<18}{:>9}{:>12}{:>11}{:>7}{:>8}{:>8}",
            "", "", "", "false", "reads", "reads", "reads"
        )?;
        writeln!(
            out,
            "{:<18}{:>9}{:>12}{:>11}{:>7}{:>8}{:>8}  merge",
            "kind", "bits/key", "memory", "positives", "hit", "miss", "mean"
        )?;
        for design in &plan.designs {
            let prediction = design.prediction;
            writeln!(
                out,
                "{:<18}{:>9.3}{:>12}{:>11}{:>7.2}{:>8.4}{:>8.4}  {}",
                design.name(),
                prediction.bits_per_key,
                size(design.bytes),
                short_rate(prediction.fpr),
                prediction.reads_hit,
                prediction.reads_miss,
                design.reads,
                if design.mergeable { "yes" } else { "no" },
            )?;
        }
        let recommended = plan.recommended().kind;
        let reason = &plan.reason;
        let text = format!("Recommended: {recommended} ({options}). {reason}");
        writeln!(out, "\n{}", wrap(&text, 0, 0))?;
        for note in &plan.notes {
            writeln!(out, "  not {}", wrap(note, 6, 6))?;
        }
        Ok(())
    }
}

/// Options of `build` for a design.
fn options(design: &PlannedDesign, block_bits: u32) -> String {
    let mut options = format!("--kind {}", design.kind);
    if let Some(levels @ 2..) = design.levels {
        options += &format!(" --levels {levels}");
    }
    if block_bits == 256 {
        options += " --block-bytes 32";
    }
    options
}

fn parse_share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share between 0 and 1, such as 0.9".into()),
    }
}

//! `tamis plan`: which kind, how much memory, how many reads.

use std::io::Write as _;

use serde::Serialize;
use tamis_theory::{Prediction, blocked, split, standard};

use super::{parse_bits, parse_fpr, parse_items};
use crate::failure::{Outcome, Result};
use crate::report::{count, print_json, rate, size};

/// Compare all kinds of filters for a task, before any key is read
///
/// The numbers are the theory's exact ones. "Reads" are blocks, that is
/// cache lines: a member's, a non-member's, and their mean for the share of
/// lookups that miss.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of keys
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: u64,

    #[command(flatten)]
    size: Size,

    /// The share of lookups that are for keys not in the set
    #[arg(long, value_name = "SHARE", default_value_t = 0.9,
          value_parser = parse_share)]
    miss_share: f64,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Size {
    /// The false-positive rate wanted, such as 0.001 or 0.1%
    #[arg(long, value_name = "RATE", value_parser = parse_fpr)]
    fpr: Option<f64>,

    /// The memory there is
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

/// One row of the comparison.
#[derive(Serialize)]
struct Design {
    kind: &'static str,
    bits_per_key: f64,
    bytes: u64,
    fpr: f64,
    probes: u32,
    reads_hit: f64,
    reads_miss: f64,
    /// Mean over the lookups of this task.
    reads: f64,
    removable: bool,
    mergeable: bool,
}

#[derive(Serialize)]
struct Plan {
    items: u64,
    miss_share: f64,
    designs: Vec<Design>,
    recommended: &'static str,
    reason: String,
}

/// The size of a block here: a cache line.
const BLOCK_BITS: u32 = 512;

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        let plan = self.plan()?;
        if self.json {
            print_json(&plan)?;
        } else {
            plan.print()?;
        }
        Ok(Outcome::Yes)
    }

    fn plan(&self) -> Result<Plan> {
        let predictions = match (self.size.fpr, self.size.bits_per_key) {
            (Some(fpr), _) => [
                ("blocked", blocked::for_fpr(BLOCK_BITS, fpr)?),
                ("split", split::for_fpr(BLOCK_BITS, fpr)?),
                ("bloom", standard::for_fpr(fpr)?),
            ],
            (None, bits) => {
                // clap requires one of the two.
                let bits = bits.unwrap_or_default();
                [
                    ("blocked", blocked::best(BLOCK_BITS, bits)?),
                    ("split", split::best(BLOCK_BITS, bits)?),
                    ("bloom", standard::best(bits)?),
                ]
            }
        };
        let designs: Vec<Design> = predictions
            .into_iter()
            .map(|(kind, prediction)| self.design(kind, &prediction))
            .collect();
        let (recommended, reason) = recommend(&designs, self.size.fpr);
        Ok(Plan {
            items: self.items,
            miss_share: self.miss_share,
            designs,
            recommended,
            reason,
        })
    }

    fn design(&self, kind: &'static str, prediction: &Prediction) -> Design {
        let Prediction { bits_per_key, probes, fpr, reads_hit, reads_miss } =
            *prediction;
        Design {
            kind,
            bits_per_key,
            bytes: (self.items as f64 * bits_per_key / 8.0).ceil() as u64,
            fpr,
            probes,
            reads_hit,
            reads_miss,
            reads: self.miss_share * reads_miss
                + (1.0 - self.miss_share) * reads_hit,
            removable: false,
            mergeable: true,
        }
    }
}

/// A second read is worth taking if it saves this share of the memory, or
/// of the false positives at the same memory.
const WORTH_MEMORY: f64 = 0.05;
const WORTH_FPR: f64 = 0.25;
/// More reads per lookup than this are a different promise.
const MOST_READS: f64 = 1.25;

/// The rule, in one sentence: blocked, which reads one line whatever
/// happens, unless another kind of nearly one read per lookup is clearly
/// better on what was left open, memory or rate.
fn recommend(
    designs: &[Design],
    target: Option<f64>,
) -> (&'static str, String) {
    let one_line = &designs[0];
    let gain = |design: &Design| match target {
        Some(_) => 1.0 - design.bits_per_key / one_line.bits_per_key,
        None => 1.0 - design.fpr / one_line.fpr,
    };
    let (worth, what) = match target {
        Some(_) => (WORTH_MEMORY, "less memory"),
        None => (WORTH_FPR, "fewer false positives"),
    };
    let better = designs[1..]
        .iter()
        .filter(|design| design.reads <= MOST_READS && gain(design) >= worth)
        .max_by(|a, b| gain(a).total_cmp(&gain(b)));
    match better {
        Some(design) => (
            design.kind,
            format!(
                "{} has {:.0} % {what} than blocked for {:.3} instead \
                 of 1 block read per lookup.",
                design.kind,
                100.0 * gain(design),
                design.reads,
            ),
        ),
        None => {
            let rival = designs[1..]
                .iter()
                .max_by(|a, b| gain(a).total_cmp(&gain(b)))
                .unwrap_or(one_line);
            (
                one_line.kind,
                format!(
                    "blocked reads one block whatever is asked; {}, the best \
                     of the others, would have {:.1} % {what} and read \
                     {:.2} blocks per lookup.",
                    rival.kind,
                    100.0 * gain(rival),
                    rival.reads
                ),
            )
        }
    }
}

impl Plan {
    fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "{} keys, {:.0} % of lookups miss\n",
            count(self.items),
            100.0 * self.miss_share
        )?;
        writeln!(
            out,
            "{:<9}{:>9}{:>13}  {:<28}{:>6}{:>8}{:>8}  {:<8}merge",
            "kind",
            "bits/key",
            "memory",
            "false positives",
            "hit",
            "miss",
            "mean",
            "remove",
        )?;
        for design in &self.designs {
            let yes = |yes| if yes { "yes" } else { "no" };
            writeln!(
                out,
                "{:<9}{:>9.3}{:>13}  {:<28}{:>6.2}{:>8.4}{:>8.4}  {:<8}{}",
                design.kind,
                design.bits_per_key,
                size(design.bytes),
                rate(design.fpr),
                design.reads_hit,
                design.reads_miss,
                design.reads,
                yes(design.removable),
                yes(design.mergeable),
            )?;
        }
        writeln!(out, "\nRecommended: {}. {}", self.recommended, self.reason)?;
        Ok(())
    }
}

fn parse_share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share between 0 and 1, such as 0.9".into()),
    }
}

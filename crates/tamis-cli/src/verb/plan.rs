//! `tamis plan`: which kind, how much memory, how many reads.

use std::io::Write as _;

use serde::Serialize;
use tamis::Balanced;
use tamis_theory::{Prediction, blocked, split, standard};

use super::{Size, parse_items};
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
    /// Why not the others.
    notes: Vec<String>,
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
        let mut predictions = match (self.size.fpr, self.size.bits_per_key) {
            (Some(fpr), _) => vec![
                ("blocked", blocked::for_fpr(BLOCK_BITS, fpr)?),
                ("split", split::for_fpr(BLOCK_BITS, fpr)?),
                ("bloom", standard::for_fpr(fpr)?),
            ],
            (None, bits) => {
                // clap requires one of the two.
                let bits = bits.unwrap_or_default();
                vec![
                    ("blocked", blocked::best(BLOCK_BITS, bits)?),
                    ("split", split::best(BLOCK_BITS, bits)?),
                    ("bloom", standard::best(bits)?),
                ]
            }
        };
        // Not every task has a balanced design; it is then no choice.
        if let Ok(balanced) = self.balanced() {
            predictions.push(("balanced", balanced));
        }
        let designs: Vec<Design> = predictions
            .into_iter()
            .map(|(kind, prediction)| self.design(kind, &prediction))
            .collect();
        let judgement = Judgement::new(&designs, self.size.fpr.is_some());
        let (recommended, reason) = judgement.recommend();
        let notes = judgement.notes(recommended);
        Ok(Plan {
            items: self.items,
            miss_share: self.miss_share,
            designs,
            recommended,
            reason,
            notes,
        })
    }

    fn balanced(&self) -> tamis::Result<Prediction> {
        let mut builder = Balanced::builder().block_bits(BLOCK_BITS);
        if let Some(fpr) = self.size.fpr {
            builder = builder.fpr(fpr);
        }
        if let Some(bits) = self.size.bits_per_key {
            builder = builder.bits_per_key(bits);
        }
        builder.predict()
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
            mergeable: kind != "balanced",
        }
    }
}

/// A second read is worth taking if it saves this share of the memory, or
/// of the false positives at the same memory.
const WORTH_MEMORY: f64 = 0.05;
const WORTH_FPR: f64 = 0.25;
/// More reads per lookup than this are a different promise.
const MOST_READS: f64 = 1.3;
/// Below this, balancing has nothing to gain.
const LEAST_BALANCED_BITS: f64 = 12.0;

/// The rule, in one sentence: blocked, which reads one line whatever
/// happens, unless another kind of nearly one read per lookup is clearly
/// better on what was left open, memory or rate.
struct Judgement<'a> {
    one_line: &'a Design,
    others: &'a [Design],
    by_memory: bool,
}

impl<'a> Judgement<'a> {
    fn new(designs: &'a [Design], by_memory: bool) -> Self {
        let (one_line, others) = (&designs[0], &designs[1..]);
        Self { one_line, others, by_memory }
    }

    /// What a design saves over blocked, as a share.
    fn gain(&self, design: &Design) -> f64 {
        match self.by_memory {
            true => 1.0 - design.bits_per_key / self.one_line.bits_per_key,
            false => 1.0 - design.fpr / self.one_line.fpr,
        }
    }

    fn worth(&self) -> f64 {
        if self.by_memory { WORTH_MEMORY } else { WORTH_FPR }
    }

    /// The gain in words.
    fn compare(&self, design: &Design) -> String {
        let percent = 100.0 * self.gain(design);
        match (self.by_memory, percent >= 0.0) {
            (true, true) => format!("{percent:.1} % less memory"),
            (true, false) => format!("{:.1} % more memory", -percent),
            (false, true) => format!("{percent:.1} % fewer false positives"),
            (false, false) => {
                format!("{:.1} % more false positives", -percent)
            }
        }
    }

    fn eligible(&self, design: &Design) -> bool {
        design.reads <= MOST_READS
            && self.gain(design) >= self.worth()
            && !too_dense(design)
    }

    fn recommend(&self) -> (&'static str, String) {
        let best = self
            .others
            .iter()
            .filter(|design| self.eligible(design))
            .max_by(|a, b| self.gain(a).total_cmp(&self.gain(b)));
        match best {
            Some(design) => (
                design.kind,
                format!(
                    "It has {} than blocked for {:.3} instead of 1 block \
                     read per lookup.",
                    self.compare(design),
                    design.reads,
                ),
            ),
            None => (
                self.one_line.kind,
                "It reads one block whatever is asked, and no other kind \
                 that reads at most 1.3 saves enough."
                    .into(),
            ),
        }
    }

    /// Why not the others.
    fn notes(&self, recommended: &str) -> Vec<String> {
        let others = self.others.iter().filter(|d| d.kind != recommended);
        others
            .map(|design| {
                let compare = self.compare(design);
                let why = if too_dense(design) {
                    "below about 12 bits per key even perfect balance could \
                     gain only some percent, and tracking bits and second \
                     reads cost as much"
                        .into()
                } else if design.reads > MOST_READS {
                    format!("reads {:.2} blocks per lookup", design.reads)
                } else if self.gain(design) < self.worth() {
                    format!(
                        "reads {:.3} blocks per lookup for that",
                        design.reads
                    )
                } else {
                    format!("{recommended} has the better of it")
                };
                format!("{}: {compare} than blocked; {why}.", design.kind)
            })
            .collect()
    }
}

fn too_dense(design: &Design) -> bool {
    design.kind == "balanced" && design.bits_per_key <= LEAST_BALANCED_BITS
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
        for note in &self.notes {
            writeln!(out, "  not {note}")?;
        }
        Ok(())
    }
}

fn parse_share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share between 0 and 1, such as 0.9".into()),
    }
}

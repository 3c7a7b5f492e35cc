//! `tamis plan`: which kind, how much memory, how many reads.

use std::io::Write as _;

use serde::Serialize;
use tamis::{Balanced, Kind};
use tamis_theory::{Prediction, split, standard};

use super::choice::{self, Prefer};
use super::{BlockSize, Size, parse_items};
use crate::failure::{Outcome, Result};
use crate::report::{count, print_json, rate, size};

/// Compare all kinds of filters for a task, before any key is read
///
/// The numbers are the theory's exact ones. "Reads" are blocks, that is
/// cache lines: a member's, a non-member's, and their mean for the share of
/// lookups that miss.
///
/// Recommended is, of the kinds that read one block, tinyset if it is the
/// smaller one and the rate is 0.01% to 3%, and blocked otherwise or for
/// speed; this is also what `build` takes unasked. Then, in the order of
/// their reads up to 1.3 per lookup, each other kind that saves 5 % of the
/// memory (at given bits per key: a quarter of the false positives) over the
/// best so far; for speed only kinds that test bits.
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

    /// What to recommend for: the least memory, or the fastest lookups
    #[arg(long, value_name = "WHAT", default_value = "space")]
    prefer: Prefer,

    #[command(flatten)]
    block: BlockSize,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// One row of the comparison.
#[derive(Serialize)]
struct Design {
    kind: &'static str,
    /// Of a tinyset filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<u32>,
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
    prefer: &'static str,
    designs: Vec<Design>,
    recommended: &'static str,
    /// What makes `build` build it.
    options: String,
    reason: String,
    /// Why not the others.
    notes: Vec<String>,
}

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
        let block_bits = self.block.bits()?;
        let designs = self.designs(block_bits)?;
        let start = choice::one_line(&self.size, block_bits, self.prefer)?;
        let judgement = Judgement {
            by_memory: self.size.fpr.is_some(),
            prefer: self.prefer,
            start: start.name(),
            designs: &designs,
        };
        let best = judgement.best();
        let (recommended, options) = (best.kind, self.options(best));
        let reason = judgement.reason(best);
        let notes = judgement.notes(best);
        Ok(Plan {
            items: self.items,
            miss_share: self.miss_share,
            prefer: match self.prefer {
                Prefer::Space => "space",
                Prefer::Speed => "speed",
            },
            designs,
            recommended,
            options,
            reason,
            notes,
        })
    }

    fn options(&self, design: &Design) -> String {
        let mut options = format!("--kind {}", design.kind);
        if let Some(levels @ 2..) = design.levels {
            options += &format!(" --levels {levels}");
        }
        if let Ok(256) = self.block.bits() {
            options += " --block-bytes 32";
        }
        options
    }

    fn designs(&self, block_bits: u32) -> Result<Vec<Design>> {
        let size = &self.size;
        let split = size.predict(
            |fpr| split::for_fpr(block_bits, fpr),
            |bits| split::best(block_bits, bits),
        )?;
        let bloom = size.predict(standard::for_fpr, standard::best)?;
        let blocked = choice::blocked(size, block_bits)?;
        let mut designs = vec![
            self.design(Kind::Blocked, &blocked),
            self.design(Kind::Split, &split),
            self.design(Kind::Bloom, &bloom),
        ];
        // Not every task has a design of these; it is then no choice.
        let builder = choice::tinyset(size, block_bits);
        if let Ok(tinyset) = builder.predict() {
            designs.push(self.design(Kind::TinySet, &tinyset));
        }
        if let Ok(removable) = builder.removable().predict() {
            let design = self.design(Kind::TinySet, &removable);
            designs.push(Design { removable: true, ..design });
        }
        if let Ok(two) = builder.two_level().predict() {
            let design = self.design(Kind::TinySet, &two);
            designs.push(Design {
                levels: Some(2),
                mergeable: false,
                ..design
            });
        }
        if let Ok(balanced) = self.balanced(block_bits) {
            designs.push(self.design(Kind::Balanced, &balanced));
        }
        Ok(designs)
    }

    fn balanced(&self, block_bits: u32) -> tamis::Result<Prediction> {
        let mut builder = Balanced::builder().block_bits(block_bits);
        if let Some(fpr) = self.size.fpr {
            builder = builder.fpr(fpr);
        }
        if let Some(bits) = self.size.bits_per_key {
            builder = builder.bits_per_key(bits);
        }
        builder.predict()
    }

    fn design(&self, kind: Kind, prediction: &Prediction) -> Design {
        let Prediction { bits_per_key, probes, fpr, reads_hit, reads_miss } =
            *prediction;
        Design {
            kind: kind.name(),
            levels: (kind == Kind::TinySet).then_some(1),
            bits_per_key,
            bytes: (self.items as f64 * bits_per_key / 8.0).ceil() as u64,
            fpr,
            probes,
            reads_hit,
            reads_miss,
            reads: self.miss_share * reads_miss
                + (1.0 - self.miss_share) * reads_hit,
            removable: false,
            mergeable: kind != Kind::Balanced,
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

impl Design {
    fn name(&self) -> String {
        match (self.removable, self.levels) {
            (true, _) => format!("{}, removable", self.kind),
            (_, Some(levels @ 2..)) => {
                format!("{}, {levels} levels", self.kind)
            }
            _ => self.kind.into(),
        }
    }

    fn searches_fingerprints(&self) -> bool {
        self.kind == Kind::TinySet.name()
    }

    fn too_dense(&self) -> bool {
        self.kind == Kind::Balanced.name()
            && self.bits_per_key <= LEAST_BALANCED_BITS
    }
}

/// The rule, in one sentence: the best kind that reads one line whatever
/// happens, unless another kind of nearly one read per lookup is clearly
/// better on what was left open, memory or rate.
struct Judgement<'a> {
    by_memory: bool,
    prefer: Prefer,
    /// The kind that `build` would take.
    start: &'static str,
    designs: &'a [Design],
}

impl<'a> Judgement<'a> {
    /// What a design saves over another one, as a share.
    fn gain(&self, design: &Design, over: &Design) -> f64 {
        match self.by_memory {
            true => 1.0 - design.bits_per_key / over.bits_per_key,
            false => 1.0 - design.fpr / over.fpr,
        }
    }

    fn worth(&self) -> f64 {
        if self.by_memory { WORTH_MEMORY } else { WORTH_FPR }
    }

    /// The gain in words.
    fn compare(&self, design: &Design, with: &Design) -> String {
        let gain = self.gain(design, with);
        if !self.by_memory && gain <= -1.0 {
            let times = 1.0 - gain;
            return format!(
                "{times:.1} times the false positives of {}",
                with.name()
            );
        }
        let percent = 100.0 * gain;
        let what = match (self.by_memory, percent >= 0.0) {
            (true, true) => "less memory",
            (true, false) => "more memory",
            (false, true) => "fewer false positives",
            (false, false) => "more false positives",
        };
        format!("{:.1} % {what} than {}", percent.abs(), with.name())
    }

    fn eligible(&self, design: &Design) -> bool {
        design.reads <= MOST_READS
            && !design.too_dense()
            // Whoever removes keys needs it, whoever does not pays for it.
            && !design.removable
            && !self.too_slow(design)
    }

    fn too_slow(&self, design: &Design) -> bool {
        self.prefer == Prefer::Speed && design.searches_fingerprints()
    }

    fn start(&self) -> &'a Design {
        let found = self.designs.iter().find(|d| d.kind == self.start);
        // Blocked is always there, and first.
        found.unwrap_or(&self.designs[0])
    }

    fn best(&self) -> &'a Design {
        let mut others: Vec<&Design> =
            self.designs.iter().filter(|d| self.eligible(d)).collect();
        others.sort_by(|a, b| a.reads.total_cmp(&b.reads));
        let mut best = self.start();
        for design in others {
            if self.gain(design, best) >= self.worth() {
                best = design;
            }
        }
        best
    }

    fn reason(&self, best: &Design) -> String {
        let start = self.start();
        let mut reason = if !std::ptr::eq(best, start) {
            format!(
                "It has {}, and reads {:.3} blocks per lookup.",
                self.compare(best, start),
                best.reads
            )
        } else if best.searches_fingerprints() {
            format!(
                "It reads one block whatever is asked, and has {}.",
                self.compare(best, &self.designs[0])
            )
        } else {
            "It reads one block whatever is asked, and no other kind that \
             reads at most 1.3 saves enough."
                .into()
        };
        if best.searches_fingerprints() {
            reason += " While it fits the cache, lookups of single keys take \
                       several times as long: --prefer speed if that counts.";
        }
        reason
    }

    /// Why not the others.
    fn notes(&self, best: &Design) -> Vec<String> {
        let others = self.designs.iter().filter(|d| !std::ptr::eq(*d, best));
        others
            .map(|design| {
                let why = if design.removable {
                    "pays if keys must be removed".into()
                } else if design.too_dense() {
                    "below about 12 bits per key even perfect balance could \
                     gain only some percent, and tracking bits and second \
                     reads cost as much"
                        .into()
                } else if self.too_slow(design) {
                    "for single keys, searching fingerprints takes several \
                     times as long as testing bits"
                        .into()
                } else if design.reads == 1.0 {
                    "reads one block per lookup".into()
                } else {
                    format!("reads {:.3} blocks per lookup", design.reads)
                };
                let compare = self.compare(design, best);
                format!("{}: {compare}; {why}.", design.name())
            })
            .collect()
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
            "{:<19}{:>9}{:>13}  {:<28}{:>6}{:>8}{:>8}  {:<8}merge",
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
                "{:<19}{:>9.3}{:>13}  {:<28}{:>6.2}{:>8.4}{:>8.4}  {:<8}{}",
                design.name(),
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
        let Self { recommended, options, reason, .. } = self;
        writeln!(out, "\nRecommended: {recommended} ({options}). {reason}")?;
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

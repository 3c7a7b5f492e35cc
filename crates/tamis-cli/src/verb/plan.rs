//! `tamis plan`.

use std::io::Write as _;

use serde::Serialize;
use tamis::{Balanced, Kind};
use tamis_theory::{Prediction, split, standard};

use super::default_kind::{self, Prefer};
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
struct Candidate {
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

#[derive(Serialize)]
struct Comparison {
    items: u64,
    miss_share: f64,
    prefer: &'static str,
    #[serde(rename = "designs")]
    candidates: Vec<Candidate>,
    recommended: &'static str,
    /// Options of `build` for the recommended candidate.
    options: String,
    reason: String,
    /// Comparison of every other candidate with the recommended one.
    notes: Vec<String>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let comparison = self.compare()?;
        if self.format.json {
            print_json(&comparison)?;
        } else {
            comparison.print()?;
        }
        Ok(Exit::Success)
    }

    fn compare(&self) -> Result<Comparison> {
        let block_bits = self.block.bits()?;
        let candidates = self.candidates(block_bits)?;
        let start =
            default_kind::default_kind(&self.size, block_bits, self.prefer)?;
        let rule = SelectionRule {
            by_memory: self.size.fpr.is_some(),
            prefer: self.prefer,
            start: start.name(),
            candidates: &candidates,
        };
        let best = rule.best();
        let (recommended, options) = (best.kind, self.options(best));
        let reason = rule.reason(best);
        let notes = rule.notes(best);
        Ok(Comparison {
            items: self.items,
            miss_share: self.miss_share,
            prefer: match self.prefer {
                Prefer::Space => "space",
                Prefer::Speed => "speed",
            },
            candidates,
            recommended,
            options,
            reason,
            notes,
        })
    }

    fn options(&self, candidate: &Candidate) -> String {
        let mut options = format!("--kind {}", candidate.kind);
        if let Some(levels @ 2..) = candidate.levels {
            options += &format!(" --levels {levels}");
        }
        if let Ok(256) = self.block.bits() {
            options += " --block-bytes 32";
        }
        options
    }

    fn candidates(&self, block_bits: u32) -> Result<Vec<Candidate>> {
        let size = &self.size;
        let split = size.predict(
            |fpr| split::for_fpr(block_bits, fpr),
            |bits| split::best(block_bits, bits),
        )?;
        let bloom = size.predict(standard::for_fpr, standard::best)?;
        let blocked = default_kind::blocked(size, block_bits)?;
        let mut candidates = vec![
            self.candidate(Kind::Blocked, &blocked),
            self.candidate(Kind::Split, &split),
            self.candidate(Kind::Bloom, &bloom),
        ];
        // The kinds below cannot reach every rate or memory; those that
        // cannot are left out.
        let builder = default_kind::tinyset(size, block_bits);
        if let Ok(tinyset) = builder.predict() {
            candidates.push(self.candidate(Kind::TinySet, &tinyset));
        }
        if let Ok(removable) = builder.removable().predict() {
            candidates.push(Candidate {
                removable: true,
                ..self.candidate(Kind::TinySet, &removable)
            });
        }
        if let Ok(two) = builder.two_level().predict() {
            candidates.push(Candidate {
                levels: Some(2),
                mergeable: false,
                ..self.candidate(Kind::TinySet, &two)
            });
        }
        if let Ok(balanced) = self.balanced(block_bits) {
            candidates.push(self.candidate(Kind::Balanced, &balanced));
        }
        Ok(candidates)
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

    fn candidate(&self, kind: Kind, prediction: &Prediction) -> Candidate {
        let Prediction { bits_per_key, probes, fpr, reads_hit, reads_miss } =
            *prediction;
        Candidate {
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

/// Smallest share of the memory that a candidate must save at equal rate.
const MIN_MEMORY_GAIN: f64 = 0.05;
/// Smallest share of the false positives that a candidate must save at equal
/// memory.
const MIN_FPR_GAIN: f64 = 0.25;
/// Largest average number of reads per lookup of a recommended candidate.
const MAX_READS: f64 = 1.3;
/// Bits per key up to which balanced filters are not recommended.
const MIN_BALANCED_BITS: f64 = 12.0;

impl Candidate {
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
            && self.bits_per_key <= MIN_BALANCED_BITS
    }
}

/// Rule of the recommendation: the default kind of `build`, unless another
/// candidate of at most `MAX_READS` reads saves `MIN_MEMORY_GAIN` of the
/// memory (at a given rate) or `MIN_FPR_GAIN` of the false positives (at given
/// bits per key).
struct SelectionRule<'a> {
    /// The rate is given and memory is compared.
    by_memory: bool,
    prefer: Prefer,
    /// Default kind of `build`.
    start: &'static str,
    candidates: &'a [Candidate],
}

impl<'a> SelectionRule<'a> {
    /// Share of the memory or of the false positives that `candidate` saves.
    fn gain(&self, candidate: &Candidate, over: &Candidate) -> f64 {
        match self.by_memory {
            true => 1.0 - candidate.bits_per_key / over.bits_per_key,
            false => 1.0 - candidate.fpr / over.fpr,
        }
    }

    fn min_gain(&self) -> f64 {
        if self.by_memory { MIN_MEMORY_GAIN } else { MIN_FPR_GAIN }
    }

    /// Gain as text, such as "5.2 % less memory than blocked".
    fn compare(&self, candidate: &Candidate, with: &Candidate) -> String {
        let gain = self.gain(candidate, with);
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

    fn eligible(&self, candidate: &Candidate) -> bool {
        candidate.reads <= MAX_READS
            && !candidate.too_dense()
            // Removals cost memory; recommended only on request.
            && !candidate.removable
            && !self.too_slow(candidate)
    }

    fn too_slow(&self, candidate: &Candidate) -> bool {
        self.prefer == Prefer::Speed && candidate.searches_fingerprints()
    }

    fn start(&self) -> &'a Candidate {
        let mut candidates = self.candidates.iter();
        let found = candidates.find(|one| one.kind == self.start);
        // `start` is a kind of `candidates`, whose first is blocked.
        found.unwrap_or(&self.candidates[0])
    }

    fn best(&self) -> &'a Candidate {
        let mut others: Vec<&Candidate> =
            self.candidates.iter().filter(|c| self.eligible(c)).collect();
        others.sort_by(|a, b| a.reads.total_cmp(&b.reads));
        let mut best = self.start();
        for candidate in others {
            if self.gain(candidate, best) >= self.min_gain() {
                best = candidate;
            }
        }
        best
    }

    fn reason(&self, best: &Candidate) -> String {
        let start = self.start();
        let mut reason = if !std::ptr::eq(best, start) {
            format!(
                "It has {} and reads {:.3} blocks per lookup.",
                self.compare(best, start),
                best.reads
            )
        } else if best.searches_fingerprints() {
            format!(
                "It reads one block per lookup and has {}.",
                self.compare(best, &self.candidates[0])
            )
        } else {
            format!(
                "It reads one block per lookup, and no other kind that reads \
                 at most {MAX_READS} saves {:.0} % of the {}.",
                100.0 * self.min_gain(),
                if self.by_memory { "memory" } else { "false positives" },
            )
        };
        if best.searches_fingerprints() {
            reason += " While the filter fits the cache, lookups of single \
                       keys take several times as long as in blocked: use \
                       --prefer speed if that matters.";
        }
        reason
    }

    /// Notes on the candidates other than `best`.
    fn notes(&self, best: &Candidate) -> Vec<String> {
        let others =
            self.candidates.iter().filter(|c| !std::ptr::eq(*c, best));
        others
            .map(|candidate| {
                let why = if candidate.removable {
                    "needed only to remove keys".into()
                } else if candidate.too_dense() {
                    "below about 12 bits per key perfect balance gains a few \
                     percent, and tracking bits and second reads cost as much"
                        .into()
                } else if self.too_slow(candidate) {
                    "searching the fingerprints of a single key takes \
                     several times as long as testing its bits"
                        .into()
                } else if candidate.reads == 1.0 {
                    "reads one block per lookup".into()
                } else {
                    format!("reads {:.3} blocks per lookup", candidate.reads)
                };
                let compare = self.compare(candidate, best);
                format!("{}: {compare}; {why}.", candidate.name())
            })
            .collect()
    }
}

impl Comparison {
    fn print(&self) -> Result<()> {
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
        for candidate in &self.candidates {
            writeln!(
                out,
                "{:<18}{:>9.3}{:>12}{:>11}{:>7.2}{:>8.4}{:>8.4}  {}",
                candidate.name(),
                candidate.bits_per_key,
                size(candidate.bytes),
                short_rate(candidate.fpr),
                candidate.reads_hit,
                candidate.reads_miss,
                candidate.reads,
                if candidate.mergeable { "yes" } else { "no" },
            )?;
        }
        let Self { recommended, options, reason, .. } = self;
        let text = format!("Recommended: {recommended} ({options}). {reason}");
        writeln!(out, "\n{}", wrap(&text, 0, 0))?;
        for note in &self.notes {
            writeln!(out, "  not {}", wrap(note, 6, 6))?;
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

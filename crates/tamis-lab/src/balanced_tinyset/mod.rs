//! Balanced TinySet: fingerprint blocks under the multilevel placement of
//! Kanizo, Hay and Keslassy, compared with one level and with two.

mod design;
mod levels;

use std::error::Error;
use std::num::NonZero;
use std::ops::{Range, RangeInclusive};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tamis::{KeyHasher, Stats, TinySet};
use tamis_theory::Prediction;
use tamis_theory::tinyset::{self, two_level};

use design::{Design, LINE, Model};
use levels::{Levels, Lookups};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Enough that the variance of the loads changes the rate by less than one
/// percent, also at 0.01 %.
const KEYS: u64 = 4_000_000;
/// Keys hashed and looked up together, few enough for the cache.
const CHUNK: u64 = 1 << 11;
/// A fixed seed: every run prints the same.
const HASHER: KeyHasher = KeyHasher::xxh3(0xba1a_7ced);

/// Rates, and the number of absent keys that measures each within a percent.
const TARGETS: [(f64, u64); 3] =
    [(0.01, 20_000_000), (0.001, 40_000_000), (0.0001, 100_000_000)];
/// Limits on the mean reads of an absent key.
const LIMITS: [f64; 3] = [1.06, 1.1, 1.25];
/// Distance of designs from the limit, because filters deviate from their
/// design.
const MARGIN: f64 = 0.004;
const CHOICES: RangeInclusive<u32> = 2..=4;
/// Tracking bits, counted as memory beside the block. In the block they
/// would shorten its array: a difference of 0.01 bits per key for up to
/// four, more above.
const TRACKING_BITS: [u32; 4] = [1, 2, 3, 4];

/// One filter.
#[derive(Debug, Serialize)]
struct Row {
    kind: Kind,
    target_fpr: f64,
    /// Limit on the reads of an absent key; `None` for no limit.
    most_reads: Option<f64>,
    design: Option<Design>,
    /// Measured; predicted if `probes` is 0.
    bits_per_key: f64,
    fpr: f64,
    reads_miss: f64,
    reads_hit: f64,
    /// Absent keys looked up; 0 if no filter was built.
    probes: u64,
    /// Bits per key at the target rate, to first order.
    bits_at_target: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    TwoLevel,
    Paper,
    Balanced,
    Tracking,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::TwoLevel => "two-level",
            Self::Paper => "balanced, paper's shares",
            Self::Balanced => "balanced",
            Self::Tracking => "balanced, tracking bits",
        }
    }
}

/// Measurement of filters at one target.
struct Bench {
    bar: ProgressBar,
    target: f64,
    probes: u64,
    /// Additional bits per key for a rate lower by a factor of e.
    slope: f64,
}

pub(crate) fn run(json: bool) -> Result<()> {
    let model = Model::new();
    let bar = progress()?;
    let mut rows = Vec::new();
    for (target, probes) in TARGETS {
        let near = |factor: f64| {
            tinyset::for_fpr(LINE, target * factor).map(|p| p.bits_per_key)
        };
        let slope = (near(0.95)? - near(1.05)?) / (1.05f64 / 0.95).ln();
        let bench = Bench { bar: bar.clone(), target, probes, slope };
        rows.push(bench.plain()?);
        rows.push(bench.two_level()?);
        let found = model.of_paper(target).ok_or("no such design")?;
        rows.push(bench.levels(Kind::Paper, found, None)?);
        for limit in LIMITS {
            let kinds: [(Kind, &[u32]); 2] =
                [(Kind::Balanced, &[0]), (Kind::Tracking, &TRACKING_BITS)];
            for (kind, bits) in kinds {
                let found = bench.search(&model, limit, bits)?;
                rows.push(bench.levels(kind, found, Some(limit))?);
            }
        }
    }
    bar.finish_and_clear();
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
        print!("\n{}", summary(&rows));
    }
    Ok(())
}

/// One step per filter; drawn only on a terminal.
fn progress() -> Result<ProgressBar> {
    let rows = TARGETS.len() * (3 + 2 * LIMITS.len());
    let bar = ProgressBar::new(rows as u64);
    let style = "{msg} {wide_bar} {pos}/{len} {eta}";
    bar.set_style(ProgressStyle::with_template(style)?);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    Ok(bar)
}

impl Bench {
    fn show(&self, step: &str) {
        self.bar.set_message(format!("{} {step}", percent(self.target)));
    }

    /// The best design of the model, with any number of levels.
    fn search(
        &self,
        model: &Model,
        limit: f64,
        tracking_bits: &[u32],
    ) -> Result<(Design, Prediction)> {
        self.show("searching designs");
        let each = CHOICES.flat_map(|choices| {
            tracking_bits.iter().map(move |bits| (choices, *bits))
        });
        let found = each.filter_map(|(choices, bits)| {
            model.best(self.target, limit - MARGIN, choices, bits)
        });
        let best = found.min_by(|(_, one), (_, other)| {
            one.bits_per_key.total_cmp(&other.bits_per_key)
        });
        Ok(best.ok_or("no design within the limit")?)
    }

    fn plain(&self) -> Result<Row> {
        self.show(Kind::Plain.name());
        let filter = TinySet::builder().fpr(self.target).repeats();
        self.tinyset(Kind::Plain, filter.items(KEYS).build()?)
    }

    fn two_level(&self) -> Result<Row> {
        self.show(Kind::TwoLevel.name());
        let builder = TinySet::builder().fpr(self.target).two_level();
        match builder.items(KEYS).repeats().build() {
            Ok(filter) => self.tinyset(Kind::TwoLevel, filter),
            // Refused by the builder where two levels do not pay: predicts.
            Err(tamis::Error::InvalidArgument { .. }) => {
                let (_, p) = two_level::for_fpr(LINE, self.target, LIMITS[0])?;
                self.bar.inc(1);
                Ok(Row {
                    kind: Kind::TwoLevel,
                    target_fpr: self.target,
                    most_reads: None,
                    design: None,
                    bits_per_key: p.bits_per_key,
                    fpr: p.fpr,
                    reads_miss: p.reads_miss,
                    reads_hit: p.reads_hit,
                    probes: 0,
                    bits_at_target: p.bits_per_key,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A filter of the library, whose statistics include reads.
    fn tinyset(&self, kind: Kind, mut filter: TinySet) -> Result<Row> {
        filter.insert_hash_batch(&hashes(0..KEYS));
        let look_up = |hashes: &[u64]| {
            let mut found = vec![false; hashes.len()];
            filter.contains_hash_batch(hashes, &mut found);
            let found = found.iter().map(|found| u64::from(*found)).sum();
            Lookups { found, reads: 0 }
        };
        let bits = filter.block_count() * u64::from(filter.block_bits());
        let row = self.measure(kind, bits, look_up)?;
        let Stats { reads_miss, reads_hit, .. } = filter.stats();
        Ok(Row { reads_miss, reads_hit, ..row })
    }

    fn levels(
        &self,
        kind: Kind,
        (design, predicted): (Design, Prediction),
        most_reads: Option<f64>,
    ) -> Result<Row> {
        self.show(kind.name());
        let bits = KEYS as f64 * predicted.bits_per_key;
        let blocks = (bits / design.block_bits()).round() as u64;
        let mut levels = Levels::new(&design, blocks)?;
        levels.insert_all(&hashes(0..KEYS));
        let look_up = |hashes: &[u64]| levels.look_up(hashes);
        let row = self.measure(kind, levels.bits(), look_up)?;
        Ok(Row { most_reads, design: Some(design), ..row })
    }

    fn measure(
        &self,
        kind: Kind,
        bits: u64,
        look_up: impl Fn(&[u64]) -> Lookups + Sync,
    ) -> Result<Row> {
        let members = look_up_all(0..KEYS, &look_up);
        if members.found != KEYS {
            let lost = KEYS - members.found;
            return Err(format!("{}: lost {lost} keys", kind.name()).into());
        }
        let strangers = look_up_all(KEYS..KEYS + self.probes, &look_up);
        self.bar.inc(1);
        let bits_per_key = bits as f64 / KEYS as f64;
        let fpr = strangers.found as f64 / self.probes as f64;
        Ok(Row {
            kind,
            target_fpr: self.target,
            most_reads: None,
            design: None,
            bits_per_key,
            fpr,
            reads_miss: strangers.reads as f64 / self.probes as f64,
            reads_hit: members.reads as f64 / KEYS as f64,
            probes: self.probes,
            bits_at_target: bits_per_key
                + self.slope * (fpr / self.target).ln(),
        })
    }
}

fn hashes(keys: Range<u64>) -> Vec<u64> {
    keys.map(|key| HASHER.hash(&key)).collect()
}

/// Looks up all keys of a range, on all cores.
fn look_up_all(
    keys: Range<u64>,
    look_up: &(impl Fn(&[u64]) -> Lookups + Sync),
) -> Lookups {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let part = (keys.end - keys.start).div_ceil(threads as u64).max(1);
    thread::scope(|scope| {
        let workers: Vec<_> = keys
            .clone()
            .step_by(part as usize)
            .map(|start| {
                let end = (start + part).min(keys.end);
                scope.spawn(move || {
                    let mut sum = Lookups::default();
                    for from in (start..end).step_by(CHUNK as usize) {
                        let to = (from + CHUNK).min(end);
                        sum += look_up(&hashes(from..to));
                    }
                    sum
                })
            })
            .collect();
        let mut all = Lookups::default();
        for worker in workers {
            match worker.join() {
                Ok(sum) => all += sum,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

fn percent(rate: f64) -> String {
    // Rounds to four decimal digits, without binary residues.
    format!("{} %", (rate * 1e6).round() / 1e4)
}

impl Row {
    fn levels(&self) -> String {
        let Some(design) = &self.design else { return "-".into() };
        let shares: Vec<String> = design
            .level_shares
            .iter()
            .map(|share| match share {
                0.001.. => format!("{share:.4}"),
                _ => format!("{share:.0e}"),
            })
            .collect();
        let tracking = match design.tracking_bits {
            0 => String::new(),
            1 => "; 1 bit".into(),
            bits => format!("; {bits} bits"),
        };
        let cut = f64::from(design.threshold) + design.admission;
        format!("{}; h + p = {cut:.2}{tracking}", shares.join(", "))
    }
}

/// Every filter, in the order of measurement.
fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| rate | filter | within | shares and threshold | bits per key | \
         measured rate | bits at the rate | reads, miss | reads, hit |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let within = row.most_reads.map_or("-".into(), |m| format!("{m}"));
        let measured = match row.probes {
            0 => "predicted".into(),
            _ => format!("{:.3e}", row.fpr),
        };
        let cells = [
            percent(row.target_fpr),
            row.kind.name().into(),
            within,
            row.levels(),
            format!("{:.3}", row.bits_per_key),
            measured,
            format!("{:.2}", row.bits_at_target),
            format!("{:.3}", row.reads_miss),
            format!("{:.3}", row.reads_hit),
        ];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

/// The fewest bits per key within each limit of reads.
fn summary(rows: &[Row]) -> String {
    let mut out = String::from(
        "| rate | reads of a miss, at most | plain | two-level | balanced | \
         tracking bits | balanced saves |\n|---|---|---|---|---|---|---|\n",
    );
    for (target, _) in TARGETS {
        for limit in LIMITS {
            let least = |kind| {
                let fit = rows.iter().filter(|row| {
                    row.kind == kind
                        && row.target_fpr == target
                        && row.reads_miss <= limit
                });
                fit.map(|row| row.bits_at_target).fold(f64::NAN, f64::min)
            };
            let bits =
                [Kind::Plain, Kind::TwoLevel, Kind::Balanced, Kind::Tracking]
                    .map(least);
            let saved = bits[0].min(bits[1]) - bits[2].min(bits[3]);
            let mut cells = vec![percent(target), limit.to_string()];
            cells.extend(bits.map(|bits| match bits.is_nan() {
                true => "-".into(),
                false => format!("{bits:.2}"),
            }));
            cells.push(format!("{saved:+.2}"));
            out += &format!("| {} |\n", cells.join(" | "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, bits: f64, reads_miss: f64) -> Row {
        Row {
            kind,
            target_fpr: 0.01,
            most_reads: None,
            design: None,
            bits_per_key: bits,
            fpr: 0.01,
            reads_miss,
            reads_hit: 1.0,
            probes: 1,
            bits_at_target: bits,
        }
    }

    #[test]
    fn summary_compares_filters_within_the_limit() {
        let rows = [
            row(Kind::Plain, 9.0, 1.0),
            row(Kind::TwoLevel, 8.5, 1.08),
            row(Kind::Balanced, 8.75, 1.05),
            row(Kind::Tracking, 8.0, 1.2),
        ];
        let text = summary(&rows);
        let lines: Vec<&str> = text.lines().skip(2).take(3).collect();
        assert_eq!(
            lines,
            [
                "| 1 % | 1.06 | 9.00 | - | 8.75 | - | +0.25 |",
                "| 1 % | 1.1 | 9.00 | 8.50 | 8.75 | - | -0.25 |",
                "| 1 % | 1.25 | 9.00 | 8.50 | 8.75 | 8.00 | +0.50 |",
            ]
        );
        assert!(table(&rows).contains("| two-level | - | - | 8.500 |"));
    }

    #[test]
    fn all_keys_are_looked_up_once() {
        // A sum that identifies the keys.
        let sum = |hashes: &[u64]| Lookups {
            found: hashes.len() as u64,
            reads: hashes.iter().map(|hash| hash >> 32).sum(),
        };
        for len in [0, 1, CHUNK - 1, 3 * CHUNK + 5] {
            let keys = 7..7 + len;
            assert_eq!(look_up_all(keys.clone(), &sum), sum(&hashes(keys)));
        }
    }

    #[test]
    fn rates_are_written_plainly() {
        let written = TARGETS.map(|(target, _)| percent(target));
        assert_eq!(written, ["1 %", "0.1 %", "0.01 %"]);
    }
}

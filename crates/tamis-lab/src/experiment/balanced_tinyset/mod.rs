//! Balanced TinySet: fingerprint blocks under the multilevel placement of
//! Kanizo, Hay and Keslassy, compared with one level and with two.

mod design;
mod levels;

use std::num::NonZero;
use std::ops::{Range, RangeInclusive};
use std::thread;

use tamis::{KeyHasher, Stats, TinySet};
use tamis_theory::Prediction;
use tamis_theory::tinyset::{self, two_level};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use design::{Design, LINE, Model};
use levels::{Levels, Lookups};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "balanced-tinyset",
    title: "TinySet with balancing",
    source: "TS 2.1 and 5.4, BBF 1.2",
    about: "Both papers suggest fingerprint blocks under multilevel \
        placement, and neither evaluates it. Levels, shares, threshold and \
        admission are searched with a fluid model; the best designs are \
        built and looked up in, beside plain TinySets and those of two \
        levels.",
    seconds: [240.0, 0.6],
    traced: false,
    run,
};

/// Keys hashed and looked up together, few enough for the cache.
const CHUNK: u64 = 1 << 11;
/// A fixed seed: every run prints the same.
const HASHER: KeyHasher = KeyHasher::xxh3(0xba1a_7ced);

/// Sizes of the experiment.
struct Scope {
    /// Keys of each filter: enough that the variance of the loads changes
    /// the rate by less than one percent, also at 0.01 %.
    keys: u64,
    /// Rates, and the number of absent keys that measures each within a
    /// percent.
    targets: &'static [(f64, u64)],
    /// Limits on the mean reads of an absent key.
    limits: &'static [f64],
    /// Levels of the designs.
    choices: RangeInclusive<u32>,
}

impl Scope {
    fn full() -> Self {
        Self {
            keys: 4_000_000,
            targets: &[
                (0.01, 20_000_000),
                (0.001, 40_000_000),
                (0.0001, 100_000_000),
            ],
            limits: &[1.06, 1.1, 1.25],
            choices: 2..=4,
        }
    }

    fn quick() -> Self {
        Self {
            keys: 200_000,
            targets: &[(0.001, 4_000_000)],
            limits: &[1.1],
            choices: 2..=2,
        }
    }
}

/// Distance of designs from the limit, because filters deviate from their
/// design.
const MARGIN: f64 = 0.004;
/// Tracking bits, counted as memory beside the block. In the block they
/// would shorten its array: a difference of 0.01 bits per key for up to
/// four, more above.
const TRACKING_BITS: [u32; 4] = [1, 2, 3, 4];

/// One filter.
#[derive(Debug)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
struct Bench<'a> {
    scope: &'a Scope,
    target: f64,
    probes: u64,
    /// Additional bits per key for a rate lower by a factor of e.
    slope: f64,
}

fn run(setting: &Setting) -> Result<Outcome> {
    let scope = setting.size(Scope::full(), Scope::quick());
    let rows = measure(&scope)?;
    let mut outcome = Outcome {
        parameters: vec![
            ("keys", scope.keys.to_string()),
            ("rates, absent keys", format!("{:?}", scope.targets)),
            ("limits on the reads of a miss", format!("{:?}", scope.limits)),
            ("levels", format!("{:?}", scope.choices)),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &[
            "rate",
            "filter",
            "within",
            "shares and threshold",
            "bits per key",
            "measured rate",
            "bits at the rate",
            "reads of a miss",
            "reads of a hit",
        ],
    );
    for row in &rows {
        let measured = (row.probes > 0).then_some(row.fpr);
        table.push(row![
            row.target_fpr,
            row.kind.name(),
            row.most_reads,
            row.levels(),
            row.bits_per_key,
            measured,
            row.bits_at_target,
            row.reads_miss,
            row.reads_hit,
        ]);
    }
    outcome.tables.push(table);
    let mut saved = Table::new(
        "saved",
        &[
            "rate",
            "reads of a miss, at most",
            "plain",
            "two-level",
            "balanced",
            "tracking bits",
            "balanced saves",
        ],
    );
    let mut series = Vec::new();
    for (colour, (target, _)) in scope.targets.iter().enumerate() {
        let mut points = Vec::new();
        for limit in scope.limits {
            let bits =
                [Kind::Plain, Kind::TwoLevel, Kind::Balanced, Kind::Tracking]
                    .map(|kind| least(&rows, kind, *target, *limit));
            let best = bits[0].min(bits[1]);
            let saves = best - bits[2].min(bits[3]);
            saved.push(row![
                *target, *limit, bits[0], bits[1], bits[2], bits[3], saves
            ]);
            points.push((*limit, saves));
            let quantity = format!(
                "share of memory that balancing saves, rate {target}, at \
                 most {limit} reads"
            );
            outcome.findings.push(
                Finding::new(&["T-038"], quantity)
                    .ours(saves / best)
                    .holds(saves >= 0.02 * best)
                    .check(
                        "below 3 % of either sign",
                        saves.abs() < 0.03 * best,
                    )
                    .differs(
                        "widths absorb imbalance already: a block with few \
                         keys has longer fingerprints and not unused bits",
                    ),
            );
        }
        series.push(Series::marks(format!("rate {target}"), colour, points));
    }
    outcome.tables.push(saved);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Bits per key that balancing saves over the best TinySet"
            .into(),
        x: Axis::linear("reads of a miss, at most"),
        y: Axis::linear("bits per key saved"),
        legend: Corner::UpperLeft,
        series,
    });
    Ok(outcome)
}

/// Every filter, in the order of measurement.
fn measure(scope: &Scope) -> Result<Vec<Row>> {
    let model = Model::new();
    let mut rows = Vec::new();
    for (target, probes) in scope.targets {
        let (target, probes) = (*target, *probes);
        let near = |factor: f64| {
            tinyset::for_fpr(LINE, target * factor).map(|p| p.bits_per_key)
        };
        let slope = (near(0.95)? - near(1.05)?) / (1.05f64 / 0.95).ln();
        let bench = Bench { scope, target, probes, slope };
        rows.push(bench.plain()?);
        rows.push(bench.two_level()?);
        let found = model.of_paper(target).ok_or("no such design")?;
        rows.push(bench.levels(Kind::Paper, found, None)?);
        for limit in scope.limits {
            let kinds: [(Kind, &[u32]); 2] =
                [(Kind::Balanced, &[0]), (Kind::Tracking, &TRACKING_BITS)];
            for (kind, bits) in kinds {
                let found = bench.search(&model, *limit, bits)?;
                rows.push(bench.levels(kind, found, Some(*limit))?);
            }
        }
    }
    Ok(rows)
}

/// The fewest bits per key of a kind within a limit of reads; NaN for none.
fn least(rows: &[Row], kind: Kind, target: f64, limit: f64) -> f64 {
    let fit = rows.iter().filter(|row| {
        row.kind == kind && row.target_fpr == target && row.reads_miss <= limit
    });
    fit.map(|row| row.bits_at_target).fold(f64::NAN, f64::min)
}

impl Bench<'_> {
    /// The best design of the model, with any number of levels.
    fn search(
        &self,
        model: &Model,
        limit: f64,
        tracking_bits: &[u32],
    ) -> Result<(Design, Prediction)> {
        let each = self.scope.choices.clone().flat_map(|choices| {
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
        let filter = TinySet::builder().fpr(self.target).repeats();
        self.tinyset(Kind::Plain, filter.items(self.scope.keys).build()?)
    }

    fn two_level(&self) -> Result<Row> {
        let builder = TinySet::builder().fpr(self.target).two_level();
        match builder.items(self.scope.keys).repeats().build() {
            Ok(filter) => self.tinyset(Kind::TwoLevel, filter),
            // Refused by the builder where two levels do not pay: predicts.
            Err(tamis::Error::InvalidArgument { .. }) => {
                let (_, p) = two_level::for_fpr(
                    LINE,
                    self.target,
                    self.scope.limits[0],
                )?;
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
        filter.insert_hash_batch(&hashes(0..self.scope.keys));
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
        let bits = self.scope.keys as f64 * predicted.bits_per_key;
        let blocks = (bits / design.block_bits()).round() as u64;
        let mut levels = Levels::new(&design, blocks)?;
        levels.insert_all(&hashes(0..self.scope.keys));
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
        let members = look_up_all(0..self.scope.keys, &look_up);
        if members.found != self.scope.keys {
            let lost = self.scope.keys - members.found;
            return Err(format!("{}: lost {lost} keys", kind.name()).into());
        }
        let strangers = look_up_all(
            self.scope.keys..self.scope.keys + self.probes,
            &look_up,
        );
        let bits_per_key = bits as f64 / self.scope.keys as f64;
        let fpr = strangers.found as f64 / self.probes as f64;
        Ok(Row {
            kind,
            target_fpr: self.target,
            most_reads: None,
            design: None,
            bits_per_key,
            fpr,
            reads_miss: strangers.reads as f64 / self.probes as f64,
            reads_hit: members.reads as f64 / self.scope.keys as f64,
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
    fn the_least_memory_is_within_the_limit() {
        let rows = [
            row(Kind::Plain, 9.0, 1.0),
            row(Kind::TwoLevel, 8.5, 1.08),
            row(Kind::Balanced, 8.75, 1.05),
            row(Kind::Tracking, 8.0, 1.2),
        ];
        let of = |kind, limit| least(&rows, kind, 0.01, limit);
        assert_eq!(of(Kind::Plain, 1.06), 9.0);
        assert!(of(Kind::TwoLevel, 1.06).is_nan());
        assert_eq!(of(Kind::TwoLevel, 1.1), 8.5);
        assert_eq!(of(Kind::Tracking, 1.25), 8.0);
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
}

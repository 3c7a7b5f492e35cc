//! `tamis theory summary`.

use serde::Serialize;
use tamis_theory::crisis::Occupancy;
use tamis_theory::summary::{self, Filter, Goal, Prediction};

use super::{TableArgs, TheoryReport, digits};
use crate::failure::{Exit, Failure, Result};
use crate::report::JsonArgs;

/// Compute memory and errors of summaries of multilevel hash tables
///
/// A summary maps a key to the level that holds it, or to none. A level for
/// an absent key is a false positive; a wrong level for a present key is a
/// failure. Prints the mean number of failures, which bounds the probability
/// of one.
///
/// With --optimise, searches the level sizes and the smallest summary of each
/// kind for which the probability of a crisis plus the failures stay within
/// --budget.
///
/// Kinds and symbols are those of Kirsch and Mitzenmacher, "Simple Summaries
/// for Hashing with Multiple Choices" (IS, SF and MBF there).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis theory summary --items 10000 --levels 20000,6000,3000,1000 \\
      --kind interpolation --bits 61
  tamis theory summary --items 2000 --levels 3800,1300,500,300,100,40 \\
      --kind type-filter --bits 58182 --probes 8
  tamis theory summary --items 1000 --levels 1900,650,250 \\
      --kind filter-stack --bits 9600,12000,48 --probes 7,40,0
  tamis theory summary --optimise --items 1000000 --buckets-per-item 3")]
pub(super) struct Args {
    #[command(flatten)]
    table: TableArgs,

    #[command(flatten)]
    given: GivenArgs,

    /// Search the level sizes and the smallest summaries
    #[arg(long, requires = "buckets_per_item")]
    optimise: bool,

    #[command(flatten)]
    goal: GoalArgs,

    #[command(flatten)]
    format: JsonArgs,
}

/// Summary to evaluate.
#[derive(clap::Args)]
#[group(conflicts_with = "optimise", multiple = true)]
struct GivenArgs {
    /// m_1,...,m_d: buckets of each level
    #[arg(long, value_name = "M,M,...", value_delimiter = ',')]
    levels: Vec<u64>,

    /// Kind of summary
    #[arg(long, requires_all = ["levels", "bits"])]
    kind: Option<SummaryKind>,

    /// Memory in bits. interpolation: string of each item, without its level.
    /// type-filter: whole filter, in 64-bit words of cells. filter-stack:
    /// each filter B_0, B_1, ..., one per level
    #[arg(long, value_name = "B,B,...", value_delimiter = ',')]
    bits: Vec<u64>,

    /// k: cells per item, up to 64. filter-stack: one number per filter; 0
    /// selects a list of strings of --bits bits
    #[arg(long, value_name = "K,K,...", value_delimiter = ',')]
    probes: Vec<u32>,
}

/// Constraints of `--optimise`.
#[derive(clap::Args)]
// `requires` alone does not suffice: clap drops a required argument that
// conflicts with one of `GivenArgs`.
#[group(requires = "optimise", conflicts_with = "GivenArgs", multiple = true)]
struct GoalArgs {
    /// Buckets of all levels together, per item
    #[arg(long, value_name = "X")]
    buckets_per_item: Option<f64>,

    /// Limit on the probability of a crisis plus the mean number of failures
    /// [default: 1e-9]
    #[arg(long, value_name = "P")]
    budget: Option<f64>,

    /// d: number of levels [default: the best of 2 to 8]
    #[arg(long, value_name = "D")]
    choices: Option<u32>,

    /// Limit on the false-positive rate [default: 0.01]
    #[arg(long, value_name = "RATE")]
    max_false_positive: Option<f64>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SummaryKind {
    /// Sorted list of hashed strings with their levels
    Interpolation,
    /// TypeFilterReport that keep the highest level hashed to them
    TypeFilter,
    /// One Bloom filter per level, of the items in deeper levels
    FilterStack,
}

#[derive(Serialize)]
struct SummaryReport {
    bits_per_item: f64,
    false_positive: f64,
    failure: f64,
}

impl From<&Prediction> for SummaryReport {
    fn from(prediction: &Prediction) -> Self {
        Self {
            bits_per_item: prediction.bits_per_item,
            false_positive: prediction.false_positive,
            failure: prediction.failure,
        }
    }
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        if let Some(ratio) = self.goal.buckets_per_item {
            return self.optimise(ratio);
        }
        let TableArgs { items, bucket } = self.table;
        let Some(kind) = self.given.kind else {
            return Err(Failure::new(
                "expected --kind with --levels and --bits, or --optimise",
            ));
        };
        let table = Occupancy::new(items, &self.given.levels, bucket)?;
        let prediction = match kind {
            SummaryKind::Interpolation => self.given.interpolation(&table)?,
            SummaryKind::TypeFilter => self.given.type_filter(&table)?,
            SummaryKind::FilterStack => self.given.filter_stack(&table)?,
        };
        SummaryReport::from(&prediction).print(&self.format)
    }

    fn optimise(&self, buckets_per_item: f64) -> Result<Exit> {
        let Self { table: TableArgs { items, bucket }, goal: given, .. } =
            self;
        let goal = Goal::new(*items, buckets_per_item);
        let designs = summary::optimise(Goal {
            bucket: *bucket,
            choices: given.choices,
            budget: given.budget.unwrap_or(goal.budget),
            max_false_positive: given
                .max_false_positive
                .unwrap_or(goal.max_false_positive),
            ..goal
        })?;
        OptimisedReport::from(designs).print(&self.format)
    }
}

impl GivenArgs {
    fn interpolation(&self, table: &Occupancy) -> Result<Prediction> {
        if !self.probes.is_empty() {
            return Err(Failure::new(
                "--probes is for --kind type-filter and filter-stack, not \
                 interpolation",
            ));
        }
        let bits = saturating_u32(one("--bits", &self.bits)?);
        Ok(summary::interpolation(table, bits)?)
    }

    fn type_filter(&self, table: &Occupancy) -> Result<Prediction> {
        let bits = one("--bits", &self.bits)?;
        let probes = one("--probes", &self.probes)?;
        let per_word = u128::from(summary::cells_per_word(self.levels.len()));
        // `per_word <= 64`, so `cells <= bits` fits in 64 bits.
        let cells = (u128::from(bits) * per_word / 64) as u64;
        Ok(summary::type_filter(table, cells, probes)?)
    }

    fn filter_stack(&self, table: &Occupancy) -> Result<Prediction> {
        let (bits, probes) = (self.bits.len(), self.probes.len());
        if bits != probes {
            return Err(Failure::new(format_args!(
                "{bits} numbers of --bits and {probes} of --probes: expected \
                 one of each per level"
            )));
        }
        let filters: Vec<Filter> = self
            .bits
            .iter()
            .zip(&self.probes)
            .map(|(&cells, &probes)| match probes {
                0 => Filter::HashList { bits: saturating_u32(cells) },
                _ => Filter::Bloom { cells, probes },
            })
            .collect();
        Ok(summary::filter_stack(table, &filters)?)
    }
}

/// Single element of the list given for the option `name`.
fn one<T: Copy>(name: &str, values: &[T]) -> Result<T> {
    match values {
        [value] => Ok(*value),
        _ => Err(Failure::new(format_args!(
            "{} numbers of {name}, expected one",
            values.len()
        ))),
    }
}

/// Saturates to `u32::MAX`, which the theory refuses.
fn saturating_u32(bits: u64) -> u32 {
    u32::try_from(bits).unwrap_or(u32::MAX)
}

impl TheoryReport for SummaryReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        vec![
            ("bits per item", digits(self.bits_per_item)),
            ("false positives", digits(self.false_positive)),
            ("mean number of failures", digits(self.failure)),
        ]
    }
}

/// SummaryReport of `--optimise`.
#[derive(Serialize)]
struct OptimisedReport {
    filter_stack: FilterStackReport,
    type_filter: TypeFilterReport,
    interpolation: InterpolationReport,
}

#[derive(Serialize)]
struct FilterStackReport {
    #[serde(flatten)]
    report: SummaryReport,
    crisis: f64,
    levels: Vec<u64>,
    filters: Vec<LevelFilterReport>,
    level_bits_per_item: f64,
    level_bits_with_exceptions: f64,
}

#[derive(Serialize)]
struct LevelFilterReport {
    bits: u64,
    probes: u32,
}

#[derive(Serialize)]
struct TypeFilterReport {
    #[serde(flatten)]
    report: SummaryReport,
    crisis: f64,
    levels: Vec<u64>,
    cells: u64,
    probes: u32,
}

#[derive(Serialize)]
struct InterpolationReport {
    #[serde(flatten)]
    report: SummaryReport,
    crisis: f64,
    levels: Vec<u64>,
    string_bits: u32,
}

impl From<summary::Designs> for OptimisedReport {
    fn from(found: summary::Designs) -> Self {
        let (stack, cells) = (found.filter_stack, found.type_filter);
        let strings = found.interpolation;
        let filters = stack.filters.iter().map(|filter| match *filter {
            Filter::Bloom { cells: bits, probes } => {
                LevelFilterReport { bits, probes }
            }
            Filter::HashList { bits } => {
                LevelFilterReport { bits: bits.into(), probes: 0 }
            }
        });
        Self {
            filter_stack: FilterStackReport {
                report: SummaryReport::from(&stack.prediction),
                crisis: stack.crisis,
                filters: filters.collect(),
                levels: stack.levels,
                level_bits_per_item: stack.level_bits,
                level_bits_with_exceptions: stack.level_bits_with_exceptions,
            },
            type_filter: TypeFilterReport {
                report: SummaryReport::from(&cells.prediction),
                crisis: cells.crisis,
                levels: cells.levels,
                cells: cells.cells,
                probes: cells.probes,
            },
            interpolation: InterpolationReport {
                report: SummaryReport::from(&strings.prediction),
                crisis: strings.crisis,
                levels: strings.levels,
                string_bits: strings.bits,
            },
        }
    }
}

impl TheoryReport for OptimisedReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let (stack, cells) = (&self.filter_stack, &self.type_filter);
        let strings = &self.interpolation;
        let mut rows = vec![("filter-stack", String::new())];
        rows.extend(common(&stack.report, stack.crisis, &stack.levels));
        let bits = stack.filters.iter().map(|filter| filter.bits);
        let probes = stack.filters.iter().map(|filter| filter.probes.into());
        rows.extend([
            ("  --bits", option_list(bits)),
            ("  --probes", option_list(probes)),
            ("  bits without B_0", digits(stack.level_bits_per_item)),
            (
                "  with failures recorded",
                digits(stack.level_bits_with_exceptions),
            ),
            ("type-filter", String::new()),
        ]);
        rows.extend(common(&cells.report, cells.crisis, &cells.levels));
        rows.extend([
            ("  cells", cells.cells.to_string()),
            ("  --probes", cells.probes.to_string()),
            ("interpolation", String::new()),
        ]);
        rows.extend(common(&strings.report, strings.crisis, &strings.levels));
        rows.push(("  --bits", strings.string_bits.to_string()));
        rows
    }
}

fn common(
    report: &SummaryReport,
    crisis: f64,
    levels: &[u64],
) -> [(&'static str, String); 5] {
    [
        ("  bits per item", digits(report.bits_per_item)),
        ("  false positives", digits(report.false_positive)),
        ("  mean number of failures", digits(report.failure)),
        ("  probability of a crisis", digits(crisis)),
        ("  --levels", option_list(levels.iter().copied())),
    ]
}

/// Formats a list as its option takes it.
fn option_list(values: impl Iterator<Item = u64>) -> String {
    let texts: Vec<String> = values.map(|value| value.to_string()).collect();
    texts.join(",")
}

//! `tamis theory summary`: which level holds a key, and what that takes.

use serde::Serialize;
use tamis_theory::crisis::Occupancy;
use tamis_theory::summary::{self, Filter, Goal, Prediction};

use super::{Answer, Show, digits};
use crate::failure::{Failure, Outcome, Result};
use crate::verb::parse_items;

/// Summaries of multilevel hash tables: memory, false positives, failures
///
/// A summary tells which level of a table holds a key, or that none does.
/// Naming a level for an absent key is a false positive; naming the wrong
/// level for a present key is a failure. Printed is the mean number of
/// items named wrongly, which bounds the chance that there is one.
///
/// With --optimise it finds the level sizes and the smallest summary of each
/// kind that keep crises plus failures within the budget.
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
    /// n: items in the table
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: u64,

    /// h: entries of a bucket
    #[arg(long, value_name = "H", default_value_t = 1)]
    bucket: u32,

    /// m_1,...,m_d: buckets of each level
    #[arg(
        long,
        value_name = "M,M,...",
        value_delimiter = ',',
        required_unless_present = "optimise",
        conflicts_with = "optimise"
    )]
    levels: Vec<u64>,

    /// The kind of summary
    #[arg(
        long,
        required_unless_present = "optimise",
        conflicts_with = "optimise"
    )]
    kind: Option<Kind>,

    /// Memory. interpolation: bits of the string of each item, without its
    /// level. type-filter: bits of the whole filter, which 64-bit words of
    /// cells fill. filter-stack: bits of each filter B_0, B_1, ..., one for
    /// each level
    #[arg(
        long,
        value_name = "B,B,...",
        value_delimiter = ',',
        required_unless_present = "optimise",
        conflicts_with = "optimise"
    )]
    bits: Vec<u64>,

    /// k: cells an item is hashed to, up to 64. filter-stack: of each
    /// filter; 0 makes it a list of strings of as many bits as --bits says
    #[arg(
        long,
        value_name = "K,K,...",
        value_delimiter = ',',
        conflicts_with = "optimise"
    )]
    probes: Vec<u32>,

    /// Find the level sizes and the smallest summaries
    #[arg(long, requires = "buckets_per_item")]
    optimise: bool,

    /// Buckets of all levels, per item
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        requires = "optimise"
    )]
    buckets_per_item: Option<f64>,

    /// The most that the chance of a crisis and the failures may add up to
    /// [default: 1e-9]
    #[arg(
        long,
        value_name = "P",
        allow_negative_numbers = true,
        requires = "optimise"
    )]
    budget: Option<f64>,

    /// d: number of levels [default: the best of 2 to 8]
    #[arg(long, value_name = "D", requires = "optimise")]
    choices: Option<u32>,

    /// The most false positives [default: 0.01]
    #[arg(
        long,
        value_name = "RATE",
        allow_negative_numbers = true,
        requires = "optimise"
    )]
    max_false_positive: Option<f64>,

    #[command(flatten)]
    show: Show,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// A sorted list of hashed strings with their levels
    Interpolation,
    /// Cells that keep the highest level hashed to them
    TypeFilter,
    /// Bloom filters of the items below each level
    FilterStack,
}

#[derive(Serialize)]
struct Report {
    bits_per_item: f64,
    false_positive: f64,
    failure: f64,
}

impl From<&Prediction> for Report {
    fn from(prediction: &Prediction) -> Self {
        Self {
            bits_per_item: prediction.bits_per_item,
            false_positive: prediction.false_positive,
            failure: prediction.failure,
        }
    }
}

impl Args {
    pub(super) fn run(&self) -> Result<Outcome> {
        if let Some(ratio) = self.buckets_per_item {
            return self.optimise(ratio);
        }
        let table = Occupancy::new(self.items, &self.levels, self.bucket)?;
        let prediction = match self.kind {
            Some(Kind::Interpolation) => self.interpolation(&table)?,
            Some(Kind::TypeFilter) => self.type_filter(&table)?,
            Some(Kind::FilterStack) | None => self.filter_stack(&table)?,
        };
        self.show.print(&Report::from(&prediction))
    }

    fn interpolation(&self, table: &Occupancy) -> Result<Prediction> {
        if !self.probes.is_empty() {
            return Err(Failure::new("interpolation has no --probes"));
        }
        let bits = width(one("--bits", &self.bits)?);
        Ok(summary::interpolation(table, bits)?)
    }

    fn type_filter(&self, table: &Occupancy) -> Result<Prediction> {
        let bits = one("--bits", &self.bits)?;
        let probes = one("--probes", &self.probes)?;
        let per_word = u128::from(summary::cells_per_word(self.levels.len()));
        // Fewer cells than bits.
        let cells = (u128::from(bits) * per_word / 64) as u64;
        Ok(summary::type_filter(table, cells, probes)?)
    }

    fn filter_stack(&self, table: &Occupancy) -> Result<Prediction> {
        let (bits, probes) = (self.bits.len(), self.probes.len());
        if bits != probes {
            return Err(Failure::new(format_args!(
                "{bits} numbers of --bits but {probes} of --probes"
            )));
        }
        let filters: Vec<Filter> = self
            .bits
            .iter()
            .zip(&self.probes)
            .map(|(&cells, &probes)| match probes {
                0 => Filter::HashList { bits: width(cells) },
                _ => Filter::Bloom { cells, probes },
            })
            .collect();
        Ok(summary::filter_stack(table, &filters)?)
    }

    fn optimise(&self, buckets_per_item: f64) -> Result<Outcome> {
        let goal = Goal::new(self.items, buckets_per_item);
        let designs = summary::optimise(Goal {
            bucket: self.bucket,
            choices: self.choices,
            budget: self.budget.unwrap_or(goal.budget),
            max_false_positive: self
                .max_false_positive
                .unwrap_or(goal.max_false_positive),
            ..goal
        })?;
        self.show.print(&Designs::from(designs))
    }
}

/// The only one of a list.
fn one<T: Copy>(name: &str, values: &[T]) -> Result<T> {
    match values {
        [value] => Ok(*value),
        _ => Err(Failure::new(format_args!(
            "{} numbers of {name}, expected one",
            values.len()
        ))),
    }
}

/// Bits of a string; more than there can be stay too many.
fn width(bits: u64) -> u32 {
    u32::try_from(bits).unwrap_or(u32::MAX)
}

impl Answer for Report {
    fn rows(&self) -> Vec<(&'static str, String)> {
        vec![
            ("bits per item", digits(self.bits_per_item)),
            ("false positives", digits(self.false_positive)),
            ("items named wrongly", digits(self.failure)),
        ]
    }
}

/// What `--optimise` found.
#[derive(Serialize)]
struct Designs {
    filter_stack: Stack,
    type_filter: Cells,
    interpolation: Strings,
}

#[derive(Serialize)]
struct Stack {
    #[serde(flatten)]
    report: Report,
    crisis: f64,
    levels: Vec<u64>,
    filters: Vec<Bloom>,
    level_bits_per_item: f64,
    level_bits_with_exceptions: f64,
}

#[derive(Serialize)]
struct Bloom {
    bits: u64,
    probes: u32,
}

#[derive(Serialize)]
struct Cells {
    #[serde(flatten)]
    report: Report,
    crisis: f64,
    levels: Vec<u64>,
    cells: u64,
    probes: u32,
}

#[derive(Serialize)]
struct Strings {
    #[serde(flatten)]
    report: Report,
    crisis: f64,
    levels: Vec<u64>,
    string_bits: u32,
}

impl From<summary::Designs> for Designs {
    fn from(found: summary::Designs) -> Self {
        let (stack, cells) = (found.filter_stack, found.type_filter);
        let strings = found.interpolation;
        let filters = stack.filters.iter().map(|filter| match *filter {
            Filter::Bloom { cells: bits, probes } => Bloom { bits, probes },
            Filter::HashList { bits } => {
                Bloom { bits: bits.into(), probes: 0 }
            }
        });
        Self {
            filter_stack: Stack {
                report: Report::from(&stack.prediction),
                crisis: stack.crisis,
                filters: filters.collect(),
                levels: stack.levels,
                level_bits_per_item: stack.level_bits,
                level_bits_with_exceptions: stack.level_bits_with_exceptions,
            },
            type_filter: Cells {
                report: Report::from(&cells.prediction),
                crisis: cells.crisis,
                levels: cells.levels,
                cells: cells.cells,
                probes: cells.probes,
            },
            interpolation: Strings {
                report: Report::from(&strings.prediction),
                crisis: strings.crisis,
                levels: strings.levels,
                string_bits: strings.bits,
            },
        }
    }
}

impl Answer for Designs {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let (stack, cells) = (&self.filter_stack, &self.type_filter);
        let strings = &self.interpolation;
        let mut rows = vec![("filter-stack", String::new())];
        rows.extend(common(&stack.report, stack.crisis, &stack.levels));
        let bits = stack.filters.iter().map(|filter| filter.bits);
        let probes = stack.filters.iter().map(|filter| filter.probes.into());
        rows.extend([
            ("  --bits", list(bits)),
            ("  --probes", list(probes)),
            ("  bits without B_0", digits(stack.level_bits_per_item)),
            (
                "  the same, failures recorded",
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
    report: &Report,
    crisis: f64,
    levels: &[u64],
) -> [(&'static str, String); 5] {
    [
        ("  bits per item", digits(report.bits_per_item)),
        ("  false positives", digits(report.false_positive)),
        ("  items named wrongly", digits(report.failure)),
        ("  chance of a crisis", digits(crisis)),
        ("  --levels", list(levels.iter().copied())),
    ]
}

/// As the option takes it.
fn list(values: impl Iterator<Item = u64>) -> String {
    let texts: Vec<String> = values.map(|value| value.to_string()).collect();
    texts.join(",")
}

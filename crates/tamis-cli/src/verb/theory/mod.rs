//! `tamis theory`: formulas behind the filters, one verb each.

mod bound;
mod crisis;
mod fpr;
mod plot;
mod region;
mod summary;
mod tinyset;
mod tune;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::report::{COLUMNS, JsonArgs, print_json, wrap};
use crate::verb::parse_items;

/// Evaluate the formulas behind filters and hash tables
///
/// bound, region, fpr and tune use the theorems, equations and symbols of
/// Kanizo, Hay and Keslassy, "Access-Efficient Balanced Bloom Filters": r
/// keys per block, a reads per insertion, d blocks proposed per key, a share
/// gamma of the keys in no block, threshold h = k0, admission p, level shares
/// alpha, blocks of B bits, k probes, beta bits per key. A member reads a
/// blocks on average, a non-member E(P).
///
/// The tinyset scheme of fpr follows Einziger and Friedman, "TinySet: An
/// Access Efficient Self Adjusting Bloom Filter Construction", with L chains
/// per block. crisis and summary follow Kirsch and Mitzenmacher, "Simple
/// Summaries for Hashing with Multiple Choices".
#[derive(clap::Args)]
// A negative number is reported as out of range, not as an unknown option.
#[command(mut_subcommands = |verb| {
    verb.mut_args(|arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    })
})]
#[command(after_help = "\
Examples:
  tamis theory bound --access-budget 1.2 --load 8 --overflow 0.005
  tamis theory region --scheme multilevel --access-budget 1.2 --load 8 --choices 3
  tamis theory fpr --scheme multilevel --block-bits 512 --bits-per-key 40
  tamis theory fpr --scheme tinyset --chains 64 --load 39
  tamis theory tune --block-bits 512 --bits-per-key 24 --max-reads-miss 1.25
  tamis theory crisis --items 10000 --levels 18000,7200,3600,1200
  tamis theory summary --optimise --items 1000000 --buckets-per-item 3")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: TheoryVerb,
}

#[derive(clap::Subcommand)]
enum TheoryVerb {
    Bound(bound::Args),
    Region(region::Args),
    Fpr(fpr::Args),
    Tune(tune::Args),
    Crisis(crisis::Args),
    Summary(summary::Args),
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.verb {
            TheoryVerb::Bound(args) => args.run(),
            TheoryVerb::Region(args) => args.run(),
            TheoryVerb::Fpr(args) => args.run(),
            TheoryVerb::Tune(args) => args.run(),
            TheoryVerb::Crisis(args) => args.run(),
            TheoryVerb::Summary(args) => args.run(),
        }
    }
}

/// Reads and load of a balancing scheme.
#[derive(Clone, Copy, clap::Args)]
struct BalanceArgs {
    /// a: average blocks read per insertion
    #[arg(long, value_name = "A")]
    access_budget: f64,

    /// r: keys per block, including keys in no block
    #[arg(long, value_name = "R")]
    load: f64,
}

/// Items and bucket size of a multilevel hash table.
#[derive(Clone, Copy, clap::Args)]
struct TableArgs {
    /// n: items in the table, such as 1000000 or 1e6
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: u64,

    /// h: entries per bucket
    #[arg(long, value_name = "H", default_value_t = 1)]
    bucket: u32,
}

/// Report of a theory verb.
trait TheoryReport: Serialize + Sized {
    /// Name and value of each row of the table.
    fn rows(&self) -> Vec<(&'static str, String)>;

    /// Prints the report as JSON or as a table.
    fn print(&self, format: &JsonArgs) -> Result<Exit> {
        if format.json {
            print_json(self)?;
        } else {
            let mut out = std::io::stdout().lock();
            for (name, value) in self.rows() {
                writeln!(out, "{}", row(name, &value))?;
            }
        }
        Ok(Exit::Success)
    }
}

/// Formats a row of a table. A value too long for the second column, or behind
/// a name too long for the first, is put on lines of its own and wrapped at
/// spaces, or at commas if it has none.
fn row(name: &str, value: &str) -> String {
    const NAME: usize = 32;
    const INDENT: usize = 4;
    if name.len() < NAME && NAME + value.len() <= COLUMNS {
        return format!("{name:<NAME$}{value}").trim_end().to_owned();
    }
    let text = if value.contains(' ') {
        wrap(value, INDENT, INDENT)
    } else if INDENT + value.len() > COLUMNS {
        wrap(&value.replace(',', ", "), INDENT, INDENT)
    } else {
        value.to_owned()
    };
    format!("{name}\n{:INDENT$}{text}", "")
}

/// Output file of a plot.
#[derive(clap::Args)]
struct PlotArgs {
    /// Also draw the curve into this SVG file, replacing it if it exists
    #[arg(long, value_name = "FILE.svg", value_parser = parse_svg)]
    plot: Option<PathBuf>,
}

impl PlotArgs {
    /// Writes the SVG text of `draw` if `--plot` is given.
    fn write(&self, draw: impl FnOnce() -> Result<String>) -> Result<()> {
        let Some(path) = &self.plot else { return Ok(()) };
        std::fs::write(path, draw()?).map_err(|error| {
            Failure::new(format_args!("{}: {error}", path.display()))
        })
    }
}

/// Parses the path of a plot. A plot replaces an existing file, so other
/// extensions are refused: a mistake must not overwrite a filter.
fn parse_svg(text: &str) -> std::result::Result<PathBuf, String> {
    let path = Path::new(text);
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) {
        Ok(path.to_owned())
    } else {
        Err("expected a file name with the extension .svg".into())
    }
}

/// Formats a number with six significant digits.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.5e}");
    }
    let places = (5 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a list of numbers.
fn digits_list(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().copied().map(digits).collect();
    texts.join("  ")
}

/// Formats a threshold; `None` is infinite.
fn threshold(value: Option<u32>) -> String {
    value.map_or_else(|| "none, no block refuses".into(), |h| h.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_have_a_line_of_their_own() {
        let name = "n".repeat(31);
        assert_eq!(row(&name, "1"), format!("{name} 1"));
        let name = "n".repeat(32);
        assert_eq!(row(&name, "1"), format!("{name}\n    1"));
    }

    #[test]
    fn digits_are_six_and_significant() {
        for (value, text) in [
            (0.0, "0"),
            (1.2, "1.2"),
            (0.00498447189, "0.00498447"),
            (3.867920221e-8, "3.86792e-8"),
            (2.3404680633, "2.34047"),
            (512.0, "512"),
            (123_456.7, "123457"),
            (100_000.0, "100000"),
        ] {
            assert_eq!(digits(value), text);
        }
    }
}

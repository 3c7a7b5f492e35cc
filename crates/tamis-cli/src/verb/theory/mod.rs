//! `tamis theory`: the formulas behind the filters, one question at a time.

mod bound;
mod crisis;
mod fpr;
mod plot;
mod region;
mod summary;
mod tinyset;
mod tune;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::{Failure, Outcome, Result};
use crate::report::print_json;

/// Ask the theory: bounds, false-positive rates, designs, hash tables
///
/// Theorems, equations and symbols are those of Kanizo, Hay and Keslassy,
/// "Access-Efficient Balanced Bloom Filters": r keys per block, a reads per
/// insertion, d blocks proposed per key, a share gamma of the keys in no
/// block, threshold h = k0, admission p, levels of shares alpha, blocks of B
/// bits, k probes, beta bits per key. A member reads a blocks, a non-member
/// E(P). Those of tinyset are in Einziger and Friedman, "TinySet: An Access
/// Efficient Self Adjusting Bloom Filter Construction": L chains per block.
/// Those of crisis and summary are in Kirsch and Mitzenmacher, "Simple
/// Summaries for Hashing with Multiple Choices".
#[derive(clap::Args)]
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
    question: Question,
}

#[derive(clap::Subcommand)]
enum Question {
    Bound(bound::Args),
    Region(region::Args),
    Fpr(fpr::Args),
    Tune(tune::Args),
    Crisis(crisis::Args),
    Summary(summary::Args),
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        match &self.question {
            Question::Bound(args) => args.run(),
            Question::Region(args) => args.run(),
            Question::Fpr(args) => args.run(),
            Question::Tune(args) => args.run(),
            Question::Crisis(args) => args.run(),
            Question::Summary(args) => args.run(),
        }
    }
}

/// How an answer is shown.
#[derive(clap::Args)]
struct Show {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    fn print(&self, answer: &impl Answer) -> Result<Outcome> {
        if self.json {
            print_json(answer)?;
        } else {
            let mut out = std::io::stdout().lock();
            for (name, value) in answer.rows() {
                let line = format!("{name:<32}{value}");
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(Outcome::Yes)
    }
}

/// What a question is answered with.
trait Answer: Serialize {
    /// The same for people.
    fn rows(&self) -> Vec<(&'static str, String)>;
}

/// Where a curve goes.
#[derive(clap::Args)]
struct Plot {
    /// Also draw the curve into this file
    #[arg(long, value_name = "FILE.svg", value_parser = parse_svg)]
    plot: Option<PathBuf>,
}

impl Plot {
    /// Draws what `picture` returns, if that was asked for.
    fn write(&self, picture: impl FnOnce() -> Result<String>) -> Result<()> {
        let Some(path) = &self.plot else { return Ok(()) };
        std::fs::write(path, picture()?).map_err(|error| {
            Failure::new(format_args!("{}: {error}", path.display()))
        })
    }
}

/// A picture overwrites what was there, so a slip must not hit a filter.
fn parse_svg(text: &str) -> std::result::Result<PathBuf, String> {
    let path = Path::new(text);
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) {
        Ok(path.to_owned())
    } else {
        Err("expected a file name that ends in .svg".into())
    }
}

/// Six significant digits.
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

fn shares(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().copied().map(digits).collect();
    texts.join("  ")
}

fn threshold(value: Option<u32>) -> String {
    value.map_or_else(|| "none: no block refuses".into(), |h| h.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits() {
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

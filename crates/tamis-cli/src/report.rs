//! Numbers for people and for machines.

use std::io::Write;

use serde::Serialize;
use tamis::{FORMAT_VERSION, Filter, LoadHistogram, Parameter, Stats};

use crate::failure::Result;

/// Everything `info --json` says about a filter.
#[derive(Serialize)]
pub(crate) struct Report {
    kind: &'static str,
    format_version: u16,
    hash: &'static str,
    seed: serde_json::Value,
    items: u64,
    estimated_items: f64,
    design_items: u64,
    bits_per_key: Option<f64>,
    bytes: u64,
    expected_fpr: f64,
    design_fpr: f64,
    reads_hit: f64,
    reads_miss: f64,
    saturated_blocks: u64,
    over_design: bool,
    #[serde(flatten)]
    parameters: serde_json::Map<String, serde_json::Value>,
}

impl Report {
    pub(crate) fn new<D: AsRef<[u8]>>(filter: &tamis::AnyFilter<D>) -> Self {
        let Stats {
            kind,
            items,
            estimated_items,
            design_items,
            bytes,
            bits_per_key,
            expected_fpr,
            design_fpr,
            reads_hit,
            reads_miss,
            saturated_blocks,
            over_design,
            ..
        } = filter.stats();
        let hasher = filter.hasher();
        let parameters = filter
            .parameters()
            .into_iter()
            .map(|(name, value)| (name.to_string(), json(value)))
            .collect();
        Self {
            kind: kind.name(),
            format_version: FORMAT_VERSION,
            hash: hasher.id().name(),
            // JSON readers keep 64 bits of a number, a key has 128.
            seed: match u64::try_from(hasher.seed()) {
                Ok(seed) => seed.into(),
                Err(_) => format!("{:#x}", hasher.seed()).into(),
            },
            items,
            estimated_items,
            design_items,
            bits_per_key,
            bytes,
            expected_fpr,
            design_fpr,
            reads_hit,
            reads_miss,
            saturated_blocks,
            over_design,
            parameters,
        }
    }

    /// Prints as JSON, or as a table a person reads.
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        if json {
            return print_json(self);
        }
        let mut out = std::io::stdout().lock();
        let fullness = if self.over_design { "  OVER DESIGN" } else { "" };
        let bits = self
            .bits_per_key
            .map_or_else(|| "-".into(), |bits| format!("{bits:.3}"));
        let rows = [
            ("kind", self.kind.to_string()),
            ("keys", format!("{}{fullness}", count(self.items))),
            (
                "different keys",
                format!("about {}", count_f64(self.estimated_items)),
            ),
            ("designed for", count(self.design_items)),
            ("size", size(self.bytes)),
            ("bits per key", bits),
            ("false positives", format!("{} now", rate(self.expected_fpr))),
            ("", format!("{} at its design load", rate(self.design_fpr))),
            (
                "blocks read",
                format!(
                    "{:.4} a member, {:.4} a non-member",
                    self.reads_hit, self.reads_miss
                ),
            ),
            ("settings", self.settings()),
            ("hash", format!("{}, seed {}", self.hash, plain(&self.seed))),
            ("format", format!("version {}", self.format_version)),
        ];
        for (name, value) in rows {
            row(&mut out, name, &value)?;
        }
        if self.saturated_blocks > 0 {
            let blocks = count(self.saturated_blocks);
            let value = format!("{blocks} blocks answer every key with maybe");
            row(&mut out, "saturated", &value)?;
        }
        if self.over_design {
            writeln!(
                out,
                "\nThis filter holds more keys than it was built for: build \
                 it again for at least {} keys.",
                count_f64(self.estimated_items)
            )?;
        }
        Ok(())
    }

    /// Prints as JSON, followed by the fields of `more`.
    pub(crate) fn print_json_with(&self, more: &impl Serialize) -> Result<()> {
        #[derive(Serialize)]
        struct Both<'a, T> {
            #[serde(flatten)]
            report: &'a Report,
            #[serde(flatten)]
            more: &'a T,
        }
        print_json(&Both { report: self, more })
    }

    fn settings(&self) -> String {
        let parts: Vec<String> = self
            .parameters
            .iter()
            .map(|(name, value)| {
                format!("{} {}", name.replace('_', " "), plain(value))
            })
            .collect();
        parts.join(", ")
    }
}

/// One row of a table.
pub(crate) fn row(
    out: &mut impl Write,
    name: &str,
    value: &str,
) -> Result<()> {
    Ok(writeln!(out, "{name:<16}{value}")?)
}

/// How many blocks hold how many keys.
#[derive(Serialize)]
pub(crate) struct Loads {
    /// The number of blocks, by their keys.
    load_histogram: Vec<u64>,
    #[serde(skip)]
    saturated: u64,
    #[serde(skip)]
    mean: f64,
}

impl From<&LoadHistogram> for Loads {
    fn from(loads: &LoadHistogram) -> Self {
        Self {
            load_histogram: loads.blocks().to_vec(),
            saturated: loads.saturated(),
            mean: loads.mean(),
        }
    }
}

/// More rows than this are no longer seen at a glance.
const ROWS: usize = 16;
/// The longest bar.
const BAR: u64 = 40;

impl Loads {
    /// A bar for each range of loads.
    pub(crate) fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "\nblocks by the keys they hold, {:.2} on average",
            self.mean
        )?;
        let mut bars = self.bins();
        if self.saturated > 0 {
            bars.push(("saturated".into(), self.saturated));
        }
        let most = bars.iter().map(|(_, blocks)| *blocks).max().unwrap_or(0);
        for (name, blocks) in bars {
            let bar = "#".repeat(bar(blocks, most));
            let line = format!("{name:>9}{:>13}  {bar}", count(blocks));
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Equal ranges from the least load found to the greatest.
    fn bins(&self) -> Vec<(String, u64)> {
        let blocks = &self.load_histogram;
        let first = blocks.iter().position(|&n| n > 0).unwrap_or(0);
        let found = &blocks[first..];
        let width = found.len().div_ceil(ROWS).max(1);
        let bins = found.chunks(width).enumerate().map(|(i, bin)| {
            let from = first + i * width;
            let name = match bin.len() {
                1 => from.to_string(),
                len => format!("{from}-{}", from + len - 1),
            };
            (name, bin.iter().sum())
        });
        bins.collect()
    }
}

/// The length of a bar; nothing but 0 has none.
fn bar(blocks: u64, most: u64) -> usize {
    let length = u128::from(blocks) * u128::from(BAR);
    length.div_ceil(u128::from(most.max(1))) as usize
}

/// A value without the quotes of JSON.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

fn json(parameter: Parameter) -> serde_json::Value {
    match parameter {
        Parameter::Count(count) => count.into(),
        Parameter::Counts(counts) => counts.into(),
        Parameter::Number(number) => number.into(),
        Parameter::Word(word) => word.into(),
        // Whatever a later version adds can at least be shown.
        other => other.to_string().into(),
    }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// 1234567 as 1,234,567.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn count_f64(number: f64) -> String {
    count(number.round() as u64)
}

/// Bytes as a person says them.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// A rate as a percentage, and as "one in N" where that is easier.
pub(crate) fn rate(rate: f64) -> String {
    if rate <= 0.0 {
        return "none".into();
    }
    let percent = rate * 100.0;
    let one_in = 1.0 / rate;
    if percent >= 0.01 {
        format!("{percent:.4} % (1 in {one_in:.0})")
    } else {
        format!("{rate:.3e} (1 in {one_in:.3e})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_few_and_hold_every_block() {
        for len in [1, 2, 15, 16, 17, 33, 100, 449] {
            for first in [0, 1, 40] {
                let mut load_histogram = vec![0; first];
                load_histogram.extend((1..=len).rev());
                let loads = Loads { load_histogram, saturated: 0, mean: 0.0 };
                let bins = loads.bins();
                assert!(bins.len() <= ROWS, "{len} {first}");
                let all: u64 = bins.iter().map(|(_, blocks)| blocks).sum();
                assert_eq!(all, len * (len + 1) / 2);
                let name = &bins[0].0;
                let start = name.split('-').next().unwrap_or_default();
                assert_eq!(start, first.to_string());
            }
        }
        assert_eq!((bar(0, 9), bar(1, 10_000), bar(9, 9)), (0, 1, 40));
        assert_eq!(bar(u64::MAX, u64::MAX), 40);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(0.01), "1.0000 % (1 in 100)");
        assert_eq!(rate(0.0), "none");
        assert_eq!(rate(1e-6), "1.000e-6 (1 in 1.000e6)");
    }
}

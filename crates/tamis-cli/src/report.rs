//! Reports on filters, as a table or as JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use tamis::inspect::{Inspector, LoadHistogram, Parameter};
use tamis::{AnyFilter, HashId, Header, KeyHasher, Stats, Window};

use crate::failure::{Result, printable};
use crate::progress;

/// Output format of a report.
#[derive(clap::Args)]
pub(crate) struct JsonArgs {
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Output format of a report on a filter that the verb writes.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    format: JsonArgs,

    /// Print no report and no hints
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportForm {
    Table,
    Json,
    Silent,
}

impl From<&JsonArgs> for ReportForm {
    fn from(args: &JsonArgs) -> Self {
        if args.json { Self::Json } else { Self::Table }
    }
}

impl ReportArgs {
    pub(crate) fn form(&self) -> ReportForm {
        match self.quiet {
            true => ReportForm::Silent,
            false => ReportForm::from(&self.format),
        }
    }
}

/// Report on a filter: the fields of `info --json`.
#[derive(Serialize)]
pub(crate) struct FilterReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    kind: &'static str,
    format_version: u16,
    hash: &'static str,
    /// `None` if it is secret. Text: JSON readers round numbers above 2^53,
    /// and a SipHash key has 128 bits.
    seed: Option<String>,
    pub(crate) items: u64,
    least_items: u64,
    pub(crate) estimated_items: f64,
    /// `None` if the filter is too full for an upper bound.
    most_items: Option<u64>,
    design_items: u64,
    bits_per_key: Option<f64>,
    bytes: u64,
    pub(crate) expected_fpr: f64,
    pub(crate) design_fpr: f64,
    reads_hit: f64,
    reads_miss: f64,
    saturated_blocks: u64,
    stuck_keys: u64,
    over_design: bool,
    #[serde(flatten)]
    parameters: serde_json::Map<String, serde_json::Value>,
    /// `None` if it cannot be read.
    metadata: Option<BTreeMap<String, String>>,
}

impl FilterReport {
    pub(crate) fn new<D: AsRef<[u8]>>(filter: &AnyFilter<D>) -> Self {
        let parameters = Inspector::new(filter)
            .parameters()
            .into_iter()
            .map(|(name, value)| (name.to_string(), json(value)))
            .collect();
        let metadata = filter.metadata().ok().map(|metadata| {
            let entries = metadata.iter();
            entries.map(|(name, value)| (name.into(), value.into())).collect()
        });
        let stats =
            progress::during("measuring the filter", || filter.stats());
        Self {
            metadata,
            ..Self::from_parts(&stats, filter.hasher(), parameters)
        }
    }

    /// Report on both generations of a window.
    pub(crate) fn of_window(window: &Window) -> Self {
        let [young, _] = window.generations();
        let mut parameters = serde_json::Map::new();
        parameters.insert("window".into(), young.capacity().into());
        Self::from_parts(&window.stats(), window.hasher(), parameters)
    }

    fn from_parts(
        stats: &Stats,
        hasher: &KeyHasher,
        parameters: serde_json::Map<String, serde_json::Value>,
    ) -> Self {
        let Stats {
            kind,
            items,
            least_items,
            estimated_items,
            most_items,
            design_items,
            bytes,
            bits_per_key,
            expected_fpr,
            design_fpr,
            reads_hit,
            reads_miss,
            saturated_blocks,
            stuck_keys,
            over_design,
            ..
        } = *stats;
        let secret = hasher.id() == HashId::SipHash13;
        Self {
            file: None,
            kind: kind.name(),
            format_version: Header::FORMAT_VERSION,
            hash: hasher.id().name(),
            seed: (!secret).then(|| seed(hasher)),
            items,
            least_items,
            estimated_items,
            most_items,
            design_items,
            bits_per_key,
            bytes,
            expected_fpr,
            design_fpr,
            reads_hit,
            reads_miss,
            saturated_blocks,
            stuck_keys,
            over_design,
            parameters,
            metadata: Some(BTreeMap::new()),
        }
    }

    /// Adds the name of the file to JSON.
    pub(crate) fn with_file(self, path: &Path) -> Self {
        Self { file: Some(path.display().to_string()), ..self }
    }

    /// Shows the key of a keyed hash.
    pub(crate) fn with_key(self, hasher: &KeyHasher) -> Self {
        Self { seed: Some(seed(hasher)), ..self }
    }

    /// Prints the report as JSON, followed by the fields of `more`, or as a
    /// table.
    pub(crate) fn print_with(
        &self,
        form: ReportForm,
        more: &impl Serialize,
    ) -> Result<()> {
        match form {
            ReportForm::Json => self.print_json_with(more),
            form => self.print(form),
        }
    }

    pub(crate) fn print(&self, form: ReportForm) -> Result<()> {
        match form {
            ReportForm::Table => self.print_table(),
            ReportForm::Json => print_json(self),
            ReportForm::Silent => Ok(()),
        }
    }

    fn print_table(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let fullness = if self.over_design { "  OVER DESIGN" } else { "" };
        let bits = self
            .bits_per_key
            .map_or_else(|| "-".into(), |bits| format!("{bits:.3}"));
        let seed = match &self.seed {
            Some(seed) => format!("seed {seed}"),
            None => "key hidden (info --show-key)".into(),
        };
        let rows = [
            ("kind", self.kind.to_string()),
            ("keys", format!("{}{fullness}", count(self.items))),
            ("different keys", self.different_keys()),
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
            ("hash", format!("{}, {seed}", self.hash)),
            ("format", format!("version {}", self.format_version)),
        ];
        for (name, value) in rows {
            row(&mut out, name, &value)?;
        }
        match &self.metadata {
            Some(entries) => {
                for (name, value) in entries {
                    // Longer names than the column end with a space.
                    let name = format!("{name:<15} ");
                    row(&mut out, &name, &printable(value))?;
                }
            }
            None => row(&mut out, "metadata", "unreadable (tamis verify)")?,
        }
        if self.saturated_blocks > 0 {
            let blocks = count(self.saturated_blocks);
            let value = format!("{blocks} blocks match every key");
            row(&mut out, "saturated", &value)?;
        }
        if self.stuck_keys > 0 {
            let keys = count(self.stuck_keys);
            let value = format!("{keys} keys stay when removed");
            row(&mut out, "stuck", &value)?;
        }
        if self.over_design {
            writeln!(
                out,
                "\n{}",
                wrap(
                    &format!(
                        "This filter holds more keys than its design: build \
                         it again with --items {}.",
                        self.sufficient_items()
                    ),
                    0,
                    0
                )
            )?;
        }
        Ok(())
    }

    /// Best estimate of the number of different keys, with its bounds.
    fn different_keys(&self) -> String {
        let [estimate, least] =
            [count_f64(self.estimated_items), count(self.least_items)];
        match self.most_items {
            Some(most) if most == self.least_items => least,
            Some(most) => {
                format!("about {estimate} ({least} to {})", count(most))
            }
            None => format!("about {estimate} (at least {least})"),
        }
    }

    /// Value of `--items` for another build from the same keys: not below
    /// the number of different keys.
    pub(crate) fn sufficient_items(&self) -> String {
        match self.most_items {
            Some(most) => most.to_string(),
            None => format!("N, more than {}", self.least_items),
        }
    }

    fn print_json_with(&self, more: &impl Serialize) -> Result<()> {
        #[derive(Serialize)]
        struct Combined<'a, T> {
            #[serde(flatten)]
            report: &'a FilterReport,
            #[serde(flatten)]
            more: &'a T,
        }
        print_json(&Combined { report: self, more })
    }

    /// Whether every repeat of a key is stored.
    pub(crate) fn stores_repeats(&self) -> bool {
        let stores = |name| self.parameters.get(name) == Some(&true.into());
        stores("removable") || stores("repeats")
    }

    /// Rates now and as designed, if the filter is over its design and has
    /// more false positives than planned.
    pub(crate) fn excess(&self) -> Option<String> {
        if !self.over_design || self.expected_fpr <= self.design_fpr {
            return None;
        }
        let reason = match self.items > self.design_items {
            true => {
                format!("over its design of {} keys", count(self.design_items))
            }
            false => format!(
                "{} blocks match every key",
                count(self.saturated_blocks)
            ),
        };
        Some(format!(
            "{reason}: {} false positives instead of {}",
            short_rate(self.expected_fpr),
            short_rate(self.design_fpr)
        ))
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

fn seed(hasher: &KeyHasher) -> String {
    format!("{:#x}", hasher.seed())
}

/// Writes one row of a table, wrapped at words.
pub(crate) fn row(
    out: &mut impl Write,
    name: &str,
    value: &str,
) -> Result<()> {
    const INDENT: usize = 16;
    let text = wrap(value, INDENT, INDENT);
    Ok(writeln!(out, "{name:<INDENT$}{text}")?)
}

/// Width of all tables and paragraphs, in columns.
pub(crate) const COLUMNS: usize = 80;

/// Breaks `text` at spaces into lines of at most `COLUMNS`. The first line
/// starts at column `column`, the others are indented by `indent`. A longer
/// word has a line of its own.
pub(crate) fn wrap(text: &str, column: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut used = column;
    for word in text.split(' ') {
        let width = word.chars().count();
        if !out.is_empty() {
            if used + 1 + width <= COLUMNS {
                out.push(' ');
                used += 1;
            } else {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            }
        }
        out.push_str(word);
        used += width;
    }
    out
}

/// Bar chart of blocks by load.
#[derive(Serialize)]
pub(crate) struct LoadChart {
    /// Number of blocks with `i` keys, at index `i`.
    load_histogram: Vec<u64>,
    /// Slots that the blocks are cut for.
    slots: u64,
    #[serde(skip)]
    entries: u64,
    #[serde(skip)]
    saturated: u64,
    #[serde(skip)]
    mean: f64,
}

impl From<&LoadHistogram> for LoadChart {
    fn from(loads: &LoadHistogram) -> Self {
        Self {
            load_histogram: loads.blocks().to_vec(),
            slots: loads.slots(),
            entries: loads.items(),
            saturated: loads.saturated(),
            mean: loads.mean(),
        }
    }
}

/// Most bars of a chart; a longer chart does not fit one screen.
const MAX_BARS: usize = 16;
/// Length of the longest bar, in characters.
const MAX_BAR_LEN: u64 = 40;

impl LoadChart {
    /// Prints one bar per range of loads.
    pub(crate) fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let (mean, free) = (self.mean, self.free_slots());
        let title =
            format!("blocks by number of keys, {mean:.2} on average{free}");
        writeln!(out, "\n{}", wrap(&title, 0, 0))?;
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

    /// Slots that removals freed and no key has taken since, as text.
    fn free_slots(&self) -> String {
        let free = self.slots - self.entries.min(self.slots);
        match free {
            0 => String::new(),
            _ => format!(
                "; {} slots, {} of them free ({:.1} % of the keys)",
                count(self.slots),
                count(free),
                100.0 * free as f64 / self.entries.max(1) as f64
            ),
        }
    }

    /// Ranges of equal width from the smallest load to the largest, with
    /// their number of blocks.
    fn bins(&self) -> Vec<(String, u64)> {
        let blocks = &self.load_histogram;
        let first = blocks.iter().position(|&n| n > 0).unwrap_or(0);
        let found = &blocks[first..];
        let width = found.len().div_ceil(MAX_BARS).max(1);
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

/// Length of a bar, rounded up: only 0 blocks have an empty bar.
fn bar(blocks: u64, most: u64) -> usize {
    let length = u128::from(blocks) * u128::from(MAX_BAR_LEN);
    length.div_ceil(u128::from(most.max(1))) as usize
}

/// JSON value as text: strings without quotes, booleans as yes or no.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(true) => "yes".into(),
        serde_json::Value::Bool(false) => "no".into(),
        serde_json::Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, four_digits)
        }
        other => other.to_string(),
    }
}

/// At most four significant digits, without zeros at the end.
fn four_digits(value: f64) -> String {
    let text = format!("{value:.3e}");
    text.parse().map_or(text, |rounded: f64| rounded.to_string())
}

fn json(parameter: Parameter) -> serde_json::Value {
    match parameter {
        Parameter::Count(count) => count.into(),
        Parameter::Counts(counts) => counts.into(),
        Parameter::Number(number) => number.into(),
        Parameter::Word("yes") => true.into(),
        Parameter::Word("no") => false.into(),
        Parameter::Word(word) => word.into(),
        // `Parameter` is non-exhaustive; new variants are shown as text.
        other => other.to_string().into(),
    }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Formats with thousands separators: 1,234,567.
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

/// Formats bytes with a binary unit: 1.50 MiB.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Least rate that is printed as a percentage: 0.0100 % after rounding.
const LEAST_PERCENTAGE: f64 = 0.999_95e-4;

/// Formats a rate in at most 9 columns: 1.0000 % or 1.000e-6.
pub(crate) fn short_rate(rate: f64) -> String {
    match rate {
        ..=0.0 => "none".into(),
        0.0..LEAST_PERCENTAGE => format!("{rate:.3e}"),
        _ => format!("{:.4} %", rate * 100.0),
    }
}

/// Formats a rate with its reciprocal: 1.0000 % (1 in 100). Rates from 10 %
/// have none: rounded, it would hide the difference between 67 % and 100 %.
pub(crate) fn rate(rate: f64) -> String {
    let short = short_rate(rate);
    let one_in = 1.0 / rate;
    match rate {
        ..=0.0 | 0.1.. => short,
        0.0..LEAST_PERCENTAGE => format!("{short} (1 in {one_in:.3e})"),
        _ => format!("{short} (1 in {one_in:.0})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_has_at_most_16_bars_and_counts_every_block() {
        for len in [1, 2, 15, 16, 17, 33, 100, 449] {
            for first in [0, 1, 40] {
                let mut load_histogram = vec![0; first];
                load_histogram.extend((1..=len).rev());
                let loads = LoadChart {
                    load_histogram,
                    slots: 0,
                    entries: 0,
                    saturated: 0,
                    mean: 0.0,
                };
                let bins = loads.bins();
                assert!(bins.len() <= MAX_BARS, "{len} {first}");
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
    fn text_is_wrapped_at_words() {
        assert_eq!(wrap("", 16, 4), "");
        assert_eq!(wrap("one  two", 0, 4), "one  two");
        let word = "x".repeat(39);
        let text = format!("{word} {word} {word}");
        assert_eq!(wrap(&text, 1, 2), format!("{word} {word}\n  {word}"));
        assert_eq!(wrap(&text, 2, 2), text.replace(' ', "\n  "));
        let long = "x".repeat(100);
        assert_eq!(
            wrap(&format!("a {long} b"), 0, 1),
            format!("a\n {long}\n b")
        );
    }

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(0.01), "1.0000 % (1 in 100)");
        assert_eq!(rate(0.0999), "9.9900 % (1 in 10)");
        assert_eq!(rate(0.1), "10.0000 %");
        assert_eq!(rate(0.673_954), "67.3954 %");
        assert_eq!(rate(0.0), "none");
        assert_eq!(rate(1e-6), "1.000e-6 (1 in 1.000e6)");
        assert_eq!(rate(0.99999e-4), "0.0100 % (1 in 10000)");
        assert_eq!(rate(0.9999e-4), "9.999e-5 (1 in 1.000e4)");
    }
}

//! Warnings on stderr about filters that are nearly or over their design.

use std::io::Write as _;
use std::path::Path;

use tamis::{AnyFilter, inspect::Inspector};

use crate::failure::{Failure, Result, printable};
use crate::report::{FilterReport, count, short_rate};

/// Prints `message` to stderr; a closed stderr is ignored.
pub(crate) fn warn(message: &str) {
    let message = printable(message);
    let _ = writeln!(std::io::stderr(), "tamis: {message}");
}

/// Treatment of filters that are over their design.
#[derive(Default, clap::Args)]
pub(crate) struct StrictArgs {
    /// Fail with exit status 2 if the filter is over its design, before
    /// anything is written
    #[arg(long)]
    strict: bool,
}

impl StrictArgs {
    /// Warns if the filter for `path` is over its design, or fails.
    pub(crate) fn check(
        &self,
        path: &Path,
        report: &FilterReport,
        cure: impl FnOnce() -> String,
    ) -> Result<()> {
        match report.excess() {
            Some(excess) => self.refuse(path, &excess, &cure()),
            None => Ok(()),
        }
    }

    /// Warns if a filter that is queried is over its design, or fails, in
    /// time independent of its size.
    ///
    /// The header counts insertions, repeats included. If they exceed the
    /// design, lookups of a fixed number of keys that are not members decide
    /// whether the false-positive rate does.
    pub(crate) fn check_lookups<D: AsRef<[u8]>>(
        &self,
        path: &Path,
        filter: &AnyFilter<D>,
    ) -> Result<()> {
        let (items, design) = (filter.len(), filter.capacity());
        if items <= design {
            return Ok(());
        }
        let found = false_positives(filter) as f64;
        let expected = f64::from(PROBES) * filter.design_fpr();
        // Four standard deviations above a rate that is 1.25 times as high.
        let limit = 1.25 * expected + 4.0 * expected.sqrt() + 4.0;
        if found <= limit {
            return Ok(());
        }
        let excess = format!(
            "over its design of {} keys: about {} false positives instead of \
             {}",
            count(design),
            short_rate(found / f64::from(PROBES)),
            short_rate(filter.design_fpr())
        );
        let cure = format!("build it again with --items {items}");
        self.refuse(path, &excess, &cure)
    }

    fn refuse(&self, path: &Path, excess: &str, cure: &str) -> Result<()> {
        let text = format!("{}: {excess} ({cure})", path.display());
        if self.strict {
            return Err(Failure::new(text));
        }
        warn(&format!("warning: {text}"));
        Ok(())
    }
}

/// Lookups that estimate the rate of a filter.
const PROBES: u16 = 1 << 14;

/// Number of false positives among [`PROBES`] keys. Of 2^64 hashes so few
/// belong to members that none is expected.
fn false_positives<D: AsRef<[u8]>>(filter: &AnyFilter<D>) -> usize {
    let hashes: Vec<u64> = (1..=u64::from(PROBES)).map(mix).collect();
    let mut found = vec![false; hashes.len()];
    filter.contains_hash_batch(&hashes, &mut found);
    found.iter().filter(|&&found| found).count()
}

/// SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Smallest design for which hints are worth reading.
const MIN_HINT_ITEMS: u64 = 1000;

/// Share of the design above which a filter is nearly full.
const NEARLY_FULL: f64 = 0.9;

/// Prints a hint if a filter that gains keys is nearly full with `items`
/// different ones: growing helps only before it is over its design.
pub(crate) fn hint_nearly_full(path: &Path, filter: &AnyFilter, items: f64) {
    let share = items / filter.capacity().max(1) as f64;
    if filter.capacity() < MIN_HINT_ITEMS
        || !(NEARLY_FULL..=1.0).contains(&share)
    {
        return;
    }
    let cure = match growth(filter) {
        Growth::Doubles => {
            "`tamis grow` doubles its capacity; once it is over its design, \
             growing does not lower the rate"
        }
        Growth::TwoLevels => {
            "it cannot grow, and 11 % over its design a filter of two levels \
             for 0.01 % has 30 times its rate: build it again with more --items"
        }
        Growth::None => {
            "this kind cannot grow; build it again with more --items"
        }
    };
    let percent = (100.0 * share).floor();
    warn(&format!("hint: {}: {percent} % full: {cure}", path.display()));
}

/// Room that a filter can gain without its keys.
pub(crate) enum Growth {
    Doubles,
    TwoLevels,
    None,
}

pub(crate) fn growth(filter: &AnyFilter) -> Growth {
    match filter {
        AnyFilter::TinySet(_) => {
            let parameters = Inspector::new(filter).parameters();
            let two =
                parameters.iter().any(|(name, _)| *name == "second_blocks");
            if two { Growth::TwoLevels } else { Growth::Doubles }
        }
        _ => Growth::None,
    }
}

/// Cure for a filter that has become over its design.
pub(crate) fn cure(filter: &AnyFilter, report: &FilterReport) -> String {
    match growth(filter) {
        Growth::Doubles if report.expected_fpr < 2.0 * report.design_fpr => {
            "`tamis grow` it before adding more".into()
        }
        _ => format!(
            "build it again with --items {}",
            report.sufficient_items()
        ),
    }
}

/// Share of the memory from which a smaller filter is worth a hint.
const MIN_SAVING: f64 = 0.1;

/// Prints a hint if a filter that was sized for all keys of its input is too
/// large because many of them were repeats.
pub(crate) fn hint_repeats(filter: &AnyFilter, report: &FilterReport) {
    if report.stores_repeats() {
        return;
    }
    let (keys, different) = (filter.capacity(), report.estimated_items);
    // A key that is a false positive is not among the stored ones.
    let items = round_up(different * (1.0 + filter.design_fpr()));
    let saving = 1.0 - items as f64 / keys.max(1) as f64;
    if keys >= MIN_HINT_ITEMS && saving >= MIN_SAVING {
        warn(&format!(
            "hint: {} keys, about {} different: --items {items} saves {:.0} % \
             of the memory",
            count(keys),
            count(different.round() as u64),
            100.0 * saving
        ));
    }
}

/// Rounds up to three digits.
fn round_up(number: f64) -> u64 {
    let digits = number.max(1.0).log10().floor() as i32;
    let unit = 10f64.powi((digits - 2).max(0));
    ((number / unit).ceil() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up_to_three_digits() {
        let rounded =
            [0.0, 7.2, 999.5, 1000.0, 1001.0, 1_242_940.0].map(round_up);
        assert_eq!(rounded, [0, 8, 1000, 1000, 1010, 1_250_000]);
    }
}

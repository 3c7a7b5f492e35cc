//! Measurements as tables, figures, JSON and documents.

mod docs;
mod goals;
mod instructions;
mod json;
mod svg;
mod table;

pub(crate) use docs::{Run, docs, picture};
pub(crate) use goals::goals;
pub(crate) use instructions::instructions;
pub(crate) use json::json;
pub(crate) use svg::svg;
pub(crate) use table::table;

use crate::Size;
use crate::contender::Mode;
use crate::keys::KeyType;

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) filter: &'static str,
    pub(crate) size: Size,
    pub(crate) keys: KeyType,
    pub(crate) operation: &'static str,
    pub(crate) mode: Mode,
    pub(crate) target_fpr: f64,
    pub(crate) ns_best: f64,
    pub(crate) ns_median: f64,
    pub(crate) bits_per_key: f64,
    /// `None` for the roofline, which is no filter.
    pub(crate) fpr: Option<f64>,
}

impl Row {
    /// Whether the rate is above its target by more than chance.
    fn misses_target(&self) -> bool {
        self.fpr.is_some_and(|fpr| fpr > 1.2 * self.target_fpr)
    }
}

/// Comparable rows: one size, key type and target.
struct Group<'a> {
    size: Size,
    keys: KeyType,
    target: f64,
    rows: Vec<&'a Row>,
}

impl<'a> Group<'a> {
    /// All groups, in the order of measurement.
    fn all(rows: &'a [Row]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for row in rows {
            let (size, keys, target) = (row.size, row.keys, row.target_fpr);
            let group = groups.iter_mut().find(|group| {
                (group.size, group.keys, group.target) == (size, keys, target)
            });
            match group {
                Some(group) => group.rows.push(row),
                None => {
                    groups.push(Self { size, keys, target, rows: vec![row] });
                }
            }
        }
        groups
    }

    /// Size, key type and target, as text.
    fn place(&self) -> String {
        let (size, keys) = (self.size.name(), self.keys.name());
        format!("{size}, {keys}, {}", percent(self.target))
    }

    /// One row of each filter.
    fn filters(&self) -> Vec<&'a Row> {
        let mut filters: Vec<&Row> = Vec::new();
        for row in &self.rows {
            if filters.iter().all(|known| known.filter != row.filter) {
                filters.push(row);
            }
        }
        filters
    }

    /// Best time of an operation.
    fn ns(&self, filter: &str, operation: &str, mode: Mode) -> Option<f64> {
        let row = self.rows.iter().find(|row| {
            (row.filter, row.operation, row.mode) == (filter, operation, mode)
        });
        row.map(|row| row.ns_best)
    }
}

/// A rate in percent.
fn percent(rate: f64) -> String {
    // The smallest target, 0.01 %, keeps two more digits.
    let text = format!("{:.4}", 100.0 * rate);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

//! Measurements as text for a terminal.

use super::{Group, Row, percent};
use crate::contender::Mode;

/// Title, operation and mode of each column.
const COLUMNS: [(&str, &str, Mode); 8] = [
    ("miss", "miss", Mode::Single),
    ("batch", "miss", Mode::Batch),
    ("hit", "hit", Mode::Single),
    ("batch", "hit", Mode::Batch),
    ("mixed", "mixed", Mode::Single),
    ("batch", "mixed", Mode::Batch),
    ("insert", "insert", Mode::Single),
    ("build", "build", Mode::Batch),
];

/// One table per group, of the best times in nanoseconds.
pub(crate) fn table(rows: &[Row]) -> String {
    Group::all(rows).iter().map(one).collect()
}

fn one(group: &Group<'_>) -> String {
    let mut text = format!(
        "\n{}, keys: {}, target {}; ns per key, best\n{:<17}{:>7}{:>10} ",
        group.size.name(),
        group.keys.name(),
        percent(group.target),
        "",
        "bits",
        "fpr"
    );
    for (title, ..) in COLUMNS {
        text += &format!("{title:>8}");
    }
    text.push('\n');
    for row in group.filters() {
        let fpr = row.fpr.map_or("-".into(), percent);
        let over = if row.misses_target() { '!' } else { ' ' };
        let (name, bits) = (row.filter, row.bits_per_key);
        text += &format!("{name:<17}{bits:>7.2}{fpr:>10}{over}");
        for (_, operation, mode) in COLUMNS {
            let ns = group
                .ns(name, operation, mode)
                .map_or("-".into(), |ns| format!("{ns:.2}"));
            text += &format!("{ns:>8}");
        }
        text.push('\n');
    }
    text
}

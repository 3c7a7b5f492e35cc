//! Measurements as JSON.

use super::Row;

/// A list of rows. No string in them needs escaping.
pub(crate) fn json(rows: &[Row]) -> String {
    let rows: Vec<String> = rows.iter().map(object).collect();
    format!("[\n{}\n]\n", rows.join(",\n"))
}

fn object(row: &Row) -> String {
    let fpr = row.fpr.map_or("null".to_owned(), |fpr| fpr.to_string());
    format!(
        concat!(
            r#"{{"filter": "{}", "size": "{}", "keys": "{}", "#,
            r#""operation": "{}", "mode": "{}", "target_fpr": {}, "#,
            r#""ns_best": {:.3}, "ns_median": {:.3}, "#,
            r#""bits_per_key": {:.3}, "fpr": {}}}"#
        ),
        row.filter,
        row.size.name(),
        row.keys.name(),
        row.operation,
        row.mode.name(),
        row.target_fpr,
        row.ns_best,
        row.ns_median,
        row.bits_per_key,
        fpr,
    )
}

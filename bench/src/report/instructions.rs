//! The instruction counts of `cargo xtask instructions`.

/// Committed counts.
const COUNTS: &str = include_str!("../../instructions.json");

const COLUMNS: [&str; 9] = [
    "miss",
    "hit",
    "miss batch",
    "miss batch least",
    "hit batch",
    "insert",
    "insert batch",
    "open",
    "open again",
];

/// The start of the names of sizes.
const CODE: &str = "code bytes of ";

/// Table of the counts, with one line per filter.
pub(crate) fn instructions() -> String {
    let mut filters: Vec<&str> = Vec::new();
    let paths = entries().filter(|(path, _)| !path.starts_with(CODE));
    for (path, _) in paths {
        // The longest column that the path ends in.
        let names = COLUMNS.iter().filter_map(|end| path.strip_suffix(end));
        let filter = names.min_by_key(|name| name.len()).unwrap_or(path);
        let filter = filter.trim_end();
        if !filters.contains(&filter) {
            filters.push(filter);
        }
    }
    let rustc = value_of("rustc");
    let backend = value_of("backend");
    let mut lines = vec![
        format!(
            "Instructions per key, by `cargo xtask instructions` with\n\
             {rustc} ({backend}: callgrind does not emulate AVX-512).\nA \
             change that adds more than 3 % to one of them does not pass the \
             tests.\n**Least** is the smallest count of sixteen absent keys, \
             each looked up alone\nfor a whole batch: the fast path without \
             rare events.\n**Open** is a view of bytes with one hit; \
             **open again**, with a header parsed before.\n"
        ),
        format!("| instructions | {} |", COLUMNS.join(" | ")),
        format!("|{}", "---|".repeat(COLUMNS.len() + 1)),
    ];
    for filter in filters {
        let counts: Vec<&str> = COLUMNS
            .iter()
            .map(|column| value_of(&format!("{filter} {column}")))
            .collect();
        lines.push(format!("| {filter} | {} |", counts.join(" | ")));
    }
    lines.push(
        "\nOf the AVX-512 code, which is not counted, the bytes are checked, \
         summed over all\nkernels.\n\n| function | bytes |\n|---|---|"
            .to_owned(),
    );
    let code = entries()
        .filter_map(|(path, bytes)| Some((path.strip_prefix(CODE)?, bytes)));
    lines.extend(code.map(|(name, bytes)| format!("| {name} | {bytes} |")));
    lines.join("\n") + "\n"
}

/// Paths and their counts.
fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    pairs().filter(|(_, value)| value.parse::<f64>().is_ok())
}

fn value_of(name: &str) -> &'static str {
    let found = pairs().find(|(known, _)| *known == name);
    found.map_or("", |(_, value)| value)
}

fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    COUNTS.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let clean = |text: &'static str| {
            text.trim().trim_end_matches(',').trim_matches('"')
        };
        Some((clean(name), clean(value)))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_has_every_count() {
        let table = super::instructions();
        for (path, count) in super::entries() {
            assert!(table.contains(&format!("| {count} |")), "{path}");
        }
        assert!(table.contains("rustc 1."), "{table}");
    }
}

//! The front page and the crate page have the same table.

/// The rows of the first table under "Which filter when".
fn table(page: &str) -> Vec<&str> {
    page.lines()
        .skip_while(|line| !line.ends_with("Which filter when"))
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .collect()
}

#[test]
fn both_pages_have_the_same_table() {
    let front = table(include_str!("../../../README.md"));
    let crate_page = table(include_str!("../README.md"));
    assert_eq!(front.len(), 7);
    assert_eq!(front, crate_page);
}

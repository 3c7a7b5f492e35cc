//! The generated sections of `docs/benchmarks.md`.
//!
//! A section lies between two comment lines, `<!-- begin NAME: ... -->` and
//! `<!-- end NAME -->`. Each benchmark replaces its own section; the text
//! outside the sections is written by hand.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

/// Replaces the section `name` of the document.
pub(crate) fn replace(name: &str, contents: &str) -> Result<()> {
    let path = path();
    let page = std::fs::read_to_string(&path)?;
    std::fs::write(path, replaced(&page, name, contents)?)
}

/// [`replace`]; a section that the document lacks is added behind the section
/// `after`.
pub(crate) fn replace_or_add(
    name: &str,
    after: &str,
    contents: &str,
) -> Result<()> {
    let path = path();
    let page = added(&std::fs::read_to_string(&path)?, name, after)?;
    std::fs::write(path, replaced(&page, name, contents)?)
}

/// The page with a section `name`.
fn added(page: &str, name: &str, after: &str) -> Result<String> {
    let begin = format!("<!-- begin {name}:");
    if page.contains(&begin) {
        return Ok(page.to_owned());
    }
    let mark = format!("<!-- end {after} -->");
    let end = page.find(&mark).ok_or_else(|| missing(&mark))? + mark.len();
    let (before, rest) = page.split_at(end);
    Ok(format!(
        "{before}\n\n{begin} cargo xtask bench --write-docs -->\n\
         <!-- end {name} -->{rest}"
    ))
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md")
}

fn missing(line: &str) -> Error {
    Error::other(format!(
        "docs/benchmarks.md: expected the line `{line}`, found none; restore \
         it and run again"
    ))
}

fn replaced(page: &str, name: &str, contents: &str) -> Result<String> {
    let (begin, end) =
        (format!("<!-- begin {name}:"), format!("<!-- end {name} -->"));
    let start = page.find(&begin).ok_or_else(|| missing(&begin))?;
    let length = page[start..].find('\n').ok_or_else(|| missing(&end))?;
    let (before, rest) = page.split_at(start + length);
    let stop = rest.find(&end).ok_or_else(|| missing(&end))?;
    let contents = contents.trim_end();
    Ok(format!("{before}\n\n{contents}\n\n{}", &rest[stop..]))
}

#[cfg(test)]
mod tests {
    use super::{added, replaced};

    const PAGE: &str = "\
by hand
<!-- begin a: command -->
old
<!-- end a -->
between
<!-- begin b: command -->
<!-- end b -->
";

    #[test]
    fn only_the_named_section_changes() {
        let once = replaced(PAGE, "a", "new\n").expect("a");
        assert_eq!(once, PAGE.replace("old", "\nnew\n"));
        let twice = replaced(&once, "a", "new").expect("a again");
        assert_eq!(twice, once);
        let both = replaced(&once, "b", "other").expect("b");
        assert!(both.starts_with(&once[..once.len() - 15]), "{both}");
        assert!(both.ends_with("-->\n\nother\n\n<!-- end b -->\n"), "{both}");
    }

    #[test]
    fn a_new_section_follows_the_one_it_belongs_to() {
        let once = added(PAGE, "c", "a").expect("a");
        let section = "<!-- begin c: cargo xtask bench --write-docs -->\n\
                       <!-- end c -->";
        let end = "<!-- end a -->";
        assert_eq!(once, PAGE.replace(end, &format!("{end}\n\n{section}")));
        assert_eq!(added(&once, "c", "a").expect("c"), once);
        assert!(added(PAGE, "c", "d").is_err());
    }

    #[test]
    fn a_missing_mark_is_named() {
        for page in ["", "<!-- begin a:", "<!-- begin a: -->\n"] {
            let error = replaced(page, "a", "").expect_err(page);
            assert!(error.to_string().contains("found none"), "{error}");
        }
    }

    #[test]
    fn the_document_has_all_sections() {
        let page = include_str!("../../docs/benchmarks.md");
        for name in ["filters", "adapter", "throughput", "tables"] {
            replaced(page, name, "").expect(name);
        }
    }
}

//! Sizes: machine code of the command line, source lines and public items of
//! the library.

use std::collections::BTreeMap;
use std::process::Command;

use crate::run::{Cargo, Result, root, step};
use crate::source::{Source, read, tracked};

pub(crate) fn size() -> Result {
    step("sizes");
    Cargo::new("build --quiet --release -p tamis-cli").run()?;
    Cargo::new("doc --quiet -p tamis --no-deps").run()?;
    let binary = root().join("target/release/tamis");
    let stripped = root().join("target/tamis-stripped");
    let [binary, stripped] =
        [binary, stripped].map(|path| path.to_string_lossy().into_owned());
    output("strip", &["-o", &stripped, &binary])?;
    let file = std::fs::metadata(&stripped).map_err(|e| e.to_string())?;
    let sections = output("size", &["-A", &stripped])?;
    let (all, own) =
        code_bytes(&output("nm", &["-S", "--demangle", &binary])?);
    println!("\n{:>9}  bytes of the stripped executable `tamis`", file.len());
    println!("{:>9}  bytes of its .text section", section(&sections, ".text"));
    println!("{all:>9}  bytes of its functions");
    println!("{own:>9}  bytes of those, functions of the library crate");
    println!("{:>9}  code lines of the library, without tests", lines()?);
    let items = read("target/doc/tamis/all.html")?.matches("<li>").count();
    println!("{items:>9}  public items of the library");
    Ok(())
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output
        .map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("`{program}` failed: {}", output.status)),
    }
}

/// Bytes of a section, from `size -A`.
fn section(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().map(str::split_whitespace);
    let words = lines
        .find_map(|mut words| (words.next() == Some(name)).then_some(words));
    words.and_then(|mut words| words.next()?.parse().ok()).unwrap_or(0)
}

/// Bytes of all functions, and of those whose path or `impl` type is in
/// crate `tamis`, from `nm -S --demangle`.
fn code_bytes(text: &str) -> (u64, u64) {
    // Identical functions may share an address.
    let mut functions = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let [address, bytes, "t" | "T", name] = fields[..] else { continue };
        let Ok(bytes) = u64::from_str_radix(bytes, 16) else { continue };
        let own = name.trim_start_matches('<').starts_with("tamis::");
        functions.insert(address, (bytes, own));
    }
    let sum = |(all, of_tamis): (u64, u64), &(bytes, own): &(u64, bool)| {
        (all + bytes, of_tamis + if own { bytes } else { 0 })
    };
    functions.values().fold((0, 0), sum)
}

/// Lines of the library with code, tests left out.
fn lines() -> Result<usize> {
    let mut count = 0;
    for path in tracked("crates/tamis/src", &[".rs"])? {
        if !path.contains("/tests") {
            let code = Source::parse(&read(&path)?).without_tests();
            count +=
                code.lines().filter(|line| !line.trim().is_empty()).count();
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{code_bytes, section};

    #[test]
    fn functions_are_summed_once_an_address() {
        let text = "0000000000001000 0000000000000010 t tamis::key::hash\n\
                    0000000000001000 0000000000000010 t core::ptr::drop\n\
                    0000000000002000 0000000000000020 T main\n\
                    0000000000003000 0000000000000001 t <tamis::Bloom as \
                    core::fmt::Debug>::fmt\n\
                    0000000000004000 0000000000000008 r tamis::TABLE\n\
                    U memcpy\n";
        assert_eq!(code_bytes(text).0, 0x31);
    }

    #[test]
    fn sections_are_found_by_name() {
        assert_eq!(section("tamis:\n.text  1234  56\n", ".text"), 1234);
    }
}

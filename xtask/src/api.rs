//! The public items of the libraries, listed in `public-api.txt` of each.
//!
//! The listing changes only with `cargo xtask api --update`, so that a commit
//! shows it. `xtask/api` reads rustdoc's JSON, whose format changes with the
//! compiler: under another one the check is skipped.

use std::path::Path;
use std::process::Command;

use crate::run::{Cargo, Result, root, step};

/// The compiler whose format `xtask/api/Cargo.toml` reads.
const COMPILER: &str = "rustc 1.95.";
const CRATES: [&str; 4] =
    ["tamis", "tamis-theory", "tamis-store", "tamis-arrow"];

pub(crate) fn api(update: bool) -> Result {
    step("public items");
    let version = output(Command::new("rustc").arg("--version"))?;
    if !version.starts_with(COMPILER) {
        println!("SKIPPED: expected {COMPILER}x, found {}", version.trim());
        return Ok(());
    }
    let manifest = "--quiet --locked --manifest-path xtask/api/Cargo.toml";
    Cargo::new(&format!("build {manifest} --target-dir target/api")).run()?;
    let mut changed = Vec::new();
    for name in CRATES {
        let features = match name {
            "tamis" => "--features serde,table",
            _ => "",
        };
        Cargo::new(&format!(
            "rustdoc --quiet -p {name} --lib {features} -- \
             -Zunstable-options --output-format json --cap-lints allow"
        ))
        // The format is unstable; the version is fixed above.
        .env("RUSTC_BOOTSTRAP", "1")
        .run()?;
        let root = root();
        let json = format!("target/doc/{}.json", name.replace('-', "_"));
        let mut list = Command::new(root.join("target/api/debug/tamis-api"));
        let found = output(list.arg(root.join(json)))?;
        let path = root.join("crates").join(name).join("public-api.txt");
        if update {
            std::fs::write(&path, &found)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        } else if differs(&path, &found) {
            changed.push(name);
        }
    }
    match changed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "public items of {} differ from public-api.txt; if on purpose: \
             cargo xtask api --update",
            changed.join(", "),
        )),
    }
}

/// Prints the lines that are in one of the two listings.
fn differs(path: &Path, found: &str) -> bool {
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let missing = |from: &str, to: &str, sign: &str| {
        let to: std::collections::HashSet<&str> = to.lines().collect();
        let lines = from.lines().filter(|line| !to.contains(line));
        lines.for_each(|line| println!("{sign} {line}"));
    };
    missing(&expected, found, "-");
    missing(found, &expected, "+");
    expected != found
}

fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|e| format!("{shown}: {e}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{shown} failed: {errors}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

//! ThreadSanitizer, with an instrumented standard library.
//!
//! Without one it does not see the locks and the ends of scoped threads, and
//! reports each use of them. Cargo builds the standard library from the
//! sources of the compiler's release (`rustup component add rust-src`).

use std::path::Path;
use std::process::Command;

use crate::run::{Cargo, Result, root, step};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Exit status of a program with a report.
const REPORTED: i32 = 66;

/// Tests with several threads: package, test programs, names.
const TESTS: [(&str, &str, &str); 3] = [
    ("tamis --features table", "--lib", "shared parallel"),
    (
        "tamis --features table",
        "--test surface --test model",
        "shared every_insertion_method",
    ),
    ("tamis-store", "--test threads", ""),
];

/// Runs the tests with several threads. Fails if one has a data race, and if a
/// data race made on purpose is not reported.
pub(crate) fn threads() -> Result {
    step("ThreadSanitizer");
    if !has_sources()? {
        println!(
            "SKIPPED: no sources of Rust (rustup component add rust-src)"
        );
        return Ok(());
    }
    let cargo = |words: &str| {
        Cargo::new(words)
            .words(&format!("-Zbuild-std --target {TARGET}"))
            .words("--target-dir target/tsan")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("PROPTEST_CASES", "4")
    };
    // The profile of the tests: one standard library for all.
    cargo("build --quiet --profile test -p tamis-race").run()?;
    for (argument, expected) in [("race", REPORTED), ("lock", 0)] {
        let program = format!("target/tsan/{TARGET}/debug/tamis-race");
        let output = Command::new(root().join(program))
            .arg(argument)
            .output()
            .map_err(|error| error.to_string())?;
        let report = String::from_utf8_lossy(&output.stderr);
        let reported = report.contains("ThreadSanitizer: data race");
        let as_expected = output.status.code() == Some(expected)
            && reported == (expected == REPORTED);
        if !as_expected {
            let status = output.status;
            return Err(format!("tamis-race {argument}: {status}\n{report}"));
        }
        println!("tamis-race {argument}: {}", output.status);
    }
    for (package, programs, names) in TESTS {
        cargo(&format!("test -p {package} {programs}"))
            .words("--")
            .words(names)
            .run()?;
    }
    Ok(())
}

/// Whether the compiler has the sources of its standard library.
fn has_sources() -> Result<bool> {
    let rustc = std::env::var("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .map_err(|error| error.to_string())?;
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Ok(Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").exists())
}

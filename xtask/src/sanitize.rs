//! Fuzzing, sanitizers, valgrind and mutants.

use std::process::Command;

use crate::run::{Cargo, Result, root, step};
use crate::{thread_sanitizer, tools};

/// Each target, with the longest input.
const FUZZ_TARGETS: [(&str, u32); 8] = [
    ("header", 512),
    ("bytes", 2048),
    ("sealed", 256),
    ("operations", 512),
    ("balanced", 512),
    ("tinyset", 1024),
    ("multilevel", 512),
    ("store", 512),
];

/// Files of the format, inputs of the targets that read files.
const GOLDEN: &str = "crates/tamis/tests/golden/v1";

/// Runs every fuzz target, with cargo-fuzz's option for the sanitizer. New
/// inputs go to `fuzz/corpus`, which is not committed.
pub(crate) fn fuzz(sanitizer: &str, seconds: &str) -> Result {
    for (target, longest) in FUZZ_TARGETS {
        step(&format!("fuzzing {target}"));
        let corpus = root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus).map_err(|error| error.to_string())?;
        // Comparisons of fields with constants; histories have none.
        let (compares, golden) = match target {
            "header" | "bytes" => ("", GOLDEN),
            _ => ("--no-trace-compares", ""),
        };
        let words = format!(
            "fuzz run {sanitizer} {compares} {target} fuzz/corpus/{target} \
             fuzz/seeds/{target} {golden} -- -max_len={longest} \
             -print_final_stats=1 -max_total_time={seconds}"
        );
        let fuzz = tools::cargo("cargo-fuzz", "0.13.2", &words)?;
        // Accepts the unstable option of a sanitizer on a stable compiler.
        fuzz.env("RUSTC_BOOTSTRAP", "1").run()?;
    }
    Ok(())
}

/// Runs each fuzz target under AddressSanitizer, the tests with threads under
/// ThreadSanitizer, and the AVX2 paths under valgrind.
pub(crate) fn sanitize(seconds: &str) -> Result {
    thread_sanitizer::threads()?;
    fuzz("-s address", seconds)?;
    valgrind()
}

/// Valgrind has AVX2 and not AVX-512, so that detection chooses AVX2.
fn valgrind() -> Result {
    step("valgrind");
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("SKIPPED: no valgrind (apt-get install valgrind)");
        return Ok(());
    }
    Cargo::new(
        "test -p tamis --lib -- --test-threads=1 block::bloom dispatch:: \
         memory:: vectors:: the_fast_block no_history any_bytes",
    )
    .env(
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
        "valgrind --quiet --error-exitcode=9",
    )
    .env("PROPTEST_CASES", "2")
    .run()
}

/// Files whose mutants are few and whose tests are fast.
const MUTATED: [&str; 3] = [
    "crates/tamis/src/format/header.rs",
    "crates/tamis/src/table/entry_list.rs",
    "crates/tamis/src/block/fingerprint/layout.rs",
];

/// Changes the code of `files`, one change at a time, and runs the tests: each
/// change that no test notices is printed.
pub(crate) fn mutants(files: &[&str]) -> Result {
    step("mutants");
    let files = if files.is_empty() { &MUTATED[..] } else { files };
    let mut words = String::from(
        "mutants --no-shuffle --package tamis --features table --timeout 120",
    );
    for file in files {
        words.push_str(&format!(" --file {file}"));
    }
    words.push_str(
        " -- --lib --test compact --test format --test files --test hostile \
         --test chained --test multilevel --test on_disk",
    );
    tools::cargo("cargo-mutants", "27.1.0", &words)?
        .env("PROPTEST_CASES", "16")
        // Each mutant is compiled: optimising costs more than it saves.
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
        .run()
}

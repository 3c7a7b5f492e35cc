//! The main job on a real key list, from start to finish.

use std::process::Command;

use crate::run::{Cargo, Result, root, run, step};

/// Names that are in the list, and names that are not.
const NAMES: [&str; 4] = ["bash", "ripgrep", "no-such-package", "tamis"];

pub(crate) fn demo() -> Result {
    step("compiling the command line (release)");
    Cargo::new("build --quiet --release -p tamis-cli").run()?;
    let tamis = |words: &str| {
        let mut command = Command::new(root().join("target/release/tamis"));
        command.current_dir(root()).args(words.split_whitespace());
        command
    };
    let filter = "target/demo.tamis";
    step("a filter from 63,636 package names, one wrong answer in 1000");
    run(tamis(&format!(
        "build data/debian-packages.txt.gz -o {filter} --fpr 0.001 --force"
    )))?;
    step("which of these names may be packages?");
    let mut query = tamis(&format!("query {filter}"));
    query.args(NAMES.iter().flat_map(|name| ["--key", name]));
    run(query)?;
    step("which are certainly not?");
    let mut query = tamis(&format!("query {filter} -v"));
    query.args(NAMES.iter().flat_map(|name| ["--key", name]));
    run(query)?;
    step("every name of the list is found: 63,636 of 63,636");
    run(tamis(&format!(
        "query {filter} data/debian-packages.txt.gz --count"
    )))?;
    step("is the file as it was written?");
    run(tamis(&format!("verify {filter}")))
}

//! Build, query and verify a filter of a real key list.

use crate::run::{Cargo, Result, root, step};

/// Names in the list and names absent from it.
const NAMES: [&str; 4] = ["bash", "ripgrep", "no-such-package", "tamis"];

pub(crate) fn demo() -> Result {
    step("compiling the command line (release; some minutes the first time)");
    Cargo::new("build --release -p tamis-cli").run()?;
    let tamis = |words: &str| {
        Cargo::new("run --quiet --release -p tamis-cli --").words(words)
    };
    let names = NAMES.map(|name| format!("--key {name}")).join(" ");
    let filter = "target/demo.tamis";
    std::fs::create_dir_all(root().join("target"))
        .map_err(|error| error.to_string())?;
    step("a filter from a list of package names, one wrong answer in 1000");
    tamis(&format!(
        "build data/debian-packages.txt.gz -o {filter} --fpr 0.001 --force"
    ))
    .run()?;
    step("names that may be packages");
    tamis(&format!("query {filter} {names}")).run()?;
    step("names that are certainly absent");
    tamis(&format!("query {filter} -v {names}")).run()?;
    step("every name of the list is found");
    let keys = "data/debian-packages.txt.gz";
    tamis(&format!("query {filter} {keys} --json")).run()?;
    step("the file's checksums");
    tamis(&format!("verify {filter}")).run()
}

//! The main job on a real key list, from start to finish.

use crate::run::{Cargo, Result, root, step};

/// Names that are in the list, and names that are not.
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
    step("which of these names may be packages?");
    tamis(&format!("query {filter} {names}")).run()?;
    step("which are certainly not?");
    tamis(&format!("query {filter} -v {names}")).run()?;
    step("every name of the list is found");
    let keys = "data/debian-packages.txt.gz";
    tamis(&format!("query {filter} {keys} --json")).run()?;
    step("is the file as it was written?");
    tamis(&format!("verify {filter}")).run()
}

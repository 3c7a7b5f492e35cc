//! Every committed input once, without libFuzzer.

use std::path::{Path, PathBuf};

use tamis_fuzz::TARGETS;

fn inputs(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_committed_input_keeps_the_invariants() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, target) in TARGETS {
        let seeds = inputs(&fuzz.join("seeds").join(name));
        assert!(!seeds.is_empty(), "no seeds of {name}");
        let past = inputs(&fuzz.join("regressions").join(name));
        let golden = match name {
            "header" | "bytes" => {
                inputs(&fuzz.join("../crates/tamis/tests/golden/v1"))
            }
            _ => Vec::new(),
        };
        for path in seeds.iter().chain(&past).chain(&golden) {
            // Shown if the test fails.
            println!("{}", path.display());
            target(&std::fs::read(path).unwrap());
        }
    }
}

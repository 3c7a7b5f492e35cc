//! Balanced filters in every verb.

use crate::support::{TestDir, lines};

#[test]
fn every_design_works_in_every_verb() {
    let dir = TestDir::new();
    let (first, second) = (lines(1, 4_000), lines(2, 1_000));
    dir.write("first", &first);
    dir.write("second", &second);
    dir.write("fresh", lines(3, 4_000));
    let mut designs = 0;
    for scheme in ["single", "sequential", "multilevel"] {
        for overflow in ["list", "first", "random", "absorb"] {
            for by in ["count", "popcount"] {
                let tracking = 8 * (designs % 3);
                designs += 1;
                let design = format!(
                    "--scheme {scheme} --overflow {overflow} \
                     --threshold-by {by} --tracking-bits {tracking}"
                );
                dir.run(&format!(
                    "build first -o f --force --kind balanced \
                     --bits-per-key 20 --items 5000 {design}"
                ))
                .success();
                dir.run("verify f").success();
                dir.run("query -v f first").no_match();
                dir.run("add f second").done();
                dir.run("query -v f first second").no_match();
                let info = dir.info("f");
                assert_eq!(info["kind"], "balanced", "{design}");
                assert_eq!(info["scheme"], scheme, "{design}");
                assert_eq!(info["overflow"], overflow, "{design}");
                assert_eq!(info["threshold_by"], by, "{design}");
                assert_eq!(info["tracking_bits"], tracking, "{design}");
                let items = info["items"].as_u64().unwrap();
                assert!((4_990..=5_000).contains(&items), "{design}: {items}");
                assert_eq!(info["over_design"], false, "{design}");
                let bytes = dir.read("f").len();
                assert_eq!(info["bytes"], bytes, "{design}");
                // Adding stored keys changes no byte, with any number of
                // threads.
                let before = dir.read("f");
                dir.run("add f first --threads 3").done();
                assert!(dir.read("f") == before, "{design}");
                let merge = dir.refused("merge f f -o merged");
                assert!(merge.contains("order of insertion"), "{merge}");
                let fold = dir.refused("fold f -o folded");
                assert!(fold.contains("order of insertion"), "{fold}");
            }
        }
    }
    assert_eq!(designs, 24);
}

#[test]
fn bytes_are_independent_of_threads() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 60_000));
    for threads in [1, 2, 5] {
        dir.run(&format!(
            "build keys -o f{threads} --kind balanced --bits-per-key 24 \
             --threads {threads}"
        ))
        .success();
    }
    assert!(dir.read("f1") == dir.read("f2"));
    assert!(dir.read("f1") == dir.read("f5"));
}

#[test]
fn design_options_need_a_balanced_filter() {
    let dir = TestDir::new();
    for option in
        ["--scheme single", "--tracking-bits 8", "--max-reads-miss 1.1"]
    {
        let message = dir.refused(&format!(
            "build -k a -o f --fpr 0.01 --kind blocked {option}"
        ));
        assert!(message.contains("--kind balanced"), "{message}");
    }
    for invalid in [
        "--access-budget 0.5",
        "--access-budget nan",
        "--choices 9",
        "--tracking-bits 33",
        "--scheme single --overflow-fraction 2",
        "--max-reads-miss 0.9",
        "--max-reads-miss 1.2 --choices 3",
        "--overflow-fraction 0.0001",
        "--overflow absorb --list-share 0.1",
        "--list-share 0.001",
        "--probes 0",
        "--probes 33",
        "--threshold 127",
        "--admission 1.5",
        "--threshold-by popcount --admission 0.5",
        "--level-shares 4,0,1",
        "--level-shares 4,2,1 --choices 3",
        "--scheme sequential --level-shares 4,2,1",
        "--max-reads-miss 1.2 --probes 9",
        "--scheme single --choices 2",
        "--scheme single --access-budget 1.1",
    ] {
        dir.refused(&format!(
            "build -k a -o f --fpr 0.001 --kind balanced {invalid}"
        ));
    }
}

/// Parameters of the paper reach the file, and a full list loses no key.
#[test]
fn given_parameters_are_those_of_the_file() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 6_000));
    dir.run(
        "build keys -o f --kind balanced --bits-per-key 24 --probes 12 \
         --level-shares 4,2,1 --threshold 20 --admission 0.5 \
         --list-share 0.03",
    )
    .success();
    let info = dir.info("f");
    assert_eq!(info["probes"], 12);
    assert_eq!(info["threshold"], 20);
    assert_eq!(info["admission"], 0.5);
    assert_eq!(info["level_blocks"], serde_json::json!([161, 81, 40]));
    assert_eq!(info["list_capacity"], 180);
    dir.write("more", lines(2, 6_000));
    dir.run("add f more").done();
    dir.run("query -v f keys more").no_match();
    dir.run("verify f").success();
    assert_eq!(dir.info("f")["list_capacity"], 180);
    // The list is full: 180 hashes of 8 bytes behind the blocks.
    assert_eq!(
        dir.read("f").len() as u64,
        dir.info("f")["bytes"].as_u64().unwrap()
    );
}

/// `plan` never recommends balanced filters up to 12 bits per key, at any
/// share of misses, and gives the reason. At 24 bits and few misses it does.
#[test]
fn plan_recommends_balanced_only_above_12_bits() {
    let dir = TestDir::new();
    for bits in [6, 8, 10, 12] {
        for share in ["0", "0.5", "1"] {
            let plan = dir
                .run(&format!(
                    "plan --items 1e6 --bits-per-key {bits} \
                     --miss-share {share} --json"
                ))
                .json();
            assert_ne!(plan["recommended"], "balanced", "{bits} {share}");
            let notes = plan["notes"].as_array().unwrap();
            let why = notes
                .iter()
                .filter_map(|note| note.as_str())
                .find(|note| note.starts_with("balanced"))
                .unwrap();
            assert!(why.contains("12 bits per key"), "{why}");
        }
    }
    let plan = dir
        .run(
            "plan --items 1e6 --bits-per-key 24 --miss-share 0.1 \
             --prefer speed --json",
        )
        .json();
    assert_eq!(plan["recommended"], "balanced");
    assert_eq!(plan["options"], "--kind balanced");
}

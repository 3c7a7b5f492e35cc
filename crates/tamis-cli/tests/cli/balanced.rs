//! Balanced filters, through every verb.

use crate::support::{Lab, lines};

#[test]
fn every_design_goes_through_every_verb() {
    let lab = Lab::new();
    let (first, second) = (lines(1, 4_000), lines(2, 1_000));
    lab.write("first", &first);
    lab.write("second", &second);
    lab.write("fresh", lines(3, 4_000));
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
                lab.run(&format!(
                    "build first -o f --force --kind balanced \
                     --bits-per-key 20 --items 5000 {design}"
                ))
                .done();
                lab.run("verify f").done();
                lab.run("query -v f first").nothing();
                lab.run("add f second").done();
                lab.run("query -v f first second").nothing();
                let info = lab.info("f");
                assert_eq!(info["kind"], "balanced", "{design}");
                assert_eq!(info["scheme"], scheme, "{design}");
                assert_eq!(info["overflow"], overflow, "{design}");
                assert_eq!(info["threshold_by"], by, "{design}");
                assert_eq!(info["tracking_bits"], tracking, "{design}");
                let items = info["items"].as_u64().unwrap();
                assert!((4_990..=5_000).contains(&items), "{design}: {items}");
                assert_eq!(info["over_design"], false, "{design}");
                let bytes = lab.read("f").len();
                assert_eq!(info["bytes"], bytes, "{design}");
                // The same bytes whatever the threads, and added again
                // nothing changes.
                let before = lab.read("f");
                lab.run("add f first --threads 3").done();
                assert!(lab.read("f") == before, "{design}");
                let merge = lab.refused("merge f f -o merged");
                assert!(merge.contains("order of insertion"), "{merge}");
                let fold = lab.refused("fold f -o folded");
                assert!(fold.contains("order of insertion"), "{fold}");
            }
        }
    }
    assert_eq!(designs, 24);
}

#[test]
fn threads_do_not_show() {
    let lab = Lab::new();
    lab.write("keys", lines(1, 60_000));
    for threads in [1, 2, 5] {
        lab.run(&format!(
            "build keys -o f{threads} --kind balanced --bits-per-key 24 \
             --threads {threads}"
        ))
        .done();
    }
    assert!(lab.read("f1") == lab.read("f2"));
    assert!(lab.read("f1") == lab.read("f5"));
}

#[test]
fn designs_are_for_balanced_filters_only() {
    let lab = Lab::new();
    for option in
        ["--scheme single", "--tracking-bits 8", "--max-reads-miss 1.1"]
    {
        let message = lab.refused(&format!(
            "build -k a -o f --fpr 0.01 --kind blocked {option}"
        ));
        assert!(message.contains("--kind balanced"), "{message}");
    }
    for nonsense in [
        "--access-budget 0.5",
        "--access-budget nan",
        "--choices 9",
        "--tracking-bits 33",
        "--scheme single --overflow-fraction 2",
        "--max-reads-miss 0.9",
        "--max-reads-miss 1.2 --choices 3",
        "--overflow-fraction 0.01",
        "--scheme single --choices 2",
        "--scheme single --access-budget 1.1",
    ] {
        lab.refused(&format!(
            "build -k a -o f --fpr 0.001 --kind balanced {nonsense}"
        ));
    }
}

/// Where balancing has nothing to gain, the plan says so, whatever the
/// share of misses; where it has, it is recommended to those it serves.
#[test]
fn the_plan_recommends_it_only_where_it_pays() {
    let lab = Lab::new();
    for bits in [6, 8, 10, 12] {
        for share in ["0", "0.5", "1"] {
            let plan = lab
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
    let plan = lab
        .run(
            "plan --items 1e6 --bits-per-key 24 --miss-share 0.1 \
             --prefer speed --json",
        )
        .json();
    assert_eq!(plan["recommended"], "balanced");
    assert_eq!(plan["options"], "--kind balanced");
}

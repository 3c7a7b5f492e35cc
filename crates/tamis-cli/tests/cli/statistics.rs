//! Rate predicted by info against the rate measured with query.

use crate::support::{KINDS, TestDir, integers};

/// Panics unless `hits` of `trials` lies in the 99.9 % binomial interval
/// around `p`.
fn assert_binomial(hits: u64, trials: u64, p: f64, what: &str) {
    const Z: f64 = 3.2905; // two-sided 99.9 %
    let mean = trials as f64 * p;
    // 0.5: continuity correction.
    let slack = Z * (mean * (1.0 - p)).sqrt() + 0.5;
    assert!(
        (hits as f64 - mean).abs() <= slack,
        "{what}: {hits} of {trials} hits, expected {mean:.1} +- {slack:.1}"
    );
}

#[test]
fn predicted_rates_are_measured_rates() {
    const MEMBERS: u64 = 300_000;
    const OTHERS: u64 = 2_000_000;
    let dir = TestDir::new();
    dir.write("members", integers(1, MEMBERS));
    dir.write("others", integers(2, OTHERS));
    for kind in KINDS {
        for fpr in [0.01, 0.001, 0.0001] {
            let what = format!("{kind} at {fpr}");
            dir.run(&format!(
                "build members -o f --force --key-format u64le \
                 --kind {kind} --fpr {fpr}"
            ))
            .success();
            let predicted = dir.info("f")["expected_fpr"].as_f64().unwrap();
            // Rounding up to whole blocks lowers the rate. The number of
            // set bits deviates by far less than 5 % with 300,000 keys.
            assert!(
                (predicted / fpr - 1.0).abs() < 0.05,
                "{what}: {predicted}"
            );
            let hits = dir.count("f others --key-format u64le");
            assert_binomial(hits, OTHERS, predicted, &what);
            dir.run("query -v f members --key-format u64le").no_match();
        }
    }
}

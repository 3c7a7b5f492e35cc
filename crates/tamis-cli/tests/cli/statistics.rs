//! The rate that `info` promises is the rate that `query` has.

use crate::support::{KINDS, Lab, integers};

/// Panics unless `hits` of `trials` lies in the 99.9 % binomial interval
/// around `p`.
fn assert_binomial(hits: u64, trials: u64, p: f64, what: &str) {
    const Z: f64 = 3.2905; // two-sided 99.9 %
    let mean = trials as f64 * p;
    // Half a count for the step from a discrete to a continuous law.
    let slack = Z * (mean * (1.0 - p)).sqrt() + 0.5;
    assert!(
        (hits as f64 - mean).abs() <= slack,
        "{what}: {hits} of {trials} hits, expected {mean:.1} +- {slack:.1}"
    );
}

#[test]
fn promised_rates_are_measured_rates() {
    const MEMBERS: u64 = 300_000;
    const STRANGERS: u64 = 2_000_000;
    let lab = Lab::new();
    lab.write("members", integers(1, MEMBERS));
    lab.write("strangers", integers(2, STRANGERS));
    for kind in KINDS {
        for fpr in [0.01, 0.001, 0.0001] {
            let what = format!("{kind} at {fpr}");
            lab.run(&format!(
                "build members -o f --force --key-format u64le \
                 --kind {kind} --fpr {fpr}"
            ))
            .done();
            let promised = lab.info("f")["expected_fpr"].as_f64().unwrap();
            // Rounding up to whole blocks can only help; 300,000 keys
            // scatter the bits set by far less than this.
            assert!((promised / fpr - 1.0).abs() < 0.05, "{what}: {promised}");
            let hits = lab.count("f strangers --key-format u64le");
            assert_binomial(hits, STRANGERS, promised, &what);
            lab.run("query -v f members --key-format u64le").nothing();
        }
    }
}

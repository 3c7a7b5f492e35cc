//! The search against the best designs of an independent search.

mod support;

use serde_json::Value;
use support::{integer, number, reference};
use tamis_theory::balanced::absorbing;
use tamis_theory::tune::{self, Mode};
use tamis_theory::{Error, blocked};

const MODES: [(&str, Mode); 3] = [
    ("dynamic", Mode::Dynamic),
    ("static", Mode::Static),
    ("popcount", Mode::Popcount),
];

/// Asserts a rate at most 0.1% above the reference within the limit of reads.
fn assert_reaches(row: &Value, mode: Mode, cap: f64, reference: &Value) {
    let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
    let got = tune::best(bits, beta, cap, Some(mode)).expect("a design");
    let p = got.prediction;
    let want = number(&reference["fpr"]);
    let what = format!("{bits} {beta} {cap} {mode:?}: {got:?}");
    assert!(p.fpr <= 1.001 * want, "{what} {want}");
    assert!(p.reads_miss <= cap && p.reads_miss >= 1.0, "{what}");
    assert_eq!(p.reads_hit, got.access_budget, "{what}");
    assert_eq!(got.level_shares.len(), got.choices as usize, "{what}");
    // The model gives the same prediction for the design returned.
    let again = absorbing::predict(
        bits,
        beta,
        &got.level_shares,
        got.refuse,
        got.probes,
        got.tracking_bits,
    );
    assert_eq!(again.map(|again| again.prediction), Ok(p), "{what}");
}

#[test]
fn designs_of_512_bits() {
    let mut compared = 0;
    for row in reference("tuned") {
        for limit in ["1.1", "1.25", "1.5"] {
            let cap: f64 = limit.parse().unwrap();
            let designs = &row["designs"][limit];
            for (name, mode) in MODES {
                assert_reaches(&row, mode, cap, &designs[name]);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 8 * 3 * 3);
}

#[test]
fn designs_of_smaller_blocks() {
    let mut compared = 0;
    for row in reference("tuned_small_blocks") {
        for (name, mode) in &MODES[..2] {
            assert_reaches(&row, *mode, 1.25, &row[*name]);
            compared += 1;
        }
    }
    assert_eq!(compared, 15 * 2);
}

#[test]
fn designs_with_a_list() {
    let mut compared = 0;
    for row in reference("tuned") {
        let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
        for limit in ["1.1", "1.25", "1.5"] {
            let cap: f64 = limit.parse().unwrap();
            let got = tune::with_list(bits, beta, cap, 0.005).unwrap();
            let want = number(&row["designs"][limit]["free list"]["fpr"]);
            let what = format!("{beta} {limit}: {got:?}");
            assert!(got.prediction.fpr <= 1.001 * want, "{what} {want}");
            assert!(got.prediction.reads_miss <= cap, "{what}");
            assert!(got.overflow_fraction <= 0.005, "{what}");
            compared += 1;
        }
    }
    assert_eq!(compared, 8 * 3);
}

/// The memory for a rate against that of the reference with this rate.
#[test]
fn designs_for_a_rate() {
    let mut compared = 0;
    for row in reference("tuned") {
        let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
        for limit in ["1.1", "1.25", "1.5"] {
            let cap: f64 = limit.parse().unwrap();
            let want = number(&row["designs"][limit]["popcount"]["fpr"]);
            let mode = Some(Mode::Popcount);
            let got = tune::for_fpr(bits, want, cap, mode).unwrap();
            let p = got.prediction;
            let what = format!("{beta} {limit}: {got:?}");
            assert!(p.bits_per_key <= 1.002 * beta, "{what}");
            assert!(p.fpr <= want && p.reads_miss <= cap, "{what}");
            // The model gives the same prediction for the design returned.
            let again = absorbing::predict(
                bits,
                p.bits_per_key,
                &got.level_shares,
                got.refuse,
                got.probes,
                got.tracking_bits,
            );
            assert_eq!(again.map(|again| again.prediction), Ok(p), "{what}");
            compared += 1;
        }
    }
    assert_eq!(compared, 8 * 3);
}

#[test]
fn more_reads_do_not_raise_the_rate() {
    for beta in [10.0, 24.0] {
        let mut before = f64::INFINITY;
        for cap in [1.01, 1.1, 1.3, 2.0, 4.0] {
            let design = tune::best(256, beta, cap, None).unwrap();
            let fpr = design.prediction.fpr;
            assert!(fpr <= before * 1.001, "{beta} {cap}");
            before = fpr;
        }
        assert!(before < blocked::best(256, beta).unwrap().fpr * 1.01);
    }
}

#[test]
fn the_search_is_deterministic() {
    let once = tune::best(128, 16.0, 1.2, None).unwrap();
    assert_eq!(tune::best(128, 16.0, 1.2, None).unwrap(), once);
}

#[test]
fn arguments_out_of_range_are_errors() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1.0] {
        for error in [
            tune::best(512, 16.0, bad, None).unwrap_err(),
            tune::with_list(512, 16.0, bad, 0.005).unwrap_err(),
        ] {
            let name = "max_reads_miss";
            assert!(
                matches!(error, Error::OutOfRange { name: n, .. } if n == name)
            );
        }
        assert!(tune::best(512, bad, 1.25, None).is_err());
        assert!(tune::with_list(512, bad, 1.25, 0.005).is_err());
    }
    assert!(tune::best(500, 16.0, 1.25, None).is_err());
    assert!(tune::with_list(512, 16.0, 1.25, -0.1).is_err());
    let error = tune::for_fpr(512, 0.2, 1.25, None).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { max: 0.148, .. }), "{error}");
    let error = tune::for_fpr(64, 1e-9, 1.25, Some(Mode::Popcount));
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let tight = tune::with_list(512, 16.0, 1.000_001, 1e-300).unwrap_err();
    assert!(matches!(tight, Error::NoDesign { .. }));
}

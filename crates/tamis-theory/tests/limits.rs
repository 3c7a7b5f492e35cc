//! Limits of memory, and the distance of the filters from them.

use tamis_theory::plan::{Kind, Size};
use tamis_theory::{blocked, limit};

/// Rates, and the bits per key of an independent program: any filter, a
/// growing one, one line with coded fingerprints.
const TABLE: [[f64; 4]; 6] = [
    [0.1, 3.322, 4.690, 4.747],
    [0.03, 5.059, 6.480, 6.547],
    [0.01, 6.644, 8.079, 8.245],
    [0.003, 8.381, 9.821, 10.187],
    [0.001, 9.966, 11.408, 12.050],
    [0.0001, 13.288, 14.730, 16.302],
];

#[test]
fn limits_are_those_of_an_independent_program() {
    for [fpr, any, growing, line] in TABLE {
        let found = [
            limit::any(fpr).unwrap(),
            limit::growing(fpr).unwrap(),
            limit::line_for_fpr(512, fpr).unwrap().bits_per_key,
        ];
        for (found, expected) in found.into_iter().zip([any, growing, line]) {
            assert!((found - expected).abs() < 1e-3, "{fpr}: {found}");
        }
    }
}

#[test]
fn a_line_reaches_the_rate_that_its_memory_was_computed_for() {
    for bits in [256, 512] {
        for fpr in [0.3, 0.01, 1e-4, 1e-7] {
            let design = limit::line_for_fpr(bits, fpr).unwrap();
            let again = limit::line(bits, design.bits_per_key).unwrap();
            assert!(design.fpr <= fpr && design.fpr > 0.999_999 * fpr);
            assert!((again.fpr / design.fpr - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn larger_lines_approach_the_limit_of_growing_filters() {
    let at = |bits| limit::line_for_fpr(bits, 0.01).unwrap().bits_per_key;
    let all = [64, 256, 512, 4096].map(at);
    assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
    let growing = limit::growing(0.01).unwrap();
    assert!(all[3] > growing && all[3] < 1.01 * growing, "{all:?}");
}

/// A smaller filter would show that a limit or its own prediction is wrong.
#[test]
fn no_filter_is_below_the_limit_of_its_family() {
    for fpr in [0.05, 0.01, 0.001, 1e-4, 1e-5] {
        let line = limit::line_for_fpr(512, fpr).unwrap().bits_per_key;
        let growing = limit::growing(fpr).unwrap();
        for kind in Kind::ALL {
            let Ok(p) = kind.predict(Size::Fpr(fpr), 512) else { continue };
            assert!(p.bits_per_key > growing, "{kind:?} at {fpr}");
            if p.reads_miss == 1.0 && p.reads_hit == 1.0 {
                assert!(p.bits_per_key > line, "{kind:?} at {fpr}");
            }
        }
    }
}

#[test]
fn arguments_out_of_range_are_errors() {
    for fpr in [0.0, 1.0, f64::NAN] {
        assert!(limit::any(fpr).is_err() && limit::growing(fpr).is_err());
        assert!(limit::line_for_fpr(512, fpr).is_err());
    }
    let blocks = limit::line(100, 10.0).unwrap_err();
    assert_eq!(blocks, blocked::best(100, 10.0).unwrap_err());
    assert!(limit::line(512, 0.1).is_err());
    assert!(limit::line(512, 1000.0).unwrap().fpr > 0.0);
}

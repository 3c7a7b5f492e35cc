//! Closed forms against the differential equations, and variances against
//! reference values.

mod support;

use proptest::prelude::*;
use support::{Tally, number, reference};
use tamis_theory::{dynamics, multilevel, sequential, single, variance};

fn close(x: f64, y: f64) -> bool {
    (x - y).abs() <= 1e-8
}

#[test]
fn variances() {
    let mut tally = Tally::default();
    for row in reference("variance") {
        let [a, r] = ["a", "r"].map(|k| number(&row[k]));
        let bound = variance::bound(a, r, 0.0).unwrap();
        tally.same("bound", bound, &row["var_lb_gamma0"]);
        if !row["var_mht"].is_null() {
            let levels = variance::multilevel(a, r, 3).unwrap();
            tally.same("mht", levels, &row["var_mht"]);
        }
        if !row["var_seq"].is_null() {
            let flat = variance::sequential(a, r, 3).unwrap();
            tally.same("seq", flat, &row["var_seq"]);
            let run = sequential::optimal(a, r, 3).unwrap();
            let gamma = &row["gamma_seq"];
            tally.same("seq", run.overflow_fraction, gamma);
        }
        let least = &row["var_least_loaded_d_eq_a"];
        if !least.is_null() {
            let got = variance::least_loaded(r, a as u32).unwrap();
            tally.same("least loaded", got, least);
        }
    }
    // 21 bounds, 18 + 15 schemes with 15 overflows, 9 baselines.
    assert_eq!(tally.0, 21 + 18 + 15 * 2 + 9);
    for row in reference("single") {
        let [r, gamma] = ["r", "gamma"].map(|k| number(&row[k]));
        let bound = single::optimal(r, gamma).unwrap();
        let h = bound.threshold().unwrap();
        let run = single::fractions(r, h, bound.admission()).unwrap();
        let direct = variance::single(r, gamma).unwrap();
        tally.within("single", direct, run.variance(), 1e-10);
    }
    assert_eq!(tally.0, 78 + 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn single_matches_its_dynamics(
        load in 0.05f64..60.0,
        threshold in 0u32..80,
        admission in 0.0f64..=1.0,
    ) {
        let end = dynamics::sequential(load, 1, threshold, admission)?;
        let closed = single::fractions(load, threshold, admission)?;
        let pairs = end.distributions[0].as_slice().iter();
        for (x, y) in pairs.zip(closed.as_slice()) {
            prop_assert!(close(*x, *y), "{x} {y}");
        }
        let refused = single::overflow(load, threshold, admission)?;
        prop_assert!(close(end.overflow_fraction, refused));
    }

    #[test]
    fn sequential_matches_its_dynamics(
        load in 0.05f64..60.0,
        choices in 1u32..6,
        below in 0.3f64..1.6,
        admission in 0.0f64..=1.0,
    ) {
        let threshold = (load * below) as u32;
        let end =
            dynamics::sequential(load, choices, threshold, admission)?;
        let run = sequential::run(load, choices, threshold, admission)?;
        prop_assert!(close(end.access_budget, run.access_budget));
        prop_assert!(close(end.overflow_fraction, run.overflow_fraction));
        let pairs = end.distributions[0].as_slice().iter();
        for (x, y) in pairs.zip(run.distribution.as_slice()) {
            prop_assert!(close(*x, *y), "{x} {y}");
        }
    }

    #[test]
    fn multilevel_matches_its_dynamics(
        load in 0.05f64..40.0,
        parts in prop::collection::vec(0.02f64..1.0, 1..5),
        below in 0.3f64..1.6,
        admission in 0.0f64..=1.0,
    ) {
        let threshold = (load * below) as u32;
        let sum: f64 = parts.iter().sum();
        let shares: Vec<f64> = parts.iter().map(|x| x / sum).collect();
        let end =
            dynamics::multilevel(load, &shares, threshold, admission)?;
        let run = multilevel::run(load, &shares, threshold, admission)?;
        prop_assert!(close(end.access_budget, run.access_budget));
        prop_assert!(close(end.overflow_fraction, run.overflow_fraction));
        for (followed, level) in end.distributions.iter().zip(&run.levels) {
            let closed = level.distribution.as_slice().iter();
            for (x, y) in followed.as_slice().iter().zip(closed) {
                prop_assert!(close(*x, *y), "{x} {y}");
            }
        }
    }
}

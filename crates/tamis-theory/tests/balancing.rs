//! The bound and the three schemes against independent reference values.

mod support;

use support::{Tally, integer, number, numbers, reference};
use tamis_theory::bound::Bound;
use tamis_theory::{multilevel, sequential, single};

fn same_shares(tally: &mut Tally, what: &str, got: &[f64], want: &[f64]) {
    assert!(got.len() >= want.len(), "{what}: {} loads", got.len());
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        // The reference computes the last share as a difference.
        if (got - want).abs() > 1e-13 {
            tally.within(&format!("{what} at {i}"), *got, *want, 1e-6);
        } else {
            tally.0 += 1;
        }
    }
}

#[test]
fn theorem_1() {
    let mut tally = Tally::default();
    let (mut rows, mut infinite) = (0, 0);
    for row in reference("theorem1") {
        rows += 1;
        let [a, r, gamma] = ["a", "r", "gamma"].map(|k| number(&row[k]));
        let bound = Bound::new(a, r, gamma).unwrap();
        let shares = bound.distribution();
        let what = format!("a {a} r {r} gamma {gamma}");
        same_shares(&mut tally, &what, shares.as_slice(), &numbers(&row["P"]));
        assert!((shares.at_least(0) - 1.0).abs() < 1e-12);
        assert!((shares.mean() - r * (1.0 - gamma)).abs() < 1e-11 * r);
        if row["k0"] == "inf" {
            infinite += 1;
            assert_eq!(bound.threshold(), None);
            continue;
        }
        tally.equal("k0", bound.threshold().unwrap(), &row["k0"]);
        for (name, got) in [("e0", bound.e0()), ("p0", bound.p0())] {
            tally.same(&format!("{what} {name}"), got, &row[name]);
        }
        tally.same(&format!("{what} p"), bound.admission(), &row["p"]);
        assert_eq!(shares.as_slice().len(), integer(&row["k0"]) as usize + 2);
    }
    assert_eq!((rows, infinite), (18, 1));
    assert!(tally.0 > 17 * 4 + 200, "{}", tally.0);
}

#[test]
fn figure_2() {
    let mut tally = Tally::default();
    for row in reference("fig2") {
        let [a, r, gamma] = ["a", "r", "gamma"].map(|k| number(&row[k]));
        let bound = Bound::new(a, r, gamma).unwrap();
        let want = numbers(&row["P"]);
        let end = want.iter().rposition(|p| *p > 0.0).unwrap();
        let got = bound.distribution().as_slice();
        same_shares(&mut tally, "fig. 2", got, &want[..=end]);
    }
    assert_eq!(tally.0, 21 + 11 + 10);
}

#[test]
fn single_dynamics() {
    let mut tally = Tally::default();
    for row in reference("fig3") {
        let arrivals = 2.5 * number(&row["t"]);
        let got = single::fractions(arrivals, 2, 0.5).unwrap();
        same_shares(&mut tally, "f", got.as_slice(), &numbers(&row["f"]));
        let overflow = single::overflow(arrivals, 2, 0.5).unwrap();
        tally.same("overflow", overflow, &row["overflow"]);
    }
    assert_eq!(tally.0, 5 * 5);
    for row in reference("eq7_numerics") {
        let [p, lam] = ["p", "lam"].map(|k| number(&row[k]));
        let h = integer(&row["h"]);
        let got = single::fractions(lam, h, p).unwrap();
        let at = got.as_slice()[h as usize];
        tally.same("eq. 7", at, &row["stable"]);
    }
    assert_eq!(tally.0, 5 * 5 + 7);
}

#[test]
fn single_schemes() {
    let mut tally = Tally::default();
    let mut rows = 0;
    for row in reference("single") {
        rows += 1;
        let [r, gamma] = ["r", "gamma"].map(|k| number(&row[k]));
        let scheme = single::optimal(r, gamma).unwrap();
        let h = scheme.threshold().unwrap();
        tally.equal("h", h, &row["h"]);
        tally.same("p", scheme.admission(), &row["p"]);
        let want = numbers(&row["f"]);
        let bound = scheme.distribution();
        let run = single::fractions(r, h, scheme.admission()).unwrap();
        same_shares(&mut tally, "bound", bound.as_slice(), &want);
        same_shares(&mut tally, "run", run.as_slice(), &want);
        let overflow = single::overflow(r, h, scheme.admission()).unwrap();
        assert!((overflow - gamma).abs() < 1e-13);
    }
    assert_eq!(rows, 16);
    assert!(tally.0 > 32 + 2 * 200);
}

#[test]
fn sequential_schemes() {
    let mut tally = Tally::default();
    let mut rows = 0;
    for row in reference("sequential") {
        rows += 1;
        let [a, r] = ["a", "r"].map(|k| number(&row[k]));
        let d = integer(&row["d"]);
        let run = sequential::optimal(a, r, d).unwrap();
        let what = format!("a {a} r {r} d {d}");
        tally.equal("h", run.threshold.unwrap(), &row["h"]);
        tally.same(&format!("{what} p"), run.admission, &row["p"]);
        tally.same(&what, run.overflow_fraction, &row["gamma0"]);
        let got = run.distribution.as_slice();
        same_shares(&mut tally, &what, got, &numbers(&row["P"]));
        let levels = multilevel::boundary(a, d).unwrap();
        tally.same(&what, levels.overflow_fraction, &row["gamma_mht"]);
        // Theorem 4: the scheme reaches the bound at its own overflow.
        let bound = Bound::new(a, r, run.overflow_fraction).unwrap();
        for (x, y) in got.iter().zip(bound.distribution().as_slice()) {
            assert!((x - y).abs() < 1e-11, "{what}: {x} {y}");
        }
        let geometric = |x: f64| (0..d).fold(0.0, |sum, _| 1.0 + x * sum);
        tally.same("E(P)", geometric(bound.full()), &row["EP"]);
        tally.same("E(P)", geometric(bound.refuses()), &row["EP_coin"]);
        // Running the scheme gives its budget and overflow back.
        let again =
            sequential::run(r, d, run.threshold.unwrap(), run.admission)
                .unwrap();
        assert!((again.access_budget - a).abs() < 1e-12, "{what}");
        let gap = again.overflow_fraction - run.overflow_fraction;
        assert!(gap.abs() < 1e-12, "{what} {gap}");
    }
    assert_eq!(rows, 18);
    assert!(tally.0 > 18 * 6 + 200);
}

#[test]
fn optimality_regions() {
    let mut tally = Tally::default();
    for row in reference("fig4a") {
        let a = number(&row["a"]);
        let flat = sequential::optimal(a, 8.0, 3).unwrap();
        if row["note"] == "gamma_SEQ=0.01" {
            tally.within("1%", flat.overflow_fraction, 0.01, 1e-6);
            continue;
        }
        let levels = multilevel::boundary(a, 3).unwrap();
        tally.same("seq", flat.overflow_fraction, &row["seq"]);
        tally.same("mht", levels.overflow_fraction, &row["mht"]);
    }
    for row in reference("fig4b") {
        let r = number(&row["r"]);
        let flat = sequential::optimal(1.2, r, 3).unwrap();
        let levels = multilevel::boundary(1.2, 3).unwrap();
        tally.same("seq", flat.overflow_fraction, &row["seq"]);
        tally.same("mht", levels.overflow_fraction, &row["mht"]);
    }
    assert_eq!(tally.0, 2 * 11 + 1 + 2 * 10);
}

#[test]
fn level_shares() {
    let mut tally = Tally::default();
    let mut rows = 0;
    for row in reference("mht") {
        rows += 1;
        let (a, d) = (number(&row["a"]), integer(&row["d"]));
        let levels = multilevel::boundary(a, d).unwrap();
        tally.same("q", levels.refused, &row["q"]);
        tally.same("gamma", levels.overflow_fraction, &row["gamma"]);
        let want = numbers(&row["alpha"]);
        same_shares(&mut tally, "alpha", &levels.level_shares, &want);
    }
    assert_eq!((rows, tally.0), (15, 15 * 2 + 47));
    for row in reference("mht_inside_region") {
        let (a, d) = (number(&row["a"]), integer(&row["d"]));
        let gamma = number(&row["gamma"]);
        let levels = multilevel::inside(a, d, gamma).unwrap();
        tally.same("q", levels.refused, &row["q"]);
        tally.same("t0", levels.probed, &row["t0"]);
        tally.same("unprobed", 1.0 - levels.probed, &row["unprobed"]);
        let want = numbers(&row["alpha"]);
        same_shares(&mut tally, "alpha", &levels.level_shares, &want);
        let lost = multilevel::lost_members(a, 8.0, d, gamma).unwrap();
        tally.same("lost", lost, &row["false_negative_fraction"]);
    }
    assert_eq!(tally.0, 77 + 5 * 4 + 14);
}

#[test]
fn multilevel_by_load() {
    let mut tally = Tally::default();
    let mut rows = 0;
    for row in reference("mht_by_r") {
        rows += 1;
        let [a, r] = ["a", "r"].map(|k| number(&row[k]));
        let d = integer(&row["d"]);
        let (levels, bound) = multilevel::optimal(a, r, d).unwrap();
        let h = bound.threshold().unwrap();
        tally.equal("h", h, &row["h"]);
        tally.same("p", bound.admission(), &row["p"]);
        tally.same("q", levels.refused, &row["p_of_a"]);
        tally.same("F", bound.full(), &row["F"]);
        tally.same("u", bound.refuses(), &row["u"]);
        let geometric = |x: f64| (0..d).fold(0.0, |sum, _| 1.0 + x * sum);
        tally.same("E(P)", geometric(bound.full()), &row["EP"]);
        tally.same("E(P)", geometric(bound.refuses()), &row["EP_coin"]);
        let want = numbers(&row["P"]);
        let shares = bound.distribution().as_slice();
        same_shares(&mut tally, "P", shares, &want);
        // Theorem 5: every level ends at the bound.
        let run =
            multilevel::run(r, &levels.level_shares, h, bound.admission())
                .unwrap();
        assert!((run.access_budget - a).abs() < 1e-12);
        for level in &run.levels {
            for (x, y) in level.distribution.as_slice().iter().zip(shares) {
                assert!((x - y).abs() < 1e-11);
            }
        }
    }
    assert_eq!(rows, 13);
    assert!(tally.0 > 13 * 7 + 200);
}

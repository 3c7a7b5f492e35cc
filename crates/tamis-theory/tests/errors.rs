//! Whatever the arguments: a number or a typed error, never a panic.

use proptest::prelude::*;
use tamis_theory::balanced::Lookup;
use tamis_theory::balanced::absorbing::{self, Refuse};
use tamis_theory::balanced::list::{self, Scheme};
use tamis_theory::balanced::returned::{self, Place};
use tamis_theory::bound::Bound;
use tamis_theory::{
    Error, block, dynamics, multilevel, sequential, single, variance,
};

/// Numbers a caller might get wrong, and a few that are right.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        prop::sample::select(vec![
            f64::NAN,
            f64::INFINITY,
            -f64::INFINITY,
            0.0,
            -1.0,
            1e-300,
            1e300,
            f64::EPSILON,
            0.5,
            1.0,
            2.0,
            8.0,
        ]),
        0.0f64..20.0,
    ]
}

fn wild_integer() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), 0u32..40, Just(512u32)]
}

fn is_nan(x: Result<f64, Error>) -> bool {
    x.is_ok_and(f64::is_nan)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn closed_forms(
        x in wild(), y in wild(), z in wild(),
        i in wild_integer(), j in wild_integer(),
    ) {
        for bad in [
            is_nan(Bound::new(x, y, z).map(|b| b.admission())),
            is_nan(single::fractions(x, i, y).map(|f| f.mean())),
            is_nan(single::overflow(x, i, y)),
            is_nan(single::admission(x, i, y)),
            is_nan(multilevel::boundary(x, i).map(|l| l.overflow_fraction)),
            is_nan(multilevel::inside(x, i, y).map(|l| l.probed)),
            is_nan(multilevel::lost_members(x, y, i, z)),
            is_nan(
                multilevel::run(x, &[y, z], i, y).map(|r| r.access_budget)
            ),
            is_nan(variance::bound(x, y, z)),
            is_nan(variance::single(x, y)),
            is_nan(variance::multilevel(x, y, i)),
            is_nan(block::approximate(i, j, x)),
        ] {
            prop_assert!(!bad);
        }
        let most = j.min(300);
        for rates in [block::exact(i, j, most), block::distinct(i, j, most)] {
            let chance = |r: &f64| (0.0..=1.0).contains(r);
            prop_assert!(rates.is_err()
                || rates.is_ok_and(|r| r.iter().all(chance)));
        }
    }

    #[test]
    fn followed_in_time(
        x in wild(), y in wild(), z in wild(),
        i in wild_integer(), j in wild_integer(),
    ) {
        // Only small cases of what takes longer.
        let (small, few) = (y.min(20.0), i.min(60));
        for bad in [
            is_nan(sequential::optimal(x, small, i)
                .map(|r| r.overflow_fraction)),
            is_nan(sequential::run(small, i, few, x)
                .map(|r| r.overflow_fraction)),
            is_nan(dynamics::sequential(small, i, few, x)
                .map(|e| e.overflow_fraction)),
            is_nan(dynamics::multilevel(small, &[x, z], few, x)
                .map(|e| e.overflow_fraction)),
            is_nan(variance::sequential(x, small, i)),
            is_nan(dynamics::least_loaded(small, j).map(|l| l.mean())),
        ] {
            prop_assert!(!bad);
        }
    }

    #[test]
    fn balanced_filters(
        x in wild(), y in wild(),
        i in wild_integer(), j in wild_integer(), bits in wild_integer(),
    ) {
        for scheme in [
            Scheme::Single { overflow_fraction: x },
            Scheme::Multilevel { access_budget: x, choices: j },
        ] {
            for lookup in [Lookup::Plain, Lookup::Tracking(j)] {
                let p = list::predict(bits, y, scheme, lookup, i);
                prop_assert!(!is_nan(p.map(|p| p.prediction.fpr)));
            }
        }
        let shares = [y, 1.0 - y];
        for refuse in [
            Refuse::Popcount(j), Refuse::Counter(j), Refuse::BuildCounter(j),
        ] {
            for track in [0, 1, j] {
                let p = absorbing::predict(256, x, &shares, refuse, i, track);
                prop_assert!(!is_nan(p.map(|p| p.prediction.fpr)));
            }
        }
        let lookup = Lookup::Tracking(i);
        let p = returned::predict(64, x, y, j, Place::First, lookup, i);
        prop_assert!(!is_nan(p.map(|p| p.prediction.fpr)));
    }
}

#[test]
fn errors_name_what_is_wrong() {
    for (error, name) in [
        (Bound::new(f64::NAN, 8.0, 0.0).unwrap_err(), "access_budget"),
        (Bound::new(1.0, f64::INFINITY, 0.0).unwrap_err(), "load"),
        (Bound::new(1.0, -8.0, 0.0).unwrap_err(), "load"),
        (Bound::new(1.0, 8.0, 1.0).unwrap_err(), "overflow_fraction"),
        (single::fractions(8.0, 8, 1.5).unwrap_err(), "admission"),
        (single::fractions(8.0, u32::MAX, 0.5).unwrap_err(), "threshold"),
        (multilevel::boundary(1.2, 1).unwrap_err(), "choices"),
        (multilevel::boundary(0.9, 3).unwrap_err(), "access_budget"),
        (sequential::optimal(3.0, 8.0, 3).unwrap_err(), "access_budget"),
        (block::exact(0, 8, 8).unwrap_err(), "bits"),
        (block::distinct(4, 8, 8).unwrap_err(), "probes"),
    ] {
        match error {
            Error::OutOfRange { name: got, .. } => assert_eq!(got, name),
            other => panic!("{name}: {other}"),
        }
    }
    assert_eq!(
        Bound::new(0.9, 8.0, 0.05),
        Err(Error::Infeasible { access_budget: 0.9, overflow_fraction: 0.05 })
    );
    let error = multilevel::inside(1.2, 3, 0.004).unwrap_err();
    assert!(matches!(error, Error::OutsideRegion { .. }));
    for shares in [&[0.5, 0.4][..], &[], &[1.5, -0.5], &[f64::NAN]] {
        let error = multilevel::run(8.0, shares, 8, 0.5).unwrap_err();
        let levels = shares.len();
        assert!(
            matches!(error, Error::LevelShares { levels: n, .. } if n == levels)
        );
    }
    let scheme = Scheme::Single { overflow_fraction: 0.01 };
    let error =
        list::predict(64, 8.0, scheme, Lookup::Tracking(60), 4).unwrap_err();
    assert!(matches!(error, Error::NoRoom { block_bits: 64, .. }));
    assert!(error.to_string().contains("60 tracking bits"));
}

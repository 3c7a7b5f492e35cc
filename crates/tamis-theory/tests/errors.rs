//! Any arguments return a number or a typed error, never a panic.

use proptest::prelude::*;
use tamis_theory::balanced::Lookup;
use tamis_theory::balanced::absorbing::{self, Refuse};
use tamis_theory::balanced::list::{self, Scheme};
use tamis_theory::balanced::returned::{self, Place};
use tamis_theory::bound::Bound;
use tamis_theory::crisis::{self, Occupancy};
use tamis_theory::summary::{self, Filter, Goal};
use tamis_theory::tinyset::Block;
use tamis_theory::{
    Error, block, blocked, dynamics, multilevel, sequential, single, standard,
    variance,
};

/// Numbers out of range, and a few within it.
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
        // Small cases only: the integration takes long.
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

/// The message is in words, without the spelling of the signature.
fn assert_words(error: Error) {
    let message = error.to_string();
    assert!(message.contains(" must be "), "{message}");
    assert!(message.contains(", found "), "{message}");
    assert!(!message.contains('_'), "{message}");
}

#[test]
fn messages_state_the_expected_range_and_the_value_found() {
    for (error, message) in [
        (
            standard::for_fpr(2.0).unwrap_err(),
            "false-positive rate must be between 1e-15 and 0.999999999, \
             found 2",
        ),
        (
            standard::for_fpr(1e-300).unwrap_err(),
            "false-positive rate must be between 1e-15 and 0.999999999, \
             found 1e-300",
        ),
        (
            blocked::predict(512, f64::INFINITY, 7).unwrap_err(),
            "bits per key must be between 0.5 and 1000, found infinity",
        ),
        (
            blocked::predict_finite(512, 10, 0, 7).unwrap_err(),
            "items must be between 1 and 1.84467441e19, found 0",
        ),
        (
            blocked::predict(500, 10.0, 7).unwrap_err(),
            "bits per block must be a power of two from 64 to 4096, found \
             500",
        ),
        (
            Bound::new(0.9, 8.0, 0.05).unwrap_err(),
            "access budget and overflow fraction must sum to at least 1, \
             found 0.9 and 0.05",
        ),
        (
            multilevel::run(8.0, &[], 8, 0.5).unwrap_err(),
            "level shares must be 1 to 16 positive numbers that sum to 1, \
             found 0 that sum to 0",
        ),
        (
            summary::level_bits(&[2.0, 1.0], 0.0).unwrap_err(),
            "failures must be positive, found 0",
        ),
    ] {
        assert_eq!(error.to_string(), message);
    }
    let line = Block::new(512, 64);
    assert_eq!(
        line.load(f64::NAN).unwrap_err().to_string(),
        "bits per key must be between 0.5 and 1000, found NaN"
    );
    let error = blocked::for_fpr(64, 1e-12).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "no design reaches a false-positive rate of 1e-12: the lowest is \
             4."
        ),
        "{error}"
    );
    assert!(error.contains("at 1000 bits per key"), "{error}");
}

#[test]
fn errors_name_the_argument() {
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
        assert_words(error);
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

/// Numbers of items and buckets, within the range and outside.
fn wild_count() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..4,
        0u64..3000,
        prop::sample::select(vec![1 << 50, (1 << 50) + 1, u64::MAX]),
    ]
}

fn chance(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn table_formulas(
        n in wild_count(), x in wild(), y in wild(), i in wild_integer(),
        levels in prop::collection::vec(wild_count(), 0..18),
        passed_on in prop::collection::vec(wild(), 0..5),
    ) {
        // Few random sequences fall, which the functions require.
        let mut falling = passed_on.clone();
        falling.sort_by(|a, b| b.total_cmp(a));
        for bad in [
            is_nan(crisis::overflow_fraction(i, x)),
            is_nan(crisis::erlang_b(i, x)),
            is_nan(crisis::churn(n, &levels, i).map(|c| c.crises_per_turnover)),
            is_nan(
                crisis::heuristic(n, &levels, i).map(|l| l.iter().sum())
            ),
            is_nan(summary::level_bits(&passed_on, x)),
            is_nan(summary::level_bits(&falling, x)),
            is_nan(summary::level_bits_with_exceptions(&passed_on)),
            is_nan(summary::level_bits_with_exceptions(&falling)),
            is_nan(summary::lower_bound(&passed_on, y)),
            is_nan(summary::lower_bound(&falling, y)),
        ] {
            prop_assert!(!bad);
        }
        for filter in [
            Filter::Bloom { cells: n, probes: i },
            Filter::HashList { bits: i },
        ] {
            for items in [0.0, 1.0, 100.0] {
                let hit = filter.hit(items);
                prop_assert!(chance(hit), "{filter:?} {items} {hit}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Small tables of any shape: full, overfull, of one bucket.
    #[test]
    fn tables(
        items in 0u64..400, bucket in 0u32..12, bits in 0u32..140,
        levels in prop::collection::vec(
            prop_oneof![0u64..6, 1u64..200, 1u64..100_000], 0..5),
        cells in 0u64..5000, probes in 0u32..70,
    ) {
        let Ok(table) = Occupancy::new(items, &levels, bucket) else {
            let bad = items == 0 || bucket == 0 || levels.is_empty();
            prop_assert!(bad || levels.contains(&0));
            return Ok(());
        };
        prop_assert!(chance(table.crisis()), "{table:?}");
        let room: u64 = levels.iter().sum::<u64>() * u64::from(bucket);
        if items > room {
            prop_assert!(table.crisis() > 1.0 - 1e-9, "{table:?}");
        }
        let all = table.passed_on();
        prop_assert_eq!(all.len(), levels.len() + 1);
        for pair in all.windows(2) {
            prop_assert!(pair[1] >= 0.0 && pair[1] <= pair[0] * (1.0 + 1e-9));
        }
        prop_assert!(all[levels.len()] >= table.crisis() * (1.0 - 1e-6));
        prop_assert!(table.reads_hit() >= 1.0 && table.reads_miss() >= 1.0);
        let filter = Filter::Bloom { cells, probes };
        let stack = vec![filter; levels.len()];
        for found in [
            summary::interpolation(&table, bits),
            summary::type_filter(&table, cells, probes),
            summary::filter_stack(&table, &stack),
        ].into_iter().flatten() {
            prop_assert!(chance(found.false_positive), "{found:?}");
            let most = items as f64 * (1.0 + 1e-9);
            prop_assert!((0.0..=most).contains(&found.failure), "{found:?}");
        }
    }

    #[test]
    fn goals(
        items in 0u64..300, x in wild(), y in wild(), z in wild(),
        choices in prop::option::of(0u32..5),
    ) {
        for goal in [
            Goal { choices, budget: y, ..Goal::new(items, x) },
            Goal { choices, max_false_positive: z, ..Goal::new(items, 3.0) },
        ] {
            if let Ok(found) = summary::optimise(goal) {
                let stack = found.filter_stack;
                let wrong = stack.crisis + stack.prediction.failure;
                prop_assert!(wrong <= goal.budget);
            }
        }
    }
}

#[test]
fn errors_of_tables_name_the_argument() {
    for (error, name) in [
        (Occupancy::new(0, &[1], 1).err(), "items"),
        (Occupancy::new(1, &[1], 0).err(), "bucket"),
        (crisis::least_crisis(9, 2, 3, 1).err(), "buckets"),
        (crisis::fewest_buckets(9, 0, 1, 0.1).err(), "choices"),
        (crisis::fewest_buckets(9, 2, 1, 0.0).err(), "budget"),
        (crisis::erlang_b(1, f64::NAN).err(), "arrivals"),
        (summary::lower_bound(&[2.0, 1.0], 0.0).err(), "false_positive"),
    ] {
        let Some(Error::OutOfRange { name: got, .. }) = error else {
            panic!("{name}: {error:?}");
        };
        assert_eq!(got, name);
        error.into_iter().for_each(assert_words);
    }
    for levels in [&[][..], &[3, 0], &[u64::MAX], &[1; 17]] {
        let error = Occupancy::new(5, levels, 1).unwrap_err();
        let count = levels.len();
        assert!(
            matches!(error, Error::Levels { levels, .. } if levels == count)
        );
        assert!(error.to_string().contains("levels"));
    }
    let table = Occupancy::new(5, &[9, 3], 1).unwrap();
    let filter = Filter::HashList { bits: 9 };
    let error = summary::filter_stack(&table, &[filter]).unwrap_err();
    assert_eq!(error, Error::Filters { filters: 1, levels: 2 });
    let error = summary::level_bits(&[1.0, 2.0], 0.1).unwrap_err();
    assert_eq!(error, Error::PassedOn { levels: 2 });
    let endless = [f64::INFINITY, 15.0, 0.0];
    let error = summary::level_bits(&endless, 0.1).unwrap_err();
    assert_eq!(error, Error::PassedOn { levels: 3 });
}

//! Properties of the bound, the schemes and the balanced filters.

use proptest::prelude::*;
use tamis_theory::balanced::Lookup;
use tamis_theory::balanced::absorbing::{self, Refuse};
use tamis_theory::balanced::list::{self, Scheme};
use tamis_theory::balanced::returned::{self, Place};
use tamis_theory::bound::Bound;
use tamis_theory::{Error, multilevel, sequential, single};

/// Reads, load and an overflow that is feasible with them.
fn feasible() -> impl Strategy<Value = (f64, f64, f64)> {
    (0.4f64..5.0, -3.0f64..7.0, 0.0f64..0.6)
        .prop_map(|(a, log_r, gamma)| (a, log_r.exp(), gamma.max(1.0 - a)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_bound_is_a_distribution((a, r, gamma) in feasible()) {
        let bound = Bound::new(a, r, gamma)?;
        let loads = bound.distribution();
        let chance = |p: &f64| (0.0..=1.0).contains(p);
        prop_assert!(loads.as_slice().iter().all(chance));
        prop_assert!((loads.at_least(0) - 1.0).abs() < 1e-11);
        let mean = r * (1.0 - gamma);
        prop_assert!((loads.mean() - mean).abs() < 1e-10 * r.max(1.0));
        prop_assert!(chance(&bound.admission()));
        prop_assert!(bound.refuses() <= bound.full() + 1e-15);
    }

    #[test]
    fn the_bound_falls_with_reads_and_overflow(
        (a, r, gamma) in feasible(),
        more in 0.0f64..0.3,
        base in 1.0f64..1.3,
    ) {
        let costs = |a, gamma| -> Result<[f64; 2], Error> {
            let bound = Bound::new(a, r, gamma)?;
            let loads = bound.distribution();
            // Two convex costs: a square, and a power that continues as a
            // line.
            let power = |i: usize| {
                let (bent, rest) = (i.min(100), i.saturating_sub(100));
                let end = base.powi(100);
                base.powi(bent as i32) + rest as f64 * end * base.ln() * 2.0
            };
            Ok([loads.cost(|i| (i * i) as f64), loads.cost(power)])
        };
        let here = costs(a, gamma)?;
        for there in [costs(a + more, gamma)?, costs(a, gamma + more)?] {
            for (x, y) in there.iter().zip(here) {
                prop_assert!(*x <= y * (1.0 + 1e-9) + 1e-12, "{x} {y}");
            }
        }
    }

    #[test]
    fn the_admission_reaches_the_bound((a, r, gamma) in feasible()) {
        let bound = Bound::new(a, r, gamma)?;
        if let Some(threshold) = bound.threshold() {
            let run = single::fractions(a * r, threshold, bound.admission())?;
            let pairs = run.as_slice().iter();
            for (x, y) in pairs.zip(bound.distribution().as_slice()) {
                prop_assert!((x - y).abs() < 1e-11, "{x} {y}");
            }
        }
    }

    #[test]
    fn levels_use_all_blocks_and_all_reads(
        r in 0.1f64..200.0,
        d in 2u32..8,
        part in 0.001f64..0.9,
    ) {
        let a = 1.0 + part * f64::from(d - 1);
        let (levels, bound) = multilevel::optimal(a, r, d)?;
        let sum: f64 = levels.level_shares.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-12);
        let h = bound.threshold().unwrap();
        let p = bound.admission();
        let run = multilevel::run(r, &levels.level_shares, h, p)?;
        prop_assert!((run.access_budget - a).abs() < 1e-9);
        let gap = run.overflow_fraction - levels.overflow_fraction;
        prop_assert!(gap.abs() < 1e-9);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sequential_reaches_the_bound(
        r in 0.1f64..100.0,
        d in 2u32..6,
        part in 0.001f64..0.8,
    ) {
        let a = 1.0 + part * f64::from(d - 1);
        let run = sequential::optimal(a, r, d)?;
        let bound = Bound::new(a, r, run.overflow_fraction)?;
        let pairs = run.distribution.as_slice().iter();
        for (x, y) in pairs.zip(bound.distribution().as_slice()) {
            prop_assert!((x - y).abs() < 1e-9, "{x} {y}");
        }
        let least = multilevel::boundary(a, d)?.overflow_fraction;
        prop_assert!(run.overflow_fraction >= least - 1e-9);
    }

    #[test]
    fn coin_and_tracking_bits_save_reads(
        log_bits in 6u32..=10,
        beta in 6.0f64..60.0,
        d in 2u32..5,
        part in 0.01f64..0.5,
        t in 1u32..=16,
        probes in 1u32..=32,
    ) {
        let bits = 1 << log_bits;
        let access_budget = 1.0 + part * f64::from(d - 1);
        for scheme in [
            Scheme::Multilevel { access_budget, choices: d },
            Scheme::Sequential { access_budget, choices: d },
        ] {
            let [plain, coin, track] =
                [Lookup::Plain, Lookup::Coin, Lookup::Tracking(t)]
                    .map(|l| list::predict(bits, beta, scheme, l, probes));
            let (plain, coin, track) = (plain?, coin?, track?);
            prop_assert!(coin.go_on <= plain.go_on + 1e-12);
            prop_assert!(track.go_on <= plain.go_on + 1e-12);
            let most = plain.prediction.fpr * (1.0 + 1e-12);
            prop_assert!(coin.prediction.fpr <= most);
            for p in [plain, coin, track] {
                let limit = p.summed.fpr * (1.0 + 1e-12);
                prop_assert!(p.prediction.fpr <= limit);
                prop_assert!(p.prediction.reads_miss <= f64::from(d));
                prop_assert!(p.prediction.reads_miss >= 1.0);
            }
        }
    }

    #[test]
    fn absorbing_levels_keep_every_key(
        beta in 6.0f64..50.0,
        parts in prop::collection::vec(0.05f64..1.0, 1..5),
        probes in 1u32..=32,
        at in 0.8f64..1.6,
        t in 0u32..16,
    ) {
        let sum: f64 = parts.iter().sum();
        let shares: Vec<f64> = parts.iter().map(|x| x / sum).collect();
        let r = 256.0 / beta;
        let h = (r * at) as u32;
        let set = 256.0 * (1.0 - (-f64::from(h * probes) / 256.0).exp());
        for refuse in [
            Refuse::Counter(h),
            Refuse::BuildCounter(h),
            Refuse::Popcount(set as u32),
        ] {
            let t = t.max(u32::from(refuse == Refuse::BuildCounter(h)));
            let p = absorbing::predict(256, beta, &shares, refuse, probes, t)?;
            let kept: f64 = p.arrivals.iter().zip(&p.refused).zip(&shares)
                .map(|((n, refused), share)| n * (1.0 - refused) * share)
                .sum();
            prop_assert!((kept / r - 1.0).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&p.prediction.fpr));
            let levels = shares.len() as f64;
            prop_assert!(p.prediction.reads_miss <= levels + 1e-12);
            prop_assert!(p.prediction.reads_hit <= levels + 1e-12);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn returned_keys_are_not_lost(
        beta in 8.0f64..50.0,
        a in 1.02f64..1.4,
        probes in 4u32..20,
        t in 1u32..16,
    ) {
        let scheme = Scheme::Multilevel { access_budget: a, choices: 3 };
        for lookup in [Lookup::Plain, Lookup::Coin, Lookup::Tracking(t)] {
            let listed = list::predict(256, beta, scheme, lookup, probes)?;
            for place in [Place::First, Place::Random, Place::Last] {
                let p = returned::predict(
                    256, beta, a, 3, place, lookup, probes,
                )?;
                // A returned key sets no mark, so tracking may gain.
                if !matches!(lookup, Lookup::Tracking(_)) {
                    let least = listed.prediction.fpr * (1.0 - 1e-9);
                    prop_assert!(p.prediction.fpr >= least);
                }
                prop_assert!((p.access_budget - a).abs() < 0.02);
                let most = p.access_budget + 1e-9;
                prop_assert!(p.prediction.reads_hit <= most);
                let mean: f64 = p.distributions.iter()
                    .zip(&p.level_shares)
                    .map(|(loads, share)| loads.mean() * share)
                    .sum();
                prop_assert!((mean * beta / 256.0 - 1.0).abs() < 1e-7);
                for loads in &p.distributions {
                    prop_assert!((loads.at_least(0) - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}

#[test]
fn limits_of_the_bound() {
    // Without surplus the loads are Poisson.
    for (a, gamma) in [(1.0, 0.0), (0.9, 0.1), (0.3, 0.7)] {
        let bound = Bound::new(a, 8.0, gamma).unwrap();
        assert_eq!(bound.threshold(), None, "{a} {gamma}");
        assert!((bound.distribution().variance() - 8.0 * a).abs() < 1e-9);
    }
    // With fewer keys than blocks the threshold is zero.
    let bound = Bound::new(1.5, 0.3, 0.1).unwrap();
    assert_eq!(bound.threshold(), Some(0));
    assert_eq!(bound.e0(), 0.0);
    assert!((bound.distribution().as_slice()[1] - 0.27).abs() < 1e-12);
    // On both sides of a boundary: (h, 0) and (h - 1, 1), the same scheme.
    let edge = 0.069_491_916_623;
    let below = Bound::new(1.2, 8.0, edge - 1e-9).unwrap();
    let above = Bound::new(1.2, 8.0, edge + 1e-9).unwrap();
    assert_eq!((below.threshold(), above.threshold()), (Some(8), Some(7)));
    assert!(below.admission() < 1e-6 && above.admission() > 1.0 - 1e-6);
    let shares = [below.distribution(), above.distribution()];
    for i in 0..9 {
        let [x, y] = shares.map(|d| d.as_slice()[i]);
        assert!((x - y).abs() < 1e-6);
    }
}

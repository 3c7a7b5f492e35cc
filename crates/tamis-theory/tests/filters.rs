//! Standard, blocked and split filters against independent reference values.

mod support;

use proptest::prelude::*;
use support::{Tally, integer, number, reference};
use tamis_theory::{Error, MAX_PROBES, blocked, split, standard};

#[test]
fn best_filters_of_512_bits() {
    let mut tally = Tally::default();
    for row in reference("tuned") {
        let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
        let blocked = blocked::best(bits, beta).unwrap();
        tally.same("blocked", blocked.fpr, &row["blocked"]);
        tally.equal("blocked k", blocked.probes, &row["blocked_k"]);
        let probes = integer(&row["rocksdb_k"]);
        let other = blocked::predict(bits, beta, probes).unwrap();
        tally.same("other k", other.fpr, &row["blocked_rocksdb_k"]);
        let classic = standard::best(beta).unwrap();
        tally.same("standard", classic.fpr, &row["standard"]);
        tally.equal("standard k", classic.probes, &row["standard_k"]);
        tally.same("reads", classic.reads_miss, &row["standard_reads"]);
        let split = split::best(bits, beta).unwrap();
        tally.same("split", split.fpr, &row["split2"]);
        tally.same("reads", split.reads_miss, &row["split2_reads"]);
        let halves = support::numbers(&row["split2_k"]);
        assert_eq!(f64::from(split.probes), halves[0] + halves[1]);
    }
    assert_eq!(tally.0, 8 * 8);
}

#[test]
fn best_filters_of_smaller_blocks() {
    let mut tally = Tally::default();
    for row in reference("tuned_small_blocks") {
        let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
        let blocked = blocked::best(bits, beta).unwrap();
        tally.same("blocked", blocked.fpr, &row["blocked"]);
        let split = split::best(bits, beta).unwrap();
        tally.same("split", split.fpr, &row["split2"]);
        // One reference row has the smaller half first: the rate is the
        // same, but more non-members read the second block.
        let swapped = 1.0 + split.fpr / (split.reads_miss - 1.0);
        let reads = if (bits, beta) == (128, 8.0) {
            assert!(split.reads_miss < swapped);
            swapped
        } else {
            split.reads_miss
        };
        tally.same("reads", reads, &row["split2_reads"]);
    }
    for row in reference("best_k") {
        let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
        let blocked = blocked::best(bits, beta).unwrap();
        tally.same("blocked", blocked.fpr, &row["blocked_best"]);
        tally.equal("blocked k", blocked.probes, &row["blocked_best_k"]);
    }
    assert_eq!(tally.0, 15 * 3 + 14 * 2);
}

#[test]
fn filters_at_a_given_number_of_probes() {
    let mut tally = Tally::default();
    for row in reference("fpr") {
        let (bits, beta) = (integer(&row["B"]), number(&row["beta"]));
        let probes = integer(&row["k"]);
        let blocked = blocked::predict(bits, beta, probes).unwrap();
        tally.same("blocked", blocked.fpr, &row["fpr_blocked"]);
        let classic = standard::predict(beta, probes).unwrap();
        tally.same("standard", classic.fpr, &row["fpr_standard"]);
        let reads = &row["standard_reads_early_exit"];
        tally.same("reads", classic.reads_miss, reads);
    }
    assert_eq!(tally.0, 24 * 3);
}

#[test]
fn large_finite_filters_reach_the_limit() {
    for probes in [2, 5, 8, 13] {
        let many = 1 << 30;
        let limit = blocked::predict(512, 16.0, probes).unwrap();
        let finite =
            blocked::predict_finite(512, many, 32 * many, probes).unwrap();
        assert!((finite.fpr / limit.fpr - 1.0).abs() < 1e-6);
        let limit = split::predict(512, 16.0, probes).unwrap();
        let finite =
            split::predict_finite(512, many, 32 * many, probes).unwrap();
        assert!((finite.fpr / limit.fpr - 1.0).abs() < 1e-6);
        assert!((finite.reads_miss / limit.reads_miss - 1.0).abs() < 1e-6);
    }
}

#[test]
fn for_fpr_finds_the_least_memory() {
    for target in [0.9, 0.3, 0.01, 1e-3, 1e-6, 1e-9, 1e-12] {
        for bits in [64, 256, 512, 4096] {
            for (found, best) in [
                (
                    blocked::for_fpr(bits, target),
                    blocked::best as fn(_, _) -> _,
                ),
                (split::for_fpr(bits, target), split::best),
                (standard::for_fpr(target), |_, beta| standard::best(beta)),
            ] {
                let Ok(found) = found else {
                    assert!(bits == 64 && target < 1e-8);
                    assert!(best(bits, 1000.0).unwrap().fpr > target);
                    continue;
                };
                assert!(found.fpr <= target);
                let less = found.bits_per_key * (1.0 - 1e-6);
                if less > 0.5 {
                    assert!(best(bits, less).unwrap().fpr > target);
                }
            }
        }
    }
}

#[test]
fn an_unreachable_rate_is_an_error() {
    let error = blocked::for_fpr(64, 1e-15).unwrap_err();
    let Error::Unreachable { target, best, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(target, 1e-15);
    assert_eq!(best, blocked::best(64, 1000.0).unwrap().fpr);
    assert!(best > target);
}

proptest! {
    #[test]
    fn rates_fall_with_memory(
        log_bits in 6u32..=12,
        beta in 0.5f64..200.0,
        probes in 2..=MAX_PROBES,
    ) {
        let bits = 1 << log_bits;
        let more = beta * 1.01;
        for (p, q) in [
            (blocked::predict(bits, beta, probes)?,
             blocked::predict(bits, more, probes)?),
            (split::predict(bits, beta, probes)?,
             split::predict(bits, more, probes)?),
            (standard::predict(beta, probes)?,
             standard::predict(more, probes)?),
        ] {
            prop_assert!(p.fpr > 0.0 && p.fpr <= 1.0);
            prop_assert!(q.fpr <= p.fpr * (1.0 + 1e-10));
            prop_assert!(p.reads_miss >= 1.0);
            prop_assert!(p.reads_miss <= p.reads_hit);
        }
    }

    #[test]
    fn arguments_out_of_range_are_errors(
        bits in any::<u32>(),
        beta in any::<f64>(),
        probes in any::<u32>(),
        blocks in any::<u64>(),
        items in any::<u64>(),
    ) {
        let valid = bits.is_power_of_two() && (64..=4096).contains(&bits);
        let beta_valid = (0.5..=1000.0).contains(&beta);
        let ok = valid && beta_valid && (1..=MAX_PROBES).contains(&probes);
        prop_assert_eq!(blocked::predict(bits, beta, probes).is_ok(), ok);
        prop_assert_eq!(
            split::predict(bits, beta, probes).is_ok(), ok && probes > 1
        );
        prop_assert_eq!(standard::best(beta).is_ok(), beta_valid);
        prop_assert_eq!(blocked::best(512, beta).is_ok(), beta_valid);
        prop_assert_eq!(split::best(512, beta).is_ok(), beta_valid);
        let _ = blocked::predict_finite(512, blocks, items, probes);
        let _ = split::predict_finite(512, blocks, items, probes);
        let _ = standard::for_fpr(beta);
        let _ = blocked::for_fpr(256, beta);
        let _ = split::for_fpr(256, beta);
    }
}

#[test]
fn errors_name_the_number_out_of_range() {
    for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY, -1.0, 0.0] {
        for error in [
            standard::predict(bad, 7).unwrap_err(),
            blocked::predict(512, bad, 7).unwrap_err(),
            split::best(512, bad).unwrap_err(),
        ] {
            let name = "bits_per_key";
            assert!(
                matches!(error, Error::OutOfRange { name: n, .. } if n == name)
            );
        }
        for error in [
            standard::for_fpr(bad).unwrap_err(),
            blocked::for_fpr(512, bad).unwrap_err(),
            split::for_fpr(512, bad).unwrap_err(),
        ] {
            assert!(matches!(error, Error::OutOfRange { name: "target", .. }));
        }
    }
    assert!(blocked::predict_finite(512, 10, 0, 7).is_err());
    assert!(blocked::predict_finite(512, 0, 10, 7).is_err());
    assert_eq!(
        blocked::predict(500, 10.0, 7),
        Err(Error::BlockBits { block_bits: 500 })
    );
}

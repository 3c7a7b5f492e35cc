//! The same distributions by other methods.

use alloc::vec::Vec;

use super::super::last::mean_excess;
use super::super::occupancy;
use super::*;

/// Asserts that contour integrals and item by item agree.
fn assert_agrees_with_item_by_item(items: usize, buckets: u64, next: u64) {
    let all = Load { first: items, chance: alloc::vec![1.0] };
    let (one, two) = (occupancy::pass(&all, buckets), pass(&all, buckets, 1));
    one.assert_same(&two, 1e-8);
    // With random arrivals.
    let law = one.law();
    let (one, two) = (occupancy::pass(&law, next), pass(&law, next, 1));
    one.assert_same(&two, 1e-8);
}

#[test]
fn chances_sum_to_one() {
    for (items, buckets, bucket) in [
        (5, 2, 2),
        (70, 3, 4),
        (20_000, 1355, 16),
        (40_000, 517, 64),
        (1_000_000, 100_000, 8),
    ] {
        let all = Load { first: items, chance: alloc::vec![1.0] };
        let passed = pass(&all, buckets, bucket);
        let total: f64 = passed.law().chance.iter().sum();
        let mean = mean_excess(items, buckets, bucket);
        let gap = passed.mean() / mean - 1.0;
        assert!((total - 1.0).abs() < 1e-9, "{items}: {total}");
        assert!(gap.abs() < 1e-9, "{items}: {gap}");
    }
}

#[test]
fn random_arrivals_have_the_exact_mean() {
    for (items, levels, bucket) in [
        (1000, [130, 35, 5], 8),
        (1000, [118, 35, 10], 8),
        (2000, [400, 100, 300], 4),
        (100_000, [11_203, 3360, 1008], 8),
    ] {
        let mut law = Load { first: items, chance: alloc::vec![1.0] };
        for buckets in levels {
            let passed = pass(&law, buckets, bucket);
            let each = (law.first..).zip(&law.chance);
            let mean: f64 =
                each.map(|(a, p)| p * mean_excess(a, buckets, bucket)).sum();
            let gap = passed.mean() / mean - 1.0;
            assert!(gap.abs() < 1e-9, "{buckets}: {gap}");
            law = passed.law();
        }
    }
}

/// Convolution of one bucket after another, in arrivals and items passed on.
fn bucket_by_bucket(items: usize, buckets: u64, bucket: u32) -> Passed {
    let h = bucket as usize;
    let mean = items as f64 / buckets as f64;
    let top = (mean + 14.0 * libm::sqrt(mean) + 40.0) as usize;
    let poisson: Vec<f64> = (0..=top.min(items))
        .map(|i| {
            let n = i as f64;
            let log = n * libm::log(mean) - mean - libm::lgamma(n + 1.0);
            libm::exp(log)
        })
        .collect();
    let mut law = alloc::vec![alloc::vec![1.0]];
    for _ in 0..buckets {
        let most = (law.len() + poisson.len() - 2).min(items);
        let mut next = alloc::vec![Vec::new(); most + 1];
        for (a, passed) in law.iter().enumerate() {
            for (i, p) in poisson.iter().enumerate() {
                let Some(to) = next.get_mut(a + i) else { break };
                let more = i.saturating_sub(h);
                let len = to.len().max(passed.len() + more);
                to.resize(len, 0.0);
                for (sum, q) in to[more..].iter_mut().zip(passed) {
                    *sum += p * q;
                }
            }
        }
        law = next;
    }
    let n = items as f64;
    let all = n * libm::log(n) - n - libm::lgamma(n + 1.0);
    let scale = libm::exp(-all);
    let values: Vec<[f64; 2]> =
        law[items].iter().map(|p| [p * scale, p * scale * n]).collect();
    let mut passed = Passed::zeros(0, 0);
    passed.add_patch(0, &values);
    passed.trimmed()
}

#[test]
fn agrees_with_bucket_by_bucket() {
    for (items, buckets, bucket) in [
        (40, 6, 8),
        (70, 10, 8),
        (150, 35, 8),
        (180, 40, 2),
        (200, 3, 64),
        (300, 12, 32),
        (500, 500, 2),
    ] {
        let all = Load { first: items, chance: alloc::vec![1.0] };
        let expected = bucket_by_bucket(items, buckets, bucket);
        expected.assert_same(&pass(&all, buckets, bucket), 1e-9);
    }
}

#[test]
fn agrees_with_item_by_item() {
    for (items, buckets, next) in [
        (3, 2, 2),
        (10, 100, 3),
        (100, 190, 65),
        (1000, 1900, 650),
        (1000, 300, 2000),
        (5000, 100_000, 10),
        (8000, 9000, 500),
    ] {
        assert_agrees_with_item_by_item(items, buckets, next);
    }
}

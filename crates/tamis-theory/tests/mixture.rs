//! Theorem 2 against a simulation of its offline setting, and against the
//! schemes that it bounds.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use support::Random;
use tamis_theory::bound::Bound;
use tamis_theory::mixture::{self, Hashes};
use tamis_theory::multilevel;

const BLOCKS: usize = 200_000;
/// The two-sided 99.9 % quantile of the normal distribution.
const Z: f64 = 3.2905;

/// The index of `u` in a distribution.
fn draw(chances: &[f64], mut u: f64) -> usize {
    for (i, chance) in chances.iter().enumerate() {
        u -= chance;
        if u < 0.0 {
            return i;
        }
    }
    chances.len() - 1
}

/// Throws a n keys at the blocks by the hashes, removes (a - 1 + gamma) n of
/// them one by one from the fullest block, and returns the blocks by load.
fn offline(
    (access_budget, load, overflow): (f64, f64, f64),
    classes: &[f64],
    hashes: &[Hashes],
    seed: u64,
) -> Vec<u64> {
    let mut random = Random(seed);
    let reads: Vec<f64> = hashes.iter().map(|hash| hash.reads).collect();
    let mut ends = vec![0usize];
    for share in classes {
        let next = ends[ends.len() - 1] as f64 + share * BLOCKS as f64;
        ends.push(next.round() as usize);
    }
    let keys = load * BLOCKS as f64;
    let mut loads = vec![0usize; BLOCKS];
    for _ in 0..(access_budget * keys) as u64 {
        let hash = draw(&reads, random.chance());
        let class = draw(&hashes[hash].classes, random.chance());
        let (from, to) = (ends[class], ends[class + 1]);
        loads[from + random.below(to - from)] += 1;
    }
    let mut blocks = vec![0u64; loads.iter().max().unwrap() + 2];
    loads.iter().for_each(|&load| blocks[load] += 1);
    let mut fullest = blocks.len() - 1;
    for _ in 0..((access_budget - 1.0 + overflow) * keys) as u64 {
        while blocks[fullest] == 0 {
            fullest -= 1;
        }
        blocks[fullest] -= 1;
        blocks[fullest - 1] += 1;
    }
    blocks
}

#[test]
fn the_offline_removal_is_simulated() {
    let uniform = [
        Hashes { reads: 0.5, classes: vec![0.9, 0.1, 0.0] },
        Hashes { reads: 0.3, classes: vec![0.1, 0.5, 0.4] },
        Hashes { reads: 0.2, classes: vec![0.1, 0.5, 0.4] },
    ];
    let skewed = [
        Hashes { reads: 0.7, classes: vec![0.6, 0.4, 0.0] },
        Hashes { reads: 0.3, classes: vec![0.2, 0.3, 0.5] },
    ];
    type Case<'a> = (&'a [Hashes], [f64; 3], bool);
    let cases: [Case; 2] =
        [(&uniform, [0.5, 0.3, 0.2], true), (&skewed, [0.5, 0.3, 0.2], false)];
    for (hashes, classes, is_uniform) in cases {
        for (a, load, gamma) in
            [(1.2, 8.0, 0.005), (1.05, 3.0, 0.0), (1.0, 8.0, 0.05)]
        {
            let mixed =
                mixture::bound(a, load, gamma, &classes, hashes).unwrap();
            assert_eq!(mixed.is_uniform(), is_uniform, "{:?}", mixed.rates);
            let kept = (1.0 - gamma) * load;
            assert!((mixed.distribution.mean() - kept).abs() < 1e-9);
            let seen = offline((a, load, gamma), &classes, hashes, 7);
            let k0 = mixed.threshold.unwrap() as usize;
            let blocks = BLOCKS as f64;
            let predicted = mixed.distribution.as_slice();
            assert!(seen.iter().skip(k0 + 2).all(|&n| n == 0), "{seen:?}");
            for (i, &share) in predicted.iter().enumerate() {
                let got = seen.get(i).copied().unwrap_or(0) as f64 / blocks;
                // The number of keys is fixed, so the two fullest loads vary
                // with the excess of all blocks, of variance below the load.
                let variance = match i < k0 {
                    true => share,
                    false => 2.0 * load,
                };
                let slack = Z * (variance / blocks).sqrt();
                assert!(
                    (got - share).abs() < slack,
                    "a {a}, load {load}, {i}: {got} instead of {share}"
                );
            }
        }
    }
}

/// A uniform mixture has the bound of Theorem 1, whatever its parts.
#[test]
fn uniform_mixtures_have_the_bound_of_theorem_1() {
    for (a, load, gamma) in
        [(1.0, 8.0, 0.01), (1.1, 8.0, 0.0), (1.2, 6.4, 0.005), (1.5, 0.3, 0.1)]
    {
        let simple = Bound::new(a, load, gamma).unwrap();
        for first in [0.1, 0.5, 0.93] {
            let classes = [first, 1.0 - first];
            let hashes = [
                Hashes { reads: first, classes: vec![1.0, 0.0] },
                Hashes { reads: 1.0 - first, classes: vec![0.0, 1.0] },
            ];
            let mixed =
                mixture::bound(a, load, gamma, &classes, &hashes).unwrap();
            assert!(mixed.is_uniform());
            assert_eq!(mixed.threshold, simple.threshold());
            let both = mixed
                .distribution
                .as_slice()
                .iter()
                .zip(simple.distribution().as_slice());
            for (one, other) in both {
                assert!((one - other).abs() < 1e-12, "{one} {other}");
            }
        }
    }
}

/// No multilevel scheme balances better than the bound for its own reads:
/// equality with the shares of Theorem 5, and a gap with others.
#[test]
fn multilevel_schemes_keep_to_their_bound() {
    let load = 8.0;
    let best = multilevel::optimal(1.2, load, 3).unwrap();
    let cases = [
        (best.0.level_shares.clone(), 8, best.1.admission(), true),
        (vec![1.0 / 3.0; 3], 8, 0.5, false),
        (vec![4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0], 8, 0.0, false),
        (vec![0.9, 0.09, 0.01], 9, 0.25, false),
    ];
    for (shares, threshold, admission, is_optimal) in cases {
        let run =
            multilevel::run(load, &shares, threshold, admission).unwrap();
        let a = run.access_budget;
        let mut reaching = 1.0;
        let hashes: Vec<Hashes> = (0..shares.len())
            .map(|level| {
                let reads = reaching / a;
                reaching *= run.levels[level].refused;
                let chance = |class| f64::from(u8::from(class == level));
                let classes = (0..shares.len()).map(chance).collect();
                Hashes { reads, classes }
            })
            .collect();
        let gamma = run.overflow_fraction;
        let mixed = mixture::bound(a, load, gamma, &shares, &hashes).unwrap();
        assert_eq!(mixed.is_uniform(), is_optimal, "{:?}", mixed.rates);
        let theorem_1 = Bound::new(a, load, gamma).unwrap();
        let cost = |phi: fn(f64) -> f64| {
            let each = [
                theorem_1.distribution(),
                &mixed.distribution,
                &run.distribution,
            ];
            each.map(|loads| loads.cost(|i| phi(i as f64)))
        };
        for phi in [
            |x| x * x,
            |x: f64| (0.7 * x).exp(),
            |x: f64| (1.0 - (-x / 32.0).exp()).powi(10),
        ] {
            let [least, bound, scheme] = cost(phi);
            let rounding = 1e-9 * scheme.abs();
            assert!(least <= bound + rounding, "{shares:?}");
            assert!(bound <= scheme + rounding, "{shares:?}");
            if is_optimal {
                assert!((scheme / least - 1.0).abs() < 1e-9);
            }
        }
        let [least, bound, _] = cost(|x| x * x);
        assert!(is_optimal || bound > least * 1.0001, "{shares:?}");
    }
}

#[test]
fn distributions_that_are_none_are_errors() {
    let good = Hashes { reads: 1.0, classes: vec![0.5, 0.5] };
    let bad = |reads, classes: &[f64]| {
        let hashes = [Hashes { reads, classes: classes.to_vec() }];
        mixture::bound(1.2, 8.0, 0.01, &[0.5, 0.5], &hashes).is_err()
    };
    assert!(bad(0.9, &[0.5, 0.5]));
    assert!(bad(1.0, &[0.5, 0.4]));
    assert!(bad(1.0, &[1.5, -0.5]));
    assert!(bad(1.0, &[f64::NAN, 1.0]));
    assert!(bad(1.0, &[1.0]));
    let none = std::slice::from_ref(&good);
    assert!(mixture::bound(0.9, 8.0, 0.0, &[0.5, 0.5], none).is_err());
    assert!(mixture::bound(1.2, 8.0, 0.0, &[0.5, 0.4], none).is_err());
    assert!(mixture::bound(1.2, 8.0, 0.0, &[0.5, 0.5], &[]).is_err());
    assert!(mixture::bound(1.0, 8.0, 0.0, &[0.5, 0.5], none).is_ok());
}

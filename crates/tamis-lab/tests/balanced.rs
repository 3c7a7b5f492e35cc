//! The Balanced Bloom Filter as printed: Fig. 1, the lookup rules, and the
//! members that the budget stop loses.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use tamis_lab::balanced::{Arrays, Filter, Lookup, Place, Rules};
use tamis_lab::baseline::Error;
use tamis_lab::simulation::{DEVIATIONS, Keys};
use tamis_theory::balanced::list;
use tamis_theory::{bound, multilevel, sequential};

/// Fig. 1: h = 3; 4, 2 and 1 blocks of 2 counter bits and 4 filter bits.
#[test]
fn figure_1_is_reproduced() {
    let mut filter = Filter::new(Rules {
        arrays: Arrays::Levels(vec![4, 2, 1]),
        threshold: 3,
        filter_bits: 4,
        probes: 1,
        ..Rules::default()
    });
    // Blocks 0 to 3 are T_1, 4 and 5 are T_2, 6 is T_3.
    let (t1, t2, t3) = (0b10, 4 + 0b01, 6);
    let mut keys = Keys::new(1).members(1 << 20);
    let mut with = |filter: &Filter, second: usize| {
        let place = |key, choice| filter.block(key, choice);
        keys.find(|&key| place(key, 0) == t1 && place(key, 1) == second)
    };
    // Three keys fill T_1[10], two more go to T_2[01].
    for expected in [0, 0, 0, 1, 1] {
        let key = with(&filter, t2).unwrap();
        assert_eq!(filter.insert(key), Ok(Place::Choice(expected)));
    }
    assert_eq!((filter.load(t1), filter.load(t2)), (3, 2));
    // y: its first block is full, the second takes it; T_3 is not read.
    let reads = filter.reads();
    let y = with(&filter, t2).unwrap();
    assert_eq!(filter.insert(y), Ok(Place::Choice(1)));
    assert_eq!(filter.reads() - reads, 2);
    assert_eq!((filter.load(t2), filter.load(t3)), (3, 0));
    // Three more of the same blocks fill T_3, and x goes to the list.
    for _ in 0..3 {
        let key = with(&filter, t2).unwrap();
        assert_eq!(filter.insert(key), Ok(Place::Choice(2)));
    }
    let x = with(&filter, t2).unwrap();
    assert_eq!(filter.insert(x), Ok(Place::Listed));
    assert!(filter.contains(x) && filter.contains(y));
    // Two counter bits suffice for loads up to 3.
    assert!(filter.loads().iter().all(|&load| load <= 3));
}

#[test]
fn a_full_list_changes_nothing() {
    let mut filter = Filter::new(Rules {
        arrays: Arrays::Levels(vec![4, 2, 1]),
        threshold: 3,
        list_capacity: Some(2),
        ..Rules::default()
    });
    let (mut kept, mut full) = (Vec::new(), 0);
    for key in Keys::new(2).members(100) {
        let (loads, listed) = (filter.loads().to_vec(), filter.listed());
        match filter.insert(key) {
            Ok(_) => kept.push(key),
            Err(error) => {
                assert_eq!(error, Error::Full);
                assert_eq!(filter.loads(), loads);
                assert_eq!(filter.listed(), listed);
                full += 1;
            }
        }
    }
    assert!(kept.len() <= 3 * 7 + 2 && full >= 77);
    assert!(kept.iter().all(|&key| filter.contains(key)));
}

/// Both rules find every member; the reads and the rate of misses are those
/// of the theory.
#[test]
fn lookup_rules_agree_with_the_theory() {
    let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
    let (levels, optimum) = multilevel::optimal(1.2, 8.0, 3).unwrap();
    let blocks = 1 << 16;
    let items = 8 * blocks;
    for (rule, theory) in [
        (Lookup::Plain, tamis_theory::balanced::Lookup::Plain),
        (Lookup::Coin, tamis_theory::balanced::Lookup::Coin),
    ] {
        let predicted = list::predict(256, 32.0, scheme, theory, 8).unwrap();
        let mut filter = Filter::new(Rules {
            arrays: Arrays::Levels(sizes(blocks, &levels.level_shares)),
            threshold: optimum.threshold().unwrap(),
            admission: optimum.admission(),
            filter_bits: predicted.payload_bits,
            probes: 8,
            lookup: rule,
            ..Rules::default()
        });
        let keys = Keys::new(3);
        for key in keys.members(items) {
            filter.insert(key).unwrap();
        }
        assert!(keys.members(items).all(|key| filter.contains(key)));
        let per_key = filter.reads() as f64 / items as f64;
        assert!((per_key - 1.2).abs() < 0.005, "{per_key}");
        let misses = 400_000;
        let (mut reads, mut found) = (0, 0.0);
        for key in keys.strangers(misses) {
            let answer = filter.look_up(key);
            reads += u64::from(answer.reads);
            found += f64::from(u8::from(answer.found));
        }
        let reads = reads as f64 / misses as f64;
        let expected = predicted.prediction.reads_miss;
        // The deviation of one lookup's reads is below 1.
        let slack = DEVIATIONS / (misses as f64).sqrt() + 0.005;
        assert!((reads - expected).abs() < slack, "{rule:?}: {reads}");
        let expected = predicted.prediction.fpr * misses as f64;
        let slack = DEVIATIONS * expected.sqrt() + 0.03 * expected;
        assert!((found - expected).abs() < slack, "{rule:?}: {found}");
    }
}

/// The stop at the budget loses the predicted share of members under the
/// paper's lookup. The product builds the same parameters and loses none.
#[test]
fn the_budget_stop_loses_members() {
    const BLOCKS: u64 = 1 << 16;
    const ITEMS: u64 = 8 * BLOCKS;
    let (a, gamma) = (1.1, 0.02);
    let inside = multilevel::inside(a, 3, gamma).unwrap();
    let best = bound::Bound::new(a, 8.0, gamma).unwrap();
    let levels = Arrays::Levels(sizes(BLOCKS, &inside.level_shares));
    let by_levels = multilevel::lost_members(a, 8.0, 3, gamma).unwrap();
    let array = Arrays::Sequential { blocks: BLOCKS, choices: 3 };
    let by_array = sequential::lost_members(a, 8.0, 3, gamma).unwrap();
    let (_, probed) = sequential::inside(a, 8.0, 3, gamma).unwrap();
    for (arrays, lost, probed) in
        [(levels, by_levels, inside.probed), (array, by_array, probed)]
    {
        assert!(lost > 0.01);
        let budget = (a * ITEMS as f64) as u64;
        let rules = Rules {
            arrays,
            threshold: best.threshold().unwrap(),
            admission: best.admission(),
            // Enough bits that no lost member is found by chance.
            filter_bits: 512,
            probes: 20,
            budget: Some(budget),
            ..Rules::default()
        };
        let keys = Keys::new(4);
        let mut filter = Filter::new(rules.clone());
        let mut unread = 0.0;
        for key in keys.members(ITEMS) {
            if filter.insert(key) == Ok(Place::Unread) {
                unread += 1.0;
            }
        }
        let missed =
            keys.members(ITEMS).filter(|&key| !filter.contains(key)).count();
        let share = missed as f64 / ITEMS as f64;
        // The end of the budget varies with the reads of all insertions.
        let slack = DEVIATIONS * (0.3 / ITEMS as f64).sqrt();
        assert!((share - lost).abs() < slack, "{share} instead of {lost}");
        let unread = unread / ITEMS as f64;
        assert!((unread - (1.0 - probed)).abs() < slack, "{unread}");
        let listed = filter.listed() as f64 / ITEMS as f64;
        assert!((listed - gamma).abs() < slack, "{listed}");
        // Without the stop no member is lost.
        let mut filter = Filter::new(Rules { budget: None, ..rules });
        for key in keys.members(ITEMS) {
            filter.insert(key).unwrap();
        }
        assert!(keys.members(ITEMS).all(|key| filter.contains(key)));
    }
}

/// Blocks of each level; the first takes the rest.
fn sizes(blocks: u64, shares: &[f64]) -> Vec<u64> {
    let mut levels: Vec<u64> =
        shares.iter().map(|share| (share * blocks as f64) as u64).collect();
    levels[0] += blocks - levels.iter().sum::<u64>();
    levels
}

//! Random legal histories beside a model.

use std::collections::BTreeMap;

use tamis_lab::baseline::{
    Baseline, Counting, DLeft, Error, Increments, VariableIncrement,
};
use tamis_lab::simulation::Keys;

/// Different keys of a history.
const UNIVERSE: u64 = 60;
const STEPS: u64 = 4000;
const SEEDS: u64 = 8;

/// Removals that undo several insertions of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    /// As many as insertions, of which a key has at most this number.
    Counted(u32),
}

/// Inserts and removes present keys. No present key is ever absent. If
/// `exact`, no counter sticks: the structure is empty in the end.
fn history(
    structure: &mut dyn Baseline,
    seed: u64,
    repeats: Repeats,
    exact: bool,
) {
    let what = format!("{} {seed}", structure.name());
    let Repeats::Counted(most) = repeats;
    let keys = Keys::new(seed);
    let mut model: BTreeMap<u64, u32> = BTreeMap::new();
    for step in 0..STEPS {
        let random = keys.stranger(step);
        let key = keys.member(random % UNIVERSE);
        let count = model.entry(key).or_default();
        // Stretches of mostly insertions and of mostly removals alternate.
        let inserts = (random >> 32) % 8 < [5, 3][(step / 500 % 2) as usize];
        if inserts && *count < most {
            structure.insert(key).unwrap_or_else(|e| panic!("{what}: {e}"));
            *count += 1;
        } else if !inserts && *count > 0 {
            structure.remove(key).unwrap_or_else(|e| panic!("{what}: {e}"));
            *count -= 1;
        }
        for (key, count) in &model {
            assert!(*count == 0 || structure.contains(*key), "{what} {step}");
        }
    }
    for (key, count) in model {
        for _ in 0..count {
            structure.remove(key).unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    }
    if exact {
        for key in keys.members(UNIVERSE) {
            assert_eq!(structure.remove(key), Err(Error::Absent), "{what}");
        }
    }
}

#[test]
fn counting_bloom_filters_keep_their_keys() {
    for seed in 0..SEEDS {
        // 300 increments of 40 counters on average 7: some stick.
        let crowded = &mut Counting::new(40, 5);
        history(crowded, seed, Repeats::Counted(3), false);
        let roomy = &mut Counting::new(1000, 5);
        history(roomy, seed, Repeats::Counted(3), true);
        let repeated = &mut Counting::new(1000, 5);
        history(repeated, seed, Repeats::Counted(40), false);
    }
}

#[test]
fn variable_increment_filters_keep_their_keys() {
    for seed in 0..SEEDS {
        for increments in [Increments::FOUR, Increments::EIGHT] {
            let filter = |size| VariableIncrement::new(size, 4, increments);
            history(&mut filter(60), seed, Repeats::Counted(3), false);
            history(&mut filter(3000), seed, Repeats::Counted(2), true);
            history(&mut filter(3000), seed, Repeats::Counted(40), false);
        }
    }
}

#[test]
fn d_left_filters_keep_their_keys() {
    for seed in 0..SEEDS {
        // 60 keys in 64 cells, of 2^7 fingerprints: many are equal.
        history(&mut DLeft::new(1, 6), seed, Repeats::Counted(3), false);
        history(&mut DLeft::new(1, 30), seed, Repeats::Counted(2), true);
        history(&mut DLeft::new(1, 30), seed, Repeats::Counted(40), false);
    }
}

//! Random legal histories beside a model.

use std::collections::BTreeMap;

use tamis_lab::baseline::{
    Baseline, Counting, DLeft, Design, Error, Extensions, FastHashTable,
    Increments, LeastLoaded, RankIndexed, SharedNodes, VariableIncrement,
};
use tamis_lab::simulation::Keys;

const STEPS: u64 = 4000;
const SEEDS: u64 = 8;

/// Keys of a history, and how a structure answers to repeats.
#[derive(Debug, Clone, Copy)]
struct History {
    /// Different keys.
    universe: u64,
    /// Insertions of a key at a time, each undone by a removal.
    repeats: u32,
    /// No counter sticks: the structure is empty in the end.
    exact: bool,
}

impl History {
    /// Few keys, inserted up to three times.
    const CROWDED: Self = Self { universe: 60, repeats: 3, exact: false };
    /// Few keys, inserted up to twice, and no counter sticks.
    const EXACT: Self = Self { universe: 60, repeats: 2, exact: true };
    /// Few keys, inserted far more often than any counter counts.
    const REPEATED: Self = Self { universe: 60, repeats: 40, exact: false };

    /// Inserts and removes present keys. No present key is ever absent.
    fn check(self, structure: &mut dyn Baseline, seed: u64) {
        let what = format!("{} {seed}", structure.name());
        let keys = Keys::new(seed);
        let mut model: BTreeMap<u64, u32> = BTreeMap::new();
        for step in 0..STEPS {
            let random = keys.stranger(step);
            let key = keys.member(random % self.universe);
            let count = model.entry(key).or_default();
            // Stretches of mostly insertions and of mostly removals.
            let share = [5, 3][(step / 500 % 2) as usize];
            let inserts = (random >> 32) % 8 < share;
            if inserts && *count < self.repeats {
                let done = structure.insert(key);
                done.unwrap_or_else(|e| panic!("{what} {step}: {e}"));
                *count += 1;
            } else if !inserts && *count > 0 {
                let done = structure.remove(key);
                done.unwrap_or_else(|e| panic!("{what} {step}: {e}"));
                *count -= 1;
            }
            if step % (self.universe / 50) == 0 {
                for (key, count) in &model {
                    let held = *count == 0 || structure.contains(*key);
                    assert!(held, "{what} {step}");
                }
            }
        }
        for (key, count) in model {
            for _ in 0..count {
                let done = structure.remove(key);
                done.unwrap_or_else(|e| panic!("{what}: {e}"));
            }
        }
        if self.exact {
            for key in keys.members(self.universe) {
                assert_eq!(
                    structure.remove(key),
                    Err(Error::Absent),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn counting_bloom_filters_keep_their_keys() {
    for seed in 0..SEEDS {
        // 40 counters hold 300 increments and more: some stick.
        History::CROWDED.check(&mut Counting::new(40, 5), seed);
        History::EXACT.check(&mut Counting::new(1000, 5), seed);
        History::REPEATED.check(&mut Counting::new(1000, 5), seed);
    }
}

#[test]
fn variable_increment_filters_keep_their_keys() {
    for seed in 0..SEEDS {
        for increments in [Increments::FOUR, Increments::EIGHT] {
            let filter = |size| VariableIncrement::new(size, 4, increments);
            History::CROWDED.check(&mut filter(60), seed);
            History::EXACT.check(&mut filter(3000), seed);
            History::REPEATED.check(&mut filter(3000), seed);
        }
    }
}

#[test]
fn d_left_filters_keep_their_keys() {
    for seed in 0..SEEDS {
        // 60 keys in 64 cells, of 2^7 fingerprints: many are equal.
        History::CROWDED.check(&mut DLeft::new(1, 6), seed);
        History::EXACT.check(&mut DLeft::new(1, 30), seed);
        History::REPEATED.check(&mut DLeft::new(1, 30), seed);
    }
}

/// A table of 256 bundles with extensions for most of them.
fn rank_indexed(fingerprint_bits: u32, counted: bool) -> RankIndexed {
    let tiers = [(2, 250), (20, 200)];
    let design = Design {
        chains: 3,
        fingerprint_bits,
        counted,
        load: 8.0,
        slots: 2,
        tiers: tiers.map(|(slots, count)| Extensions { slots, count }),
    };
    RankIndexed::new(design, 1)
}

#[test]
fn rank_indexed_tables_keep_their_keys() {
    let many = History { universe: 2500, repeats: 2, exact: true };
    for seed in 0..SEEDS {
        many.check(&mut rank_indexed(40, true), seed);
        let many = History { repeats: 3, exact: false, ..many };
        many.check(&mut rank_indexed(2, true), seed);
        History::REPEATED.check(&mut rank_indexed(10, true), seed);
    }
}

/// Structures without removal keep their keys, and refuse to remove them.
fn check_grown(structure: &mut dyn Baseline, keys: u64) {
    let what = structure.name();
    let all = Keys::new(1);
    for i in 0..keys {
        for _ in 0..=i % 3 {
            structure.insert(all.member(i)).unwrap();
        }
        let absent = structure.remove(all.member(i));
        assert_eq!(absent, Err(Error::Unsupported), "{what}");
        let present = all.member(all.stranger(i) % (i + 1));
        assert!(structure.contains(present), "{what} {i}");
    }
    for key in all.members(keys) {
        assert!(structure.contains(key), "{what}");
    }
}

#[test]
fn structures_without_removal_keep_their_keys() {
    check_grown(&mut rank_indexed(2, false), 1500);
    check_grown(&mut rank_indexed(40, false), 1000);
}

#[test]
fn fast_hash_tables_keep_their_keys() {
    // A second insertion changes nothing, so it is not counted.
    let once = History { repeats: 1, ..History::EXACT };
    for seed in 0..SEEDS {
        once.check(&mut FastHashTable::removable(60, 3), seed);
        once.check(&mut FastHashTable::removable(800, 5), seed);
        once.check(&mut SharedNodes::new(60, 3), seed);
        once.check(&mut SharedNodes::new(800, 5), seed);
    }
    check_grown(&mut FastHashTable::new(500, 4), 1000);
}

#[test]
fn least_loaded_tables_keep_their_keys() {
    for seed in 0..SEEDS {
        History::EXACT.check(&mut LeastLoaded::table(20, 3), seed);
        let many = History { repeats: 40, ..History::EXACT };
        many.check(&mut LeastLoaded::table(20, 2), seed);
    }
    check_grown(&mut LeastLoaded::filter(100, 3, 5), 1000);
}

//! Histories of all operations on every Bloom kind and geometry, compared
//! with a set.
use std::collections::BTreeSet;

use arbitrary::{Arbitrary, Unstructured};
use tamis::{AnyFilter, Blocked, Bloom, Error, KeyHasher, Shared, Split};

use crate::threads;

#[derive(Debug, Clone, Copy, PartialEq, Arbitrary)]
enum Sort {
    Bloom,
    Blocked,
    Split,
}

/// Settings of a filter. Sizes are small, so that short inputs fill it.
#[derive(Debug, Clone, Copy, PartialEq, Arbitrary)]
struct Recipe {
    sort: Sort,
    items: u16,
    bits: u8,
    probes: u8,
    wide: bool,
    keyed: bool,
    seed: u64,
}

#[derive(Debug, Arbitrary)]
enum Op {
    Insert(u16),
    InsertBatch(Vec<u16>),
    InsertParallel(Vec<u16>, u8),
    InsertParallelIter(Vec<u16>, u8),
    /// Merge with a filter of the same settings.
    MergeSame(Vec<u16>),
    /// Merge with a copy of itself.
    MergeSelf,
    /// Merge with a filter of any settings, which is usually refused.
    MergeOther(Recipe, Vec<u16>),
    Fold,
    SaveAndLoad {
        misalign: u8,
    },
    Share {
        left: Vec<u16>,
        right: Vec<u16>,
        threads: u8,
    },
    Lookup(Vec<u16>),
}

#[derive(Debug, Arbitrary)]
struct History {
    recipe: Recipe,
    ops: Vec<Op>,
}

impl Recipe {
    fn hasher(self) -> KeyHasher {
        if self.keyed {
            KeyHasher::siphash(u128::from(self.seed) << 31)
        } else {
            KeyHasher::xxh3(self.seed)
        }
    }
}

/// The filter of a recipe, unless its settings are refused.
macro_rules! build {
    ($kind:ident, $recipe:expr) => {{
        let recipe: Recipe = $recipe;
        $kind::builder()
            .items(u64::from(recipe.items) % 2048)
            // 4 to 67.75: below that the theory takes milliseconds.
            .bits_per_key(4.0 + f64::from(recipe.bits) * 0.25)
            .probes(u32::from(recipe.probes % 34))
            .block_bits(if recipe.wide { 512 } else { 256 })
            .hasher(recipe.hasher())
            .build()
            .ok()
    }};
}

fn build_any(recipe: Recipe) -> Option<AnyFilter> {
    match recipe.sort {
        Sort::Bloom => build!(Bloom, recipe).map(AnyFilter::Bloom),
        Sort::Blocked => build!(Blocked, recipe).map(AnyFilter::Blocked),
        Sort::Split => build!(Split, recipe).map(AnyFilter::Split),
    }
}

/// Saturating count, as in a filter: doubling 64 times must not wrap.
fn add(items: &mut u64, more: usize) {
    *items = items.saturating_add(more as u64);
}

/// Bytes before the blocks.
const HEADER: usize = 128;

/// One function per kind: no trait has all of the operations.
macro_rules! history {
    ($name:ident, $kind:ident) => {
        fn $name(history: History) {
            let History { recipe, ops } = history;
            let Some(mut filter) = build!($kind, recipe) else { return };
            let empty = filter.clone();
            let mut model = BTreeSet::new();
            let (mut items, mut folds) = (0u64, 0);
            for op in ops {
                match op {
                    Op::Insert(key) => {
                        let absent = !filter.contains(&key);
                        assert_eq!(filter.insert(&key), absent);
                        assert!(!absent || !model.contains(&key));
                        model.insert(key);
                        add(&mut items, 1);
                    }
                    Op::InsertBatch(keys) => {
                        filter.insert_batch(&keys);
                        add(&mut items, keys.len());
                        model.extend(keys);
                    }
                    Op::InsertParallel(keys, count) => {
                        filter.insert_parallel(&keys, threads(count));
                        add(&mut items, keys.len());
                        model.extend(keys);
                    }
                    Op::InsertParallelIter(keys, count) => {
                        let iter = keys.iter().copied();
                        filter.insert_parallel_iter(iter, threads(count));
                        add(&mut items, keys.len());
                        model.extend(keys);
                    }
                    Op::MergeSame(keys) => {
                        let mut other = empty.clone();
                        for _ in 0..folds {
                            other = other.halved().expect("folded before");
                        }
                        other.insert_batch(&keys);
                        let bytes = other.to_bytes();
                        let view = $kind::from_bytes(&bytes[..])
                            .expect("just written");
                        filter.merge_from(&view).expect("the same settings");
                        add(&mut items, keys.len());
                        model.extend(keys);
                    }
                    Op::MergeSelf => {
                        let past = filter.clone();
                        filter.merge_from(&past).expect("the same filter");
                        items = items.saturating_mul(2);
                    }
                    Op::MergeOther(other_recipe, keys) => {
                        let Some(mut other) = build_any(other_recipe) else {
                            continue;
                        };
                        other.insert_batch(&keys);
                        let before = filter.to_bytes();
                        let mut any = AnyFilter::$kind(filter);
                        match any.merge_from(&other) {
                            Ok(()) => {
                                add(&mut items, keys.len());
                                model.extend(keys);
                            }
                            Err(Error::Mismatch { ours, theirs, .. }) => {
                                assert_ne!(ours, theirs);
                                assert!(folds > 0 || recipe != other_recipe);
                                assert_eq!(any.to_bytes(), before);
                            }
                            Err(other) => panic!("{other}"),
                        }
                        let AnyFilter::$kind(back) = any else {
                            panic!("a merge changed the kind");
                        };
                        filter = back;
                    }
                    Op::Fold => {
                        let blocks = filter.block_count();
                        match filter.halved() {
                            Ok(folded) => {
                                assert_eq!(2 * folded.block_count(), blocks);
                                filter = folded;
                                folds += 1;
                            }
                            Err(Error::NotFoldable { .. }) => {
                                assert_eq!(blocks % 2, 1);
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                    Op::SaveAndLoad { misalign } => {
                        let misalign = usize::from(misalign % 64);
                        let mut buffer = vec![0; misalign];
                        buffer.extend(filter.to_bytes());
                        let view = AnyFilter::from_bytes(&buffer[misalign..])
                            .expect("just written");
                        view.verify().expect("just written");
                        assert_eq!(view.stats(), filter.stats());
                        for key in &model {
                            assert!(view.contains(key), "lost {key}");
                        }
                        assert_eq!(view.to_bytes(), &buffer[misalign..]);
                        let AnyFilter::$kind(view) = view else {
                            panic!("a file changed the kind");
                        };
                        filter = view.into_owned().expect("small");
                    }
                    Op::Share { left, right, threads: count } => {
                        let shared = Shared::from(filter);
                        let insert = |keys: &[u16]| {
                            for key in keys {
                                shared.insert(key);
                                assert!(shared.contains(key));
                            }
                        };
                        if threads(count).get() == 1 {
                            insert(&left);
                            insert(&right);
                        } else {
                            std::thread::scope(|scope| {
                                // Joins explicitly: the scope waits only for
                                // the closures, and memory that a thread
                                // frees at its end would be reported as a
                                // leak.
                                let other = scope.spawn(|| insert(&left));
                                insert(&right);
                                other.join().expect("no panic");
                            });
                        }
                        add(&mut items, left.len() + right.len());
                        assert_eq!(shared.len(), items);
                        model.extend(left);
                        model.extend(right);
                        filter = shared.into_filter();
                    }
                    Op::Lookup(keys) => {
                        let batch = filter.contains_each(&keys);
                        assert_eq!(batch.len(), keys.len());
                        for (key, found) in keys.iter().zip(batch) {
                            assert_eq!(filter.contains(key), found);
                            assert!(found || !model.contains(key));
                        }
                    }
                }
                assert_eq!(filter.len(), items);
                for key in &model {
                    assert!(filter.contains(key), "lost {key}");
                }
            }
            filter.verify().expect("never damaged");
            let all: Vec<u16> = model.iter().copied().collect();
            assert!(filter.contains_each(&all).iter().all(|&found| found));
            // The bits depend on the keys alone, not on the history.
            let mut direct = empty;
            for _ in 0..folds {
                direct = direct.halved().expect("folded before");
            }
            for key in &all {
                direct.insert(key);
            }
            let (direct, found) = (direct.to_bytes(), filter.to_bytes());
            assert_eq!(direct[HEADER..], found[HEADER..]);
        }
    };
}

history!(bloom, Bloom);
history!(blocked, Blocked);
history!(split, Split);

pub fn run(input: &[u8]) {
    let Ok(history) = History::arbitrary_take_rest(Unstructured::new(input))
    else {
        return;
    };

    match history.recipe.sort {
        Sort::Bloom => bloom(history),
        Sort::Blocked => blocked(history),
        Sort::Split => split(history),
    }
}

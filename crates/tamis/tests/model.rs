//! Every kind against a set that remembers everything.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::collections::BTreeSet;
use std::num::NonZero;

use proptest::prelude::*;
use support::{Recipe, Size, key, keys};
use tamis::{
    AnyFilter, Blocked, Bloom, Error, Filter, Fold, Insert, Merge, Persist,
    Shared, Split,
};

#[derive(Debug, Clone)]
enum Op {
    Insert(u16),
    InsertBatch(Vec<u16>),
    InsertParallel(Vec<u16>),
    MergeWith(Vec<u16>),
    Fold,
    SaveAndLoad,
    Share(Vec<u16>),
}

fn op() -> impl Strategy<Value = Op> {
    let some = || proptest::collection::vec(any::<u16>(), 0..80);
    prop_oneof![
        4 => any::<u16>().prop_map(Op::Insert),
        2 => some().prop_map(Op::InsertBatch),
        1 => some().prop_map(Op::InsertParallel),
        1 => some().prop_map(Op::MergeWith),
        1 => Just(Op::Fold),
        1 => Just(Op::SaveAndLoad),
        1 => some().prop_map(Op::Share),
    ]
}

/// Runs a history on one kind; checks membership and the count after every
/// step.
macro_rules! model_test {
    ($name:ident, $kind:ident) => {
        proptest! {
            #[test]
            fn $name(
                items in 0u64..300,
                wide: bool,
                ops in proptest::collection::vec(op(), 0..30),
            ) {
                let builder = $kind::builder()
                    .items(items)
                    .bits_per_key(12.0)
                    .block_bits(if wide { 512 } else { 256 });
                let mut filter = builder.build().unwrap();
                let mut model = BTreeSet::new();
                let mut inserted = 0;
                let two = NonZero::new(2).unwrap();
                for op in ops {
                    match op {
                        Op::Insert(key) => {
                            let absent = !filter.contains(&key);
                            let new = filter.insert(&key);
                            prop_assert_eq!(new, absent);
                            prop_assert!(!(new && model.contains(&key)));
                            model.insert(key);
                            inserted += 1;
                        }
                        Op::InsertBatch(keys) => {
                            filter.insert_batch(&keys);
                            inserted += keys.len() as u64;
                            model.extend(keys);
                        }
                        Op::InsertParallel(keys) => {
                            filter.insert_parallel(&keys, two);
                            inserted += keys.len() as u64;
                            model.extend(keys);
                        }
                        Op::MergeWith(keys) => {
                            let bytes = filter.to_bytes();
                            let mut other =
                                $kind::from_bytes(&bytes[..])
                                    .unwrap().into_owned().unwrap();
                            other.insert_batch(&keys);
                            filter.merge(&other).unwrap();
                            inserted = 2 * inserted + keys.len() as u64;
                            model.extend(keys);
                        }
                        Op::Fold => {
                            let even = filter.block_count() % 2 == 0;
                            match filter.fold() {
                                Ok(folded) => {
                                    prop_assert!(even);
                                    filter = folded;
                                }
                                Err(Error::NotFoldable { .. }) => {
                                    prop_assert!(!even);
                                }
                                Err(other) => panic!("{other}"),
                            }
                        }
                        Op::SaveAndLoad => {
                            let bytes = filter.to_bytes();
                            let view = $kind::from_bytes(&bytes[..]).unwrap();
                            view.verify().unwrap();
                            filter = view.into_owned().unwrap();
                        }
                        Op::Share(keys) => {
                            let shared = Shared::from(filter);
                            for key in &keys {
                                let absent = !shared.contains(key);
                                prop_assert_eq!(shared.insert(key), absent);
                                prop_assert!(shared.contains(key));
                            }
                            inserted += keys.len() as u64;
                            model.extend(keys);
                            filter = $kind::from(shared);
                        }
                    }
                    prop_assert_eq!(filter.stats().items, inserted);
                    for key in &model {
                        prop_assert!(filter.contains(key), "lost {}", key);
                    }
                }
                let all: Vec<u16> = (0..=u16::MAX).collect();
                let batch = filter.contains_batch(&all);
                for (key, found) in all.iter().zip(batch) {
                    prop_assert_eq!(found, filter.contains(key));
                    prop_assert!(found || !model.contains(key));
                }
                filter.verify().unwrap();
            }
        }
    };
}

model_test!(bloom_histories, Bloom);
model_test!(blocked_histories, Blocked);
model_test!(split_histories, Split);

/// Merging and folding give the bytes of a direct build.
#[test]
fn merge_and_fold_are_exact() {
    macro_rules! check {
        ($kind:ident) => {
            let all: Vec<u64> = keys(1, 20_480).collect();
            // 640 blocks, so that half of them is a size of its own too.
            let builder = $kind::builder().items(20_480).bits_per_key(16.0);
            let mut whole = builder.build().unwrap();
            whole.insert_batch(&all);
            let (mut left, mut right) =
                (builder.build().unwrap(), builder.build().unwrap());
            left.insert_batch(&all[..7_000]);
            right.insert_batch(&all[7_000..]);
            // Commutative, byte for byte.
            let mut other_way = right.clone();
            other_way.merge(&left).unwrap();
            left.merge(&right).unwrap();
            assert_eq!(left.to_bytes(), whole.to_bytes());
            assert_eq!(other_way.to_bytes(), whole.to_bytes());
            // A view merges as well as a filter in memory.
            let bytes = right.to_bytes();
            let view = $kind::from_bytes(&bytes[..]).unwrap();
            let mut third = builder.build().unwrap();
            third.insert_batch(&all[..7_000]);
            third.merge(&view).unwrap();
            assert_eq!(third.to_bytes(), whole.to_bytes());

            let mut half = builder.items(10_240).build().unwrap();
            assert_eq!(2 * half.block_count(), whole.block_count());
            half.insert_batch(&all);
            assert_eq!(whole.fold().unwrap().to_bytes(), half.to_bytes());
        };
    }
    check!(Bloom);
    check!(Blocked);
    check!(Split);
}

#[test]
fn refusals_name_the_field() {
    let base = Recipe::new(tamis::Kind::Blocked, 1000, Size::BitsPerKey(10.0));
    let recipes = [
        ("kind", Recipe { kind: tamis::Kind::Split, ..base }),
        ("blocks", Recipe { items: 2000, ..base }),
        ("block bits", Recipe { block_bits: 256, items: 500, ..base }),
        ("probes", Recipe { probes: Some(3), ..base }),
        ("hash", Recipe { hasher: tamis::KeyHasher::siphash(0), ..base }),
        ("seed", Recipe { hasher: tamis::KeyHasher::xxh3(1), ..base }),
    ];
    for (expected, recipe) in recipes {
        let mut filter = base.build().unwrap();
        filter.insert("apple");
        let before = filter.to_bytes();
        match filter.merge(&recipe.build().unwrap()) {
            Err(Error::Mismatch { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(filter.to_bytes(), before, "{expected}");
    }
    // A secret never reaches an error message.
    let secret = |key| {
        Recipe { hasher: tamis::KeyHasher::siphash(key), ..base }
            .build()
            .unwrap()
    };
    let error = secret(111_222_333).merge(&secret(444_555_666)).unwrap_err();
    assert!(!error.to_string().contains("333"), "{error}");
}

/// The same bytes from one thread, from many, from slices and iterators, in
/// batches and one by one.
#[test]
fn every_way_to_build_gives_the_same_bytes() {
    macro_rules! check {
        ($kind:ident) => {
            let all: Vec<String> =
                keys(1, 60_000).map(|key| format!("{key:x}")).collect();
            let builder = $kind::builder().items(60_000).fpr(0.01);
            let build = |fill: &dyn Fn(&mut $kind)| {
                let mut filter = builder.build().unwrap();
                fill(&mut filter);
                filter.to_bytes()
            };
            let expected = build(&|filter| {
                for key in &all {
                    filter.insert(key);
                }
            });
            assert_eq!(build(&|f| f.insert_batch(&all)), expected);
            for threads in [1, 2, 3, 8, 64] {
                let threads = NonZero::new(threads).unwrap();
                let slices = build(&|f| f.insert_parallel(&all, threads));
                assert_eq!(slices, expected, "{threads} threads");
                let iterator =
                    build(&|f| f.insert_parallel_iter(all.iter(), threads));
                assert_eq!(iterator, expected, "{threads} threads");
            }
            let shared = Shared::from(builder.build().unwrap());
            std::thread::scope(|scope| {
                for part in all.chunks(10_000) {
                    let shared = &shared;
                    scope.spawn(move || {
                        for key in part {
                            shared.insert(key);
                            assert!(shared.contains(key));
                        }
                    });
                }
            });
            assert_eq!(shared.items(), 60_000);
            assert_eq!($kind::from(shared).to_bytes(), expected);
        };
    }
    check!(Bloom);
    check!(Blocked);
    check!(Split);
}

#[test]
fn a_panicking_iterator_passes_its_panic_on() {
    let mut filter = Blocked::builder().items(9).fpr(0.1).build().unwrap();
    let keys = (0..100_000u64).inspect(|&i| assert!(i < 50_000, "stop"));
    let result =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            filter.insert_parallel_iter(keys, NonZero::new(4).unwrap());
        }));
    assert!(result.is_err());
}

#[test]
fn filters_are_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<AnyFilter>();
    shareable::<AnyFilter<&[u8]>>();
    shareable::<AnyFilter<tamis::Mapped>>();
}

#[test]
fn nonsense_arguments_are_errors() {
    let invalid = [
        Recipe::new(tamis::Kind::Blocked, 10, Size::Fpr(0.0)),
        Recipe::new(tamis::Kind::Bloom, 10, Size::Fpr(1.0)),
        Recipe::new(tamis::Kind::Split, 10, Size::Fpr(f64::NAN)),
        Recipe::new(tamis::Kind::Split, 10, Size::Fpr(-1.0)),
        Recipe::new(tamis::Kind::Blocked, 10, Size::BitsPerKey(0.0)),
        Recipe::new(tamis::Kind::Blocked, 10, Size::BitsPerKey(f64::INFINITY)),
        Recipe::new(tamis::Kind::Bloom, u64::MAX, Size::BitsPerKey(10.0)),
        Recipe::new(tamis::Kind::Bloom, 1 << 58, Size::BitsPerKey(10.0)),
    ];
    for recipe in invalid {
        assert!(recipe.build().is_err(), "{recipe:?}");
    }
    for block_bits in [0, 1, 64, 300, 1024, u32::MAX] {
        for kind in tamis::Kind::ALL {
            let recipe = Recipe::new(kind, 10, Size::Fpr(0.1));
            let recipe = Recipe { block_bits, ..recipe };
            assert!(recipe.build().is_err(), "{recipe:?}");
        }
    }
    for probes in [0, 33, u32::MAX] {
        let recipe =
            Recipe::new(tamis::Kind::Blocked, 10, Size::BitsPerKey(9.0));
        let recipe = Recipe { probes: Some(probes), ..recipe };
        assert!(recipe.build().is_err(), "{recipe:?}");
    }
    let both = Recipe::new(tamis::Kind::Blocked, 10, Size::Fpr(0.1));
    assert!(Recipe { probes: Some(3), ..both }.build().is_err());
}

/// A design that has been computed is not one for other settings.
#[test]
fn resolved_builders_refuse_changes() {
    let blocked = Blocked::builder().fpr(0.01).items(9).resolve().unwrap();
    assert!(
        blocked.items(99).hasher(tamis::KeyHasher::xxh3(1)).build().is_ok()
    );
    assert!(blocked.block_bits(256).build().is_err());
    assert!(blocked.probes(3).build().is_err());
    assert!(blocked.block_bits(256).fpr(0.01).build().is_ok());
    let balanced = tamis::Balanced::builder()
        .bits_per_key(20.0)
        .tracking_bits(8)
        .items(9)
        .resolve()
        .unwrap();
    assert!(balanced.clone().items(99).build().is_ok());
    assert!(balanced.clone().choices(2).build().is_err());
    assert!(balanced.clone().block_bits(256).build().is_err());
    assert!(balanced.max_reads_miss(1.1).build().is_err());
}

#[test]
fn batches_of_every_length_agree_with_single_lookups() {
    let filter = {
        let mut filter = Recipe::new(tamis::Kind::Split, 5000, Size::Fpr(0.2))
            .build()
            .unwrap();
        filter.insert_batch(&keys(1, 5000).collect::<Vec<_>>());
        filter
    };
    for len in [0, 1, 31, 32, 33, 63, 64, 1023, 1024, 1025, 5000] {
        let some: Vec<u64> = (0..len)
            .map(|i| if i % 2 == 0 { key(1, i) } else { key(2, i) })
            .collect();
        let batch = filter.contains_batch(&some);
        let single: Vec<bool> =
            some.iter().map(|key| filter.contains(key)).collect();
        assert_eq!(batch, single, "{len}");
    }
}

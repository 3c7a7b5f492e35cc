//! Random histories on every kind, compared with a set.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::OnceLock;

use proptest::prelude::*;
use support::{Recipe, Size, false_positives, key, keys};
use tamis::{
    AnyFilter, Blocked, Bloom, Builder, Error, FilterMut, Removal, Shared,
    Split, TinySet, inspect::Inspector,
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

/// Runs a history on one kind. Checks membership and the count after every
/// operation.
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
                            filter.merge_from(&other).unwrap();
                            inserted = 2 * inserted + keys.len() as u64;
                            model.extend(keys);
                        }
                        Op::Fold => {
                            let even = filter.block_count() % 2 == 0;
                            match filter.halved() {
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
                            filter = shared.into_filter();
                        }
                    }
                    prop_assert_eq!(filter.stats().items, inserted);
                    for key in &model {
                        prop_assert!(filter.contains(key), "lost {}", key);
                    }
                }
                let all: Vec<u16> = (0..=u16::MAX).collect();
                let batch = filter.contains_each(&all);
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

/// Bytes of a header.
const HEADER: usize = 192;

/// Storage of a key that is inserted again.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Set,
    Repeats,
    Removable,
}

#[derive(Debug, Clone)]
enum TinyOp {
    Insert(u16),
    InsertBatch(Vec<u16>),
    InsertParallel(Vec<u16>),
    /// A key as often as this, one at a time or as a batch.
    InsertCopies(u16, usize, bool),
    /// Remove one of the inserted keys.
    Remove(usize),
    /// Remove all copies of an inserted key.
    RemoveCopies(usize),
    RemoveMany(Vec<usize>),
    /// Remove keys, and insert about the same number.
    Replace(Vec<(usize, u16)>, Vec<u16>),
    /// Remove a key that may be absent.
    RemoveAbsent(u16),
    MergeWith(Vec<u16>),
    MergeSelf,
    Fold,
    Grow,
    SaveAndLoad,
    Rebuild,
}

fn tiny_op() -> impl Strategy<Value = TinyOp> {
    let some = || proptest::collection::vec(any::<u16>(), 0..80);
    let places = proptest::collection::vec(any::<usize>(), 0..80);
    let pairs = proptest::collection::vec(any::<(usize, u16)>(), 0..80);
    let few = proptest::collection::vec(any::<u16>(), 0..8);
    prop_oneof![
        4 => any::<u16>().prop_map(TinyOp::Insert),
        3 => some().prop_map(TinyOp::InsertBatch),
        1 => some().prop_map(TinyOp::InsertParallel),
        1 => (any::<u16>(), 1usize..200, any::<bool>())
            .prop_map(|(key, n, batch)| TinyOp::InsertCopies(key, n, batch)),
        4 => any::<usize>().prop_map(TinyOp::Remove),
        1 => any::<usize>().prop_map(TinyOp::RemoveCopies),
        1 => places.prop_map(TinyOp::RemoveMany),
        4 => (pairs, few).prop_map(|(pairs, few)| TinyOp::Replace(pairs, few)),
        1 => any::<u16>().prop_map(TinyOp::RemoveAbsent),
        1 => some().prop_map(TinyOp::MergeWith),
        1 => Just(TinyOp::MergeSelf),
        1 => Just(TinyOp::Fold),
        1 => Just(TinyOp::Grow),
        1 => Just(TinyOp::SaveAndLoad),
        1 => Just(TinyOp::Rebuild),
    ]
}

/// A TinySet and a multiset with the same keys.
struct Tiny {
    filter: TinySet,
    /// An empty filter with the same number of blocks.
    empty: TinySet,
    mode: Mode,
    two_level: bool,
    model: BTreeMap<u16, u64>,
    /// Insertions minus removals, as counted by the filter.
    items: u64,
}

impl Tiny {
    fn insert(&mut self, keys: &[u16]) {
        self.items += keys.len() as u64;
        for &key in keys {
            *self.model.entry(key).or_default() += 1;
        }
    }

    /// Removes one insertion of the `at`-th key.
    fn remove(&mut self, at: usize) {
        if let Some(key) = self.key_at(at) {
            self.remove_key(key);
        }
    }

    fn key_at(&self, at: usize) -> Option<u16> {
        let at = at.checked_rem(self.model.len())?;
        self.model.keys().nth(at).copied()
    }

    fn remove_key(&mut self, key: u16) {
        let uncounted = self.filter.count(&key).is_none();
        let result = self.filter.remove(&key);
        if self.mode != Mode::Removable {
            assert!(matches!(result, Err(Error::Unsupported { .. })));
            return;
        }
        let removal = match uncounted {
            true => Removal::Stuck,
            false => Removal::Removed,
        };
        assert_eq!(result, Ok(removal), "lost {key}");
        let count = self.model.get_mut(&key).unwrap();
        *count -= 1;
        if *count == 0 {
            self.model.remove(&key);
        }
        self.items -= 1;
        if self.items == 0 {
            // Whatever was stuck or saturated.
            let bytes = self.filter.to_bytes();
            assert!(bytes[HEADER..].iter().all(|&byte| byte == 0));
        }
    }

    fn apply(&mut self, op: TinyOp) {
        let two = NonZero::new(2).unwrap();
        match op {
            TinyOp::MergeWith(_)
            | TinyOp::MergeSelf
            | TinyOp::Fold
            | TinyOp::Grow
                if self.two_level =>
            {
                let before = self.filter.to_bytes();
                let refused = [
                    self.filter.merge_from(&self.filter.clone()).err(),
                    self.filter.halved().err(),
                    self.filter.doubled().err(),
                ];
                for error in refused {
                    assert!(matches!(error, Some(Error::Unsupported { .. })));
                }
                assert!(self.filter.to_bytes() == before);
            }
            TinyOp::Insert(key) => {
                let absent = !self.filter.contains(&key);
                assert_eq!(self.filter.insert(&key), absent);
                assert!(!(absent && self.model.contains_key(&key)));
                self.insert(&[key]);
            }
            TinyOp::InsertBatch(keys) => {
                self.filter.insert_batch(&keys);
                self.insert(&keys);
            }
            TinyOp::InsertParallel(keys) => {
                let mut serial = self.filter.clone();
                serial.insert_batch(&keys);
                let hasher = *self.filter.hasher();
                self.filter.insert_parallel_with(
                    keys.chunks(7),
                    two,
                    |keys, out| {
                        out.extend(keys.iter().map(|key| hasher.hash(key)));
                    },
                );
                assert!(self.filter.to_bytes() == serial.to_bytes());
                self.insert(&keys);
            }
            TinyOp::InsertCopies(key, copies, batch) => {
                let keys = vec![key; copies];
                match batch {
                    true => self.filter.insert_batch(&keys),
                    false => {
                        for key in &keys {
                            let absent = !self.filter.contains(key);
                            assert_eq!(self.filter.insert(key), absent);
                        }
                    }
                }
                self.insert(&keys);
            }
            TinyOp::Remove(at) => self.remove(at),
            TinyOp::RemoveCopies(at) => {
                let Some(key) = self.key_at(at) else { return };
                let (copies, removable) =
                    (self.model[&key], self.mode == Mode::Removable);
                for _ in 0..if removable { copies } else { 1 } {
                    self.remove_key(key);
                }
            }
            TinyOp::RemoveMany(places) => {
                places.into_iter().for_each(|at| self.remove(at));
            }
            TinyOp::Replace(pairs, few) => {
                let (places, mut keys): (Vec<_>, Vec<_>) =
                    pairs.into_iter().unzip();
                places.into_iter().for_each(|at| self.remove(at));
                keys.extend(few);
                self.filter.insert_batch(&keys);
                self.insert(&keys);
            }
            TinyOp::RemoveAbsent(key) => {
                if self.mode == Mode::Removable && !self.filter.contains(&key)
                {
                    let before = self.filter.to_bytes();
                    let removal = self.filter.remove(&key);
                    assert_eq!(removal, Ok(Removal::Absent));
                    assert!(self.filter.to_bytes() == before);
                }
            }
            TinyOp::MergeWith(keys) => {
                let mut other = self.empty.clone();
                other.insert_batch(&keys);
                let bytes = other.to_bytes();
                let view = TinySet::from_bytes(&bytes[..]).unwrap();
                self.merge(&view);
                self.insert(&keys);
            }
            TinyOp::MergeSelf => {
                // After seven doublings all blocks would be saturated.
                if self.items < 2000 {
                    self.merge(&self.filter.clone());
                    self.items *= 2;
                    self.model.values_mut().for_each(|count| *count *= 2);
                }
            }
            TinyOp::Fold => {
                let blocks = self.filter.block_count();
                let predicted = Inspector::new(&self.filter).folded_fpr();
                match self.filter.halved() {
                    Ok(folded) => {
                        assert_eq!(2 * folded.block_count(), blocks);
                        assert_same(&folded, predicted.unwrap());
                        self.filter = folded;
                        self.empty = self.empty.halved().unwrap();
                    }
                    Err(Error::NotFoldable { .. }) => {
                        assert_eq!(blocks % 2, 1);
                        assert!(predicted.is_err());
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            TinyOp::Grow => {
                if self.filter.block_count() < 64 {
                    let predicted =
                        Inspector::new(&self.filter).grown_fpr().unwrap();
                    self.filter = self.filter.doubled().unwrap();
                    self.empty = self.empty.doubled().unwrap();
                    assert_same(&self.filter, predicted);
                }
            }
            TinyOp::SaveAndLoad => {
                let bytes = self.filter.to_bytes();
                let view = TinySet::from_bytes(&bytes[..]).unwrap();
                view.verify().unwrap();
                assert_eq!(view.stats(), self.filter.stats());
                self.filter = view.into_owned().unwrap();
                assert!(self.filter.to_bytes() == bytes);
            }
            TinyOp::Rebuild => {
                let keys = self.model.iter().flat_map(|(&key, &count)| {
                    std::iter::repeat_n(key, count as usize)
                });
                self.filter = self.filter.rebuilt(keys).unwrap();
            }
        }
    }

    fn merge<D: AsRef<[u8]>>(&mut self, other: &TinySet<D>) {
        let predicted =
            Inspector::new(&self.filter).merged_fpr(other).unwrap();
        self.filter.merge_from(other).unwrap();
        assert_same(&self.filter, predicted);
    }

    fn check(&self) {
        assert_eq!(self.filter.stats().items, self.items);
        let keys: Vec<u16> = self.model.keys().copied().collect();
        let batch = self.filter.contains_each(&keys);
        for ((key, &count), found) in self.model.iter().zip(batch) {
            assert!(found && self.filter.contains(key), "lost {key}");
            // `None` if its copies are not counted any more.
            if let Some(stored) = self.filter.count(key) {
                let least = if self.mode == Mode::Set { 1 } else { count };
                assert!(stored >= least, "{key}: {stored} of {count}");
            }
        }
    }
}

/// Compares the rate with an earlier prediction.
fn assert_same(filter: &TinySet, predicted: f64) {
    let found = filter.stats().expected_fpr;
    assert!((found - predicted).abs() <= 1e-12, "{found} {predicted}");
}

proptest! {
    #[test]
    fn tinyset_histories(
        items in 0u64..300,
        block_bits in prop_oneof![Just(512), Just(256), Just(150)],
        // Crowded lines have reversed heads.
        bits_per_key in prop_oneof![Just(12.0), Just(9.0)],
        mode in prop_oneof![
            1 => Just(Mode::Set),
            1 => Just(Mode::Repeats),
            2 => Just(Mode::Removable),
        ],
        ops in proptest::collection::vec(tiny_op(), 0..40),
    ) {
        let builder = TinySet::builder()
            .items(items)
            .bits_per_key(bits_per_key)
            .block_bits(block_bits);
        let builder = match mode {
            Mode::Set => builder,
            Mode::Repeats => builder.repeats(),
            Mode::Removable => builder.removable(),
        };
        run_tiny(builder.build().unwrap(), mode, false, ops);
    }

    #[test]
    fn two_level_tinyset_histories(
        items in 0u64..300,
        wide: bool,
        repeats: bool,
        ops in proptest::collection::vec(tiny_op(), 0..40),
    ) {
        let builder = two_levels()[usize::from(wide)].items(items);
        let (builder, mode) = match repeats {
            false => (builder, Mode::Set),
            true => (builder.repeats(), Mode::Repeats),
        };
        run_tiny(builder.build().unwrap(), mode, true, ops);
    }
}

/// Two-level designs with blocks of 256 and 512 bits, computed once: a
/// design takes longer than a history.
fn two_levels() -> &'static [Builder<TinySet>; 2] {
    static DESIGNS: OnceLock<[Builder<TinySet>; 2]> = OnceLock::new();
    DESIGNS.get_or_init(|| {
        [256, 512].map(|block_bits| {
            let builder = TinySet::builder().block_bits(block_bits);
            builder.fpr(0.0005).two_level().resolve().unwrap()
        })
    })
}

fn run_tiny(filter: TinySet, mode: Mode, two_level: bool, ops: Vec<TinyOp>) {
    let empty = filter.clone();
    let model = BTreeMap::new();
    let mut tiny = Tiny { filter, empty, mode, two_level, model, items: 0 };
    for op in ops {
        tiny.apply(op);
        tiny.check();
    }
    let Tiny { filter, model, .. } = tiny;
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let batch = filter.contains_each(&all);
    for (key, found) in all.iter().zip(batch) {
        assert_eq!(found, filter.contains(key));
        assert!(found || !model.contains_key(key));
    }
    filter.verify().unwrap();
    // 6 standard deviations: the histories differ from run to run.
    let probes = 20_000;
    let hits = false_positives(&filter, 9, probes) as f64;
    let rate = filter.stats().expected_fpr;
    let expected = probes as f64 * rate;
    let most = 6.0 * (expected * (1.0 - rate)).sqrt() + 6.0;
    assert!((hits - expected).abs() <= most, "{hits} of {expected}");
}

/// Merging and folding give the bytes of a direct build.
#[test]
fn merge_and_fold_are_exact() {
    macro_rules! check {
        ($kind:ident) => {
            let all: Vec<u64> = keys(1, 20_480).collect();
            // 640 blocks, so that half of them is a valid size, too.
            let builder = $kind::builder().items(20_480).bits_per_key(16.0);
            let mut whole = builder.build().unwrap();
            whole.insert_batch(&all);
            let (mut left, mut right) =
                (builder.build().unwrap(), builder.build().unwrap());
            left.insert_batch(&all[..7_000]);
            right.insert_batch(&all[7_000..]);
            // Commutative, byte for byte.
            let mut other_way = right.clone();
            other_way.merge_from(&left).unwrap();
            left.merge_from(&right).unwrap();
            assert_eq!(left.to_bytes(), whole.to_bytes());
            assert_eq!(other_way.to_bytes(), whole.to_bytes());
            // A view can be merged like an owned filter.
            let bytes = right.to_bytes();
            let view = $kind::from_bytes(&bytes[..]).unwrap();
            let mut third = builder.build().unwrap();
            third.insert_batch(&all[..7_000]);
            third.merge_from(&view).unwrap();
            assert_eq!(third.to_bytes(), whole.to_bytes());

            let mut half = builder.items(10_240).build().unwrap();
            assert_eq!(2 * half.block_count(), whole.block_count());
            half.insert_batch(&all);
            assert_eq!(whole.halved().unwrap().to_bytes(), half.to_bytes());
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
        match filter.merge_from(&recipe.build().unwrap()) {
            Err(Error::Mismatch { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(filter.to_bytes(), before, "{expected}");
    }
    // TinySets have more settings.
    let base = TinySet::builder().items(1000).bits_per_key(10.0);
    let builders = [
        ("blocks", base.items(2000)),
        ("block bits", base.block_bits(256).items(500)),
        ("chains", base.chains(80)),
        ("elastic form", base.removable()),
        ("repeats", base.repeats()),
        ("seed", base.hasher(tamis::KeyHasher::xxh3(1))),
    ];
    for (expected, builder) in builders {
        let mut filter = base.build().unwrap();
        filter.insert("apple");
        let before = filter.to_bytes();
        let other = builder.build().unwrap();
        assert!(Inspector::new(&filter).merged_fpr(&other).is_err());
        match filter.merge_from(&other) {
            Err(Error::Mismatch { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(filter.to_bytes(), before, "{expected}");
    }
    let grown = base.repeats().build().unwrap().doubled().unwrap();
    let mut removable = base.removable().build().unwrap().doubled().unwrap();
    match removable.merge_from(&grown) {
        Err(Error::Mismatch { field: "removable mode", .. }) => {}
        other => panic!("{other:?}"),
    }

    // A secret never reaches an error message.
    let base = Recipe::new(tamis::Kind::Blocked, 1000, Size::BitsPerKey(10.0));
    let secret = |key| {
        Recipe { hasher: tamis::KeyHasher::siphash(key), ..base }
            .build()
            .unwrap()
    };
    let error =
        secret(111_222_333).merge_from(&secret(444_555_666)).unwrap_err();
    assert!(!error.to_string().contains("333"), "{error}");
}

/// The same bytes from one thread, from many, from slices and iterators, in
/// batches and one by one.
#[test]
fn every_insertion_method_gives_the_same_bytes() {
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
            assert_eq!(shared.len(), 60_000);
            assert_eq!(shared.into_filter().to_bytes(), expected);
        };
    }
    check!(Bloom);
    check!(Blocked);
    check!(Split);
}

/// The same for a TinySet, whose bytes depend on the order of a block's keys.
#[test]
fn every_insertion_method_of_a_tinyset_gives_the_same_bytes() {
    let hashes: Vec<u64> = keys(1, 60_000).collect();
    for block_bits in [512, 256] {
        for removable in [false, true] {
            let mut builder = TinySet::builder()
                .items(40_000)
                .fpr(0.01)
                .block_bits(block_bits);
            if removable {
                builder = builder.removable();
            }
            let mut single = builder.build().unwrap();
            for &hash in &hashes {
                single.insert_hash(hash);
            }
            let expected = single.to_bytes();
            let mut batch = builder.build().unwrap();
            for part in hashes.chunks(777) {
                batch.insert_hash_batch(part);
            }
            assert!(batch.to_bytes() == expected);
            for threads in [1, 2, 3, 8, 64] {
                let mut filter = builder.build().unwrap();
                filter.insert_parallel_with(
                    hashes.chunks(1000),
                    NonZero::new(threads).unwrap(),
                    |part, out| out.extend_from_slice(part),
                );
                assert!(filter.to_bytes() == expected, "{threads} threads");
            }
        }
    }
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

/// A view is covariant in its lifetime: this does not compile otherwise.
#[test]
fn filters_can_be_lent_for_less() {
    fn shorter<'a>(
        long: AnyFilter<&'static [u8]>,
        _for: &'a u8,
    ) -> AnyFilter<&'a [u8]> {
        long
    }
    for kind in tamis::Kind::ALL {
        let recipe = Recipe::new(kind, 10, Size::Fpr(0.01));
        let mut filter = recipe.build().unwrap();
        filter.insert("apple");
        let bytes: &'static [u8] = filter.to_bytes().leak();
        let long = AnyFilter::from_bytes(bytes).unwrap();
        assert!(shorter(long, &0).contains("apple"));
    }
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
            if kind == tamis::Kind::TinySet {
                // TinySet blocks may have any size.
                continue;
            }
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
    let tiny = TinySet::builder().items(10).fpr(0.1);
    for block_bits in [0, 1, 16, 8193, u32::MAX] {
        assert!(tiny.block_bits(block_bits).build().is_err(), "{block_bits}");
    }
    for chains in [0, 497, 1025, u32::MAX] {
        assert!(tiny.chains(chains).build().is_err(), "{chains} chains");
    }
    for fpr in [0.0, 1.0, -0.1, f64::NAN, 1e-12] {
        assert!(tiny.fpr(fpr).build().is_err(), "{fpr}");
    }
    let both = Recipe::new(tamis::Kind::Blocked, 10, Size::Fpr(0.1));
    assert!(Recipe { probes: Some(3), ..both }.build().is_err());
}

/// Settings changed after `resolve` count: the builder then builds the same
/// filter as one that was never resolved.
#[test]
fn resolved_builders_follow_changes() {
    macro_rules! check {
        ($builder:expr, $($change:ident($($to:expr),*)),*) => {$(
            let builder = $builder.items(99);
            let resolved = builder.resolve().unwrap();
            assert!(resolved.build().unwrap() == builder.build().unwrap());
            let changed = resolved.$change($($to),*).build().unwrap();
            let fresh = builder.$change($($to),*).build().unwrap();
            assert!(changed == fresh, stringify!($change));
            let again = resolved.$change($($to),*).resolve().unwrap();
            assert!(again.build().unwrap() == fresh, stringify!($change));
        )*};
    }
    check!(
        Blocked::builder().bits_per_key(10.0),
        items(999),
        hasher(tamis::KeyHasher::xxh3(1)),
        block_bits(256),
        probes(3),
        fpr(0.1),
        foldable(3)
    );
    check!(
        TinySet::builder().fpr(0.01),
        items(999),
        repeats(),
        block_bits(256),
        chains(70),
        removable(),
        bits_per_key(12.0)
    );
    check!(
        tamis::Balanced::builder().bits_per_key(20.0).tracking_bits(8),
        items(999),
        choices(2),
        block_bits(256),
        max_reads_miss(1.1),
        refuse_by_set_bits()
    );
    let any = AnyFilter::builder(tamis::Kind::Split).items(99).fpr(0.01);
    assert!(
        any.resolve().unwrap().block_bits(256).build().unwrap()
            == any.block_bits(256).build().unwrap()
    );
}

#[test]
fn batches_of_every_length_agree_with_single_lookups() {
    for kind in [tamis::Kind::Split, tamis::Kind::TinySet] {
        let mut filter =
            Recipe::new(kind, 5000, Size::Fpr(0.2)).build().unwrap();
        filter.insert_batch(&keys(1, 5000).collect::<Vec<_>>());
        for len in [0, 1, 31, 32, 33, 63, 64, 1023, 1024, 1025, 5000] {
            let some: Vec<u64> = (0..len)
                .map(|i| if i % 2 == 0 { key(1, i) } else { key(2, i) })
                .collect();
            let batch = filter.contains_each(&some);
            let single: Vec<bool> =
                some.iter().map(|key| filter.contains(key)).collect();
            assert_eq!(batch, single, "{kind}: {len}");
        }
    }
}

/// Filters too large for the caches use another prefetch.
#[test]
fn batches_of_large_filters_agree_with_single_lookups() {
    fn check<F: FilterMut>(mut filter: F) {
        assert!(filter.stats().bytes > 16 << 20);
        let members: Vec<u64> = (0..20_000).collect();
        filter.insert_batch(&members);
        let keys: Vec<u64> = (0..40_000).map(|key| key ^ 1).collect();
        // Lengths around the row and around the prefetch distance.
        for len in [0, 1, 7, 31, 33, 63, 64, 65, 4095, 4097, keys.len()] {
            let found = filter.contains_each(&keys[..len]);
            assert_eq!(found.len(), len);
            for (key, found) in keys.iter().zip(found) {
                assert_eq!(found, filter.contains(key), "{key} of {len}");
                assert!(found || *key >= 20_000, "lost {key}");
            }
        }
    }
    let (items, fpr) = (10_000_000, 0.0001);
    check(Bloom::builder().items(items).fpr(fpr).build().unwrap());
    check(Blocked::builder().items(items).fpr(fpr).build().unwrap());
    check(Split::builder().items(items).fpr(fpr).build().unwrap());
    check(tamis::Balanced::builder().items(items).fpr(fpr).build().unwrap());
    check(TinySet::builder().items(items).fpr(fpr).build().unwrap());
}

//! The methods that all filters share, called on each of them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{key, keys};
use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, Builder, Error, Filter, FilterMut,
    KeyHasher, Kind, Mapped, Prefer, Removal, Shared, Size, Split, TinySet,
    Window,
};

/// A builder of every kind, sized for 1000 keys.
fn builders() -> Vec<Builder<AnyFilter>> {
    let balanced = Balanced::builder().bits_per_key(20.0).tracking_bits(8);
    vec![
        Bloom::builder().fpr(0.01).items(1000).into(),
        Blocked::builder().fpr(0.01).items(1000).into(),
        Split::builder().fpr(0.01).items(1000).into(),
        balanced.items(1000).into(),
        TinySet::builder().fpr(0.01).items(1000).into(),
        TinySet::builder().fpr(0.01).items(1000).removable().into(),
    ]
}

fn filled() -> impl Iterator<Item = AnyFilter> {
    builders()
        .into_iter()
        .map(|builder| builder.build_from(keys(1, 1000)).unwrap())
}

#[test]
fn every_copy_keeps_the_metadata() {
    fn check<D: AsRef<[u8]>>(filter: &AnyFilter<D>) {
        let metadata = filter.metadata().unwrap();
        assert!(metadata.iter().eq([("note", "kept"), ("x.y", "z")]));
        assert_eq!(filter.bytes(), filter.to_bytes().len() as u64);
    }
    for mut filter in filled() {
        filter.set_metadata("x.y", "z").unwrap();
        filter.set_metadata("note", "kept").unwrap();
        check(&filter);
        check(&filter.clone());
        let bytes = filter.to_bytes();
        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        view.verify().unwrap();
        check(&view);
        check(&view.clone());
        let owned = view.into_owned().unwrap();
        check(&owned);
        assert!(owned == filter);
        if let Ok(half) = filter.halved() {
            check(&half);
        }
        if let Ok(double) = filter.doubled() {
            check(&double);
            check(&double.halved().unwrap());
        }
        if let AnyFilter::TinySet(filter) = &filter {
            check(&filter.rebuilt(keys(1, 10)).unwrap().into());
            let shared = Shared::from(filter.clone());
            check(&shared.snapshot().unwrap().into());
            check(&shared.into_filter().into());
        }
        if let AnyFilter::Split(filter) = &filter {
            let shared = Shared::from(filter.clone());
            check(&shared.snapshot().unwrap().into());
            check(&shared.into_filter().into());
        }
        let mut left = filter.clone();
        let mut right = owned;
        right.set_metadata("note", "dropped").unwrap();
        if left.merge_from(&right).is_ok() {
            check(&left);
        }
        left.clear();
        check(&left);
    }
}

/// Sections of several chunks have a list of checksums and padding.
#[test]
fn parts_are_the_bytes_and_borrow_the_blocks() {
    for kind in Kind::ALL {
        let builder = AnyFilter::builder(kind).bits_per_key(20.0);
        let mut filter = builder.build_from(keys(1, 70_000)).unwrap();
        filter.set_metadata("note", "kept").unwrap();
        let bytes = filter.to_bytes();
        let parts = filter.parts();
        assert_eq!(parts.concat(), bytes);
        assert!(parts.iter().all(|part| !part.is_empty()));
        assert!(parts[1].len() > 2 * (1 << 16));
        assert!(matches!(parts[1], Cow::Borrowed(_)));
        let mut written = Vec::new();
        filter.write_to(&mut written).unwrap();
        assert_eq!(written, bytes);
        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        assert_eq!(view.parts().concat(), bytes);
        view.verify().unwrap();
    }
}

#[test]
fn a_window_with_metadata_is_saved() {
    let builder = TinySet::builder().items(100).fpr(0.01);
    let mut young = builder.build().unwrap();
    young.set_metadata("note", "young").unwrap();
    let old = builder.build_from(["apple"]).unwrap();
    let window = Window::from_generations([young, old]).unwrap();
    let again = Window::from_bytes(&window.to_bytes()).unwrap();
    assert!(again.contains("apple"));
    let young = again.generations()[0];
    assert_eq!(young.metadata().unwrap().get("note"), Some("young"));
}

#[test]
fn accessors_agree_with_stats_for_owned_viewed_and_mapped_filters() {
    fn check(filter: &dyn Filter) {
        let stats = filter.stats();
        assert_eq!(filter.kind(), stats.kind);
        assert_eq!(filter.len(), stats.items);
        assert_eq!(filter.is_empty(), stats.items == 0);
        assert_eq!(filter.capacity(), stats.design_items);
        assert_eq!(filter.design_fpr().to_bits(), stats.design_fpr.to_bits());
        assert_eq!(filter.bytes(), stats.bytes);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter.tamis");
    for mut filter in filled() {
        let bytes = filter.to_bytes();
        assert_eq!(filter.bytes(), bytes.len() as u64);
        let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
        filter.save(&path).unwrap();
        let mapped = AnyFilter::open(&path).unwrap();
        check(&filter);
        check(&view);
        check(&mapped);
        assert_eq!((filter.len(), filter.capacity()), (mapped.len(), 1000));
        filter.clear();
        check(&filter);
        assert!(filter.is_empty());
    }
}

/// Lists of refused keys are counted in constant time, too.
#[test]
fn bytes_count_the_overflow_list() {
    let builder = Balanced::builder().bits_per_key(12.0).choices(1);
    let mut filter = builder.items(1000).build().unwrap();
    for i in 0..5000 {
        filter.insert(&key(1, i));
        if i % 501 == 0 {
            assert_eq!(filter.bytes(), filter.to_bytes().len() as u64, "{i}");
        }
    }
    assert!(filter.overflow_fraction().unwrap() > 0.1);
}

#[test]
fn cleared_filters_equal_new_ones() {
    for builder in builders() {
        let new = builder.build().unwrap();
        let mut filter = builder.build_from(keys(1, 1000)).unwrap();
        assert!(filter != new);
        filter.clear();
        assert!(filter == new);
        assert_eq!(filter.to_bytes(), new.to_bytes());
        filter.verify().unwrap();
        filter.extend(keys(1, 1000));
        assert!(filter == builder.build_from(keys(1, 1000)).unwrap());
    }
}

#[test]
fn equality_is_that_of_content_and_settings() {
    let filters: Vec<_> = filled().collect();
    for (i, left) in filters.iter().enumerate() {
        for (j, right) in filters.iter().enumerate() {
            let bytes = right.to_bytes();
            let view = AnyFilter::from_bytes(&bytes[..]).unwrap();
            assert_eq!(*left == view, i == j, "{left:?} {view:?}");
        }
    }
    let builder = Blocked::builder().items(9).fpr(0.01);
    let seeded = builder.hasher(KeyHasher::xxh3(1)).build().unwrap();
    assert!(builder.build().unwrap() != seeded);
    let mut other = builder.build().unwrap();
    other.insert("apple");
    assert!(builder.build().unwrap() != other);
}

#[test]
fn debug_is_one_short_line() {
    fn check(shown: &dyn std::fmt::Debug) {
        for shown in [format!("{shown:?}"), format!("{shown:#?}")] {
            assert!(!shown.contains('\n'), "{shown}");
            assert!(shown.len() < 200, "{} bytes: {shown}", shown.len());
        }
    }
    for filter in filled() {
        check(&filter);
        match &filter {
            AnyFilter::Bloom(filter) => check(filter),
            AnyFilter::Blocked(filter) => check(filter),
            AnyFilter::Split(filter) => check(filter),
            AnyFilter::Balanced(filter) => check(filter),
            AnyFilter::TinySet(filter) => {
                check(filter);
                check(&tamis::inspect::Inspector::new(filter).loads());
            }
            _ => panic!("a kind without a test"),
        }
    }
    for builder in builders() {
        check(&builder);
        check(&builder.resolve().unwrap());
    }
    let tiny = TinySet::builder().items(9).fpr(0.01);
    check(&Window::new(tiny).unwrap());
    check(&tiny);
    let blocked = Blocked::builder().items(9).fpr(0.01);
    check(&Shared::from(blocked.build().unwrap()));
    let secret = blocked.hasher(KeyHasher::siphash(123_456_789));
    let shown = format!("{secret:?} {:?}", secret.build().unwrap());
    assert!(!shown.contains("123456789"), "{shown}");
}

#[test]
fn every_shape_of_lookup_gives_the_same_answers() {
    for filter in filled() {
        let some: Vec<u64> = keys(1, 700).chain(keys(2, 1333)).collect();
        let hashes: Vec<u64> =
            some.iter().map(|key| filter.hasher().hash(key)).collect();
        for len in [0, 1, 63, 64, 65, 128, 1023, 1025, some.len()] {
            let (some, hashes) = (&some[..len], &hashes[..len]);
            let single: Vec<bool> =
                some.iter().map(|key| filter.contains(key)).collect();
            assert_eq!(filter.contains_each(some), single);
            // Answers of an earlier batch are overwritten.
            let mut found = vec![true; len];
            filter.contains_batch(some, &mut found);
            assert_eq!(found, single);
            found.fill(true);
            filter.contains_hash_batch(hashes, &mut found);
            assert_eq!(found, single);
            let mut mask = vec![u64::MAX; len.div_ceil(64)];
            filter.contains_hash_mask(hashes, &mut mask);
            for (at, &found) in single.iter().enumerate() {
                assert_eq!(mask[at / 64] >> (at % 64) & 1 == 1, found);
            }
            if len % 64 != 0 {
                assert_eq!(mask[len / 64] >> (len % 64), 0);
            }
            for &hash in hashes {
                filter.prefetch(hash);
            }
        }
    }
}

#[test]
fn batches_of_unequal_lengths_panic() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for filter in filled() {
        for len in [1, 3] {
            let mut found = vec![false; len];
            let batch = AssertUnwindSafe(|| {
                filter.contains_hash_batch(&[1, 2], &mut found);
            });
            assert!(catch_unwind(batch).is_err(), "{filter:?}");
            let mut found = vec![false; len];
            let batch = AssertUnwindSafe(|| {
                filter.contains_batch(&["a", "b"], &mut found);
            });
            assert!(catch_unwind(batch).is_err(), "{filter:?}");
        }
        let mask = AssertUnwindSafe(|| {
            filter.contains_hash_mask(&[1, 2], &mut [0, 0]);
        });
        assert!(catch_unwind(mask).is_err(), "{filter:?}");
    }
}

/// Generic code, trait objects and pointers.
#[test]
fn filters_are_used_through_traits() {
    fn fill<F: FilterMut>(mut filter: F) -> F {
        filter.insert("apple");
        filter.insert_batch(&["pear", "plum"]);
        filter
    }
    fn count(filter: impl Filter) -> usize {
        let keys = ["apple", "pear", "plum"];
        let found = filter.contains_each(&keys);
        assert!(keys.iter().all(|key| filter.contains(*key)));
        found.iter().filter(|&&found| found).count()
    }
    for builder in builders() {
        let filter = fill(builder.build().unwrap());
        assert_eq!(count(&filter), 3);
        let object: &dyn Filter = &filter;
        assert!((&object).contains("apple"));
        assert_eq!(count(object), 3);
        assert_eq!(count(Arc::new(filter.clone())), 3);
        let boxed: Box<dyn Filter + Send + Sync> = Box::new(filter.clone());
        assert!(boxed.contains("apple"));
        let mut boxed: Box<dyn FilterMut> = Box::new(filter);
        boxed.clear();
        assert_eq!(count(fill(boxed)), 3);
    }
}

/// `from_bytes` behind a bound.
#[test]
fn views_are_opened_by_generic_code() {
    fn open<'a, F>(bytes: &'a [u8]) -> F
    where
        F: Filter + TryFrom<&'a [u8], Error = Error>,
    {
        F::try_from(bytes).unwrap()
    }
    let builder = Blocked::builder().fpr(0.01);
    let bytes = builder.build_from(["apple"]).unwrap().to_bytes();
    assert!(open::<Blocked<&[u8]>>(&bytes).contains("apple"));
    assert!(open::<AnyFilter<&[u8]>>(&bytes).contains("apple"));
    assert!(TinySet::try_from(&bytes[..]).is_err());
}

/// Builders and shared filters have names that a field can have.
#[test]
fn types_can_be_stored_in_a_struct() {
    struct Service {
        builder: Builder<Blocked>,
        any: Builder<AnyFilter>,
        seen: Arc<Shared<Split>>,
        mapped: Option<Blocked<Mapped>>,
    }
    let seen = Split::builder().items(9).fpr(0.01).build().unwrap();
    let service = Service {
        builder: Blocked::builder().fpr(0.01).resolve().unwrap(),
        any: AnyFilter::builder(Kind::TinySet).fpr(0.01).resolve().unwrap(),
        seen: Arc::new(Shared::from(seen)),
        mapped: None,
    };
    assert!(service.seen.insert("apple"));
    assert!(service.mapped.is_none());
    for items in [10, 1000] {
        let filter = service.builder.items(items).build().unwrap();
        let any = service.any.items(items).build().unwrap();
        assert_eq!((filter.capacity(), any.capacity()), (items, items));
    }
}

#[test]
fn build_from_sizes_for_the_keys_it_gets() {
    for builder in builders() {
        // An exact hint, none, and a given number.
        let exact = builder.items(300).build_from(keys(1, 300)).unwrap();
        assert_eq!(exact.len(), 300);
        let any = AnyFilter::builder(builder.build().unwrap().kind());
        let any = any.bits_per_key(12.0);
        let hinted = any.build_from(keys(1, 500)).unwrap();
        let hintless = any.build_from(keys(1, 500).filter(|_| true)).unwrap();
        assert!(hinted == hintless);
        assert_eq!(hinted.capacity(), 500);
        let given = any.items(9).build_from(keys(1, 500)).unwrap();
        assert_eq!(given.capacity(), 9);
        assert!(
            given
                .contains_each(&keys(1, 500).collect::<Vec<_>>())
                .iter()
                .all(|&found| found)
        );
    }
}

#[test]
fn any_builders_build_what_kind_builders_build() {
    let any = |kind| AnyFilter::builder(kind).items(500).fpr(0.02);
    let built: [(Kind, AnyFilter); 4] = [
        (Kind::Bloom, {
            Bloom::builder().items(500).fpr(0.02).build().unwrap().into()
        }),
        (Kind::Blocked, {
            Blocked::builder().items(500).fpr(0.02).build().unwrap().into()
        }),
        (Kind::Split, {
            Split::builder().items(500).fpr(0.02).build().unwrap().into()
        }),
        (Kind::TinySet, {
            TinySet::builder().items(500).fpr(0.02).build().unwrap().into()
        }),
    ];
    for (kind, filter) in built {
        assert!(any(kind).build().unwrap() == filter, "{kind}");
        assert!(any(kind).resolve().unwrap().build().unwrap() == filter);
    }
}

#[test]
fn sizes_have_one_range_for_all_kinds() {
    for kind in [Kind::Bloom, Kind::Blocked, Kind::Split, Kind::TinySet] {
        let builder = AnyFilter::builder(kind).items(10);
        for bits in [0.5, 8.0, 1000.0] {
            let built = builder.bits_per_key(bits).build();
            assert!(built.is_ok(), "{kind} {bits}: {built:?}");
        }
        for bits in [0.0, 0.49, 1001.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = builder.bits_per_key(bits).build().unwrap_err();
            let text = error.to_string();
            assert!(text.contains("bits per key"), "{kind} {bits}: {text}");
            assert!(text.contains("0.5 to 1000"), "{kind} {bits}: {text}");
        }
        for fpr in [0.0, 1.0, -1.0, f64::NAN, 2.0] {
            let error = builder.fpr(fpr).build().unwrap_err();
            let text = error.to_string();
            assert!(text.contains("false-positive rate"), "{kind}: {text}");
        }
    }
}

#[test]
fn recommended_kinds_read_one_line() {
    let recommended = |size, prefer| Kind::recommended(size, 512, prefer);
    for fpr in [0.03, 0.01, 0.001, 0.0001] {
        let kind = recommended(Size::Fpr(fpr), Prefer::Space);
        assert_eq!(kind, Ok(Kind::TinySet), "{fpr}");
        let kind = recommended(Size::Fpr(fpr), Prefer::Speed);
        assert_eq!(kind, Ok(Kind::Blocked), "{fpr}");
    }
    for fpr in [0.2, 0.00001] {
        let kind = recommended(Size::Fpr(fpr), Prefer::Space);
        assert_eq!(kind, Ok(Kind::Blocked), "{fpr}");
    }
    let bits = Size::BitsPerKey(10.0);
    assert_eq!(recommended(bits, Prefer::Space), Ok(Kind::TinySet));
    assert!(recommended(Size::Fpr(2.0), Prefer::Space).is_err());
}

/// A filter for 10^7 keys that gets 50,000: with `foldable` it folds to the
/// size of a filter built for them; without, it stays at 250 bits per key.
#[test]
fn foldable_filters_reach_the_size_of_the_keys_they_got() {
    let items = 50_000;
    macro_rules! check {
        ($kind:ident) => {
            let builder = $kind::builder().items(10_000_000).fpr(0.01);
            let mut filter = builder.foldable(9).build().unwrap();
            let cost = filter.bytes() as f64
                / builder.build().unwrap().bytes() as f64;
            assert!(cost < 1.005, "{cost}");
            filter.extend(keys(1, items));
            let folded = filter.folded_to(0.01).unwrap();
            let ideal = builder.items(items).build().unwrap();
            let excess = folded.bytes() as f64 / ideal.bytes() as f64;
            assert!(excess < 2.0, "{excess}");
            assert!(folded.stats().expected_fpr <= 0.01);
            assert!(folded.halved().unwrap().stats().expected_fpr > 0.01);
            assert!(keys(1, items).all(|key| folded.contains(&key)));
        };
    }
    check!(Blocked);
    check!(Split);
    check!(TinySet);
    let full = Blocked::builder().fpr(0.01).build_from(keys(1, 9)).unwrap();
    assert!(full.folded_to(1e-9).unwrap() == full);
    assert!(full.folded_to(0.0).is_err());
}

/// Removals do not undo saturation until the filter is empty, and the counts
/// alone would not show it.
#[test]
fn saturated_filters_are_over_design() {
    let builder = TinySet::builder().items(1000).fpr(0.01).removable();
    let mut filter = builder.build().unwrap();
    filter.extend(0..100_000u32);
    for key in 1..100_000u32 {
        let _ = filter.remove(&key).unwrap();
    }
    let stats = filter.stats();
    assert_eq!(stats.items, 1);
    assert_eq!(stats.saturated_blocks, filter.block_count());
    assert!(stats.over_design);
    let rebuilt = filter.rebuilt([0u32]).unwrap();
    assert!(rebuilt.contains(&0u32));
    assert_eq!(rebuilt.stats().saturated_blocks, 0);
    assert!(!rebuilt.stats().over_design);

    assert_eq!(filter.remove(&0u32), Ok(Removal::Stuck));
    assert!(filter == builder.build().unwrap());
    assert!(!filter.stats().over_design);
    // Cleared again only after another stuck removal.
    filter.extend(0..100_000u32);
    for key in 0..100_000u32 {
        let _ = filter.remove(&key).unwrap();
    }
    assert!(filter == builder.build().unwrap());
}

/// One key inserted 100,000 times takes the room of 16, and costs no other
/// key.
#[test]
fn hot_keys_stick() {
    const COPIES: usize = 100_000;
    let builder = TinySet::builder().items(1000).fpr(0.01);
    let cold = || (0..983u32).map(|key| key.to_string());
    for builder in [builder.removable(), builder.repeats()] {
        let mut filter = builder.build_from(cold()).unwrap();
        for _ in 0..COPIES {
            filter.insert("hot");
        }
        assert!(!filter.insert("hot"));
        let mut batch = builder.build_from(cold()).unwrap();
        batch.insert_batch(&vec!["hot"; COPIES + 1]);
        assert!(batch == filter);
        filter.verify().unwrap();
        let stats = filter.stats();
        assert_eq!(stats.items, 983 + 1 + COPIES as u64);
        assert_eq!((stats.saturated_blocks, stats.stuck_keys), (0, 1));
        assert!(!stats.over_design);
        assert!(stats.expected_fpr < 0.015, "{stats:?}");
        assert_eq!(filter.count("hot"), None);
        assert!(filter.count("1").is_some_and(|copies| copies < 16));

        // 27 unions would saturate the block if copies were summed.
        let mut hot = builder.build_from(["hot"; 20]).unwrap();
        for times in 1..=30 {
            filter.merge_from(&hot).unwrap();
            let stats = filter.stats();
            assert_eq!((stats.saturated_blocks, stats.stuck_keys), (0, 1));
            assert!(filter.contains("hot"), "{times}");
            filter.verify().unwrap();
            let other = |filter: &TinySet| match times % 2 {
                0 => filter.halved(),
                _ => filter.doubled(),
            };
            (filter, hot) = (other(&filter).unwrap(), other(&hot).unwrap());
        }
    }

    let mut filter = builder.removable().build_from(cold()).unwrap();
    filter.insert_batch(&vec!["hot"; COPIES]);
    for _ in 0..COPIES {
        assert_eq!(filter.remove("hot"), Ok(Removal::Stuck));
    }
    assert!(filter.contains("hot"));
    assert_eq!(filter.stats().items, 983);
    assert!(!filter.stats().over_design);
    filter.verify().unwrap();
    for key in cold() {
        assert_eq!(filter.remove(key.as_str()), Ok(Removal::Removed));
    }
    assert!(!filter.contains("hot"));
    assert!(filter == builder.removable().build().unwrap());

    // 15 copies are counted.
    filter.insert_batch(&["warm"; 15]);
    assert_eq!(filter.count("warm"), Some(15));
    for _ in 0..15 {
        assert_eq!(filter.remove("warm"), Ok(Removal::Removed));
    }
    assert_eq!(filter.remove("warm"), Ok(Removal::Absent));
}

/// Snapshots, lookups and merges while other threads insert.
#[test]
fn shared_filters_are_saved_while_threads_insert() {
    fn check<F>(filter: F, merged: F)
    where
        F: tamis::Shareable + PartialEq + Clone + Send + Sync,
        F::State: Send + Sync,
    {
        const EACH: u64 = 20_000;
        let capacity = filter.capacity();
        let shared = Shared::from(filter);
        assert!(shared.is_empty());
        assert_eq!(shared.capacity(), capacity);
        let hasher = *shared.hasher();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (shared, done) = (&shared, &done);
            let threads: Vec<_> = (1..=2)
                .map(|stream| {
                    scope.spawn(move || {
                        let keys: Vec<u64> = keys(stream, EACH).collect();
                        for part in keys.chunks(500) {
                            shared.insert_batch(part);
                            let mut found = vec![false; part.len()];
                            shared.contains_batch(part, &mut found);
                            assert!(found.iter().all(|&found| found));
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let before = shared.len();
                    let snapshot = shared.snapshot().unwrap();
                    snapshot.verify().unwrap();
                    assert!(snapshot.len() >= before);
                    assert!(shared.stats().unwrap().items >= snapshot.len());
                }
            });
            for thread in threads {
                thread.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(shared.len(), 2 * EACH);
        let snapshot = shared.snapshot().unwrap();
        for stream in 1..=2 {
            for key in keys(stream, EACH) {
                assert!(snapshot.contains_hash(hasher.hash(&key)));
            }
        }
        let other = Shared::from(merged);
        shared.merge_from(&other).unwrap();
        assert!(keys(3, 100).all(|key| shared.contains(&key)));
        assert_eq!(shared.len(), 2 * EACH + 100);
        let expected = shared.snapshot().unwrap();
        assert!(shared.into_filter() == expected);
    }
    macro_rules! check {
        ($kind:ident) => {
            let builder = $kind::builder().items(40_000).fpr(0.01);
            let merged = builder.build_from(keys(3, 100)).unwrap();
            check(builder.build().unwrap(), merged);
        };
    }
    check!(Bloom);
    check!(Blocked);
    check!(Split);
    check!(TinySet);
    let shared = |items| {
        let builder = Blocked::builder().items(items).fpr(0.01);
        Shared::from(builder.build().unwrap())
    };
    assert!(matches!(
        shared(10).merge_from(&shared(9999)),
        Err(Error::Mismatch { field: "blocks", .. })
    ));
}

/// One hot key does not push the others out of a window.
#[test]
fn repeats_do_not_rotate_a_window() {
    let builder = TinySet::builder().items(10_000).fpr(0.001);
    let mut window = Window::new(builder).unwrap();
    window.insert("first");
    for _ in 0..50_000 {
        window.insert("hot");
    }
    assert!(window.contains("first"));
    assert_eq!(window.len(), 2);
}

#[test]
fn windows_survive_the_journey() {
    let builder = TinySet::builder().items(500).fpr(0.001);
    let mut window = Window::new(builder).unwrap();
    window.extend(keys(1, 1234));
    let bytes = window.to_bytes();
    assert_eq!(bytes.len() as u64, Filter::bytes(&window));
    let mut again = Window::from_bytes(&bytes).unwrap();
    assert!(again == window);
    for i in 0..3000 {
        let key = key(2, i);
        assert_eq!(again.insert(&key), window.insert(&key));
    }
    assert!(again == window);
    assert!(Window::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    let mut damaged = bytes;
    *damaged.last_mut().unwrap() ^= 1;
    assert!(Window::from_bytes(&damaged).is_err());
    let [young, _] = window.generations();
    let other = builder.items(501).build().unwrap();
    assert!(Window::from_generations([young.clone(), other]).is_err());
}

/// A shared TinySet has the blocks of a serial one, for every number of
/// blocks, block size and mode, and the same answers meanwhile.
#[test]
fn shared_tinysets_equal_serial_ones() {
    let builder = TinySet::builder().fpr(0.01);
    let builders = [
        builder,
        builder.block_bits(256),
        builder.removable(),
        builder.repeats(),
        builder.chains(70),
        builder.fpr(0.0001).two_level(),
    ];
    for builder in builders {
        for items in [1, 40, 500, 6000] {
            let builder = builder.items(items);
            let mut serial = builder.build().unwrap();
            let shared = Shared::from(builder.build().unwrap());
            for i in 0..2 * items {
                let key = key(1 + i % 3, i / 2);
                assert_eq!(shared.contains(&key), serial.contains(&key));
                assert_eq!(shared.insert(&key), serial.insert(&key));
                assert!(shared.contains(&key));
            }
            for i in 0..2000 {
                let key = key(7, i);
                assert_eq!(shared.contains(&key), serial.contains(&key));
            }
            assert_eq!(shared.len(), serial.len());
            assert!(shared.snapshot().unwrap() == serial);
            assert!(shared.into_filter() == serial);
        }
    }
}

//! Keys of an attacker: distinct keys that the default hash maps to one
//! value. Operations are counted, not timed.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::cell::Cell;

use tamis::summary::{FilterStack, Interpolation, NoSummary, SummaryBuilder};
use tamis::table::{Chained, ChainedBuilder, Multilevel, MultilevelBuilder};
use tamis::{
    Balanced, Blocked, Bloom, Error, FilterMut, HashId, Key, KeyHasher,
    Overflow, Scheme, Shared, Split, TinySet, Window,
};

/// The first 8 bytes of XXH3's secret. In a key of 17 to 128 bytes XXH3
/// multiplies bytes 8 to 15 by the difference of bytes 0 to 7 and these, for
/// seed 0: equal to them, they cancel bytes 8 to 15.
const SECRET: [u8; 8] = [0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe];

std::thread_local! {
    static COMPARISONS: Cell<u64> = const { Cell::new(0) };
}

/// A key whose comparisons are counted.
#[derive(Debug, Clone, Copy)]
struct Hostile([u8; 32]);

impl Hostile {
    fn new(number: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&SECRET);
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        Self(bytes)
    }
}

impl Key for Hostile {
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.0)
    }
}

impl PartialEq for Hostile {
    fn eq(&self, other: &Self) -> bool {
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Hostile {}

/// Asserts that `operation` compares at most `bound` keys.
fn bounded<R>(bound: u64, operation: impl FnOnce() -> R) -> R {
    let before = COMPARISONS.get();
    let result = operation();
    let compared = COMPARISONS.get() - before;
    assert!(compared <= bound, "{compared} comparisons, expected {bound}");
    result
}

const COUNT: u64 = 40_000;

fn keys() -> impl Iterator<Item = Hostile> {
    (0..COUNT).map(Hostile::new)
}

#[test]
fn the_keys_collide_under_the_default_hash_alone() {
    let count = |hasher: KeyHasher| {
        let mut hashes: Vec<u64> = keys().map(|k| hasher.hash(&k)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len() as u64
    };
    assert_eq!(count(KeyHasher::default()), 1);
    assert_eq!(count(KeyHasher::random()), COUNT);
}

/// Comparisons of the entries of a list that share a hash, at most.
const LISTED: u64 = 8;

fn check_multilevel<B: SummaryBuilder>(
    builder: &MultilevelBuilder,
    summary: &B,
    bound: u64,
) {
    let mut table = builder.build_with::<_, _, B>(summary).unwrap();
    for (key, value) in keys().zip(0..) {
        assert_eq!(bounded(bound, || table.insert(key, value)), Ok(None));
    }
    assert_eq!(table.len() as u64, COUNT);
    for (key, value) in keys().zip(0..) {
        assert_eq!(bounded(bound, || table.get(&key).copied()), Some(value));
    }
    let absent = Hostile::new(COUNT);
    assert_eq!(bounded(bound, || table.get(&absent).copied()), None);
    for value in (0..COUNT).rev() {
        let key = Hostile::new(value);
        assert_eq!(bounded(bound, || table.remove(&key)), Some(value));
    }
    assert!(table.is_empty());
}

#[test]
fn a_multilevel_table_with_a_stash_compares_few_keys() {
    let fixed = Multilevel::builder().hasher(KeyHasher::default());
    for entries in [1, 4] {
        let builder = fixed.clone().items(COUNT).bucket_entries(entries);
        let builder = builder.stash(COUNT as usize);
        let levels = builder.shape().unwrap().levels().len() as u64;
        let bound = LISTED + levels * u64::from(entries);
        check_multilevel(&builder, &NoSummary::builder(), bound);
        check_multilevel(&builder, &Interpolation::builder(), bound);
        check_multilevel(&builder, &FilterStack::builder(), bound);
    }
    // A key of its own for each table: all levels, hardly any stash.
    let builder = Multilevel::builder().items(COUNT).stash(64);
    check_multilevel(&builder, &FilterStack::builder(), LISTED + 6);
}

fn check_chained(builder: &ChainedBuilder, bound: u64) {
    let mut table = builder.build().unwrap();
    for (key, value) in keys().zip(0u64..) {
        assert_eq!(bounded(bound, || table.insert(key, value)), None);
    }
    assert_eq!(table.len() as u64, COUNT);
    for (key, value) in keys().zip(0..) {
        assert_eq!(bounded(bound, || table.get(&key).copied()), Some(value));
    }
    table.rebalance();
    let absent = Hostile::new(COUNT);
    assert_eq!(bounded(bound, || table.get(&absent).copied()), None);
    for value in (0..COUNT).rev() {
        let key = Hostile::new(value);
        assert_eq!(bounded(bound, || table.remove(&key)), Some(value));
    }
    assert!(table.is_empty());
}

#[test]
fn a_chained_table_compares_few_keys() {
    let builder = Chained::builder().items(COUNT);
    for hasher in [KeyHasher::default(), KeyHasher::random()] {
        let builder = builder.clone().hasher(hasher);
        for scheme in Scheme::ALL {
            let builder = builder.clone().scheme(scheme);
            let design = builder.design().unwrap();
            let fullest = u64::from(design.threshold.unwrap()) + 1;
            let buckets = design.level_shares.len() as u64;
            check_chained(&builder, fullest * buckets + LISTED);
        }
        // Plain chaining, without a threshold.
        let builder = builder.scheme(Scheme::Single).overflow_fraction(0.0);
        assert_eq!(builder.design().unwrap().threshold, None);
        check_chained(&builder, 4 * 8 + 64 + 1 + LISTED);
    }
}

/// Six levels of one entry take six colliding keys; the error names the cause.
#[test]
fn full_tables_are_errors_that_name_the_cause() {
    let fixed = Multilevel::builder().hasher(KeyHasher::default());
    let mut table = fixed.items(200_000).build().unwrap();
    let failed = keys().find_map(|key| table.insert(key, ()).err()).unwrap();
    assert_eq!((failed.key, table.len()), (Hostile::new(6), 6));
    let message = Error::from(failed).to_string();
    assert!(message.contains("chosen to collide"), "{message}");
    // A secret hash repairs the table.
    table.rebuild(Some(KeyHasher::random())).unwrap();
    assert!(keys().all(|key| table.insert(key, ()).is_ok()));

    let fixed = Chained::builder().hasher(KeyHasher::default());
    let builder = fixed.items(200_000).list(100);
    let threshold = builder.design().unwrap().threshold.unwrap() as usize;
    let mut table = builder.build().unwrap();
    let failed = keys().find_map(|k| table.try_insert(k, ()).err()).unwrap();
    let taken = table.len() - 100;
    assert!((3 * threshold..=3 * threshold + 3).contains(&taken), "{taken}");
    assert!(failed.to_string().contains("chosen to collide"));
    assert!(!table.contains_key(&failed.key));
    assert_eq!(table.insert(failed.key, ()), None);
}

#[cfg(unix)]
#[test]
fn a_table_on_disk_stores_its_secret_hash() {
    use std::os::unix::fs::PermissionsExt as _;
    use tamis::table::OnDisk;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let builder = Multilevel::builder().items(2000);
    let summary = Interpolation::builder();
    let mut table =
        OnDisk::create(&path, (32, 0), &builder, &summary).unwrap();
    for key in keys().take(2000) {
        assert!(table.insert(&key.0, &[]).unwrap());
    }
    drop(table);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let table = OnDisk::open(&path, &summary).unwrap();
    for key in keys().take(2000) {
        assert_eq!(table.get(&key.0).unwrap(), Some(Vec::new()));
    }
    assert_eq!(table.io().reads, 2000);

    // With the frozen hash: one read per level at most, then an error.
    let path = directory.path().join("frozen");
    let builder = builder.hasher(KeyHasher::default());
    let mut table =
        OnDisk::create(&path, (32, 0), &builder, &summary).unwrap();
    for (i, key) in keys().enumerate().take(100) {
        let before = table.io().reads;
        let result = table.insert(&key.0, &[]);
        // The search, and the levels of the key's string, recorded again.
        assert!(table.io().reads - before <= 12, "{i}");
        assert_eq!(result.is_ok(), i < 6, "{i}");
        assert!(i < 6 || result == Err(Error::TableFull));
    }
}

/// One inserted key makes all colliding ones "present", unless the filter has
/// a secret.
#[test]
fn keyed_filters_are_not_fooled() {
    fn check(
        name: &str,
        mut frozen: impl FilterMut,
        mut keyed: impl FilterMut,
    ) {
        assert_eq!(frozen.hasher(), &KeyHasher::default());
        assert_eq!(keyed.hasher().id(), HashId::SipHash13);
        let [first, ..] = [0].map(Hostile::new);
        frozen.insert_hash(frozen.hasher().hash(&first));
        keyed.insert_hash(keyed.hasher().hash(&first));
        let fooled = |filter: &dyn tamis::Filter| {
            let hasher = *filter.hasher();
            keys().filter(|k| filter.contains_hash(hasher.hash(k))).count()
        };
        assert_eq!(fooled(&frozen) as u64, COUNT, "{name}");
        // The rate with one key is far below the design's 1 %.
        assert!(fooled(&keyed) < 400, "{name}");
    }
    macro_rules! check_all {
        ($($kind:ident),*) => {$({
            let builder = $kind::builder().items(1000).fpr(0.01);
            let filters = [builder, builder.keyed()].map(|b| b.build());
            let [frozen, keyed] = filters.map(Result::unwrap);
            check(stringify!($kind), frozen, keyed);
        })*};
    }
    check_all!(Bloom, Blocked, Split, Balanced, TinySet);
    let builder = TinySet::builder().items(1000).fpr(0.01);
    let windows = [builder, builder.keyed()].map(Window::new);
    let [frozen, keyed] = windows.map(Result::unwrap);
    check("Window", frozen, keyed);
    let shared = Shared::from(builder.keyed().build().unwrap());
    shared.insert(&Hostile::new(0));
    let fooled = keys().filter(|key| shared.contains(key)).count();
    assert!(fooled < 400, "{fooled}");
}

/// Equal hashes are one entry of the overflow list.
#[test]
fn a_balanced_filter_lists_equal_hashes_once() {
    let builder = Balanced::builder().items(1000).bits_per_key(20.0);
    let builder = builder.overflow(Overflow::List);
    let mut filter = builder.build().unwrap();
    let size = filter.to_bytes().len();
    for key in keys() {
        filter.insert_distinct_hash(filter.hasher().hash(&key));
    }
    assert!(filter.to_bytes().len() <= size + 8);
}

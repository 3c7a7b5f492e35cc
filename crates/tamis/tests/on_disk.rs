//! Tables with their buckets in a file: histories against a map, and reads
//! counted by the table and by the operating system.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;
use support::key;
use tamis::summary::{
    FilterStack, Interpolation, LevelFilter, NoSummary, SummaryBuilder,
    TypeFilter,
};
use tamis::table::{Multilevel, MultilevelBuilder, OnDisk};
use tamis::{Error, KeyHasher};

/// The counts of the system are those of the process: its tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A field of `/proc/self/io`; `None` where the system has no such file.
fn counted(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim_start_matches(':').trim().parse().ok()
}

/// Exactly one `pread` for every present key, by the counts of the table and
/// of the system.
fn check_one_read<B: SummaryBuilder>(what: &str, summary: &B, items: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let builder = Multilevel::builder()
        .hasher(KeyHasher::default())
        .items(items)
        .crisis_budget(1e-6);
    let mut table = OnDisk::create(&path, (8, 8), &builder, summary).unwrap();
    for i in 0..items {
        let new = table.insert(&key(1, i).to_le_bytes(), &i.to_le_bytes());
        assert!(new.unwrap());
    }
    assert_eq!(table.io().writes, items, "{what}: one write per insertion");
    let misnamed = table.audit().unwrap();
    let before = table.io();
    let outside = counted("syscr");
    for i in 0..items {
        let value = table.get(&key(1, i).to_le_bytes()).unwrap();
        assert_eq!(value.as_deref(), Some(&i.to_le_bytes()[..]), "{what}");
    }
    let after = counted("syscr");
    assert_eq!(table.io().reads - before.reads, items, "{what}");
    assert_eq!(table.io().scan_reads, before.scan_reads);
    if let (Some(before), Some(after)) = (outside, after) {
        // The reads of `/proc/self/io` itself are counted as well.
        let reads = after - before;
        assert!((items..items + 10).contains(&reads), "{what}: {reads}");
    }
    let before = table.io().reads;
    let absent = 20_000.min(items);
    for i in 0..absent {
        let value = table.get(&key(2, i).to_le_bytes()).unwrap();
        assert_eq!(value, None);
    }
    let read = table.io().reads - before;
    println!("{what}: {misnamed} misnamed, {read} of {absent} absent read");
    assert!(read as f64 <= 0.015 * absent as f64, "{what}: {read}");
    // Opened again, the file gives the same answers.
    drop(table);
    let table = OnDisk::open(&path, summary).unwrap();
    assert_eq!(table.len(), items);
    for i in (0..items).step_by(97) {
        let value = table.get(&key(1, i).to_le_bytes()).unwrap();
        assert_eq!(value.as_deref(), Some(&i.to_le_bytes()[..]), "{what}");
    }
    assert_eq!(table.io().reads, items.div_ceil(97));
}

fn check_all(items: u64) {
    check_one_read("interpolation", &Interpolation::builder(), items);
    check_one_read("type filter", &TypeFilter::builder(), items);
    check_one_read("filter stack", &FilterStack::builder(), items);
}

#[test]
fn present_keys_are_read_once() {
    let _alone = alone();
    check_all(20_000);
}

/// Run alone: `cargo xtask slow`.
#[test]
#[cfg_attr(not(feature = "slow-tests"), ignore = "slow tier")]
fn a_million_present_keys_are_read_once() {
    let _alone = alone();
    check_all(1_000_000);
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u16, u8),
    Remove(u16),
    Audit,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (0..80u16, any::<u8>()).prop_map(|(k, v)| Op::Insert(k, v)),
        12 => (0..80u16).prop_map(Op::Remove),
        1 => Just(Op::Audit),
        1 => Just(Op::Reopen),
    ]
}

fn follow<B: SummaryBuilder>(
    builder: &MultilevelBuilder,
    summary: &B,
    ops: &[Op],
) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let mut table = OnDisk::create(&path, (2, 1), builder, summary).unwrap();
    let mut model = HashMap::new();
    for op in ops {
        match *op {
            Op::Insert(k, v) => match table.insert(&k.to_le_bytes(), &[v]) {
                Ok(new) => assert_eq!(new, model.insert(k, v).is_none()),
                Err(error) => {
                    assert_eq!(error, Error::TableFull);
                    assert!(!model.contains_key(&k));
                }
            },
            Op::Remove(k) => {
                let removed = table.remove(&k.to_le_bytes()).unwrap();
                assert_eq!(removed, model.remove(&k).is_some());
            }
            Op::Audit => {
                table.audit().unwrap();
            }
            Op::Reopen => {
                drop(table);
                table = OnDisk::open(&path, summary).unwrap();
            }
        }
        assert_eq!(table.len(), model.len() as u64);
    }
    for k in 0..100u16 {
        let value = table.get(&k.to_le_bytes()).unwrap();
        assert_eq!(value, model.get(&k).map(|&v| vec![v]), "{k}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn histories_match_the_model(
        levels in proptest::collection::vec(1u64..40, 1..=5),
        entries in 1u32..=4,
        bits in 2u64..300,
        ops in proptest::collection::vec(op(), 0..200),
    ) {
        let _alone = alone();
        let builder = Multilevel::builder()
            .levels(&levels)
            .bucket_entries(entries)
            .hasher(KeyHasher::siphash(u128::from(bits)));
        let filters: Vec<LevelFilter> = levels
            .iter()
            .map(|_| LevelFilter::Bloom { cells: bits, probes: 2 })
            .collect();
        follow(&builder, &NoSummary::builder(), &ops);
        let strings = Interpolation::builder().bits(1 + bits as u32 % 12);
        follow(&builder, &strings, &ops);
        let cells = TypeFilter::builder().cells(bits).probes(2);
        follow(&builder, &cells, &ops);
        follow(&builder, &FilterStack::builder().filters(&filters), &ops);
    }
}

/// No damaged file opens, and none panics.
#[test]
fn damaged_files_are_errors() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let builder =
        Multilevel::builder().hasher(KeyHasher::default()).levels(&[20, 10]);
    let summary = Interpolation::builder();
    let mut table = OnDisk::create(&path, (4, 2), &builder, &summary).unwrap();
    for i in 0..15u32 {
        table.insert(&i.to_le_bytes(), b"xy").unwrap();
    }
    // One table at a time.
    let again = OnDisk::open(&path, &summary).unwrap_err();
    assert!(matches!(again, Error::Busy { .. }), "{again}");
    drop(table);
    let good = std::fs::read(&path).unwrap();
    assert!(OnDisk::open(&path, &summary).is_ok());
    let opens = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        OnDisk::open(&path, &summary).map(|table| table.len())
    };
    for at in 0..124 {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let error = opens(&bytes).unwrap_err();
        let expected =
            matches!(error, Error::NotTamis { .. } | Error::Checksum { .. });
        assert!(expected, "byte {at}: {error}");
    }
    for len in [0, 7, 64, 4095, good.len() - 1] {
        assert!(opens(&good[..len]).is_err(), "{len}");
    }
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(opens(&longer), Err(Error::Length { .. })));
    let mut bytes = good.clone();
    bytes[4096] = 7;
    assert!(matches!(opens(&bytes), Err(Error::Inconsistent(_))));
    assert_eq!(opens(&good), Ok(15));
    // A file cut while it is open is an error of the operating system.
    let table = OnDisk::open(&path, &summary).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(4096).unwrap();
    assert!(matches!(table.get(&3u32.to_le_bytes()), Err(Error::Io(_))));
    file.write_all_at(b"x", 0).unwrap();
}

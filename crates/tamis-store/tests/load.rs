//! Bulk loading: content, space, temporary files.

use std::collections::BTreeMap;
use std::path::Path;

use tamis_store::{Durability, Error, Options, Result, Store};

fn options() -> Options {
    Options::new()
        .ram(8 << 20)
        .segment_bytes(256 << 10)
        .background(false)
        .durability(Durability::None)
}

fn key(n: u64) -> Vec<u8> {
    let mut key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec();
    key.resize(8 + n as usize % 17, n as u8);
    key
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = [n.to_le_bytes(), version.to_le_bytes()].concat();
    value.resize(16 + (n * 7 + version) as usize % 170, version as u8);
    value
}

fn temporary_files(dir: &Path) -> usize {
    let names = std::fs::read_dir(dir).expect("a directory");
    let names = names.map(|e| e.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().starts_with("load-")).count()
}

/// Twenty times the memory of the loader, each tenth key twice.
#[test]
fn an_empty_store_is_loaded() -> Result<()> {
    const N: u64 = 120_000;
    let dir = tempfile::tempdir().expect("a directory");
    let options = options().buffer_bytes(512 << 10);
    let store = Store::create(dir.path(), &options)?;
    let mut loader = store.loader()?;
    let mut raw = 0;
    for n in 0..N {
        loader.put(key(n), value(n, 0))?;
        if n % 10 == 3 {
            loader.put(key(n / 2), value(n / 2, 1))?;
        }
    }
    assert_eq!(temporary_files(dir.path()), 1);
    assert_eq!(store.stats()?.records, 0);
    assert!(store.get(key(7))?.is_none());
    assert_eq!(loader.finish()?, N + N / 10);
    assert_eq!(temporary_files(dir.path()), 0);

    let version = |n: u64| u64::from(n < N / 2 && n % 5 == 1);
    for n in 0..N {
        let expected = value(n, version(n));
        raw += (key(n).len() + expected.len() + 4) as u64;
        assert_eq!(store.get(key(n))?, Some(expected), "record {n}");
    }
    let stats = store.stats()?;
    assert_eq!(stats.records, N);
    assert_eq!(stats.io.block_reads, N + stats.io.absent_reads);
    assert_eq!(stats.io.log_bytes, 0);
    let space = stats.disk.data as f64 / raw as f64;
    assert!(space <= 1.06, "{space} times raw + 4 bytes a record");
    assert_eq!(store.verify()?.records, N);
    assert!(stats.ram.total() <= stats.ram.budget);

    // It is durable, and the memory of the loader is free again.
    assert_eq!(stats.ram.buffer, 0);
    std::mem::forget(store);
    Ok(())
}

#[test]
fn a_load_replaces_what_was_there_before() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    let mut model = BTreeMap::new();
    let large = |n: u64| vec![n as u8; 70_000];
    for n in 0..4000 {
        store.put(key(n), value(n, 0))?;
        model.insert(key(n), value(n, 0));
    }
    store.put(key(8), large(8))?;
    store.compact()?;
    for n in (0..4000).step_by(3) {
        store.delete(key(n))?;
        model.remove(&key(n));
    }
    store.put(key(10), large(10))?;
    model.insert(key(8), large(8));
    model.insert(key(10), large(10));
    let snapshot = store.snapshot()?;

    let mut dropped = store.loader()?;
    dropped.put(key(1), "never seen")?;
    dropped.put(key(2), large(2))?;
    drop(dropped);

    let mut loader = store.loader()?;
    let mut loaded = model.clone();
    for n in (2000..6000).step_by(2) {
        loader.put(key(n), value(n, 2))?;
        loaded.insert(key(n), value(n, 2));
    }
    loader.put(key(10), large(1))?;
    loader.put(key(11), large(2))?;
    loader.put(key(11), large(3))?;
    loaded.insert(key(10), large(1));
    loaded.insert(key(11), large(3));
    loader.finish()?;

    let read = store.iter()?.collect::<Result<BTreeMap<_, _>>>()?;
    assert!(read == loaded, "the store has other records");
    let before = snapshot.iter().collect::<Result<BTreeMap<_, _>>>()?;
    assert!(before == model, "the snapshot has changed");
    drop(snapshot);
    store.put(key(5), "later")?;
    store.compact()?;
    store.verify()?;
    // Three large values: none that was replaced keeps its space.
    assert_eq!(store.stats()?.disk.large_values, 3 * 18 * 4096);
    assert_eq!(store.stats()?.disk.waiting, 0);
    assert_eq!(store.get(key(5))?.as_deref(), Some(&b"later"[..]));
    Ok(())
}

#[test]
fn a_loader_needs_memory_and_a_writer() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new().ram(4 << 20).segment_bytes(64 << 10);
    let store = Store::create(dir.path(), &options)?;
    let reader = Store::open_read_only(dir.path(), &options)?;
    assert!(matches!(reader.loader(), Err(Error::ReadOnly)));
    // Filters of 22 bits for records of 12 bytes exceed 4 MiB.
    let mut loader = store.loader()?;
    for n in 0..3_000_000u64 {
        loader.put(n.to_le_bytes(), [n as u8])?;
    }
    let full = loader.finish();
    assert!(matches!(full, Err(Error::Ram { .. })), "{full:?}");
    assert_eq!(temporary_files(dir.path()), 0);
    assert_eq!(store.iter()?.count(), 0);
    store.put("key", "value")?;
    assert!(store.contains("key")?);
    Ok(())
}

/// The space of values that were replaced is used again.
#[test]
fn a_large_value_that_is_overwritten_takes_little_space() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    for n in 0..1000 {
        store.put(key(n), value(n, 0))?;
    }
    for turn in 0..200u8 {
        store.put("large", vec![turn; 1 << 20])?;
        let length = store.stats()?.disk.data;
        assert!(length < 9 << 20, "{length} bytes at turn {turn}");
    }
    assert_eq!(store.get("large")?, Some(vec![199; 1 << 20]));
    store.verify()?;
    Ok(())
}

/// `compact` merges the writes before it, and ends.
#[test]
fn compaction_ends_beside_a_writer() -> Result<()> {
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = tempfile::tempdir().expect("a directory");
    let options = options().background(true).buffer_bytes(1 << 20);
    let store = Store::create(dir.path(), &options)?;
    for n in 0..20_000 {
        store.put(key(n), value(n, 0))?;
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<u64> {
            let mut writes = 0;
            while !done.load(Ordering::Acquire) {
                store.put(key(writes % 20_000), value(writes, 1))?;
                writes += 1;
            }
            Ok(writes)
        });
        for _ in 0..3 {
            store.compact()?;
        }
        done.store(true, Ordering::Release);
        assert!(writer.join().expect("no panic")? > 0);
        Ok(())
    })
}

/// A program that is killed leaves its temporary file to the next one.
#[test]
fn temporary_files_are_removed() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    drop(Store::create(dir.path(), &options())?);
    let left = dir.path().join("load-0000000000000001");
    std::fs::write(&left, "left").expect("written");
    drop(Store::open(dir.path(), &options())?);
    assert!(!left.exists());
    Ok(())
}

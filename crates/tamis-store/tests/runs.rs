//! Runs: writes that were spilled and are yet to be merged.

use std::collections::BTreeMap;

use tamis_store::{Durability, Options, Result, Store};

fn options() -> Options {
    Options::new()
        .ram(16 << 20)
        .segment_bytes(128 << 10)
        .buffer_bytes(96 << 10)
        .background(false)
        .durability(Durability::None)
}

fn key(n: u64) -> Vec<u8> {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec()
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = [n.to_le_bytes(), version.to_le_bytes()].concat();
    value.resize(16 + (n * 7 + version) as usize % 170, version as u8);
    value
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const N: u64 = 40_000;

/// A store with runs, and its records.
fn store(dir: &std::path::Path) -> Result<(Store, Model)> {
    let store = Store::create(dir, &options())?;
    let mut model = Model::new();
    let mut loader = store.loader()?;
    for n in 0..N {
        loader.put(key(n), value(n, 0))?;
        model.insert(key(n), value(n, 0));
    }
    loader.finish()?;
    for i in 0..30_000 {
        let n = i * 7919 % (N + N / 8);
        if i % 5 == 0 {
            store.delete(key(n))?;
            model.remove(&key(n));
        } else if i % 1013 == 0 {
            store.put(key(n), vec![i as u8; 70_000])?;
            model.insert(key(n), vec![i as u8; 70_000]);
        } else {
            store.put(key(n), value(n, i))?;
            model.insert(key(n), value(n, i));
        }
    }
    let stats = store.stats()?;
    assert!(stats.spilled > N / 50, "{} spilled", stats.spilled);
    assert!(stats.disk.runs * 7 <= stats.disk.records, "{:?}", stats.disk);
    assert!(stats.ram.total() <= stats.ram.budget);
    Ok((store, model))
}

fn check(store: &Store, model: &Model) -> Result<()> {
    let before = store.stats()?.io;
    let mut large = 0;
    for n in 0..N + N / 8 {
        let found = store.get(key(n))?;
        let expected = model.get(&key(n));
        assert!(found.as_ref() == expected, "record {n}");
        large += u64::from(found.is_some_and(|value| value.len() > 65_536));
    }
    // One read for each, or none.
    let after = store.stats()?.io;
    let reads = after.block_reads - before.block_reads;
    let absent = after.absent_reads - before.absent_reads;
    assert!(reads - absent <= model.len() as u64);
    assert!(absent < N / 200, "{absent} reads of absent keys");
    assert_eq!(after.large_reads - before.large_reads, large);
    let read = store.iter()?.collect::<Result<Model>>()?;
    assert!(read == *model, "iteration gives other records");
    store.verify()?;
    Ok(())
}

#[test]
fn runs_are_read_as_written() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, model) = store(dir.path())?;
    check(&store, &model)?;
    let snapshot = store.snapshot()?;
    let spilled = store.stats()?.spilled;
    store.compact()?;
    assert_eq!(store.stats()?.spilled, 0);
    check(&store, &model)?;
    let held = snapshot.iter().collect::<Result<Model>>()?;
    assert!(held == model, "the snapshot has changed");
    drop(snapshot);
    assert!(spilled > 0);
    store.compact()?;
    assert_eq!(store.stats()?.disk.waiting, 0);
    Ok(())
}

#[test]
fn runs_are_found_when_a_store_is_opened() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, model) = store(dir.path())?;
    store.close()?;
    let reader = Store::open_read_only(dir.path(), &options())?;
    assert!(reader.stats()?.spilled > 0, "no run is in the manifest");
    check(&reader, &model)?;
    drop(reader);
    let store = Store::open(dir.path(), &options())?;
    check(&store, &model)?;
    store.compact()?;
    check(&store, &model)
}

/// A changed bit of a run is an error or has no effect.
#[test]
fn damaged_runs_are_detected() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, model) = store(dir.path())?;
    store.close()?;
    let path = dir.path().join("data");
    let bytes = std::fs::read(&path).expect("a file");
    let mut detected = 0;
    for i in 0..60 {
        let mut damaged = bytes.clone();
        damaged[8192 + i * (bytes.len() - 8192) / 60] ^= 1 << (i % 8);
        std::fs::write(&path, &damaged).expect("written");
        let read =
            Store::open_read_only(dir.path(), &options()).and_then(|store| {
                store.verify()?;
                store.iter()?.collect::<Result<Model>>()
            });
        match read {
            Ok(read) => assert!(read == model, "damage {i} was returned"),
            Err(tamis_store::Error::Corrupt { .. }) => detected += 1,
            Err(error) => panic!("damage {i}: {error}"),
        }
    }
    assert!(detected > 30, "{detected} of 60");
    Ok(())
}

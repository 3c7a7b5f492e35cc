//! Readers, snapshots and writers in several threads while segments are
//! merged, split and joined.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tamis_store::{
    Batch, Disk, DiskFile, Durability, Error, Files, Lock, LockKind, Mode,
    Options, ReadMode, Result, Store,
};

fn options() -> Options {
    Options::new()
        .ram(8 << 20)
        .buffer_bytes(256 << 10)
        .segment_bytes(32 << 10)
        .durability(Durability::Interval(Duration::from_millis(5)))
}

/// A value that names its key and its version, of varying length.
fn value(key: u64, version: u64) -> Vec<u8> {
    let mut value = [key.to_le_bytes(), version.to_le_bytes()].concat();
    value.resize(16 + (key * 7 + version) as usize % 200, version as u8);
    value
}

fn version(key: u64, value: &[u8]) -> u64 {
    let version = u64::from_le_bytes(value[8..16].try_into().expect("8"));
    assert_eq!(value, self::value(key, version), "a value of another key");
    version
}

#[test]
fn readers_see_every_write_that_returned() -> Result<()> {
    const KEYS: u64 = 4000;
    const ROUNDS: u64 = 12;
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    // For each key the version of the last put that returned.
    let returned: Vec<AtomicU64> = (0..KEYS).map(|_| 0.into()).collect();
    let done = AtomicBool::new(false);
    let (store, returned, done) = (&store, &returned, &done);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|lane| {
                scope.spawn(move || -> Result<()> {
                    for round in 1..=ROUNDS {
                        for key in (lane..KEYS).step_by(2) {
                            let bytes = key.to_le_bytes();
                            store.put(bytes, value(key, round))?;
                            returned[key as usize]
                                .store(round, Ordering::Release);
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let readers: Vec<_> = (0..3u64)
            .map(|lane| {
                scope.spawn(move || -> Result<u64> {
                    let mut checks = 0;
                    let mut at = lane;
                    while !done.load(Ordering::Acquire) {
                        at = (at * 31 + 7) % KEYS;
                        let least =
                            returned[at as usize].load(Ordering::Acquire);
                        let found = store.get(at.to_le_bytes())?;
                        let seen = found.map_or(0, |v| version(at, &v));
                        assert!(seen >= least, "{seen} before {least}");
                        if checks % 64 == 0 {
                            let keys: Vec<_> = (0..64)
                                .map(|i| ((at + i) % KEYS).to_le_bytes())
                                .collect();
                            for (key, found) in
                                keys.iter().zip(store.get_many(&keys)?)
                            {
                                if let Some(found) = found {
                                    let key = u64::from_le_bytes(*key);
                                    version(key, &found);
                                }
                            }
                        }
                        checks += 1;
                    }
                    Ok(checks)
                })
            })
            .collect();
        let written: Result<Vec<()>> =
            writers.into_iter().map(|t| t.join().expect("no panic")).collect();
        done.store(true, Ordering::Release);
        for reader in readers {
            assert!(reader.join().expect("no panic")? > 0);
        }
        written.map(|_| ())
    })?;
    assert!(store.stats()?.io.merges > 0, "nothing was merged");
    store.compact()?;
    assert_eq!(store.verify()?.records, KEYS);
    for key in 0..KEYS {
        let found = store.get(key.to_le_bytes())?.expect("present");
        assert_eq!(version(key, &found), ROUNDS);
    }
    Ok(())
}

/// Money moves between accounts in batches: every snapshot has all of it.
#[test]
fn snapshots_see_whole_batches() -> Result<()> {
    const ACCOUNTS: u64 = 600;
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    let amount = |bytes: &[u8]| {
        u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))
    };
    let money = |n: u64| {
        let mut value = n.to_le_bytes().to_vec();
        value.resize(150, n as u8);
        value
    };
    let mut batch = Batch::new();
    for account in 0..ACCOUNTS {
        batch.put(account.to_le_bytes(), money(1000))?;
    }
    store.write_batch(&batch)?;
    let done = AtomicBool::new(false);
    let (store, done, money) = (&store, &done, &money);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<()> {
            let mut at = 1u64;
            for _ in 0..10_000 {
                at = at.wrapping_mul(6_364_136_223_846_793_005) + 1;
                let from = (at >> 33) % ACCOUNTS;
                let to = (from + 1 + (at >> 50) % (ACCOUNTS - 1)) % ACCOUNTS;
                let read = |account: u64| -> Result<u64> {
                    let found = store.get(account.to_le_bytes())?;
                    Ok(amount(&found.expect("an account")))
                };
                let (a, b) = (read(from)?, read(to)?);
                let moved = a / 2;
                let mut batch = Batch::new();
                batch.put(from.to_le_bytes(), money(a - moved))?;
                batch.put(to.to_le_bytes(), money(b + moved))?;
                store.write_batch(&batch)?;
            }
            Ok(())
        });
        let reader = scope.spawn(move || -> Result<u64> {
            let mut snapshots = 0;
            while !done.load(Ordering::Acquire) {
                let snapshot = store.snapshot()?;
                for _ in 0..2 {
                    let mut sum = 0;
                    let mut accounts = 0;
                    for record in &snapshot {
                        sum += amount(&record?.1);
                        accounts += 1;
                    }
                    assert_eq!((accounts, sum), (ACCOUNTS, ACCOUNTS * 1000));
                }
                snapshots += 1;
            }
            Ok(snapshots)
        });
        let written = writer.join().expect("no panic");
        done.store(true, Ordering::Release);
        assert!(reader.join().expect("no panic")? > 0);
        written
    })
}

#[test]
fn one_writer_and_readers_beside_it() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    for key in 0..2000u64 {
        store.put(key.to_le_bytes(), value(key, 1))?;
    }
    store.flush()?;
    let second = Store::open(dir.path(), &options());
    assert!(matches!(second, Err(Error::Locked)), "{second:?}");
    let exists = Store::create(dir.path(), &options());
    assert!(exists.is_err(), "a store was created over another");
    let reader = Store::open_read_only(dir.path(), &options())?;
    for version in 2..8 {
        for key in 0..2000u64 {
            store.put(key.to_le_bytes(), value(key, version))?;
        }
    }
    store.compact()?;
    // The reader has the state of its opening, for as long as it is open.
    for key in 0..2000u64 {
        let found = reader.get(key.to_le_bytes())?.expect("present");
        assert_eq!(version(key, &found), 1);
    }
    assert!(matches!(reader.delete([1]), Err(Error::ReadOnly)));
    assert!(store.stats()?.disk.waiting > 0, "space was freed too early");
    drop(reader);
    store.compact()?;
    assert_eq!(store.stats()?.disk.waiting, 0);
    let reader = Store::open_read_only(dir.path(), &options())?;
    assert_eq!(reader.iter()?.count(), 2000);
    Ok(())
}

/// Another process may read while one writer ends and the next begins.
#[test]
fn a_reader_keeps_its_records_when_the_writer_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options::new().ram(8 << 20).segment_bytes(64 << 10).background(false);
    let write = |store: &Store, version: u8| {
        for i in 0..5000u32 {
            store.put(i.to_le_bytes(), [version; 100]).unwrap();
        }
        store.compact().unwrap();
    };
    let store = Store::create(dir.path(), &options).unwrap();
    write(&store, 0);
    let reader = Store::open_read_only(dir.path(), &options).unwrap();
    write(&store, 1);
    store.close().unwrap();
    for version in 2..5 {
        let store = Store::open(dir.path(), &options).unwrap();
        write(&store, version);
        store.close().unwrap();
    }
    for i in 0..5000u32 {
        let value = reader.get(i.to_le_bytes()).unwrap();
        assert_eq!(value.as_deref(), Some(&[0; 100][..]));
    }
    drop(reader);
    let store = Store::open(dir.path(), &options).unwrap();
    store.verify().unwrap();
    assert_eq!(store.get(7u32.to_le_bytes()).unwrap(), Some(vec![4; 100]));
}

/// A batch of a third of the buffer finds room although merging keeps only a
/// fifth free.
#[test]
fn large_batches_find_room() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new()
        .ram(8 << 20)
        .segment_bytes(64 << 10)
        .durability(Durability::None);
    let store = Store::create(dir.path(), &options).unwrap();
    let limit = store.stats().unwrap().ram.buffer_limit as usize;
    let records = limit / 3 / 1100;
    for round in 0..12u32 {
        let mut batch = tamis_store::Batch::new();
        for i in 0..records as u32 {
            batch.put((round << 16 | i).to_le_bytes(), [1; 1000]).unwrap();
        }
        store.write_batch(&batch).unwrap();
    }
    assert!(store.contains((11u32 << 16).to_le_bytes()).unwrap());
}

/// A directory whose reads take a time, and whose data file refuses writes
/// while it is full.
#[derive(Debug)]
struct Odd(Files, Behaviour);

#[derive(Debug, Clone, Default)]
struct Behaviour {
    read_time: Duration,
    full: Arc<AtomicBool>,
}

#[derive(Debug)]
struct OddFile(Arc<dyn DiskFile>, Behaviour);

impl Disk for Odd {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut behaviour = self.1.clone();
        if name != "data" {
            behaviour.full = Arc::default();
        }
        Ok(Arc::new(OddFile(self.0.open(name, mode)?, behaviour)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.0.sync_dir()
    }

    fn lock(
        &self,
        name: &str,
        kind: LockKind,
    ) -> io::Result<Option<Box<dyn Lock>>> {
        self.0.lock(name, kind)
    }
}

impl DiskFile for OddFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.1.read_time.is_zero() {
            std::thread::sleep(self.1.read_time);
        }
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.1.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.punch(offset, len)
    }
}

/// The threads of `get_many` hold nothing of a store that was closed.
#[test]
fn a_store_opens_directly_after_overlapping_reads() {
    let dir = tempfile::tempdir().unwrap();
    let slow = Behaviour {
        read_time: Duration::from_micros(50),
        ..Behaviour::default()
    };
    let disk: Arc<dyn Disk> = Arc::new(Odd(Files::new(dir.path()), slow));
    let options = options().read_threads(16);
    let store = Store::create_on(Arc::clone(&disk), &options).unwrap();
    let keys: Vec<[u8; 8]> = (0..1000u64).map(u64::to_le_bytes).collect();
    for key in &keys {
        store.put(key, [7; 500]).unwrap();
    }
    store.compact().unwrap();
    store.close().unwrap();
    for round in 0..20 {
        let store = Store::open_on(Arc::clone(&disk), &options)
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        let start = round * 31 % 900;
        let found = store.get_many(&keys[start..start + 64]).unwrap();
        assert!(found.iter().all(|value| value.as_deref() == Some(&[7; 500])));
        store.close().unwrap();
    }
}

/// Offsets in the buffer of a slot have 32 bits: while merges fail, writers
/// stop before one slot has too much, whatever the budget.
#[test]
fn the_buffer_of_one_slot_has_a_limit() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let behaviour = Behaviour::default();
    let full = Arc::clone(&behaviour.full);
    let disk = Arc::new(Odd(Files::new(dir.path()), behaviour));
    let options = Options::new()
        .ram(64 << 20)
        .segment_bytes(16 << 10)
        .durability(Durability::None);
    let store = Store::create_on(disk, &options)?;
    full.store(true, Ordering::Relaxed);
    let mut written = 0u64;
    let error = loop {
        match store.put(written.to_le_bytes(), [1; 1000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // 256 segments.
    let held = store.stats()?.ram.buffer;
    assert!((4 << 20..6 << 20).contains(&held), "{held} bytes are buffered");
    full.store(false, Ordering::Relaxed);
    store.compact()?;
    assert_eq!(store.verify()?.records, written);
    store.put("later", "value")
}

/// Calls `read` with 0, 1 and so on until all is done, at least once.
fn repeat(
    done: &AtomicBool,
    mut read: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    for at in 0.. {
        read(at)?;
        if done.load(Ordering::Acquire) {
            break;
        }
    }
    Ok(())
}

/// Readers, snapshots, iterators, batches and read-only handles while one
/// thread writes, deletes and writes again, so that segments are merged,
/// split and joined, and another compacts. Records exist in pairs: a batch
/// writes or deletes both.
#[test]
fn all_kinds_of_readers_beside_merges_splits_and_joins() -> Result<()> {
    readers_beside_merges(ReadMode::Buffered)
}

/// The file is cut while maps of it are read.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn readers_of_maps_beside_merges_splits_and_joins() -> Result<()> {
    readers_beside_merges(ReadMode::Mapped)
}

fn readers_beside_merges(mode: ReadMode) -> Result<()> {
    const PAIRS: u64 = 3000;
    const ROUNDS: u64 = 6;
    let dir = tempfile::tempdir().expect("a directory");
    let options = options().read_mode(mode);
    let options = &options.ram(16 << 20);
    let store = Store::create(dir.path(), options)?;
    let done = AtomicBool::new(false);
    let (store, done, path) = (&store, &done, dir.path());
    let sides = |pair: u64| [pair, pair | 1 << 63].map(u64::to_le_bytes);
    // Both records of a pair, or none, of the same version.
    let same = move |pair: u64, [a, b]: [Option<Vec<u8>>; 2]| {
        assert_eq!(a, b, "half of pair {pair}");
        a.map(|a| version(pair, &a))
    };
    let halves =
        move |records: &mut dyn Iterator<Item = Result<_>>| -> Result<()> {
            let mut found = std::collections::BTreeMap::new();
            for record in records {
                let (key, value): (Vec<u8>, Vec<u8>) = record?;
                let key = u64::from_le_bytes(key[..].try_into().expect("8"));
                let pair = key & !(1 << 63);
                found.entry(pair).or_insert_with(Vec::new).push(value);
            }
            for (pair, values) in found {
                assert!(values.len() == 2 && values[0] == values[1], "{pair}");
                version(pair, &values[0]);
            }
            Ok(())
        };
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<()> {
            for round in 1..=ROUNDS {
                for pair in 0..PAIRS {
                    let mut batch = Batch::new();
                    for key in sides(pair) {
                        // Every other round leaves a tenth of the records.
                        match round % 2 == 0 && pair % 10 != 0 {
                            true => batch.delete(key)?,
                            false => batch.put(key, value(pair, round))?,
                        }
                    }
                    store.write_batch(&batch)?;
                }
            }
            Ok(())
        });
        let snapshots = scope.spawn(move || {
            repeat(done, |at| {
                let snapshot = store.snapshot()?;
                for i in 0..50 {
                    let pair = (at * 50 + i) * 7 % PAIRS;
                    let [a, b] = sides(pair);
                    let before =
                        same(pair, [snapshot.get(a)?, snapshot.get(b)?]);
                    std::thread::yield_now();
                    let again =
                        same(pair, [snapshot.get(a)?, snapshot.get(b)?]);
                    assert_eq!(before, again, "a snapshot has changed");
                }
                Ok(())
            })
        });
        let lists =
            scope.spawn(move || repeat(done, |_| halves(&mut store.iter()?)));
        let groups = scope.spawn(move || {
            repeat(done, |at| {
                let keys: Vec<_> = (0..64)
                    .flat_map(|i| sides((at * 64 + i) % PAIRS))
                    .collect();
                for (i, found) in store.get_many(&keys)?.iter().enumerate() {
                    if let Some(found) = found {
                        version((at * 64 + i as u64 / 2) % PAIRS, found);
                    }
                }
                Ok(())
            })
        });
        let others = scope.spawn(move || {
            repeat(done, |_| {
                let other = Store::open_read_only(path, options)?;
                for pair in (0..PAIRS).step_by(7) {
                    let [a, b] = sides(pair);
                    same(pair, [other.get(a)?, other.get(b)?]);
                }
                halves(&mut other.iter()?)
            })
        });
        let compactions = scope.spawn(move || {
            repeat(done, |_| {
                std::thread::sleep(Duration::from_millis(20));
                store.verify()?;
                store.compact()
            })
        });
        let readers = [snapshots, lists, groups, others, compactions];
        let written = writer.join();
        done.store(true, Ordering::Release);
        for reader in readers {
            reader.join().expect("no panic")?;
        }
        written.expect("no panic")
    })?;
    let io = store.stats()?.io;
    assert!(io.merges > 20, "{} merges", io.merges);
    store.compact()?;
    assert_eq!(store.verify()?.records, PAIRS / 10 * 2);
    Ok(())
}

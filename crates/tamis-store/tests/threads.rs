//! Readers, snapshots and writers in several threads while segments are
//! merged, split and joined.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tamis_store::{
    Batch, Disk, DiskFile, Durability, Error, Files, Lock, LockKind, Mode,
    Options, Result, Store,
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

/// A directory whose reads take as long as those of a disk.
#[derive(Debug)]
struct Slow(Files);

#[derive(Debug)]
struct SlowFile(Arc<dyn DiskFile>);

impl Disk for Slow {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile(self.0.open(name, mode)?)))
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

impl DiskFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::thread::sleep(Duration::from_micros(50));
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
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
    let disk: Arc<dyn Disk> = Arc::new(Slow(Files::new(dir.path())));
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

//! All methods of reading give the answers and the counts of single lookups:
//! read modes, queues of the disk, threads, and queues that fail.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tamis_store::{
    Disk, DiskFile, Durability, Error, Files, Lock, LockKind, Mode, Options,
    Overlap, QueueState, ReadDone, ReadMode, ReadQueue, Result, Store,
};

const KEYS: u64 = 3000;

#[cfg(any(target_os = "linux", target_os = "android"))]
const MODES: &[ReadMode] =
    &[ReadMode::Buffered, ReadMode::Direct, ReadMode::Mapped];
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const MODES: &[ReadMode] = &[ReadMode::Buffered, ReadMode::Direct];

fn options() -> Options {
    Options::new()
        .ram(8 << 20)
        .segment_bytes(64 << 10)
        .background(false)
        .spill_eagerly(true)
        .durability(Durability::None)
        .seed(7)
}

/// A value for each key: some need several pages, some an extent of their own.
fn value(key: u64, version: u64) -> Vec<u8> {
    let len = match key % 500 {
        1 => 9000,
        2 => 70_000,
        n => n % 300,
    };
    vec![(key ^ version) as u8; len as usize]
}

/// Keys with records, deleted keys and absent keys, so that segments and runs
/// have all kinds of them.
fn fill(store: &Store) -> Result<()> {
    for key in 0..KEYS {
        store.put(key.to_le_bytes(), value(key, 0))?;
    }
    store.compact()?;
    for key in (0..KEYS).step_by(3) {
        match key % 2 {
            0 => store.put(key.to_le_bytes(), value(key, 1))?,
            _ => store.delete(key.to_le_bytes())?,
        }
    }
    Ok(())
}

fn expected(key: u64) -> Option<Vec<u8>> {
    match (key < KEYS, key % 3, key % 2) {
        (false, ..) | (true, 0, 1) => None,
        (true, 0, _) => Some(value(key, 1)),
        _ => Some(value(key, 0)),
    }
}

/// Checks all keys through `get` and `get_many`: the answers, and that both
/// read the same number of blocks. Returns the blocks that a queue read.
fn check(store: &Store, what: &str) -> Result<u64> {
    let keys: Vec<u64> = (0..KEYS + 500).collect();
    let before = store.stats()?.io;
    for &key in &keys {
        let found = store.get(key.to_le_bytes())?;
        assert_eq!(found, expected(key), "{what}: key {key}");
    }
    let single = store.stats()?.io;
    assert_eq!(single.queued_reads, before.queued_reads);
    for part in keys.chunks(64) {
        let bytes: Vec<_> = part.iter().map(|key| key.to_le_bytes()).collect();
        for (key, found) in part.iter().zip(store.get_many(&bytes)?) {
            assert_eq!(found, expected(*key), "{what}: key {key} of many");
        }
    }
    let many = store.stats()?.io;
    let blocks = single.block_reads - before.block_reads;
    assert_eq!(many.block_reads - single.block_reads, blocks, "{what}");
    let bytes = single.block_bytes - before.block_bytes;
    assert_eq!(many.block_bytes - single.block_bytes, bytes, "{what}");
    let larges = single.large_reads - before.large_reads;
    assert_eq!(many.large_reads - single.large_reads, larges, "{what}");
    let present = (0..KEYS).filter(|&key| expected(key).is_some()).count();
    let absent = single.absent_reads - before.absent_reads;
    assert!(blocks - absent <= present as u64, "{what}: {blocks} reads");
    Ok(many.queued_reads - single.queued_reads)
}

#[test]
fn all_modes_give_the_answers_of_single_lookups() -> Result<()> {
    for &mode in MODES {
        for overlap in [Overlap::Queue, Overlap::Threads] {
            let what = format!("{mode:?}, {overlap:?}");
            let dir = tempfile::tempdir().expect("a directory");
            let options = options().read_mode(mode).overlap(overlap);
            let store = match Store::create(dir.path(), &options) {
                Ok(store) => store,
                // A file system without direct I/O.
                Err(Error::Io { .. }) if mode == ReadMode::Direct => continue,
                Err(error) => return Err(error),
            };
            fill(&store)?;
            store.close()?;
            let store = Store::open(dir.path(), &options)?;
            let queued = check(&store, &what)?;
            let state = store.stats()?.queue;
            match overlap {
                Overlap::Threads => assert_eq!(state, QueueState::NotWanted),
                Overlap::Queue if cfg!(feature = "io-uring") => {}
                Overlap::Queue => {
                    let kind = io::ErrorKind::Unsupported;
                    assert_eq!(state, QueueState::Refused(kind));
                }
            }
            match (state, mode) {
                // Direct reads always overlap.
                (QueueState::Open, ReadMode::Direct) => {
                    assert!(queued > KEYS / 2, "{what}: {queued}");
                }
                (QueueState::Open, _) => {}
                _ => assert_eq!(queued, 0, "{what}"),
            }
            // Runs have writes, too.
            store.put("more", "value")?;
            store.compact()?;
            check(&store, &what)?;
            let ram = store.stats()?.ram;
            assert!(ram.total() <= ram.budget);
            // A reader of another handle.
            let reader = Store::open_read_only(dir.path(), &options)?;
            check(&reader, &what)?;
        }
    }
    Ok(())
}

/// The file of a store that is read through maps grows and shrinks.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn maps_follow_a_file_that_grows_and_shrinks() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options().read_mode(ReadMode::Mapped);
    let store = Store::create(dir.path(), &options)?;
    let mut longest = 0;
    for round in 0..4 {
        fill(&store)?;
        check(&store, "a full store")?;
        longest = longest.max(store.stats()?.disk.data);
        let kept = round..round + 40;
        for key in 0..KEYS {
            if !kept.contains(&key) {
                store.delete(key.to_le_bytes())?;
            }
        }
        store.compact()?;
        let data = store.stats()?.disk.data;
        assert!(data < longest / 4, "{data} of {longest}");
        for key in kept {
            let found = store.get(key.to_le_bytes())?;
            assert_eq!(found, expected(key), "round {round}, key {key}");
        }
    }
    Ok(())
}

/// Set in the process of a reader: the directory of its store.
#[cfg(any(target_os = "linux", target_os = "android"))]
const READER: &str = "TAMIS_STORE_READER";

/// The writer does not cut a file that another process maps: a page after the
/// end would end that process with a signal.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn maps_of_another_process_are_not_cut() -> Result<()> {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    let options = options().read_mode(ReadMode::Mapped);
    if let Some(dir) = std::env::var_os(READER) {
        let store = Store::open_read_only(dir, &options)?;
        println!("the reader is open");
        // The writer closes the pipe after its compaction.
        let _ = io::stdin().read_line(&mut String::new());
        check(&store, "a reader in another process")?;
        return Ok(());
    }
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options)?;
    fill(&store)?;
    store.flush()?;
    let mut reader = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "--nocapture"])
        .arg("maps_of_another_process_are_not_cut")
        .env(READER, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let (go_on, output) = (reader.stdin.take(), reader.stdout.take());
    let mut lines = BufReader::new(output.expect("a pipe")).lines();
    let opened = lines.any(|line| {
        line.is_ok_and(|line| line.contains("the reader is open"))
    });
    assert!(opened, "the reader ended early");

    let len = || fs::metadata(dir.path().join("data")).expect("a file").len();
    let before = len();
    let replace = || -> Result<()> {
        for key in 0..KEYS {
            store.delete(key.to_le_bytes())?;
        }
        store.compact()?;
        for key in 0..KEYS {
            store.put((!key).to_le_bytes(), value(key, 2))?;
        }
        store.compact()
    };
    let replaced = replace();
    let after = len();
    drop(go_on);
    for line in lines.map_while(io::Result::ok) {
        println!("{line}");
    }
    let status = reader.wait().expect("the reader");
    replaced?;
    assert!(status.success(), "{status}");
    assert!(after >= before, "the file was cut");

    for key in 0..KEYS {
        store.delete((!key).to_le_bytes())?;
    }
    store.compact()?;
    assert!(len() < before / 4, "{} of {before}", len());
    Ok(())
}

/// A changed byte is an error or harmless in every mode, never data.
#[test]
fn damage_is_never_data_in_any_mode() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    fill(&store)?;
    store.compact()?;
    store.close()?;
    let path = dir.path().join("data");
    let intact = fs::read(&path).expect("the data file");
    let mut rng = fastrand::Rng::with_seed(3);
    let mut noticed = 0;
    for _ in 0..30 {
        let at = rng.usize(..intact.len());
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[intact[at] ^ 1 << rng.u8(..8)], at as u64)
            .unwrap();
        for &mode in MODES {
            let options = options().read_mode(mode);
            let Ok(store) = Store::open_read_only(dir.path(), &options) else {
                noticed += 1;
                continue;
            };
            for part in (0..KEYS).collect::<Vec<_>>().chunks(64) {
                let keys: Vec<_> =
                    part.iter().map(|key| key.to_le_bytes()).collect();
                let mut failed = false;
                for (key, bytes) in part.iter().zip(&keys) {
                    match store.get(bytes) {
                        Ok(found) => assert_eq!(found, expected(*key)),
                        Err(Error::Corrupt { file, offset, .. }) => {
                            assert_eq!(file, "data");
                            // A block may have several pages.
                            let distance = (at as u64).saturating_sub(offset);
                            assert!(distance < 80_000, "{at} and {offset}");
                            failed = true;
                        }
                        Err(error) => return Err(error),
                    }
                }
                noticed += u32::from(failed);
                match store.get_many(&keys) {
                    Ok(found) => {
                        assert!(!failed, "{mode:?}: damage at {at}");
                        let right = part.iter().map(|&key| expected(key));
                        assert!(found.into_iter().eq(right));
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Corrupt { .. }));
                        assert!(failed, "{mode:?}: damage at {at}");
                    }
                }
            }
        }
        file.write_all_at(&[intact[at]], at as u64).unwrap();
    }
    assert!(noticed > 40, "{noticed}");
    Ok(())
}

/// How the queue of a [`Scripted`] disk behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Script {
    /// The disk refuses a queue.
    Refuse(io::ErrorKind),
    /// Reads end in reversed order.
    Reversed,
    /// Every third read ends early, every fifth is interrupted.
    Partial,
    /// Every seventh read fails.
    Fail,
}

/// A directory whose files have a queue that follows a script.
#[derive(Debug)]
struct Scripted(Files, Script, Arc<AtomicU64>);

#[derive(Debug)]
struct ScriptedFile(Arc<dyn DiskFile>, Script, Arc<AtomicU64>);

#[derive(Debug)]
struct ScriptedQueue(Arc<dyn DiskFile>, Script, Arc<AtomicU64>);

impl Disk for Scripted {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.0.open(name, mode)?;
        Ok(Arc::new(ScriptedFile(file, self.1, Arc::clone(&self.2))))
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

impl DiskFile for ScriptedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
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

    fn queue(&self, depth: usize) -> io::Result<Box<dyn ReadQueue>> {
        assert_eq!(depth, 31);
        match self.1 {
            Script::Refuse(kind) => Err(kind.into()),
            script => {
                let (file, calls) = (Arc::clone(&self.0), Arc::clone(&self.2));
                Ok(Box::new(ScriptedQueue(file, script, calls)))
            }
        }
    }
}

impl ReadQueue for ScriptedQueue {
    fn read(&mut self, offsets: &[u64], done: &mut ReadDone<'_>) {
        #[repr(align(4096))]
        struct Page([u8; 4096]);
        let mut page = Box::new(Page([0; 4096]));
        let page = &mut page.0;
        for i in (0..offsets.len()).rev() {
            let call = self.2.fetch_add(1, Ordering::Relaxed);
            let read = self.0.read_at(page, offsets[i]);
            let read = match self.1 {
                Script::Partial if call % 3 == 0 => {
                    page[777..].fill(0xaa);
                    read.map(|n| n.min(777))
                }
                Script::Partial if call % 5 == 0 => {
                    page.fill(0xaa);
                    Err(io::ErrorKind::Interrupted.into())
                }
                Script::Fail if call % 7 == 6 => {
                    Err(io::Error::other("a bad sector"))
                }
                _ => read,
            };
            done(i, page, read);
        }
    }

    fn ram(&self) -> u64 {
        100_000
    }
}

#[test]
fn queues_that_refuse_fail_or_end_early_lose_nothing() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    fill(&store)?;
    store.close()?;
    let refused = io::ErrorKind::PermissionDenied;
    for script in [
        Script::Refuse(refused),
        Script::Reversed,
        Script::Partial,
        Script::Fail,
    ] {
        let calls = Arc::new(AtomicU64::new(0));
        let files = Files::new(dir.path());
        let disk = Arc::new(Scripted(files, script, Arc::clone(&calls)));
        let options = options().read_mode(ReadMode::Direct);
        let store = match Store::open_on(disk, &options) {
            Ok(store) => store,
            Err(Error::Io { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let stats = store.stats()?;
        assert!(stats.ram.total() <= stats.ram.budget);
        let what = format!("{script:?}");
        match script {
            Script::Refuse(kind) => {
                assert_eq!(stats.queue, QueueState::Refused(kind));
                assert_eq!(check(&store, &what)?, 0);
            }
            Script::Reversed | Script::Partial => {
                assert_eq!(stats.queue, QueueState::Open);
                let queued = check(&store, &what)?;
                assert_eq!(queued, calls.load(Ordering::Relaxed), "{what}");
                assert!(queued > KEYS / 2, "{what}: {queued}");
            }
            Script::Fail => {
                let keys: Vec<_> = (0..64u64).map(u64::to_le_bytes).collect();
                let failed = store.get_many(&keys);
                let Err(Error::Io { operation, .. }) = failed else {
                    panic!("an error of the disk is reported: {failed:?}");
                };
                assert_eq!(operation, "read");
                // The queue serves on: two reads have no failure yet.
                let found = store.get_many(&keys[4..6])?;
                assert_eq!(found, [expected(4), expected(5)]);
            }
        }
    }
    Ok(())
}

/// Batches of several threads: one has the queue, the others read in threads.
#[test]
fn batches_at_the_same_time() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options().read_mode(ReadMode::Direct).read_threads(3);
    let store = match Store::create(dir.path(), &options) {
        Ok(store) => store,
        Err(Error::Io { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    fill(&store)?;
    store.compact()?;
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..100 {
                    let keys: Vec<u64> =
                        (0..64).map(|_| rng.u64(..KEYS + 100)).collect();
                    let bytes: Vec<_> =
                        keys.iter().map(|key| key.to_le_bytes()).collect();
                    let found = store.get_many(&bytes).expect("no error");
                    let right = keys.iter().map(|&key| expected(key));
                    assert!(found.into_iter().eq(right));
                }
            });
        }
    });
    Ok(())
}

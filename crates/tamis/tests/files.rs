//! Files that several threads and processes change.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tamis::{AnyFilter, Blocked, Error, FileLock, Kind, TinySet, update};
use tempfile::TempDir;

/// A directory in memory, if the system has one: each save has a sync.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = directory.path().read_dir().unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry.unwrap()).unwrap()).collect();
    names.sort();
    names
}

#[test]
fn updates_of_many_threads_lose_no_key() {
    let directory = directory();
    let path = directory.path().join("f");
    for kind in Kind::ALL {
        let builder = AnyFilter::builder(kind).items(1000).fpr(1e-4);
        builder.build().unwrap().save(&path).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..8u64)
                .map(|thread| {
                    let path = &path;
                    scope.spawn(move || {
                        for i in 0..20 {
                            let key = (thread, i);
                            let change = |filter: &mut AnyFilter| {
                                filter.insert(&key);
                                Ok::<_, Error>(filter.len())
                            };
                            assert!(update(path, change).unwrap() > i);
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut least = 0;
                while !done.load(Ordering::Relaxed) {
                    let filter = AnyFilter::open(&path).unwrap();
                    filter.verify().unwrap();
                    assert!(filter.len() >= least);
                    least = filter.len();
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let filter = AnyFilter::open(&path).unwrap();
        filter.verify().unwrap();
        assert_eq!(filter.len(), 8 * 20, "{kind}");
        for thread in 0..8u64 {
            assert!(
                (0..20u64).all(|i| filter.contains(&(thread, i))),
                "{kind}"
            );
        }
    }
    assert_eq!(names(&directory), ["f"]);
}

#[test]
fn a_failed_update_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("f");
    let filter = Blocked::builder().items(9).fpr(0.01).build().unwrap();
    filter.save(&path).unwrap();
    let before = std::fs::read(&path).unwrap();

    let failed = update(&path, |filter| {
        filter.insert("apple");
        Err::<(), Error>(Error::TableFull)
    });
    assert_eq!(failed, Err(Error::TableFull));
    assert_eq!(std::fs::read(&path).unwrap(), before);

    // A damaged file gets no valid checksum.
    let mut damaged = before.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let failed = update(&path, |_| -> tamis::Result<()> { panic!() });
    assert!(matches!(failed, Err(Error::Checksum { .. })), "{failed:?}");
    assert_eq!(std::fs::read(&path).unwrap(), damaged);

    std::fs::remove_file(&path).unwrap();
    let failed = update(&path, |_| -> tamis::Result<()> { panic!() });
    assert!(matches!(failed, Err(Error::Io(_))), "{failed:?}");
    // A panic releases the lock, too.
    filter.save(&path).unwrap();
    let panicked = thread::spawn({
        let path = path.clone();
        move || update(&path, |_| -> tamis::Result<()> { panic!("expected") })
    });
    assert!(panicked.join().is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names(&directory), ["f"]);
}

#[test]
fn a_lock_excludes_other_locks_and_saves() {
    let directory = directory();
    let path = directory.path().join("f");
    let filter = TinySet::builder().items(99).fpr(0.01).build().unwrap();
    filter.save_new(&path).unwrap();
    let mut lock = FileLock::acquire(&path).unwrap();
    let wait = Duration::from_millis(20);
    let refused = FileLock::acquire_within(&path, wait).unwrap_err();
    assert_eq!(refused, Error::Busy { holder: "a writer", waited: wait });
    // Neither readers nor writers of other files wait.
    AnyFilter::open(&path).unwrap();
    filter.save(directory.path().join("g")).unwrap();
    let saved = thread::scope(|scope| {
        let path = &path;
        let saving = scope.spawn(move || filter.save(path));
        thread::sleep(Duration::from_millis(50));
        let mut loaded = lock.load().unwrap();
        loaded.insert("apple");
        lock.save(&loaded).unwrap();
        loaded.insert("pear");
        lock.save(&loaded).unwrap();
        assert_eq!(AnyFilter::open(path).unwrap().len(), 2);
        drop(lock);
        saving.join().unwrap()
    });
    saved.unwrap();
    assert!(AnyFilter::open(&path).unwrap().is_empty());
    assert_eq!(names(&directory), ["f", "g"]);
}

#[test]
fn a_file_that_another_program_replaced_is_left_alone() {
    let directory = directory();
    let path = directory.path().join("f");
    let filter = Blocked::builder().items(9).fpr(0.01).build().unwrap();
    filter.save(&path).unwrap();
    let mut lock = FileLock::acquire(&path).unwrap();
    let loaded = lock.load().unwrap();
    let other = directory.path().join("other");
    std::fs::write(&other, "other").unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(lock.save(&loaded), Err(Error::Replaced));
    assert_eq!(std::fs::read(&path).unwrap(), b"other");
}

//! Files that several threads and processes change.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tamis::{
    AnyFilter, Balanced, Blocked, Builder, Error, FileLock, Kind, Mapped,
    Overflow, Removal, Scheme, TinySet,
};
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
                            assert!(
                                AnyFilter::update(path, change).unwrap() > i
                            );
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
    let before = fs::read(&path).unwrap();

    let failed = AnyFilter::update(&path, |filter| {
        filter.insert("apple");
        Err::<(), Error>(Error::TableFull)
    });
    assert_eq!(failed, Err(Error::TableFull));
    assert_eq!(fs::read(&path).unwrap(), before);

    // A damaged file gets no valid checksum.
    let mut damaged = before.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, &damaged).unwrap();
    let failed =
        AnyFilter::update(&path, |_| -> tamis::Result<()> { panic!() });
    assert!(matches!(failed, Err(Error::Checksum { .. })), "{failed:?}");
    assert_eq!(fs::read(&path).unwrap(), damaged);

    fs::remove_file(&path).unwrap();
    let failed =
        AnyFilter::update(&path, |_| -> tamis::Result<()> { panic!() });
    assert!(matches!(failed, Err(Error::Io(_))), "{failed:?}");
    // A panic releases the lock, too.
    filter.save(&path).unwrap();
    let panicked = thread::spawn({
        let path = path.clone();
        move || {
            AnyFilter::update(&path, |_| -> tamis::Result<()> {
                panic!("expected")
            })
        }
    });
    assert!(panicked.join().is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
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
    fs::write(&other, "other").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(lock.save(&loaded), Err(Error::Replaced));
    assert_eq!(fs::read(&path).unwrap(), b"other");
}

/// Builders of every layout of blocks, for a number of items.
fn builders(items: u64) -> Vec<Builder<AnyFilter>> {
    let mut all: Vec<Builder<AnyFilter>> = Vec::new();
    for block_bits in [512, 256] {
        for kind in Kind::ALL {
            let builder = AnyFilter::builder(kind);
            all.push(builder.block_bits(block_bits).fpr(0.01));
        }
        let tinyset = || TinySet::builder().block_bits(block_bits);
        all.push(tinyset().removable().fpr(0.01).into());
        all.push(tinyset().repeats().fpr(0.001).into());
        all.push(tinyset().two_level().fpr(0.0001).into());
        let balanced = Balanced::builder().block_bits(block_bits);
        let sequential = balanced.scheme(Scheme::Sequential).choices(3);
        let first = sequential.overflow(Overflow::First);
        all.push(first.bits_per_key(12.0).into());
    }
    // Blocks that cross the ends of chunks.
    let odd = TinySet::builder().block_bits(800).chains(100);
    all.push(odd.bits_per_key(10.0).into());
    all.into_iter().map(|builder| builder.items(items)).collect()
}

/// The bytes are those of a replacement, for files of one chunk and of many,
/// from empty to over-full.
#[test]
fn insertion_in_place_writes_the_bytes_of_a_replacement() {
    let directory = directory();
    let [replaced, in_place] =
        ["replaced", "in-place"].map(|name| directory.path().join(name));
    for items in [300, 90_000] {
        for builder in builders(items) {
            let filter = builder.build().unwrap();
            let name = format!("{} of {items}", filter.kind());
            filter.save(&replaced).unwrap();
            filter.save(&in_place).unwrap();
            let mut next = 0;
            for count in [1, 2, items / 2, 1, 1000, items, 1, 100] {
                let keys: Vec<u64> = (next..next + count).collect();
                next += count - count / 10;
                AnyFilter::update(&replaced, |filter| {
                    filter.insert_batch(&keys);
                    Ok::<(), Error>(())
                })
                .unwrap();
                let mut lock = FileLock::acquire(&in_place).unwrap();
                lock.insert_batch_in_place(&keys).unwrap();
                let bytes = fs::read(&in_place).unwrap();
                assert!(bytes == fs::read(&replaced).unwrap(), "{name}");
            }
            AnyFilter::open(&in_place).unwrap().verify().unwrap();
        }
    }
    assert_eq!(names(&directory), ["in-place", "replaced"]);
}

#[test]
fn removal_in_place_writes_the_bytes_of_a_replacement() {
    let directory = directory();
    let [replaced, in_place] =
        ["replaced", "in-place"].map(|name| directory.path().join(name));
    for items in [300, 90_000u64] {
        let builder = TinySet::builder().items(items).fpr(0.001).removable();
        let mut filter = builder.build_from(0..items).unwrap();
        let hot = vec![items; 40];
        filter.insert_batch(&hot);
        filter.save(&replaced).unwrap();
        filter.save(&in_place).unwrap();
        let remove = |keys: &[u64]| {
            let removals = AnyFilter::update(&replaced, |filter| {
                let removals = keys.iter().map(|key| filter.remove(key));
                removals.collect::<Result<Vec<_>, Error>>()
            });
            let mut lock = FileLock::acquire(&in_place).unwrap();
            let results = lock.remove_batch_in_place(keys).unwrap();
            assert_eq!(results, removals.unwrap());
            let bytes = fs::read(&in_place).unwrap();
            assert!(bytes == fs::read(&replaced).unwrap(), "{items}");
            results
        };
        // The third removal finds nothing.
        for keys in [0..1, 1..items / 3, 5..6, items / 2..items] {
            remove(&keys.collect::<Vec<_>>());
        }
        assert_eq!(remove(&hot), [Removal::Stuck; 40]);
        // Not mapped: removals would wait for the reader.
        let filter = AnyFilter::read(&in_place).unwrap();
        filter.verify().unwrap();
        assert!((items / 3..items / 2).all(|key| filter.contains(&key)));
        assert!(filter.contains(&items));
        // The last key takes the hot one with it.
        let mut rest: Vec<u64> = (items / 3..items / 2).collect();
        rest.push(5);
        let removals = remove(&rest);
        assert_eq!(removals.last(), Some(&Removal::Absent));
        let filter = AnyFilter::read(&in_place).unwrap();
        assert_eq!(filter.stats().expected_fpr, 0.0);
        filter.verify().unwrap();
    }
    for builder in builders(99) {
        let filter = builder.build().unwrap();
        if matches!(&filter, AnyFilter::TinySet(it) if it.is_removable()) {
            continue;
        }
        filter.save(&in_place).unwrap();
        let before = fs::read(&in_place).unwrap();
        let mut lock = FileLock::acquire(&in_place).unwrap();
        for hashes in [&[][..], &[1 << 60]] {
            let error = lock.remove_hash_batch_in_place(hashes).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
        assert_eq!(fs::read(&in_place).unwrap(), before);
    }
}

#[test]
fn insertion_in_place_keeps_metadata_and_inode() {
    let directory = directory();
    let path = directory.path().join("f");
    let mut filter = TinySet::builder().items(99).fpr(0.01).build().unwrap();
    filter.set_metadata("note", "kept").unwrap();
    filter.save(&path).unwrap();
    let link = directory.path().join("link");
    fs::hard_link(&path, &link).unwrap();
    let mut lock = FileLock::acquire(&path).unwrap();
    lock.insert_batch_in_place::<&str>(&[]).unwrap();
    lock.insert_batch_in_place(&["apple"]).unwrap();
    let filter = AnyFilter::open(&link).unwrap();
    assert!(filter.contains("apple"));
    assert_eq!(filter.metadata().unwrap().get("note"), Some("kept"));
    filter.verify().unwrap();
}

/// A filter that was loaded before an insertion in place lacks its keys.
#[test]
fn a_filter_without_the_keys_inserted_in_place_is_not_saved() {
    let directory = directory();
    let path = directory.path().join("f");
    let filter = Blocked::builder().items(99).fpr(0.01).build().unwrap();
    filter.save(&path).unwrap();
    let mut lock = FileLock::acquire(&path).unwrap();
    let loaded = lock.load().unwrap();
    lock.insert_batch_in_place(&["apple"]).unwrap();
    lock.insert_batch_in_place(&["pear"]).unwrap();
    assert_eq!(lock.save(&loaded), Err(Error::Replaced));
    let loaded = lock.load().unwrap();
    assert!(loaded.contains("apple") && loaded.contains("pear"));
    lock.save(&loaded).unwrap();
}

/// Mapped readers see no block change; replacement does not wait for them.
#[cfg(unix)]
#[test]
fn insertion_in_place_waits_for_mapped_readers() {
    let directory = directory();
    let path = directory.path().join("f");
    let filter = Blocked::builder().items(99).fpr(0.01).build().unwrap();
    filter.save(&path).unwrap();
    let reader = Blocked::open(&path).unwrap();
    let copy = reader.clone();
    drop(reader);
    let wait = Duration::from_millis(20);
    let insert = |wait| {
        let mut lock = FileLock::acquire_within(&path, wait)?;
        lock.insert_batch_in_place(&["apple"])
    };
    let before = fs::read(&path).unwrap();
    let busy = Error::Busy { holder: "a reader", waited: wait };
    assert_eq!(insert(wait), Err(busy));
    assert_eq!(fs::read(&path).unwrap(), before);
    // Other readers, and maps without a lock.
    Blocked::open(&path).unwrap();
    Mapped::open_region(&path, 0, 1).unwrap();
    drop(copy);
    insert(Duration::ZERO).unwrap();

    let reader = Blocked::open(&path).unwrap();
    filter.save(&path).unwrap();
    assert!(reader.contains("apple"));
    // The reader has the old file, the writer the new one.
    insert(Duration::ZERO).unwrap();
    thread::scope(|scope| {
        let waiting = Blocked::open(&path).unwrap();
        let done = scope.spawn(|| insert(Duration::from_secs(600)));
        thread::sleep(Duration::from_millis(50));
        assert!(!done.is_finished());
        drop(waiting);
        done.join().unwrap().unwrap();
    });
    assert_eq!(Blocked::open(&path).unwrap().len(), 2);
}

#[test]
fn insertion_in_place_refuses_damage_where_it_writes() {
    let directory = directory();
    let path = directory.path().join("f");
    let insert = || {
        let mut lock = FileLock::acquire(&path).unwrap();
        lock.insert_batch_in_place(&["apple"])
    };
    // One chunk, and many with a list of their checksums at the end.
    for items in [100, 200_000] {
        let filter =
            Blocked::builder().items(items).fpr(0.01).build().unwrap();
        let good = filter.to_bytes();
        let header = usize::from(u16::from_le_bytes([good[64], good[65]]));
        let mut changed = filter.clone();
        changed.insert("apple");
        let changed = changed.to_bytes();
        let differs = |&at: &usize| good[at] != changed[at];
        let block = (header..good.len()).find(differs).unwrap();
        // In another block of the same chunk, and in another chunk if the
        // file has several.
        let near = header + ((block - header) ^ 64);
        let far = header + ((block - header) ^ 65_536);
        let far = if items > 100 { far } else { near };
        let last = good.len() - 1;
        for at in [block, near, far, last] {
            let mut damaged = good.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let result = insert();
            if items > 100 && at == far {
                // Damage elsewhere stays visible.
                result.unwrap();
                let filter = AnyFilter::open(&path).unwrap();
                assert!(filter.contains("apple"));
                let damage = filter.verify().unwrap_err();
                assert!(matches!(damage, Error::Checksum { .. }));
            } else {
                let error = result.unwrap_err();
                assert!(matches!(error, Error::Checksum { .. }), "{error}");
                assert!(fs::read(&path).unwrap() == damaged);
            }
        }
    }
}

#[test]
fn insertion_in_place_refuses_files_of_another_shape() {
    let directory = directory();
    let path = directory.path().join("f");
    let refused = || {
        let before = fs::read(&path).unwrap();
        let mut lock = FileLock::acquire(&path).unwrap();
        let keys: Vec<u64> = (0..1000).collect();
        let error = lock.insert_batch_in_place(&keys).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before, "nothing is written");
        error
    };
    let filter = Blocked::builder().items(99).fpr(0.01).build().unwrap();
    fs::write(&path, filter.to_compact_bytes().unwrap()).unwrap();
    assert!(matches!(refused(), Error::Unsupported { .. }));
    // A key that goes to the overflow list, which is in the file.
    let builder = Balanced::builder().scheme(Scheme::Multilevel).items(100);
    let listing = builder.overflow(Overflow::List).bits_per_key(10.0);
    listing.build().unwrap().save(&path).unwrap();
    let error = refused();
    assert!(error.to_string().contains("overflow list"), "{error}");
    fs::write(&path, b"text").unwrap();
    assert!(matches!(refused(), Error::TooShort { .. }));
    fs::write(&path, [0; 4096]).unwrap();
    assert!(matches!(refused(), Error::NotTamis { .. }));
}

/// The blocks of maps would be those of the shorter or the other file.
#[test]
fn copies_in_memory_survive_changes_of_the_file() {
    let directory = directory();
    let path = directory.path().join("f");
    for builder in builders(20_000) {
        let mut filter = builder.build().unwrap();
        let keys: Vec<u64> = (0..20_000).collect();
        filter.insert_batch(&keys);
        filter.set_metadata("note", "kept").unwrap();
        filter.save(&path).unwrap();
        let copy = AnyFilter::read(&path).unwrap();
        assert_eq!(copy, AnyFilter::open(&path).unwrap());
        // No lock is held.
        let mut lock =
            FileLock::acquire_within(&path, Duration::ZERO).unwrap();
        match lock.insert_batch_in_place(&["apple"]) {
            Err(Error::Unsupported { .. }) | Ok(()) => {}
            Err(error) => panic!("{error}"),
        }
        let whole = fs::read(&path).unwrap();
        for len in [0, 4096, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(AnyFilter::read(&path).is_err());
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, damaged).unwrap();
        let error = AnyFilter::read(&path).unwrap_err();
        assert!(matches!(error, Error::Checksum { .. }), "{error}");
        fs::write(&path, &whole[..0]).unwrap();
        assert_eq!(copy.to_bytes(), filter.to_bytes());
        let mut found = vec![false; keys.len()];
        copy.contains_batch(&keys, &mut found);
        assert!(found.iter().all(|&found| found));
    }
    // Files that are refused before they are read, of any length.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = Mapped::read(&path).unwrap_err();
    assert!(matches!(error, Error::NotTamis { .. }), "{error}");
    assert!(matches!(Mapped::read(directory.path()), Err(Error::Io(_))));
}

/// A file with the key of a keyed hash is its owner's; another has the mode of
/// the umask.
#[cfg(unix)]
#[test]
fn files_of_keyed_filters_are_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = directory();
    let mode = |name: &str| {
        let metadata = fs::metadata(directory.path().join(name));
        metadata.unwrap().permissions().mode() & 0o777
    };
    fs::write(directory.path().join("other"), "").unwrap();
    let builder = Blocked::builder().items(9).fpr(0.1);
    for (name, builder) in [("open", builder), ("keyed", builder.keyed())] {
        let filter = builder.build().unwrap();
        filter.save(directory.path().join(name)).unwrap();
    }
    assert_eq!(mode("open"), mode("other"));
    assert_eq!(mode("keyed"), 0o600);
}

//! Golden files: a store of format version 1 is written and read byte for
//! byte as in `tests/golden/v1`, one of version 2 is read, and damage to any
//! byte is detected or has no effect.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tamis_store::{Durability, Error, Options, Result, Store};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn options() -> Options {
    Options::new()
        .ram(8 << 20)
        .segment_bytes(16 << 10)
        .seed(0x0123_4567_89ab_cdef_0011_2233_4455_6677)
        .background(false)
        .durability(Durability::None)
}

/// The records of the golden store.
fn records() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut records = BTreeMap::new();
    for i in 0..200u32 {
        let value = vec![i as u8; (i * 7 % 90) as usize];
        records.insert(format!("key {i}").into_bytes(), value);
    }
    records.insert(b"two pages".to_vec(), vec![2; 5000]);
    records.insert(b"large".to_vec(), vec![0; 65_537]);
    records.insert(b"".to_vec(), b"the empty key".to_vec());
    records.insert(b"key 3".to_vec(), b"replaced in the log".to_vec());
    records.remove(&b"key 4"[..]);
    records
}

/// Writes the golden store to `dir`.
fn write(dir: &Path) -> Result<()> {
    let store = Store::create(dir, &options())?;
    for (key, value) in records() {
        store.put(key, value)?;
    }
    store.put("key 3", "before")?;
    store.put("key 4", "deleted in the log")?;
    store.compact()?;
    store.put("key 3", "replaced in the log")?;
    store.delete("key 4")?;
    store.close()
}

fn golden_with_runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v2")
}

/// Writes the golden store of version 2, whose manifest names runs, and returns
/// its records.
fn write_with_runs(dir: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let options = options().spill_eagerly(true).buffer_bytes(4096);
    let store = Store::create(dir, &options)?;
    let mut records = BTreeMap::new();
    for i in 0..1000u32 {
        let key = format!("key {}", i * 37 % 190).into_bytes();
        if i % 7 == 3 {
            store.delete(&key)?;
            records.remove(&key);
        } else {
            let len = if i == 990 { 65_537 } else { i * 7 % 90 };
            let value = vec![i as u8; len as usize];
            store.put(&key, &value)?;
            records.insert(key, value);
        }
    }
    store.close()?;
    Ok(records)
}

/// Version of the manifest in a data file.
fn version(data: &[u8]) -> u16 {
    let generation = |slot: usize| {
        let bytes = data[slot * 4096 + 16..].first_chunk().expect("a slot");
        u64::from_le_bytes(*bytes)
    };
    let slot = usize::from(generation(1) > generation(0));
    u16::from_le_bytes([data[slot * 4096 + 8], data[slot * 4096 + 9]])
}

/// Which writes are in runs depends on when the engine merges: the golden files
/// of version 2 are read, and not compared.
#[test]
fn golden_files_with_runs_are_read() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let records = write_with_runs(dir.path())?;
    let golden = files(&golden_with_runs());
    assert_eq!(version(&golden["data"]), 2);
    let dir = copy(&golden);
    assert!(read(dir.path())? == records, "other records");
    let store = Store::open(dir.path(), &options())?;
    assert!(store.stats()?.spilled > 0);
    store.compact()?;
    store.close()?;
    assert!(read(dir.path())? == records, "other records");
    assert_eq!(version(&files(dir.path())["data"]), 1);
    Ok(())
}

/// Files with content.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("a file");
        let name = path.file_name().and_then(|name| name.to_str());
        if !bytes.is_empty() {
            files.insert(name.expect("a name").into(), bytes);
        }
    }
    files
}

fn copy(files: &BTreeMap<String, Vec<u8>>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).expect("written");
    }
    dir
}

fn read(dir: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let store = Store::open_read_only(dir, &options())?;
    store.verify()?;
    store.iter()?.collect()
}

/// Writes the golden files of a new version of the format, once.
#[test]
#[ignore = "golden files are never written again"]
fn write_golden_files() -> Result<()> {
    for (golden, with_runs) in [(golden(), false), (golden_with_runs(), true)]
    {
        if golden.exists() {
            continue;
        }
        match with_runs {
            false => write(&golden)?,
            true => drop(write_with_runs(&golden)?),
        }
        for name in ["lock", "readers"] {
            fs::remove_file(golden.join(name)).expect("a lock file");
        }
    }
    Ok(())
}

#[test]
fn golden_files_are_written_as_before() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path())?;
    let (written, golden) = (files(dir.path()), files(&golden()));
    let names = |files: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        files.keys().cloned().collect()
    };
    assert_eq!(names(&written), names(&golden));
    for (name, bytes) in &written {
        let at = bytes.iter().zip(&golden[name]).position(|(a, b)| a != b);
        assert_eq!(at, None, "{name} differs at this byte");
        assert_eq!(bytes.len(), golden[name].len(), "length of {name}");
    }
    Ok(())
}

#[test]
fn golden_files_are_read() -> Result<()> {
    let dir = copy(&files(&golden()));
    assert_eq!(read(dir.path())?, records());
    // Opening for writing repairs nothing, and changes no record.
    let store = Store::open(dir.path(), &options())?;
    assert_eq!(store.iter()?.collect::<Result<BTreeMap<_, _>>>()?, records());
    store.close()?;
    assert_eq!(read(dir.path())?, records());
    Ok(())
}

/// A changed bit is an error, or the records are those before: as in padding,
/// in the slot that does not count, and at the end of the last log, where a
/// changed frame is one that was torn.
#[test]
fn changed_bits_are_never_returned_as_data() {
    let golden = files(&golden());
    let mut detected = 0;
    for (name, bytes) in &golden {
        let torn = |found: &BTreeMap<_, _>| {
            let mut older = records();
            older.insert(b"key 3".to_vec(), b"before".to_vec());
            let both = b"deleted in the log".to_vec();
            let mut oldest = older.clone();
            oldest.insert(b"key 4".to_vec(), both.clone());
            let mut newer = records();
            newer.insert(b"key 4".to_vec(), both);
            *found == oldest || *found == newer
        };
        // Each page, at a stride that meets all parts of its header.
        for at in (0..bytes.len()).step_by(509) {
            let mut files = golden.clone();
            files.get_mut(name).expect("a file")[at] ^= 1 << (at % 8);
            let dir = copy(&files);
            match read(dir.path()) {
                Ok(found) => assert!(
                    found == records()
                        || name.starts_with("log") && torn(&found),
                    "{name} at {at}"
                ),
                Err(
                    Error::Corrupt { .. } | Error::UnsupportedVersion { .. },
                ) => detected += 1,
                Err(error) => panic!("{name} at {at}: {error}"),
            }
        }
    }
    assert!(detected > 100, "{detected}");
}

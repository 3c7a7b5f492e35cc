//! The files of a store: permissions, and a log whose creation failed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tamis_store::{Durability, Options, Result, Store};

fn options() -> Options {
    Options::new().ram(8 << 20).durability(Durability::None).background(false)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// Names of the logs, in order.
fn logs(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).expect("a directory");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.into_string().expect("plain"))
        .filter(|name| name.starts_with("log-"))
        .collect();
    names.sort();
    names
}

/// The manifest has the key of the hash.
#[test]
fn files_are_for_their_owner_alone() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    store.put("key", "value")?;
    store.close()?;
    assert_eq!(mode(&dir.path().join("data")), 0o600);
    for log in logs(dir.path()) {
        assert_eq!(mode(&dir.path().join(&log)), 0o600, "{log}");
    }
    // Readers that were given a right to the data can read later logs.
    let shared = fs::Permissions::from_mode(0o640);
    fs::set_permissions(dir.path().join("data"), shared).expect("the owner");
    Store::open(dir.path(), &options())?.close()?;
    let last = logs(dir.path()).pop().expect("a log");
    assert_eq!(mode(&dir.path().join(last)), 0o640);
    Ok(())
}

/// The creation of a log fails, the log before goes on, and a crash brings the
/// file back that had been removed.
#[test]
fn a_log_whose_removal_was_lost_is_ignored() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let copy = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options())?;
    store.put("before", "1")?;
    store.flush()?;
    for entry in fs::read_dir(dir.path()).expect("a directory") {
        let from = entry.expect("an entry").path();
        let name = from.file_name().expect("a name");
        fs::copy(&from, copy.path().join(name)).expect("copied");
    }
    // The next log, with the sequence number after the first put.
    Store::open(copy.path(), &options())?.close()?;
    let next = logs(copy.path()).pop().expect("a log");
    store.put("after", "2")?;
    store.close()?;
    assert!(!logs(dir.path()).contains(&next));
    let lost = dir.path().join(&next);
    fs::copy(copy.path().join(&next), &lost).expect("copied");

    let reader = Store::open_read_only(dir.path(), &options())?;
    assert_eq!(reader.get("after")?.as_deref(), Some(&b"2"[..]));
    drop(reader);
    for (key, value) in [("third", "3"), ("fourth", "4")] {
        let store = Store::open(dir.path(), &options())?;
        assert_eq!(store.get("before")?.as_deref(), Some(&b"1"[..]));
        assert_eq!(store.get("after")?.as_deref(), Some(&b"2"[..]));
        store.put(key, value)?;
        store.close()?;
    }
    let store = Store::open(dir.path(), &options())?;
    assert_eq!(store.get("third")?.as_deref(), Some(&b"3"[..]));
    Ok(())
}

//! Stores with changed bytes, checksums repaired: opening, reading, verifying
//! and merging return typed errors, and do not panic or allocate without
//! bound.
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use tamis_store::{
    Disk, DiskFile, Durability, Lock, LockKind, Mode, Options, Store,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const PAGE: usize = 4096;

type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files in memory.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Bytes>>>);

#[derive(Debug)]
struct MemoryFile(Bytes);

#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {}

impl Disk for Memory {
    fn open(&self, name: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.0.lock().unwrap();
        if mode == Mode::Create {
            files.insert(name.into(), Bytes::default());
        }
        let file = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryFile(Arc::clone(file))))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.lock().unwrap();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.into(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &str, _: LockKind) -> io::Result<Option<Box<dyn Lock>>> {
        Ok(Some(Box::new(NoLock)))
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock().unwrap();
        let start = (offset as usize).min(bytes.len());
        let n = buffer.len().min(bytes.len() - start);
        buffer[..n].copy_from_slice(&bytes[start..start + n]);
        Ok(n)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.0.lock().unwrap();
        let end = offset as usize + from.len();
        if end > 64 << 20 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = bytes.len().max(end);
        bytes.resize(len, 0);
        bytes[offset as usize..end].copy_from_slice(from);
        Ok(from.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Arbitrary)]
struct Case {
    /// File, offset and new byte.
    changes: Vec<(bool, u16, u8)>,
    repair: bool,
}

fn options() -> Options {
    Options::new()
        .ram(8 << 20)
        .segment_bytes(16 << 10)
        .seed(1)
        .background(false)
        .durability(Durability::None)
}

/// Bytes of a store with several segments, a long block, a large value, and
/// writes in its log.
fn original() -> &'static [(String, Vec<u8>)] {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let disk = Memory::default();
        let store =
            Store::create_on(Arc::new(disk.clone()), &options()).unwrap();
        for i in 0..300u32 {
            store.put(i.to_le_bytes(), vec![7; 60]).unwrap();
        }
        store.put("long", vec![1; 5000]).unwrap();
        store.put("large", vec![1; 65_537]).unwrap();
        store.compact().unwrap();
        for i in 0..20u32 {
            store.put(i.to_le_bytes(), [i as u8; 9]).unwrap();
        }
        store.close().unwrap();
        let files = disk.0.lock().unwrap();
        let bytes = |file: &Bytes| file.lock().unwrap().clone();
        files.iter().map(|(name, f)| (name.clone(), bytes(f))).collect()
    })
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap()))
}

fn set(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// Makes the checksums of all parts those of their bytes.
fn repair_data(data: &mut [u8]) {
    for slot in [0, PAGE] {
        let generation = u64_at(data, slot + 16);
        let start = u64_at(data, slot + 24) as usize;
        let len = u64_at(data, slot + 32) as usize;
        let body = data.get(start..start.saturating_add(len));
        let Some(body) = body.map(<[u8]>::to_vec) else { continue };
        set(data, slot + 40, xxh3_64_with_seed(&body, generation));
        let sum = xxh3_64_with_seed(&data[slot..slot + 56], 0);
        set(data, slot + 56, sum);
        for entry in body.get(96..).unwrap_or_default().chunks_exact(64) {
            let id = u64_at(entry, 8);
            let first = u64_at(entry, 16) as usize;
            let pages = u64_at(entry, 28) as u32 as usize;
            let index_len = u64_at(entry, 32) as u32 as usize;
            for page in 0..pages.min(64) {
                let at = first.saturating_add(page).saturating_mul(PAGE);
                let end = at.saturating_add(PAGE);
                if let Some(block) = data.get_mut(at..end) {
                    let sum = xxh3_64_with_seed(&block[8..], 0);
                    set(block, 0, sum);
                }
            }
            let at = first.saturating_add(pages).saturating_mul(PAGE);
            let end = at.saturating_add(index_len);
            if let Some(index) = data.get_mut(at..end) {
                if index.len() > 8 {
                    let sum = xxh3_64_with_seed(&index[8..], id);
                    set(index, 0, sum);
                }
            }
        }
    }
}

/// The same for a log; the seed of the store is 1.
fn repair_log(log: &mut [u8]) {
    let number = u64_at(log, 16);
    let seed = 1 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if log.len() < 64 {
        return;
    }
    set(log, 56, xxh3_64_with_seed(&log[..56].to_vec(), seed));
    let mut at = 64;
    while at + 40 <= log.len() {
        let len = u64_at(log, at + 8) as u32 as usize;
        let Some(payload) = log.get(at + 40..(at + 40).saturating_add(len))
        else {
            return;
        };
        let sum = xxh3_64_with_seed(payload, seed);
        set(log, at + 32, sum);
        let sum = xxh3_64_with_seed(&log[at + 8..at + 40], seed);
        set(log, at, sum);
        at += (40 + len).next_multiple_of(8);
    }
}

pub fn run(input: &[u8]) {
    let Ok(case) = Case::arbitrary_take_rest(Unstructured::new(input)) else {
        return;
    };

    let disk = Memory::default();
    for (name, bytes) in original() {
        let mut bytes = bytes.clone();
        let is_log = name.starts_with("log");
        for &(log, at, byte) in &case.changes {
            if log == is_log && !bytes.is_empty() {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
        }
        match (case.repair, is_log) {
            (false, _) => {}
            (true, false) => repair_data(&mut bytes),
            (true, true) => repair_log(&mut bytes),
        }
        let bytes = Arc::new(Mutex::new(bytes));
        disk.0.lock().unwrap().insert(name.clone(), bytes);
    }
    let Ok(store) = Store::open_on(Arc::new(disk), &options()) else {
        return;
    };
    let _ = store.verify();
    for i in 0..40u32 {
        let _ = store.get(i.to_le_bytes());
    }
    let _ = store.get("large");
    if let Ok(records) = store.iter() {
        assert!(records.take(1000).count() < 1000);
    }
    let _ = store.put("new", "value");
    let _ = store.compact();
}

//! The cost of a lookup beside its floor: a read of the same pages.
//!
//! ```text
//! cargo run --release -p tamis-store --example floor -- DIR [ITEMS] [LOOKUPS]
//! ```
//!
//! DIR is created, filled with records of 16 + 100 bytes, and kept.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use tamis_store::{Durability, Options, Store};

fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(n).to_le_bytes());
    key[8..].copy_from_slice(&n.to_le_bytes());
    key
}

/// Prints the nanoseconds of a step, the least of three runs.
fn time(name: &str, lookups: u64, mut step: impl FnMut(u64)) {
    let mut least = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        (0..lookups).for_each(&mut step);
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{name:24} {:8.1} ns", least * 1e9 / lookups as f64);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: floor DIR [ITEMS] [LOOKUPS]")?;
    let mut number = |default: u64| {
        args.next().map_or(Ok(default), |arg| arg.parse::<u64>())
    };
    let (items, lookups) = (number(500_000)?, number(500_000)?);
    let options = Options::new()
        .ram(256 << 20)
        .absent_reads(0.001)
        .durability(Durability::None);
    let data = Path::new(&dir).join("data");
    let store = match data.exists() {
        true => Store::open(&dir, &options)?,
        false => {
            let store = Store::create(&dir, &options)?;
            for i in 0..items {
                store.put(key(i), [i as u8; 100])?;
            }
            store.compact()?;
            store
        }
    };
    let file = File::open(&data)?;
    let pages = file.metadata()?.len() / 4096;
    let mut page = vec![0; 4096];
    for i in 0..pages {
        file.read_exact_at(&mut page, i * 4096)?;
    }
    time("pread of a page", lookups, |i| {
        let at = mix(i) % pages * 4096;
        file.read_exact_at(&mut page, at).expect("a page");
        black_box(&page);
    });
    let keys: Vec<_> = (0..lookups).map(|i| key(mix(i) % items)).collect();
    time("get, present", lookups, |i| {
        let found = store.get(keys[i as usize]).expect("no error");
        assert!(black_box(found).is_some());
    });
    let groups: Vec<_> = keys.chunks_exact(64).collect();
    time("64 at a time, each", lookups / 64 * 64, |i| {
        if i % 64 == 0 {
            let found = store.get_many(groups[i as usize / 64]);
            assert!(black_box(found).expect("no error")[63].is_some());
        }
    });
    time("get, absent", lookups, |i| {
        black_box(store.get(key(i + (1 << 40))).expect("no error"));
    });
    Ok(())
}

//! The cost of a lookup beside its floor: a read of the same pages.
//!
//! ```text
//! cargo run --release -p tamis-store --features io-uring --example floor -- \
//!     DIR [ITEMS] [LOOKUPS]
//! ```
//!
//! DIR is created, filled with records of 16 + 100 bytes, and kept.

#[path = "../tests/records/mod.rs"]
mod records;

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use records::{key, mix};
use tamis_store::{Durability, Options, Overlap, QueueState, ReadMode, Store};

/// Lookups of a group, and keys of a batch.
const GROUP: usize = 64;

/// Prints the nanoseconds of a lookup: of all groups the median, because
/// other programs interrupt some.
fn print(name: &str, groups: usize, mut group: impl FnMut(usize)) {
    let mut times: Vec<f64> = (0..groups)
        .map(|i| {
            let start = Instant::now();
            group(i);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[groups / 2] * 1e9 / GROUP as f64;
    println!("{name:36} {median:9.1} ns");
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
    if !data.exists() {
        let store = Store::create(&dir, &options)?;
        let mut loader = store.loader()?;
        for i in 0..items {
            loader.put(key(i), [i as u8; 100])?;
        }
        loader.finish()?;
    }
    let file = File::open(&data)?;
    file.sync_all()?;
    let pages = file.metadata()?.len() / 4096;
    let mut page = vec![0; 4096];
    let keys: Vec<_> = (0..lookups).map(|i| key(mix(i) % items)).collect();
    let keys: Vec<_> = keys.chunks_exact(GROUP).collect();
    for i in 0..pages {
        file.read_exact_at(&mut page, i * 4096)?;
    }
    print("pread of a page", keys.len(), |group| {
        for i in 0..GROUP {
            let at = mix((group * GROUP + i) as u64) % pages * 4096;
            file.read_exact_at(&mut page, at).expect("a page");
            black_box(&page);
        }
    });
    let get = |store: &Store, group: usize| {
        for key in keys[group] {
            let found = store.get(key).expect("no error");
            assert!(black_box(found).is_some());
        }
    };
    let get_many = |store: &Store, group: usize| {
        let found = store.get_many(keys[group]).expect("no error");
        assert!(black_box(found)[GROUP - 1].is_some());
    };
    for mode in [ReadMode::Buffered, ReadMode::Mapped] {
        let store = Store::open(&dir, &options.clone().read_mode(mode))?;
        let name = format!("cached, {mode:?}");
        (0..keys.len()).for_each(|group| get(&store, group));
        print(&format!("{name}: get"), keys.len(), |i| get(&store, i));
        print(&format!("{name}: {GROUP} at a time"), keys.len(), |i| {
            get_many(&store, i);
        });
    }
    let store = Store::open(&dir, &options)?;
    print("absent", keys.len(), |group| {
        for i in 0..GROUP {
            let key = key((1 << 40) + (group * GROUP + i) as u64);
            black_box(store.get(key).expect("no error"));
        }
    });
    drop(store);
    // Less than the file has, so that most pages are read once.
    let groups = keys.len().min(pages as usize / GROUP / 4);
    for mode in [ReadMode::Buffered, ReadMode::Mapped, ReadMode::Direct] {
        for (batch, overlap) in [
            (false, Overlap::Queue),
            (true, Overlap::Queue),
            (true, Overlap::Threads),
        ] {
            // Before the store is open: mapped pages would stay.
            let advice = rustix::fs::Advice::DontNeed;
            rustix::fs::fadvise(&file, 0, None, advice)?;
            let options = options.clone().read_mode(mode).overlap(overlap);
            let store = Store::open(&dir, &options)?;
            let how = match (batch, store.stats()?.queue) {
                (false, _) => "get".into(),
                (true, QueueState::Open) => format!("{GROUP}, queue"),
                (true, _) => format!("{GROUP}, threads"),
            };
            print(
                &format!("disk, {mode:?}: {how}"),
                groups,
                |i| match batch {
                    true => get_many(&store, i),
                    false => get(&store, i),
                },
            );
        }
    }
    Ok(())
}

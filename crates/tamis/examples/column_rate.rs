//! CPU time per key of batches in Rust, the reference of `cargo xtask bench
//! python`: `column_rate FILTER KEYS`.
//!
//! KEYS is a file of 64-bit integers. Prints the nanoseconds per key of
//! looking all of them up in FILTER, and of inserting them into a filter of
//! the same settings.

use std::hint::black_box;

use tamis::AnyFilter;

/// Keys per batch: their hashes stay in the first-level cache.
const BATCH: usize = 2048;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(filter), Some(keys)) = (arguments.next(), arguments.next())
    else {
        return Err("usage: column_rate FILTER KEYS".into());
    };
    let filter = AnyFilter::open(filter)?;
    let bytes = std::fs::read(keys)?;
    let keys: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|key| key.iter().rev().fold(0, |key, &b| key << 8 | u64::from(b)))
        .collect();
    // Pages of the answers and of the map are in memory before the clock runs.
    let mut found = vec![true; keys.len()];
    look_up(&filter, &keys, &mut found);
    let owned = filter.into_owned()?;
    let lookup = seconds(|| look_up(&owned, &keys, &mut found))?;
    let mut filter = owned;
    filter.clear();
    let insertion = seconds(|| filter.insert_batch(&keys))?;
    black_box((&found, &filter));
    let per_key = |seconds: f64| seconds * 1e9 / keys.len() as f64;
    println!("{:.3} {:.3}", per_key(lookup), per_key(insertion));
    Ok(())
}

fn look_up<D: AsRef<[u8]>>(
    filter: &AnyFilter<D>,
    keys: &[u64],
    found: &mut [bool],
) {
    for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
        filter.contains_batch(keys, found);
    }
}

/// CPU time of this thread for some work.
fn seconds(work: impl FnOnce()) -> Result<f64> {
    let start = on_cpu()?;
    work();
    Ok(on_cpu()? - start)
}

/// Seconds that this thread has run.
fn on_cpu() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().ok_or("empty schedstat")?;
    Ok(first.parse::<f64>()? / 1e9)
}

//! Time to open a filter from bytes, per kind: for the first time, and again
//! with the [`Header`] that the first opening parsed. Each opened filter
//! answers one lookup, of a key that it has; the time of the same lookup in a
//! filter that stays open is subtracted.
//!
//! ```text
//! cargo run --release -p tamis --example opening
//! ```

use std::hint::black_box;
use std::time::Instant;

use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, Header, Kind, Result, Split, TinySet,
};

/// Rounds of all measurements, interleaved; the fastest of each counts.
const ROUNDS: usize = 60;
/// Openings in a measurement.
const REPEATS: u32 = 4_000;
const KEYS: u64 = 1_000;

/// Nanoseconds per call of `lookup`, which must find every key.
fn time(hashes: &[u64], mut lookup: impl FnMut(u64) -> bool) -> f64 {
    let start = Instant::now();
    let mut found = 0;
    for &hash in hashes.iter().cycle().take(REPEATS as usize) {
        found += u32::from(lookup(black_box(hash)));
    }
    assert_eq!(found, REPEATS, "a key is lost");
    start.elapsed().as_nanos() as f64 / f64::from(REPEATS)
}

/// Prints one line; `bytes` are at an odd address, as in the middle of a file.
macro_rules! measure {
    ($name:literal, $type:ident, $bytes:expr, $hashes:expr) => {{
        let (bytes, hashes): (&[u8], &[u64]) = ($bytes, $hashes);
        let header = Header::parse(bytes)?;
        let open = $type::from_bytes(bytes)?;
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            let times = [
                time(hashes, |hash| open.contains_hash(hash)),
                time(hashes, |hash| {
                    let filter = $type::from_bytes(black_box(bytes));
                    filter
                        .as_ref()
                        .is_ok_and(|filter| filter.contains_hash(hash))
                }),
                time(hashes, |hash| {
                    let bytes = black_box(bytes);
                    let filter = $type::from_bytes_with(&header, bytes);
                    filter
                        .as_ref()
                        .is_ok_and(|filter| filter.contains_hash(hash))
                }),
            ];
            for (best, time) in best.iter_mut().zip(times) {
                *best = time.min(*best);
            }
        }
        let [lookup, first, again] = best;
        println!(
            "{:<18}{:>9.1}{:>12.1}{:>12.1}{:>10}",
            $name,
            lookup,
            first - lookup,
            again - lookup,
            size_of::<$type<&[u8]>>()
        );
    }};
}

fn main() -> Result<()> {
    println!("ns per            lookup  from_bytes  ..with header   size");
    for kind in Kind::ALL {
        let filter = AnyFilter::builder(kind)
            .fpr(0.01)
            .build_from((0..KEYS).map(u64::to_le_bytes))?;
        let hashes: Vec<u64> = (0..KEYS)
            .map(|key| filter.hasher().hash(&key.to_le_bytes()))
            .collect();
        let mut bytes = vec![0; 13];
        filter.write_to(&mut bytes)?;
        let (bytes, hashes) = (&bytes[13..], &hashes[..]);
        match kind {
            Kind::Bloom => measure!("Bloom", Bloom, bytes, hashes),
            Kind::Blocked => measure!("Blocked", Blocked, bytes, hashes),
            Kind::Split => measure!("Split", Split, bytes, hashes),
            Kind::Balanced => measure!("Balanced", Balanced, bytes, hashes),
            Kind::TinySet => measure!("TinySet", TinySet, bytes, hashes),
            _ => {}
        }
        if matches!(kind, Kind::Blocked | Kind::TinySet) {
            measure!("  as AnyFilter", AnyFilter, bytes, hashes);
        }
    }
    println!("Header: {} bytes", size_of::<Header>());
    Ok(())
}

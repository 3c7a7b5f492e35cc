//! Time to design a [`Balanced`] filter: mean and maximum over false-positive
//! rates or bits per key, limits on reads and both block sizes. Each design
//! counts with the fastest of three runs.
//!
//! ```text
//! cargo run --release -p tamis --example design
//! ```

use std::hint::black_box;
use std::time::Instant;

use tamis::{Balanced, Builder, Result};

const READS: [f64; 5] = [1.02, 1.05, 1.1, 1.25, 2.0];

/// Milliseconds of the fastest of three runs.
fn fastest<T>(mut run: impl FnMut() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        black_box(run()?);
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

/// Prints one line over all sizes, limits on reads and blocks.
fn measure(
    name: &str,
    sizes: &[f64],
    set: fn(Builder<Balanced>, f64) -> Builder<Balanced>,
    run: fn(Builder<Balanced>) -> Result<()>,
) -> Result<()> {
    let mut times = Vec::new();
    for block_bits in [256, 512] {
        for reads in READS {
            for size in sizes {
                let builder = set(Balanced::builder(), *size)
                    .block_bits(block_bits)
                    .max_reads_miss(reads);
                times.push(fastest(|| run(builder))?);
            }
        }
    }
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let most = times.iter().copied().fold(0.0, f64::max);
    println!("{name:<34}{:>5}{mean:>8.2}{most:>8.2}", times.len());
    Ok(())
}

fn main() -> Result<()> {
    let rates = [0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9];
    let bits = [4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 48.0];
    let resolve = |builder: Builder<Balanced>| builder.resolve().map(drop);
    let build =
        |builder: Builder<Balanced>| builder.items(1000).build().map(drop);
    println!("{:<34}{:>5}{:>8}{:>8}", "ms per", "n", "mean", "max");
    measure("design for bits per key", &bits, Builder::bits_per_key, resolve)?;
    measure("design for a rate", &rates, Builder::fpr, resolve)?;
    measure("filter of 1000 keys for a rate", &rates, Builder::fpr, build)
}

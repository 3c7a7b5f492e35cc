//! Range checks for arguments.

use crate::{Error, MAX_PROBES, Result};

/// Below half a bit per key every filter here answers "maybe" to nearly
/// every key.
pub(crate) const MIN_BITS_PER_KEY: f64 = 0.5;
/// Above this a block is almost surely empty and the false-positive rate is
/// dominated by the collisions of a single key.
pub(crate) const MAX_BITS_PER_KEY: f64 = 1000.0;
/// The rate at which the 64-bit hashes of 20 000 keys collide.
pub(crate) const MIN_FPR: f64 = 1e-15;
/// A filter with rate 1 would reject no key.
const MAX_FPR: f64 = 1.0 - 1e-9;

pub(crate) fn in_range(
    name: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<f64> {
    // A NaN fails both comparisons.
    if value >= min && value <= max {
        Ok(value)
    } else {
        Err(Error::OutOfRange { name, value, min, max })
    }
}

pub(crate) fn bits_per_key(value: f64) -> Result<f64> {
    in_range("bits_per_key", value, MIN_BITS_PER_KEY, MAX_BITS_PER_KEY)
}

pub(crate) fn probes(value: u32, min: u32) -> Result<u32> {
    let (value, min) = (f64::from(value), f64::from(min));
    in_range("probes", value, min, f64::from(MAX_PROBES))
        .map(|probes| probes as u32)
}

pub(crate) fn block_bits(value: u32) -> Result<u32> {
    if value.is_power_of_two() && (64..=4096).contains(&value) {
        Ok(value)
    } else {
        Err(Error::BlockBits { block_bits: value })
    }
}

pub(crate) fn target(value: f64) -> Result<f64> {
    in_range("target", value, MIN_FPR, MAX_FPR)
}

/// Memory per key of a finite filter, in the range of [`bits_per_key`].
pub(crate) fn finite_bits_per_key(
    block_bits: u32,
    blocks: u64,
    items: u64,
) -> Result<f64> {
    if items == 0 {
        let (value, min, max) = (0.0, 1.0, u64::MAX as f64);
        return Err(Error::OutOfRange { name: "items", value, min, max });
    }
    bits_per_key(f64::from(block_bits) * blocks as f64 / items as f64)
}

/// Beyond this load a table of loads exceeds a few megabytes.
pub(crate) const MAX_LOAD: f64 = 10_000.0;
/// More choices gain nothing: the overflow is q^d.
pub(crate) const MAX_CHOICES: u32 = 16;
/// With more keys a block of at most 4096 bits answers "maybe" to every
/// key.
pub(crate) const MAX_THRESHOLD: u32 = 100_000;

pub(crate) fn load(value: f64) -> Result<f64> {
    in_range("load", value, 1e-6, MAX_LOAD)
}

pub(crate) fn arrivals(value: f64) -> Result<f64> {
    let max = MAX_LOAD * f64::from(MAX_CHOICES);
    in_range("arrivals", value, 0.0, max)
}

pub(crate) fn choices(value: u32, min: u32) -> Result<u32> {
    let (min, max) = (f64::from(min), f64::from(MAX_CHOICES));
    in_range("choices", f64::from(value), min, max)?;
    Ok(value)
}

pub(crate) fn threshold(value: u32) -> Result<usize> {
    let max = f64::from(MAX_THRESHOLD);
    in_range("threshold", f64::from(value), 0.0, max)?;
    Ok(value as usize)
}

pub(crate) fn keys(value: u32) -> Result<usize> {
    let max = f64::from(MAX_THRESHOLD);
    in_range("most", f64::from(value), 0.0, max)?;
    Ok(value as usize)
}

pub(crate) fn admission(value: f64) -> Result<f64> {
    in_range("admission", value, 0.0, 1.0)
}

/// An overflow of 1 would leave every block empty.
pub(crate) fn overflow_fraction(value: f64) -> Result<f64> {
    in_range("overflow_fraction", value, 0.0, 1.0 - 1e-9)
}

pub(crate) fn level_shares(shares: &[f64]) -> Result<&[f64]> {
    let sum: f64 = shares.iter().sum();
    // Filters have fewer than 1e12 blocks.
    let positive = shares.iter().all(|share| *share >= 1e-12);
    let few = shares.len() <= MAX_CHOICES as usize;
    // Shares are usually quotients of block counts, hence rounded.
    if positive && few && (sum - 1.0).abs() <= 1e-9 {
        Ok(shares)
    } else {
        Err(Error::LevelShares { levels: shares.len(), sum })
    }
}

//! What a design is predicted to do, and the ranges a question may use.

use crate::{Error, Result};

/// The largest number of probes considered for one key.
///
/// Beyond 32 the optimum is flat and the false-positive rate is below what
/// a 64-bit hash can deliver anyway.
///
/// ```
/// use tamis_theory::{MAX_PROBES, standard};
///
/// assert_eq!(standard::best(1000.0)?.probes, MAX_PROBES);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub const MAX_PROBES: u32 = 32;

/// What a design is predicted to do.
///
/// ```
/// let p = tamis_theory::blocked::predict(512, 10.0, 6)?;
/// assert_eq!((p.bits_per_key, p.probes), (10.0, 6));
/// assert!((p.fpr - 0.0096647).abs() < 1e-7);
/// assert_eq!((p.reads_hit, p.reads_miss), (1.0, 1.0));
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Memory per key, everything counted.
    pub bits_per_key: f64,
    /// Bits set per key, over all blocks it touches.
    pub probes: u32,
    /// Chance that a key never inserted is reported as present.
    pub fpr: f64,
    /// Average reads for a key that is present.
    pub reads_hit: f64,
    /// Average reads for a key that is absent.
    pub reads_miss: f64,
}

/// Below half a bit per key every filter here answers "maybe" to nearly
/// everything.
pub(crate) const MIN_BITS_PER_KEY: f64 = 0.5;
/// Keeps `load` away from the region where a block is almost surely empty
/// and the answer is dominated by a single key's collisions.
pub(crate) const MAX_BITS_PER_KEY: f64 = 1000.0;
/// Below this the keys' own 64-bit hashes collide as often.
pub(crate) const MIN_FPR: f64 = 1e-15;
/// The largest target that is still a filter.
const MAX_FPR: f64 = 1.0 - 1e-9;

pub(crate) fn in_range(
    name: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<f64> {
    // Written so that a NaN fails the test.
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

/// Keys per block of a finite filter, refused outside the same range of
/// memory as [`bits_per_key`].
pub(crate) fn finite_bits_per_key(
    block_bits: u32,
    blocks: u64,
    items: u64,
) -> Result<f64> {
    bits_per_key(f64::from(block_bits) * blocks as f64 / items as f64)
}

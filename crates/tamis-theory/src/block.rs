//! The false-positive rate of one Bloom block that holds i keys.
//!
//! Misprints of the paper: (9) has exponent B instead of k, and section 9.1
//! has k = r ln 2 instead of k = beta ln 2. Its approximation replaces the
//! number of set bits by its average. The rate is convex in that number, so
//! the exact rate is higher: 1.54 times for a balanced filter of 256-bit
//! blocks at 40 bits per key, 1.03 times at 8.
//!
//! ```
//! use tamis_theory::block;
//!
//! let rate = block::exact(512, 8, 60)?;
//! assert!(rate[60] > rate[30] && rate[0] == 0.0);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use alloc::vec::Vec;

use crate::prediction::MAX_PROBES;
use crate::{Result, check, coverage};

/// The rate with 0, 1, .. `most` keys, where a key's probes may repeat.
///
/// Exact: E[(X/B)^k] over the number X of bits set by ki uniform throws.
///
/// ```
/// let rate = tamis_theory::block::exact(256, 28, 6)?;
/// assert_eq!((rate.len(), rate[0]), (7, 0.0));
/// assert!(rate[6] > tamis_theory::block::approximate(256, 28, 6.0)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn exact(bits: u32, probes: u32, most: u32) -> Result<Vec<f64>> {
    let bits = payload(bits)?;
    let probes = check::probes(probes, 1)?;
    Ok(coverage::by_items(bits, probes, check::keys(most)?))
}

/// The rate with 0, 1, .. `most` keys, where a key's probes are distinct.
///
/// ```
/// use tamis_theory::block::{distinct, exact};
///
/// // Distinct probes set more bits, but a query also needs more of them.
/// assert!(distinct(256, 28, 6)?[6] < exact(256, 28, 6)?[6]);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn distinct(bits: u32, probes: u32, most: u32) -> Result<Vec<f64>> {
    let bits = payload(bits)?;
    let probes = check::probes(probes, 1)?;
    let most = check::keys(most)?;
    let max = f64::from(bits.min(MAX_PROBES));
    check::in_range("probes", f64::from(probes), 1.0, max)?;
    Ok(coverage::by_items_distinct(bits, probes, most))
}

/// The paper's approximation (1-e^{-ki/B})^k.
///
/// ```
/// let rate = tamis_theory::block::approximate(256, 28, 6.0)?;
/// assert!((rate - 1.274e-9).abs() < 1e-12);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn approximate(bits: u32, probes: u32, keys: f64) -> Result<f64> {
    let bits = payload(bits)?;
    let probes = check::probes(probes, 1)?;
    let most = f64::from(check::MAX_THRESHOLD);
    let keys = check::in_range("keys", keys, 0.0, most)?;
    Ok(averaged(bits, probes, keys))
}

pub(crate) fn averaged(bits: u32, probes: u32, keys: f64) -> f64 {
    let k = f64::from(probes);
    let fill = -libm::expm1(-k * keys / f64::from(bits));
    libm::pow(fill, k)
}

/// Bits of a block without its counter; need not be a power of two.
fn payload(bits: u32) -> Result<u32> {
    check::in_range("bits", f64::from(bits), 1.0, 4096.0)?;
    Ok(bits)
}

//! Appendix C: variance of the block load, for chained hash tables.
//!
//! With the cost i^2, Theorem 1 bounds the variance of a block's load. (C.1)
//! is the load of one bucket, not the time of a query as in the appendix: a
//! lookup that visits several buckets adds their loads.
//!
//! ```
//! use tamis_theory::variance;
//!
//! assert!(variance::bound(1.2, 8.0, 0.0)? < variance::single(8.0, 0.0)?);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use crate::bound::Bound;
use crate::{Result, dynamics, multilevel as levels, sequential as flat};

/// The smallest variance any scheme reaches.
///
/// ```
/// let variance = tamis_theory::variance::bound(1.2, 8.0, 0.0)?;
/// assert!((variance - 2.14735).abs() < 1e-5);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn bound(
    access_budget: f64,
    load: f64,
    overflow_fraction: f64,
) -> Result<f64> {
    let bound = Bound::new(access_budget, load, overflow_fraction)?;
    Ok(bound.distribution().variance())
}

/// The variance of the best SINGLE scheme.
///
/// ```
/// let variance = tamis_theory::variance::single(8.0, 0.01)?;
/// assert!((variance - 7.02734).abs() < 1e-5);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn single(load: f64, overflow_fraction: f64) -> Result<f64> {
    bound(1.0, load, overflow_fraction)
}

/// The variance of the best SEQUENTIAL scheme.
///
/// ```
/// let variance = tamis_theory::variance::sequential(1.2, 8.0, 3)?;
/// assert!((variance - 1.8937).abs() < 1e-4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn sequential(access_budget: f64, load: f64, choices: u32) -> Result<f64> {
    let run = flat::optimal(access_budget, load, choices)?;
    Ok(run.distribution.variance())
}

/// The variance of the best MULTILEVEL scheme.
///
/// ```
/// let variance = tamis_theory::variance::multilevel(1.2, 8.0, 3)?;
/// assert!((variance - 2.10589).abs() < 1e-5);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn multilevel(access_budget: f64, load: f64, choices: u32) -> Result<f64> {
    let (_, bound) = levels::optimal(access_budget, load, choices)?;
    Ok(bound.distribution().variance())
}

/// The variance when every key reads all its blocks and goes to the least
/// loaded.
///
/// ```
/// use tamis_theory::variance::{bound, least_loaded};
///
/// // A threshold reaches a tenth of it with the same two reads per key.
/// assert!(bound(2.0, 8.0, 0.0)? < 0.1 * least_loaded(8.0, 2)?);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn least_loaded(load: f64, choices: u32) -> Result<f64> {
    Ok(dynamics::least_loaded(load, choices)?.variance())
}

//! The classic Bloom filter: one array, probes anywhere in it.
//!
//! Reads are counted in bits, each in a cache line of its own. A lookup stops
//! at the first bit that is not set.
//!
//! ```
//! use tamis_theory::standard;
//!
//! assert!(standard::best(12.0)?.fpr < standard::best(10.0)?.fpr);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

use crate::search::Family;
use crate::{MAX_PROBES, Prediction, Result, checked};

/// Predicts a filter of `bits_per_key` with `probes` bits per key.
///
/// The false-positive rate is q^k with q = 1-e^{-k/beta}. A non-member reads
/// 1+q+...+q^(k-1) bits, a member all k.
///
/// ```
/// let p = tamis_theory::standard::predict(8.0, 6)?;
/// assert!((p.fpr - 0.0215771).abs() < 1e-7);
/// assert!((p.reads_miss - 2.07132).abs() < 1e-5);
/// assert_eq!(p.reads_hit, 6.0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn predict(bits_per_key: f64, probes: u32) -> Result<Prediction> {
    checked::predict(&Standard, bits_per_key, probes)
}

/// Predicts a filter of `bits_per_key` at its best number of probes, up to
/// [`MAX_PROBES`].
///
/// ```
/// let p = tamis_theory::standard::best(10.0)?;
/// assert_eq!(p.probes, 7);
/// assert!((p.fpr - 0.00819372).abs() < 1e-8);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn best(bits_per_key: f64) -> Result<Prediction> {
    checked::best(&Standard, bits_per_key)
}

/// Finds the smallest memory that reaches a false-positive rate.
///
/// The rate is at most `target`, and `bits_per_key` is within 1e-12 of the
/// smallest with such a rate.
///
/// ```
/// let p = tamis_theory::standard::for_fpr(0.01)?;
/// assert!(p.fpr <= 0.01);
/// assert!((p.bits_per_key - 9.585).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn for_fpr(target: f64) -> Result<Prediction> {
    checked::for_fpr(&Standard, target)
}

struct Standard;

impl Family for Standard {
    type Table = ();

    fn effective_probes(&self, probes: u32) -> f64 {
        f64::from(probes)
    }

    fn table(&self, _: u32, _: f64) {}

    fn predict(&self, (): &(), probes: u32, bits_per_key: f64) -> Prediction {
        let fill = -libm::expm1(-f64::from(probes) / bits_per_key);
        let (mut fpr, mut reads_miss) = (1.0, 0.0);
        for _ in 0..probes.min(MAX_PROBES) {
            reads_miss += fpr;
            fpr *= fill;
        }
        let reads_hit = f64::from(probes);
        Prediction { bits_per_key, probes, fpr, reads_hit, reads_miss }
    }
}

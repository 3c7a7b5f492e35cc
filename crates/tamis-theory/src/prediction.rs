//! The prediction for one filter.

/// The largest number of probes considered for one key.
///
/// Beyond 32 the optimum is flat and the false-positive rate is below the
/// collision rate of 64-bit hashes.
///
/// ```
/// use tamis_theory::{MAX_PROBES, standard};
///
/// assert_eq!(standard::best(1000.0)?.probes, MAX_PROBES);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub const MAX_PROBES: u32 = 32;

/// Predicted memory, false-positive rate and reads of a filter.
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
    /// Memory per key, all parts included.
    pub bits_per_key: f64,
    /// Bits set per key, over all blocks it touches; 0 for a filter of
    /// fingerprints, which sets none.
    pub probes: u32,
    /// Chance that a key never inserted is reported as present.
    pub fpr: f64,
    /// Average reads for a key that is present.
    pub reads_hit: f64,
    /// Average reads for a key that is absent.
    pub reads_miss: f64,
}

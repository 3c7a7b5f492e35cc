//! One error type for the crate.

/// What can be wrong with a question asked of this crate.
///
/// ```
/// use tamis_theory::{Error, standard};
///
/// let error = standard::predict(f64::NAN, 7).unwrap_err();
/// assert!(matches!(
///     error,
///     Error::OutOfRange { name: "bits_per_key", .. }
/// ));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number is not finite or lies outside the range the formulas are
    /// meant for. Ask again with `min <= value <= max`.
    #[error("{name} is {value}, expected {min} to {max}")]
    OutOfRange {
        /// The argument, by its name in the signature.
        name: &'static str,
        /// What was given.
        value: f64,
        /// The smallest value accepted.
        min: f64,
        /// The largest value accepted.
        max: f64,
    },
    /// The block size is not one the filters have. Use a power of two from
    /// 64 to 4096.
    #[error("block_bits is {block_bits}, expected a power of two, 64 to 4096")]
    BlockBits {
        /// What was given.
        block_bits: u32,
    },
    /// No number of probes reaches the target within the memory considered.
    /// Accept `best`, use larger blocks, or another structure.
    #[error(
        "a false-positive rate of {target:e} is out of reach: {best:e} is \
         the best, at {bits_per_key} bits per key"
    )]
    Unreachable {
        /// The false-positive rate asked for.
        target: f64,
        /// The lowest one found.
        best: f64,
        /// The memory at which it was found.
        bits_per_key: f64,
    },
}

/// A result whose error is [`enum@Error`].
///
/// ```
/// fn one_in_a_thousand() -> tamis_theory::Result<f64> {
///     Ok(tamis_theory::standard::for_fpr(0.001)?.bits_per_key)
/// }
/// assert!((one_in_a_thousand()? - 14.38).abs() < 0.01);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub type Result<T> = core::result::Result<T, Error>;

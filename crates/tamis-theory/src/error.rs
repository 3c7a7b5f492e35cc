//! One error type for the crate.

use core::fmt;

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
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A number is not finite or lies outside the range the formulas are
    /// meant for. Ask again with `min <= value <= max`.
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
    BlockBits {
        /// What was given.
        block_bits: u32,
    },
    /// No number of probes reaches the target within the memory considered.
    /// Accept `best`, use larger blocks, or another structure.
    Unreachable {
        /// The false-positive rate asked for.
        target: f64,
        /// The lowest one found.
        best: f64,
        /// The memory at which it was found.
        bits_per_key: f64,
    },
    /// Fewer reads than keys to place: no scheme can put a share
    /// `1 - overflow_fraction` of the keys into blocks with so few reads.
    /// Raise one of the two until they sum to at least one.
    Infeasible {
        /// Average blocks read per insertion, as given.
        access_budget: f64,
        /// Share of keys in no block, as given.
        overflow_fraction: f64,
    },
    /// The scheme cannot be optimal with an overflow this small. Allow at
    /// least `least`, or more choices, or a smaller access budget.
    OutsideRegion {
        /// Share of keys in no block, as given.
        overflow_fraction: f64,
        /// The smallest share at which the scheme is optimal.
        least: f64,
    },
    /// The shares of the levels are not positive numbers that sum to one.
    /// Divide the number of blocks of each level by the total.
    LevelShares {
        /// How many levels were given.
        levels: usize,
        /// What their shares sum to.
        sum: f64,
    },
    /// Counter and tracking bits leave no room for the filter. Use fewer
    /// tracking bits or larger blocks.
    NoRoom {
        /// Size of the block.
        block_bits: u32,
        /// Bits of it that count its keys.
        counter_bits: u32,
        /// Bits of it that remember refusals.
        tracking_bits: u32,
    },
    /// No design considered reads so few blocks for a non-member. Allow more
    /// reads, or use one level or [`crate::blocked`], which always read one.
    NoDesign {
        /// The limit that was asked for.
        max_reads_miss: f64,
    },
    /// The levels of a table are not 1 to 16 positive numbers of buckets.
    /// Leave out levels that have none.
    Levels {
        /// How many levels were given.
        levels: usize,
        /// Buckets of the smallest; 0 if there is none.
        smallest: u64,
        /// Buckets of the largest; 0 if there is none.
        largest: u64,
    },
    /// A stack needs one filter for each level.
    Filters {
        /// How many filters were given.
        filters: usize,
        /// How many levels the table has.
        levels: usize,
    },
    /// What levels pass on must fall from all items, level by level. Use
    /// what [`crate::crisis`] returns.
    PassedOn {
        /// How many numbers were given.
        levels: usize,
    },
    /// No division of so many buckets into levels considered keeps crises
    /// and failures within the budget. Allow more buckets or more levels.
    Budget {
        /// The chance that was allowed.
        budget: f64,
        /// The lowest chance of a crisis found.
        best: f64,
    },
    /// The differential equations need more steps than allowed, because the
    /// block loads are very large. The closed forms have no such limit.
    TooManySteps {
        /// How many were tried.
        steps: usize,
    },
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { name, value, min, max } => write!(
                f,
                "{name} is {}, expected {} to {}",
                Short(value),
                Short(min),
                Short(max)
            ),
            Self::BlockBits { block_bits } => write!(
                f,
                "block_bits is {block_bits}, expected a power of two, 64 to \
                 4096"
            ),
            Self::Unreachable { target, best, bits_per_key } => write!(
                f,
                "a false-positive rate of {target:e} is out of reach: \
                 {best:e} is the best, at {bits_per_key} bits per key"
            ),
            Self::Infeasible { access_budget, overflow_fraction } => write!(
                f,
                "{access_budget} reads per key cannot place all but \
                 {overflow_fraction} of the keys"
            ),
            Self::OutsideRegion { overflow_fraction, least } => write!(
                f,
                "an overflow fraction of {overflow_fraction} is outside the \
                 optimality region, which starts at {least}"
            ),
            Self::LevelShares { levels, sum } => write!(
                f,
                "{levels} level shares sum to {sum}, expected 1 to 16 \
                 positive shares that sum to 1"
            ),
            Self::NoRoom { block_bits, counter_bits, tracking_bits } => {
                write!(
                    f,
                    "{counter_bits} counter and {tracking_bits} tracking \
                     bits leave no room in a block of {block_bits} bits"
                )
            }
            Self::NoDesign { max_reads_miss } => write!(
                f,
                "no design keeps a non-member to {max_reads_miss} reads"
            ),
            Self::Levels { levels, smallest, largest } => write!(
                f,
                "{levels} levels of {smallest} to {largest} buckets, \
                 expected 1 to 16 levels of 1 to 2^50 buckets"
            ),
            Self::Filters { filters, levels } => write!(
                f,
                "{filters} filters for {levels} levels, expected {levels}"
            ),
            Self::PassedOn { levels } => write!(
                f,
                "{levels} numbers of items passed on, expected at least two \
                 that fall from all items, at most 2^64, and are not negative"
            ),
            Self::Budget { budget, best } => write!(
                f,
                "no division into levels keeps crises within {budget:e}: \
                 {best:e} is the best"
            ),
            Self::TooManySteps { steps } => {
                write!(f, "the dynamics need more than {steps} steps")
            }
        }
    }
}

/// A number in scientific notation where the decimal one is long:
/// `2.2e-308` without its 307 zeros.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value) = *self;
        let size = value.abs();
        if size == 0.0 || (1e-6..1e9).contains(&size) || !size.is_finite() {
            write!(f, "{value}")
        } else {
            write!(f, "{value:e}")
        }
    }
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

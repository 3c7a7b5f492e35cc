//! The error type of the crate, and its messages.

use core::f64::consts::LN_10;
use core::fmt::{self, Write as _};

/// The reason why a function of this crate returns no result.
///
/// Messages name the quantity in words; the fields carry the argument as it
/// is spelt in the signature.
///
/// ```
/// use tamis_theory::{Error, standard};
///
/// let error = standard::predict(0.0, 7).unwrap_err();
/// assert!(matches!(
///     error,
///     Error::OutOfRange { name: "bits_per_key", .. }
/// ));
/// let message = "bits per key must be between 0.5 and 1000, found 0";
/// assert_eq!(error.to_string(), message);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An argument is not finite or lies outside the range in which the
    /// formulas hold. Pass a value with `min <= value <= max`.
    OutOfRange {
        /// The argument, by its name in the signature.
        name: &'static str,
        /// The value found.
        value: f64,
        /// The smallest value accepted.
        min: f64,
        /// The largest value accepted.
        max: f64,
    },
    /// The filters have no blocks of this size. Use a power of two from 64
    /// to 4096.
    BlockBits {
        /// The size found.
        block_bits: u32,
    },
    /// No number of probes reaches the target within the memory considered.
    /// Accept `best`, use larger blocks, or another structure.
    Unreachable {
        /// The false-positive rate to reach.
        target: f64,
        /// The lowest rate found.
        best: f64,
        /// The memory at which it was found.
        bits_per_key: f64,
    },
    /// Fewer reads than keys to place: no scheme puts a share
    /// `1 - overflow_fraction` of the keys into blocks with `access_budget`
    /// reads per key. Raise one of the two until they sum to at least one.
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
        /// Number of shares given.
        levels: usize,
        /// Sum of the shares.
        sum: f64,
    },
    /// Counter and tracking bits leave no room for the filter. Use fewer
    /// tracking bits or larger blocks.
    NoRoom {
        /// Size of the block.
        block_bits: u32,
        /// Bits of it that count its keys.
        counter_bits: u32,
        /// Bits of it that record refusals.
        tracking_bits: u32,
    },
    /// Every design considered reads more blocks for a non-member. Allow
    /// more reads, or use one level or [`crate::blocked`], which always read
    /// one.
    NoDesign {
        /// The limit given.
        max_reads_miss: f64,
    },
    /// The levels of a table are not 1 to 16 positive numbers of buckets.
    /// Leave out levels without buckets.
    Levels {
        /// Number of levels given.
        levels: usize,
        /// Buckets of the smallest level; 0 without levels.
        smallest: u64,
        /// Buckets of the largest level; 0 without levels.
        largest: u64,
    },
    /// A stack needs one filter for each level.
    Filters {
        /// Number of filters given.
        filters: usize,
        /// Number of levels of the table.
        levels: usize,
    },
    /// The numbers of items that levels pass on must fall from all items,
    /// level by level. Use those of [`crate::crisis`].
    PassedOn {
        /// Number of values given.
        levels: usize,
    },
    /// No division of the buckets into levels keeps crises and failures
    /// within the budget. Allow more buckets or more levels.
    Budget {
        /// The probability allowed.
        budget: f64,
        /// The lowest probability of a crisis found.
        best: f64,
    },
    /// The differential equations need more steps than allowed, because the
    /// block loads are very large. The closed forms have no such limit.
    TooManySteps {
        /// Number of steps taken.
        steps: usize,
    },
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfRange { name, value, min, max } => write!(
                f,
                "{} must be {}, found {}",
                Words(name),
                Range(min, max),
                Number(value)
            ),
            Self::BlockBits { block_bits } => write!(
                f,
                "bits per block must be a power of two from 64 to 4096, \
                 found {block_bits}"
            ),
            Self::Unreachable { target, best, bits_per_key } => write!(
                f,
                "no design reaches a false-positive rate of {}: the lowest \
                 is {}, at {} bits per key; use larger blocks or another \
                 kind of filter",
                Number(target),
                Number(best),
                Number(bits_per_key)
            ),
            Self::Infeasible { access_budget, overflow_fraction } => write!(
                f,
                "access budget and overflow fraction must sum to at least \
                 1, found {} and {}",
                Number(access_budget),
                Number(overflow_fraction)
            ),
            Self::OutsideRegion { overflow_fraction, least } => write!(
                f,
                "overflow fraction must be at least {} with this access \
                 budget and number of choices, found {}",
                Number(least),
                Number(overflow_fraction)
            ),
            Self::LevelShares { levels, sum } => write!(
                f,
                "level shares must be 1 to 16 positive numbers that sum to \
                 1, found {levels} that sum to {}",
                Number(sum)
            ),
            Self::NoRoom { block_bits, counter_bits, tracking_bits } => {
                write!(
                    f,
                    "a block of {block_bits} bits has no room for keys \
                     beside {counter_bits} counter bits and {tracking_bits} \
                     tracking bits; use fewer tracking bits or larger blocks"
                )
            }
            Self::NoDesign { max_reads_miss } => write!(
                f,
                "no design looks up an absent key with {} reads on average; \
                 allow more reads, or use a filter that always reads one \
                 block",
                Number(max_reads_miss)
            ),
            Self::Levels { levels, smallest, largest } => write!(
                f,
                "a table must have 1 to 16 levels of 1 to 2^50 buckets, \
                 found {levels} levels of {smallest} to {largest} buckets"
            ),
            Self::Filters { filters, levels } => write!(
                f,
                "a stack must have one filter per level, found {filters} \
                 filters for {levels} levels"
            ),
            Self::PassedOn { levels } => write!(
                f,
                "the items that levels pass on must be at least two numbers \
                 between 0 and 2^64, the first positive, none above the one \
                 before; found {levels} numbers"
            ),
            Self::Budget { budget, best } => write!(
                f,
                "no division into levels keeps the probability of a crisis \
                 within {}: the lowest is {}; use more buckets or more levels",
                Number(budget),
                Number(best)
            ),
            Self::TooManySteps { steps } => write!(
                f,
                "the differential equations need more than {steps} steps; \
                 use fewer keys per block"
            ),
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

/// An argument in the words of the user interface.
struct Words(&'static str);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            "above" => "share of blocks above the threshold",
            "arrivals" => "average arrivals",
            "block_bits" => "bits per block",
            "bucket" => "entries per bucket",
            "cap" => "most keys per primary block",
            "false_positive" | "max_false_positive" | "target" => {
                "false-positive rate"
            }
            "keys" | "most" => "keys in a block",
            "load" => "keys per block",
            "max_reads_miss" | "most_reads" => "average reads per absent key",
            "ratio" => "primary blocks per block of level 2",
            "replaced" => "share of keys replaced",
            name => name,
        };
        for c in words.chars() {
            f.write_char(if c == '_' { ' ' } else { c })?;
        }
        Ok(())
    }
}

/// The bounds of a value, both inclusive.
struct Range(f64, f64);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range(min, max) = *self;
        match (min == f64::MIN_POSITIVE, max == f64::MAX) {
            (true, true) => write!(f, "positive"),
            (true, false) => {
                write!(f, "positive and at most {}", Number(max))
            }
            _ => write!(f, "between {} and {}", Number(min), Number(max)),
        }
    }
}

/// A number of at most nine significant digits, with its exponent where zeros
/// would be counted otherwise: 1e-300 instead of 300 zeros.
///
/// By integers: the formatting of floats in `core` would be 20 kB of every
/// program that prints an error.
struct Number(f64);

/// Significant digits of a [`Number`].
const DIGITS: i32 = 9;

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.abs();
        if value.is_nan() {
            return f.write_str("NaN");
        }
        // Not for -0, the sum of no numbers.
        if self.0 < 0.0 {
            f.write_char('-')?;
        }
        if value == 0.0 {
            return f.write_str("0");
        }
        if value.is_infinite() {
            return f.write_str("infinity");
        }
        let (mut digits, exponent) = decimal(value);
        // Digits behind the first.
        let mut fraction = DIGITS - 1;
        while digits % 10 == 0 {
            digits /= 10;
            fraction -= 1;
        }
        let is_short = (-3..7).contains(&exponent);
        let places = if is_short { fraction - exponent } else { fraction };
        match u32::try_from(places) {
            Err(_) | Ok(0) => {
                write!(f, "{}", digits * 10u64.pow(places.unsigned_abs()))?;
            }
            Ok(places) => {
                let unit = 10u64.pow(places);
                let (whole, rest) = (digits / unit, digits % unit);
                write!(f, "{whole}.{rest:0width$}", width = places as usize)?;
            }
        }
        if is_short { Ok(()) } else { write!(f, "e{exponent}") }
    }
}

/// `digits` of [`DIGITS`] digits and an exponent, so that a positive `value`
/// is about `digits / 10^(DIGITS - 1) * 10^exponent`.
fn decimal(value: f64) -> (u64, i32) {
    let mut exponent = libm::floor(libm::log(value) / LN_10) as i32;
    loop {
        let shift = DIGITS - 1 - exponent;
        // In two steps: 10^shift may be infinite.
        let half = libm::pow(10.0, f64::from(shift / 2));
        let rest = libm::pow(10.0, f64::from(shift - shift / 2));
        let digits = libm::round(value * half * rest) as u64;
        // The logarithm may be wrong by one where it is near an integer.
        if digits < 10u64.pow(DIGITS as u32 - 1) {
            exponent -= 1;
        } else if digits >= 10u64.pow(DIGITS as u32) {
            exponent += 1;
        } else {
            return (digits, exponent);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1e-300, "1e-300"),
            (1e-15, "1e-15"),
            (0.001, "0.001"),
            (0.5, "0.5"),
            (-1.25, "-1.25"),
            (4096.0, "4096"),
            (1e10, "1e10"),
            (f64::INFINITY, "infinity"),
            (-f64::INFINITY, "-infinity"),
            (f64::NAN, "NaN"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333"),
            (1.0 / 512.0, "0.001953125"),
            (0.000_123_4, "1.234e-4"),
            (9_999_999.5, "9999999.5"),
            (0.999_999_999_9, "1"),
            (f64::MIN_POSITIVE, "2.22507386e-308"),
            (f64::from_bits(1), "4.94065646e-324"),
            (f64::MAX, "1.79769313e308"),
        ] {
            assert_eq!(Number(value).to_string(), text);
        }
    }

    /// Where nine digits are exact, the formatting of floats in `core` writes
    /// the same.
    #[test]
    fn few_digits_are_exact() {
        for digits in [1u32, 7, 25, 123, 9_999, 65_536, 123_456_789] {
            for exponent in -300..=300 {
                let value: f64 =
                    format!("{digits}e{exponent}").parse().unwrap();
                let plain = match (1e-3..1e7).contains(&value) {
                    true => format!("{value}"),
                    false => format!("{value:e}"),
                };
                assert_eq!(Number(value).to_string(), plain);
            }
        }
    }

    #[test]
    fn ranges_name_only_bounds_that_mean_something() {
        let (least, most) = (f64::MIN_POSITIVE, f64::MAX);
        for (min, max, text) in [
            (1e-15, 0.5, "between 1e-15 and 0.5"),
            (least, 9.0, "positive and at most 9"),
            (least, most, "positive"),
        ] {
            assert_eq!(Range(min, max).to_string(), text);
        }
    }

    #[test]
    fn arguments_are_named_in_words() {
        for (name, words) in [
            ("target", "false-positive rate"),
            ("load", "keys per block"),
            ("access_budget", "access budget"),
            ("items", "items"),
        ] {
            assert_eq!(Words(name).to_string(), words);
        }
    }
}

//! One filter of a stack.

use super::{MAX_PROBES, MAX_STRING_BITS};
use crate::{Result, check};

/// One filter of a stack.
///
/// ```
/// use tamis_theory::summary::Filter;
///
/// let bloom = Filter::Bloom { cells: 9600, probes: 7 };
/// let list = Filter::HashList { bits: 7 };
/// // The same for a few items, not for many.
/// assert!(list.hit(10.0) > bloom.hit(10.0));
/// assert!((bloom.hit(1000.0) - 0.0099973).abs() < 1e-7);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// A Bloom filter whose probes go to groups of `cells / probes` bits.
    Bloom {
        /// Bits, all groups together.
        cells: u64,
        /// Bits set per item, k.
        probes: u32,
    },
    /// A list of hashed strings, for the few items of the last levels.
    HashList {
        /// Bits of a string, b.
        bits: u32,
    },
}

impl Filter {
    /// The chance that a filter of `items` answers "maybe" to another key.
    ///
    /// (1-(1-1/g)^c)^k with g cells in a group: exact, because the groups
    /// are independent. 1-(1-2^-b)^c for a list. 1 if a group has no cell.
    ///
    /// ```
    /// use tamis_theory::summary::Filter;
    ///
    /// let filter = Filter::Bloom { cells: 12, probes: 3 };
    /// assert!((filter.hit(1.0) - 1.0 / 64.0).abs() < 1e-16);
    /// let list = Filter::HashList { bits: 6 };
    /// assert!((list.hit(1.0) - 1.0 / 64.0).abs() < 1e-16);
    /// ```
    pub fn hit(&self, items: f64) -> f64 {
        match *self {
            Filter::Bloom { cells, probes } => {
                let group = cells / u64::from(probes.max(1));
                group_hit(group as f64, probes, items)
            }
            Filter::HashList { bits } => list_hit(items, bits),
        }
    }

    /// Memory of a filter of `items` items, in bits.
    ///
    /// ```
    /// use tamis_theory::summary::Filter;
    ///
    /// assert_eq!(Filter::Bloom { cells: 100, probes: 7 }.bits(3.0), 100.0);
    /// assert_eq!(Filter::HashList { bits: 48 }.bits(3.0), 144.0);
    /// ```
    pub fn bits(&self, items: f64) -> f64 {
        match *self {
            Filter::Bloom { cells, .. } => cells as f64,
            Filter::HashList { bits } => items * f64::from(bits),
        }
    }

    pub(super) fn check(self) -> Result<Self> {
        match self {
            Filter::Bloom { cells, probes } => {
                let most = f64::from(MAX_PROBES);
                check::in_range("probes", f64::from(probes), 1.0, most)?;
                let least = f64::from(probes);
                check::in_range("cells", cells as f64, least, MAX_CELLS)?;
            }
            Filter::HashList { bits } => {
                let most = f64::from(MAX_STRING_BITS);
                check::in_range("bits", f64::from(bits), 1.0, most)?;
            }
        }
        Ok(self)
    }
}

/// Largest number below which every integer is an `f64`.
const MAX_CELLS: f64 = (1u64 << 53) as f64;

/// The chance that a query finds its bit set in all `probes` groups of `group`
/// cells.
pub(super) fn group_hit(group: f64, probes: u32, items: f64) -> f64 {
    if group < 1.0 {
        return 1.0;
    }
    let fill = some_hit(items, 1.0 / group);
    libm::pow(fill, f64::from(probes))
}

pub(super) fn list_hit(items: f64, bits: u32) -> f64 {
    some_hit(items, libm::exp2(-f64::from(bits)))
}

/// 1-(1-p)^c: the chance of a hit by at least one of c items, each with
/// chance p.
fn some_hit(items: f64, chance: f64) -> f64 {
    // 0 * ln(0) would be NaN.
    if items <= 0.0 {
        return 0.0;
    }
    -libm::expm1(items * libm::log1p(-chance))
}

/// 1-prod(1-i/s): the chance that two of n strings out of s are equal.
///
/// The logarithm of the product is -(n(n-1)/(2s) + n(n-1)(2n-1)/(12 s^2) +
/// ...). Later terms are significant only where the chance is 1.
pub(super) fn some_equal(n: f64, s: f64) -> f64 {
    if n > s {
        return 1.0;
    }
    let pairs = n * (n - 1.0) / 2.0;
    let second = pairs * (2.0 * n - 1.0) / 6.0;
    let third = pairs * pairs;
    let log = pairs / s + second / (s * s) + third / (3.0 * s * s * s);
    -libm::expm1(-log)
}

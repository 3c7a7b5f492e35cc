//! Balanced Bloom filters: blocks that refuse keys once they are full enough.
//!
//! A key goes into the first of its blocks that takes it, and a lookup
//! follows the same path until it finds the key or a block that cannot have
//! refused it. The modules differ in the place of a key that every block
//! refused:
//!
//! * [`list`]: it goes to an overflow list, as in the paper;
//! * [`returned`]: it goes into one of its blocks after all;
//! * [`absorbing`]: no such key, the last level takes every key;
//!   [`finite`] counts its blocks.
//!
//! A member reads the blocks that its insertion read. A non-member reads
//! until a block is not full: 2.1 to 2.9 blocks at 1.2 reads per member and
//! three levels, a number the paper leaves out. [`Lookup`] lists the methods
//! to lower it.
//!
//! ```
//! use tamis_theory::balanced::{Lookup, list};
//!
//! let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
//! let p = list::best(512, 16.0, scheme, Lookup::Plain)?;
//! assert_eq!(p.prediction.reads_hit, 1.2);
//! assert!(p.prediction.reads_miss > 2.6);
//! # Ok::<(), tamis_theory::Error>(())
//! ```

pub mod absorbing;
pub mod finite;
pub mod fluid;
pub mod list;
pub(crate) mod refuser;
#[cfg(feature = "models")]
pub mod returned;
mod walk;

pub(crate) use refuser::Refuser;
pub(crate) use walk::{Stage, Walk};

/// How a lookup decides whether a block may have refused its key.
///
/// ```
/// use tamis_theory::balanced::{Lookup, list};
///
/// let scheme = list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };
/// let reads = |lookup| -> tamis_theory::Result<f64> {
///     let p = list::predict(512, 40.0, scheme, lookup, 24)?;
///     Ok(p.prediction.reads_miss)
/// };
/// assert!(reads(Lookup::Coin)? < reads(Lookup::Plain)?);
/// assert!(reads(Lookup::Tracking(8))? < 1.4);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// It goes on past every block at its threshold or above.
    Plain,
    /// The coin that decides at the threshold is a hash of the key, so that
    /// a lookup stops where the coin would have taken the key.
    Coin,
    /// Each block keeps this many bits, and sets the one chosen by a
    /// refused key's hash. A lookup goes on where its own bit is set.
    Tracking(u32),
}

impl Lookup {
    pub(crate) fn tracking_bits(self) -> crate::Result<u32> {
        match self {
            Lookup::Plain | Lookup::Coin => Ok(0),
            Lookup::Tracking(bits) => {
                let name = "tracking_bits";
                crate::check::in_range(name, f64::from(bits), 1.0, 4096.0)?;
                Ok(bits)
            }
        }
    }
}

/// Bits of a block that are left for its filter.
pub(crate) fn payload_bits(
    block_bits: u32,
    counter_bits: u32,
    tracking_bits: u32,
) -> crate::Result<u32> {
    block_bits
        .checked_sub(counter_bits)
        .and_then(|bits| bits.checked_sub(tracking_bits))
        .filter(|bits| *bits > 0)
        .ok_or(crate::Error::NoRoom {
            block_bits,
            counter_bits,
            tracking_bits,
        })
}

/// Bits that count 0, 1, .. `most`.
pub(crate) fn bits_to_count(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

/// The number of probes with the least rate: one valley, which begins below
/// the standard filter's `bits_per_key` ln 2.
pub(crate) fn best_probes(
    bits_per_key: f64,
    mut fpr: impl FnMut(u32) -> crate::Result<f64>,
) -> crate::Result<u32> {
    let start = libm::round(0.6 * bits_per_key) as u32;
    let mut failed = None;
    let range = (1, crate::MAX_PROBES);
    let probes = crate::search::lowest(start, range, 2, |probes| {
        fpr(probes).unwrap_or_else(|error| {
            failed = Some(error);
            f64::INFINITY
        })
    });
    failed.map_or(Ok(probes), Err)
}

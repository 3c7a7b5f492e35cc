//! Structures that the papers behind tamis compare themselves with.
//!
//! They follow their papers and not the product: they are not tuned for
//! speed, and have no format, no threads and no batches. All hold 64-bit
//! keys, which they mix themselves, and have the trait [`Baseline`], so that
//! one experiment runs over all of them and over the product's own filters
//! ([`Product`]). [`tamis::Filter`] is sealed, and a rival needs none of its
//! methods for files.
//!
//! Each module names its source, its formula, and the parts that were
//! inferred because the source could not be had.

mod bits;
mod counting;
mod d_left;
mod least_loaded;
mod lines;
mod product;
mod rank_indexed;
mod song;
mod variable_increment;

use std::fmt;

pub use counting::Counting;
pub use d_left::DLeft;
pub use least_loaded::LeastLoaded;
pub use lines::Lines;
pub use product::Product;
pub use rank_indexed::{Design, Extensions, RankIndexed};
pub use song::{FastHashTable, Lookup, SharedNodes};
pub use variable_increment::{Increments, VariableIncrement};

/// A set of keys with false positives, or a table of keys.
///
/// ```
/// use tamis_lab::baseline::{Baseline, Counting, Error};
///
/// let mut filter = Counting::new(1000, 7);
/// filter.insert(17)?;
/// assert!(filter.contains(17));
/// filter.remove(17)?;
/// assert_eq!(filter.remove(17), Err(Error::Absent));
/// # Ok::<(), Error>(())
/// ```
pub trait Baseline {
    /// Name in tables and plots.
    fn name(&self) -> &'static str;

    /// Inserts `key`. [`Error::Full`] changes nothing.
    fn insert(&mut self, key: u64) -> Result<(), Error>;

    /// Whether `key` may be in the set, with the cache lines read: `false`
    /// is certain.
    fn look_up(&self, key: u64, lines: &mut Lines) -> bool;

    /// Whether `key` may be in the set: `false` is certain.
    fn contains(&self, key: u64) -> bool {
        self.look_up(key, &mut Lines::ignored())
    }

    /// Removes one insertion of `key`, which must be in the set.
    ///
    /// A key that was not inserted, but is a false positive, takes another
    /// with it. [`Error::Absent`] and [`Error::Unsupported`] change nothing.
    fn remove(&mut self, _key: u64) -> Result<(), Error> {
        Err(Error::Unsupported)
    }

    /// Memory in bits, as the paper counts it.
    fn bits(&self) -> u64;
}

/// Reasons why a structure did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// No room for a key.
    Full,
    /// The key to remove is certainly not in the set.
    Absent,
    /// The structure cannot remove keys.
    Unsupported,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "no room for the key",
            Self::Absent => "the key to remove is not in the set",
            Self::Unsupported => "this structure cannot remove keys",
        })
    }
}

impl std::error::Error for Error {}

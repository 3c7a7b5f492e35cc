//! Tables: where is the key, and what belongs to it?
//!
//! ```
//! use tamis::table::Chained;
//!
//! let mut table = Chained::builder().items(1000).build()?;
//! table.insert("apple".to_string(), 3);
//! assert_eq!(table.get("apple"), Some(&3));
//! # Ok::<(), tamis::Error>(())
//! ```

mod chained;
mod list;
mod multilevel;

pub use chained::{Chained, ChainedBuilder, ChainedDesign, ChainedStats};
pub use multilevel::{
    Crisis, LevelStats, Lookup, Multilevel, MultilevelBuilder,
    MultilevelDesign, MultilevelStats,
};

use alloc::vec::Vec;

use crate::key::{Key, KeyHasher, stretch};

/// Stream of [`stretch`] for an order of keys that nothing else depends on.
const ORDER_STREAM: usize = 49;

/// The order in which keys are put back into a table. In the order of their
/// buckets, those who were lucky before would be first.
fn order(hash: u64) -> (u64, u64) {
    (stretch(hash, ORDER_STREAM), hash)
}

/// Entries with their hashes, in the order in which to put them back.
fn in_order<K: Key, V>(
    hasher: &KeyHasher,
    entries: impl IntoIterator<Item = (K, V)>,
) -> Vec<(u64, (K, V))> {
    let mut entries: Vec<_> = entries
        .into_iter()
        .map(|entry| (hasher.hash(&entry.0), entry))
        .collect();
    entries.sort_unstable_by_key(|(hash, _)| order(*hash));
    entries
}

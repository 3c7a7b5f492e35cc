//! In-memory hash tables.
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
mod directory;
mod entry_list;
mod multilevel;
#[cfg(all(feature = "std", unix))]
mod on_disk;
mod place;

pub use chained::{Chained, ChainedBuilder, ChainedDesign, ChainedStats};
pub use multilevel::{
    Lookup, Multilevel, MultilevelBuilder, MultilevelDesign, MultilevelStats,
    RemovalRule, TableFull,
};
#[cfg(all(feature = "std", unix))]
pub use on_disk::{IoCounts, OnDisk};

use alloc::vec::Vec;

use crate::key::{Key, KeyHasher, stretch};

/// Stream of [`stretch`] for the order of reinsertion.
const ORDER_STREAM: usize = 49;

/// The sort key of reinsertion: a random order that depends on the hashes
/// alone. Reinsertion in bucket order would favour the keys that were placed
/// first before.
fn reinsertion_rank(hash: u64) -> (u64, u64) {
    (stretch(hash, ORDER_STREAM), hash)
}

/// Entries with their hashes, in the order of reinsertion.
fn in_reinsertion_order<K: Key, V>(
    hasher: &KeyHasher,
    entries: impl IntoIterator<Item = (K, V)>,
) -> Vec<(u64, (K, V))> {
    let mut entries: Vec<_> = entries
        .into_iter()
        .map(|entry| (hasher.hash(&entry.0), entry))
        .collect();
    entries.sort_unstable_by_key(|(hash, _)| reinsertion_rank(*hash));
    entries
}

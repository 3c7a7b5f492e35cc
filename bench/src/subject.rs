//! Operations of a filter that can be measured.

use std::error::Error;

use crate::keys::Item;

pub(crate) type Result<T = ()> =
    std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A filter. Timed loops are compiled for each filter: a call through a
/// pointer would cost more than some lookups.
pub(crate) trait Subject: Sized {
    const NAME: &'static str;

    /// Whether it has batched lookups.
    const BATCH: bool = false;

    /// Whether all keys must be inserted before the first lookup.
    const STATIC: bool = false;

    /// Parameters computed before a filter is built.
    type Design;

    /// The smallest filter of `items` keys with a false-positive rate of
    /// at most `fpr`; `None` if another variant covers that rate.
    fn design(items: u64, fpr: f64) -> Result<Option<Self::Design>>;

    fn empty(design: &Self::Design) -> Result<Self>;

    fn insert_hash(&mut self, hash: u64);

    fn contains_hash(&self, hash: u64) -> bool;

    fn insert<K: Item>(&mut self, key: &K);

    fn contains<K: Item>(&self, key: &K) -> bool;

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self.insert_hash(hash);
        }
    }

    fn insert_batch<K: Item>(&mut self, keys: &[K]) {
        for key in keys {
            self.insert(key);
        }
    }

    fn contains_hash_batch(&self, _hashes: &[u64], _found: &mut Vec<bool>) {
        unreachable!("{} has no batch", Self::NAME)
    }

    fn contains_batch<K: Item>(&self, _keys: &[K], _found: &mut Vec<bool>) {
        unreachable!("{} has no batch", Self::NAME)
    }

    /// A copy of the filter in other memory; `None` if not supported.
    fn relocated(&self) -> Option<Self> {
        None
    }

    /// Called after the last insertion.
    fn finish(&mut self) -> Result {
        Ok(())
    }
}

//! What a filter has to offer to be measured.

use std::error::Error;

use crate::keys::Item;

pub(crate) type Result<T = ()> =
    std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A filter. Everything is compiled for each of them: a call through a
/// pointer would cost more than some of the lookups.
pub(crate) trait Subject: Sized {
    const NAME: &'static str;

    /// Whether it looks many keys up at once.
    const BATCH: bool = false;

    /// Whether all keys must be known before the first lookup.
    const STATIC: bool = false;

    /// What is worked out before a filter is built.
    type Design;

    /// The smallest filter for this many keys with a false-positive rate of
    /// `fpr` or less; none if another form of it is meant for that rate.
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

    /// The same filter in other memory; none where it makes no difference.
    fn relocated(&self) -> Option<Self> {
        None
    }

    /// All keys are in.
    fn finish(&mut self) -> Result {
        Ok(())
    }
}

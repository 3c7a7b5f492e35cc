//! A piece of input that ends with a whole key.

use std::sync::Arc;

use tamis::KeyHasher;

use super::Format;
use crate::failure::{Failure, Result};

/// Some bytes of one source, cut at a key.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(super) bytes: Vec<u8>,
    pub(super) format: Format,
    /// For messages: the source, and the keys before this chunk.
    pub(super) name: Arc<str>,
    pub(super) keys_before: u64,
}

impl Chunk {
    /// Number of keys.
    pub(crate) fn count(&self) -> u64 {
        self.format.count(&self.bytes)
    }

    /// Appends the hash of every key.
    pub(crate) fn hash(
        &self,
        hasher: &KeyHasher,
        hashes: &mut Vec<u64>,
    ) -> Result<()> {
        self.each(|key, _| hashes.push(hasher.hash(key)))
    }

    /// Calls `f` with every key and with the bytes it was written as.
    pub(crate) fn each<'a>(
        &'a self,
        f: impl FnMut(&[u8], &'a [u8]),
    ) -> Result<()> {
        self.format.each(&self.bytes, f).map_err(|fault| {
            Failure::new(format_args!(
                "{}: key {}: {} (see --key-format)",
                self.name,
                self.keys_before + fault.index + 1,
                fault.why
            ))
        })
    }
}

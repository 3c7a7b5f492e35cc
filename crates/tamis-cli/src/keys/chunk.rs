//! Chunk of one source that ends with a complete key.

use std::sync::Arc;

use tamis::KeyHasher;

use super::KeyFormat;
use crate::failure::{Failure, Result};

/// Complete keys of one source, still encoded.
#[derive(Debug)]
pub(crate) struct KeyChunk {
    pub(super) bytes: Vec<u8>,
    pub(super) format: KeyFormat,
    /// Name of the source, for messages.
    pub(super) name: Arc<str>,
    /// Keys of the source before this chunk, for messages.
    pub(super) keys_before: u64,
}

impl KeyChunk {
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
        self.for_each_key(|key, _| hashes.push(hasher.hash(key)))
    }

    /// Calls `f` with every decoded key and its encoded bytes.
    pub(crate) fn for_each_key<'a>(
        &'a self,
        f: impl FnMut(&[u8], &'a [u8]),
    ) -> Result<()> {
        self.format.for_each_key(&self.bytes, f).map_err(|fault| {
            Failure::new(format_args!(
                "{}: key {}: {} (see --key-format)",
                self.name,
                self.keys_before + fault.index + 1,
                fault.reason
            ))
        })
    }
}

//! Two independent blocks per key.

use super::reduce;
use crate::key::{STREAMS, stretch};

/// Two blocks per key, chosen independently from one array. They coincide for
/// one key in `blocks`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) blocks: u64,
}

impl Pair {
    /// Block number `half` of a key (0 or 1), and the hash that chose it.
    #[inline(always)]
    pub(crate) fn block(self, hash: u64, half: u32) -> (u64, u64) {
        let hash = if half == 0 { hash } else { stretch(hash, STREAMS - 1) };
        (reduce(hash, self.blocks), hash)
    }
}

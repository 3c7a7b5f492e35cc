//! Two independent blocks, both used.

use super::reduce;
use crate::key::{STREAMS, stretch};

/// Every key has two blocks, chosen independently from the same array, so
/// they coincide for one key in `blocks`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) blocks: u64,
}

impl Pair {
    /// The `half`-th block and the hash that chose it.
    #[inline(always)]
    pub(crate) fn block(self, hash: u64, half: u32) -> (u64, u64) {
        let hash = if half == 0 { hash } else { stretch(hash, STREAMS - 1) };
        (reduce(hash, self.blocks), hash)
    }
}

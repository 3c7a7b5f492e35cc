//! One block per key.

use super::reduce;

/// One block per key, chosen by its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single {
    pub(crate) blocks: u64,
}

impl Single {
    #[inline(always)]
    pub(crate) fn block(self, hash: u64) -> u64 {
        reduce(hash, self.blocks)
    }
}

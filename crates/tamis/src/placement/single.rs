//! One block, chosen once.

use super::reduce;

/// Every key has exactly one block.
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

//! Independent positions for every probe: the classic Bloom filter.

use super::reduce;
use crate::key::stretch;

/// Positions spread over one array of `bits`.
///
/// Each position comes from its own stretched word. Double hashing
/// (`g + i h`) saves one multiplication per probe, which the cache miss hides,
/// and its positions form an arithmetic progression: the false-positive rate
/// then only *approaches* the formula as the filter grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scattered {
    pub(crate) bits: u64,
}

impl Scattered {
    #[inline(always)]
    pub(crate) fn position(self, hash: u64, probe: u32) -> u64 {
        reduce(stretch(hash, probe as usize), self.bits)
    }
}

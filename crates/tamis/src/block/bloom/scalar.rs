//! The portable operations: the definition of the others.

use super::{ANY, BlockProbe as _, Ops, Probes};
use crate::arch::Scalar;

impl Ops for Scalar {
    /// Without an early exit: the first clear bit of an absent key comes
    /// after two positions on average, and mispredicting that exit costs more
    /// than testing the rest of a line that is already in cache.
    #[inline(always)]
    fn all_set<const GROUPS: u32>(self, block: &[u8], probes: Probes) -> bool {
        let mut all = 1;
        probes.for_each_bit(|bit| {
            all &= block[bit as usize / 8] >> (bit % 8);
        });
        all & 1 == 1
    }

    #[inline(always)]
    fn set_all(self, block: &mut [u8], probes: Probes) {
        self.set_missing::<ANY>(block, probes);
    }

    /// Writes without a test: a branch per bit would be mispredicted.
    #[inline(always)]
    fn set_missing<const GROUPS: u32>(
        self,
        block: &mut [u8],
        probes: Probes,
    ) -> bool {
        let mut all = 1;
        probes.for_each_bit(|bit| {
            let byte = &mut block[bit as usize / 8];
            all &= *byte >> (bit % 8);
            *byte |= 1 << (bit % 8);
        });
        all & 1 == 0
    }
}

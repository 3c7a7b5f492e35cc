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
        set_one_by_one(block, probes);
    }

    #[inline(always)]
    fn set_missing(self, block: &mut [u8], probes: Probes) -> bool {
        test_and_set(self, block, probes)
    }
}

/// [`Ops::set_missing`] by [`Ops::all_set`] and single bits. One test of all
/// bits is cheaper than a branch per bit.
#[inline(always)]
pub(super) fn test_and_set<T: Ops>(
    token: T,
    block: &mut [u8],
    probes: Probes,
) -> bool {
    let missing = !token.all_set::<ANY>(block, probes);
    if missing {
        set_one_by_one(block, probes);
    }
    missing
}

/// Sets positions one after the other.
#[inline(always)]
pub(super) fn set_one_by_one(block: &mut [u8], probes: Probes) {
    probes.for_each_bit(|bit| {
        block[bit as usize / 8] |= 1 << (bit % 8);
    });
}

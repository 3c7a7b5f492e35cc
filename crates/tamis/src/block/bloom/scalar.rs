//! The portable test, and the definition of what the others must do.

use super::{ANY, BlockProbe as _, Probes};
use crate::simd::{Backend, Scalar};

/// [`Backend::all_set`](crate::simd::Backend::all_set) for every processor.
///
/// Without an early exit: a non-member's first clear bit comes after two
/// positions on average, and mispredicting that exit costs more than testing
/// the rest of a line that is already in cache.
#[inline(always)]
pub(crate) fn all_set<const GROUPS: u32>(
    _: Scalar,
    block: &[u8],
    probes: Probes,
) -> bool {
    let mut all = 1;
    probes.for_each_bit(|bit| {
        all &= block[bit as usize / 8] >> (bit % 8);
    });
    all & 1 == 1
}

/// [`Backend::set_all`](crate::simd::Backend::set_all) for every processor.
#[inline(always)]
pub(crate) fn set_all(_: Scalar, block: &mut [u8], probes: Probes) {
    set_one_by_one(block, probes);
}

/// [`Backend::set_missing`](crate::simd::Backend::set_missing) for every
/// processor.
#[inline(always)]
pub(crate) fn set_missing(
    backend: Scalar,
    block: &mut [u8],
    probes: Probes,
) -> bool {
    look_and_set(backend, block, probes)
}

/// The same for every backend. To look for all bits first is cheaper than to
/// ask at each.
#[inline(always)]
pub(crate) fn look_and_set<B: Backend>(
    backend: B,
    block: &mut [u8],
    probes: Probes,
) -> bool {
    let missing = !backend.all_set::<ANY>(block, probes);
    if missing {
        set_one_by_one(block, probes);
    }
    missing
}

/// Sets positions one after the other.
#[inline(always)]
pub(crate) fn set_one_by_one(block: &mut [u8], probes: Probes) {
    probes.for_each_bit(|bit| {
        block[bit as usize / 8] |= 1 << (bit % 8);
    });
}

//! Which blocks a key may live in.
//!
//! A placement turns the 64 bits of a key into block indices. Every index
//! comes from a 64-bit multiply-shift, `hash * blocks / 2^64`: it needs no
//! power of two, no division, and no more than 64 bits of hash, and its bias
//! (at most `blocks / 2^64`) cannot be measured at any size that fits a
//! machine.

mod pair;
mod scattered;
mod single;

pub(crate) use pair::Pair;
pub(crate) use scattered::Scattered;
pub(crate) use single::Single;

/// Maps 64 uniform bits to `0..blocks`.
///
/// Monotone in `hash`, which is what makes folding exact: halving the
/// number of blocks halves every index.
#[inline(always)]
pub(crate) fn reduce(hash: u64, blocks: u64) -> u64 {
    // The product is below 2^64 * blocks, so the result is below blocks.
    ((u128::from(hash) * u128::from(blocks)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reaches_indices_beyond_32_bits() {
        let blocks = (1 << 40) + 3;
        assert_eq!(reduce(u64::MAX, blocks), blocks - 1);
        assert_eq!(reduce(1 << 63, blocks), blocks / 2);
        assert_eq!(reduce(0, blocks), 0);
    }

    proptest! {
        #[test]
        fn stays_in_range_and_folds(hash: u64, half in 1u64..1 << 62) {
            prop_assert!(reduce(hash, half) < half);
            prop_assert_eq!(reduce(hash, 2 * half) / 2, reduce(hash, half));
        }
    }
}

//! Block numbers from the 64-bit hash of a key.
//!
//! Every block number is a 64-bit multiply-shift, `hash * blocks / 2^64`. It
//! needs no power of two, no division and no more than 64 bits of hash. Its
//! bias, at most `blocks / 2^64`, is too small to measure at any size that
//! fits into a machine.

mod admission;
mod pair;
mod proposals;
mod scattered;
mod scheme;
mod single;
pub(crate) mod tracking;

pub(crate) use admission::{Admission, ticket, ticket_stream};
pub(crate) use pair::Pair;
pub(crate) use proposals::{BlockRange, MAX_CHOICES, Proposals, other_stream};
pub(crate) use scattered::Scattered;
pub use scheme::Scheme;
pub(crate) use single::Single;

/// Maps 64 uniform bits to `0..blocks`.
///
/// Monotone in `hash`, so that folding is exact: halving the number of blocks
/// halves every block number.
#[inline(always)]
pub(crate) fn reduce(hash: u64, blocks: u64) -> u64 {
    address(hash, blocks).0
}

/// The integer part and the fraction of `hash * blocks / 2^64`, the fraction
/// as a multiple of 2^-64.
#[inline(always)]
pub(crate) fn address(hash: u64, blocks: u64) -> (u64, u64) {
    // The product is below 2^64 * blocks, so its upper half is below blocks.
    let product = u128::from(hash) * u128::from(blocks);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn block_numbers_exceed_32_bits() {
        let blocks = (1 << 40) + 3;
        assert_eq!(reduce(u64::MAX, blocks), blocks - 1);
        assert_eq!(reduce(1 << 63, blocks), blocks / 2);
        assert_eq!(reduce(0, blocks), 0);
    }

    /// At 2^36 blocks an index made from 32 bits of hash reaches one block in
    /// sixteen, all with the same low bits. Filters with this fault fail from
    /// some hundred million keys on; this test detects it without their
    /// memory.
    #[test]
    fn low_bits_of_large_block_numbers_are_uniform() {
        fn check(what: &str, index: impl Fn(u64) -> u64) {
            const KEYS: u64 = 1 << 16;
            let mut seen = [0u32; 64];
            for i in 0..KEYS {
                let hash = crate::KeyHasher::default().hash(&i);
                seen[(index(hash) % 64) as usize] += 1;
            }
            let mean = KEYS as f64 / 64.0;
            let chi: f64 = seen
                .iter()
                .map(|&n| (f64::from(n) - mean).powi(2) / mean)
                .sum();
            // The 99.9 % quantile at 63 degrees of freedom.
            assert!(chi < 103.4, "{what}: chi-square {chi}");
        }
        let blocks = 1 << 36;
        check("single", |hash| Single { blocks }.block(hash));
        check("pair", |hash| Pair { blocks }.block(hash, 0).0);
        check("pair", |hash| Pair { blocks }.block(hash, 1).0);
        let bits = 1 << 45;
        for probe in 0..32 {
            check("scattered", |hash| {
                Scattered { bits }.position(hash, probe)
            });
        }
    }

    proptest! {
        #[test]
        fn block_numbers_stay_in_range_and_fold(hash: u64, half in 1u64..1 << 62) {
            prop_assert!(reduce(hash, half) < half);
            prop_assert_eq!(reduce(hash, 2 * half) / 2, reduce(hash, half));
        }
    }
}

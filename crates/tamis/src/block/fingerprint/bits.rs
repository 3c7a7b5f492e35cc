//! Bit deposits for instruction sets with vectors and without PDEP.

/// A one in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// [`Ops::deposit`](super::Ops::deposit), given the number of ones in each
/// byte of `mask`.
///
/// Selects the one of the lowest rank, and walks from it to the others:
/// lookups select one or two.
#[inline(always)]
pub(super) fn deposit(bits: u64, mask: u64, counts: u64) -> u64 {
    let rank = bits.trailing_zeros();
    let first = select(rank, mask, counts);
    let mut found = first;
    // The ones of `mask` behind the first.
    let mut word = mask & first.wrapping_neg() & !first;
    let mut ranks = bits >> (rank & 63) >> 1;
    while ranks != 0 && word != 0 {
        let lowest = word & word.wrapping_neg();
        found |= lowest & (ranks & 1).wrapping_neg();
        word ^= lowest;
        ranks >>= 1;
    }
    found
}

/// [`Ops::expand_around`](super::Ops::expand_around).
#[inline(always)]
pub(super) fn expand_around(word: u64, gaps: u64) -> u64 {
    let (mut word, mut gaps) = (word, gaps);
    while gaps != 0 {
        let below = (gaps & gaps.wrapping_neg()) - 1;
        // Doubles the bits behind the gap, which shifts them by one.
        word = word.wrapping_add(word & !below);
        gaps &= gaps - 1;
    }
    word
}

/// The one of rank `rank` of `mask`, or 0.
#[inline(always)]
fn select(rank: u32, mask: u64, counts: u64) -> u64 {
    /// Position of the one of each rank in each byte.
    static IN_BYTE: [[u8; 8]; 256] = {
        let mut table = [[0; 8]; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut bit, mut rank) = (0, 0);
            while bit < 8 {
                if byte >> bit & 1 == 1 {
                    table[byte][rank] = bit;
                    rank += 1;
                }
                bit += 1;
            }
            byte += 1;
        }
        table
    };
    const HIGH: u64 = ONES << 7;
    // Ones up to the end of each byte, at most 64.
    let sums = counts.wrapping_mul(ONES);
    // The highest bit of the bytes whose sum exceeds the rank. No byte
    // borrows from the next: 128 + sum - (rank + 1) >= 64.
    let exceeds = (sums | HIGH) - (u64::from(rank & 63) + 1) * ONES;
    let exceeds = exceeds & HIGH;
    if exceeds == 0 || rank > 63 {
        return 0;
    }
    // First bit of the byte with the one.
    let byte = exceeds.trailing_zeros() - 7;
    let before = (sums << 8 >> byte) as u32 & 0xff;
    let bits = (mask >> byte) as u8;
    // `before <= rank < before + 8`.
    let at =
        IN_BYTE[usize::from(bits)][(rank.wrapping_sub(before) & 7) as usize];
    1 << ((byte + u32::from(at)) & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Scalar;
    use crate::block::fingerprint::Ops as _;
    use proptest::prelude::*;

    /// Words with few, with half and with all bits set.
    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            Just(u64::MAX),
            any::<u64>(),
            (0u32..64).prop_map(|at| 1 << at),
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a & b),
        ]
    }

    fn counts(mask: u64) -> u64 {
        let counts = mask.to_le_bytes().map(|byte| byte.count_ones() as u8);
        u64::from_le_bytes(counts)
    }

    proptest! {
        #[test]
        fn deposits_equal_the_definition(
            bits in word(),
            mask in word(),
            gaps in word(),
        ) {
            let expected = Scalar.deposit(bits, mask);
            prop_assert_eq!(deposit(bits, mask, counts(mask)), expected);
            let expected = Scalar.expand_around(bits, gaps);
            prop_assert_eq!(expand_around(bits, gaps), expected);
        }
    }
}

//! A Bloom block with a counter and tracking bits.
//!
//! ```text
//! bit 0                 payload_bits                             block_bits
//! | Bloom bits .............. | counter (b bits) | tracking (t bits) |
//! ```
//!
//! Counter and tracking bits are at most 7 + 32 bits, so both lie in the
//! last 64-bit word, which is in the cache line anyway.

use super::bloom;

/// How the bits of a block are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) block_bits: u32,
    pub(crate) counter_bits: u32,
    pub(crate) tracking_bits: u32,
}

impl Division {
    /// Bits for the Bloom filter (B').
    #[inline(always)]
    pub(crate) fn payload_bits(self) -> u32 {
        self.block_bits - self.counter_bits - self.tracking_bits
    }

    /// The largest number the counter holds; it stays there.
    #[inline(always)]
    fn most(self) -> u64 {
        (1 << self.counter_bits) - 1
    }

    /// Counter and tracking bits.
    #[inline(always)]
    fn extra_bits(self) -> u32 {
        self.counter_bits + self.tracking_bits
    }

    /// The uppermost `bits` of a block.
    #[inline(always)]
    fn top(block: &[u8], bits: u32) -> u64 {
        // A shift by all 64 would be none.
        Self::word(block).checked_shr(64 - bits).unwrap_or(0)
    }

    /// The last word of a block.
    #[inline(always)]
    fn word(block: &[u8]) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&block[block.len() - 8..]);
        u64::from_le_bytes(word)
    }

    #[inline(always)]
    fn set_word(block: &mut [u8], word: u64) {
        let start = block.len() - 8;
        block[start..].copy_from_slice(&word.to_le_bytes());
    }

    /// Keys counted in this block, as far as the counter goes.
    #[inline(always)]
    pub(crate) fn load(self, block: &[u8]) -> u32 {
        // At most seven bits.
        (Self::top(block, self.extra_bits()) & self.most()) as u32
    }

    /// Counts one more key.
    #[inline(always)]
    pub(crate) fn count(self, block: &mut [u8]) {
        if u64::from(self.load(block)) < self.most() {
            let one = 1 << (64 - self.extra_bits());
            Self::set_word(block, Self::word(block) + one);
        }
    }

    /// The tracking bits, from bit 0.
    #[inline(always)]
    pub(crate) fn tracked(self, block: &[u8]) -> u64 {
        Self::top(block, self.tracking_bits)
    }

    /// The tracking bit of a class; there is at least one.
    #[inline(always)]
    pub(crate) fn has_tracked(self, block: &[u8], class: u32) -> bool {
        let first = 64 - self.tracking_bits;
        Self::word(block).wrapping_shr(first + class) & 1 == 1
    }

    /// Sets the tracking bit of a class.
    #[inline(always)]
    pub(crate) fn track(self, block: &mut [u8], class: u32) {
        if self.tracking_bits > 0 {
            let bit = 1 << (64 - self.tracking_bits + class);
            Self::set_word(block, Self::word(block) | bit);
        }
    }

    /// Bloom bits set.
    #[inline(always)]
    pub(crate) fn ones(self, block: &[u8]) -> u32 {
        bloom::ones(block) - Self::top(block, self.extra_bits()).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Scalar;
    use crate::block::bloom::{BlockProbe, Count, Probes};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_do_not_disturb_each_other(
            wide: bool,
            counter_bits in 0u32..=7,
            tracking_bits in 0u32..=32,
            keys in proptest::collection::vec(any::<u64>(), 0..40),
        ) {
            let block_bits = if wide { 512 } else { 256 };
            let division = Division { block_bits, counter_bits, tracking_bits };
            let mut block = vec![0; block_bits as usize / 8];
            let mut plain = block.clone();
            let (mut load, mut tracked) = (0u32, 0u64);
            for &hash in &keys {
                let bits = division.payload_bits();
                let probes = Probes::new(hash, Count::new(5), bits);
                probes.set(Scalar, &mut block);
                probes.set(Scalar, &mut plain);
                division.count(&mut block);
                load = (load + 1).min((1 << counter_bits) - 1);
                if tracking_bits > 0 {
                    let class = (hash % u64::from(tracking_bits)) as u32;
                    division.track(&mut block, class);
                    tracked |= 1 << class;
                }
                prop_assert_eq!(division.load(&block), load);
                prop_assert_eq!(division.tracked(&block), tracked);
                let ones: u32 = plain.iter().map(|b| b.count_ones()).sum();
                prop_assert_eq!(division.ones(&block), ones);
            }
        }
    }
}

//! The fill histogram of an array of Bloom blocks.

use alloc::vec;
use alloc::vec::Vec;

use crate::arch::{WithToken, dispatch};

/// Number of blocks by number of bits set: the input of every estimate that a
/// Bloom filter makes from its present content.
#[derive(Debug, Clone, PartialEq)]
pub struct FillHistogram {
    /// `blocks[x]`: the number of blocks with exactly `x` bits set.
    pub(crate) blocks: Vec<u64>,
}

impl FillHistogram {
    pub(crate) fn of(bytes: &[u8], block_bits: u32) -> Self {
        struct CountOnes<'a>(&'a [u8], usize);
        impl<T> WithToken<T> for CountOnes<'_> {
            type Output = Vec<u64>;

            #[inline(always)]
            fn run(self, _: T) -> Vec<u64> {
                let Self(bytes, block_bytes) = self;
                let mut blocks = vec![0; block_bytes * 8 + 1];
                for block in bytes.chunks_exact(block_bytes) {
                    blocks[ones(block) as usize] += 1;
                }
                blocks
            }
        }
        let block_bytes = block_bits as usize / 8;
        Self { blocks: dispatch(CountOnes(bytes, block_bytes)) }
    }

    pub(crate) fn block_bits(&self) -> f64 {
        (self.blocks.len() - 1) as f64
    }

    /// Whether a block has all its bits set.
    pub(crate) fn has_full(&self) -> bool {
        self.blocks.last().is_some_and(|&blocks| blocks > 0)
    }

    /// Number of blocks.
    pub(crate) fn total(&self) -> u64 {
        self.blocks.iter().sum()
    }

    /// Number of bits set in all blocks together.
    pub(crate) fn ones(&self) -> u64 {
        (0..).zip(&self.blocks).map(|(x, n): (u64, _)| x * n).sum()
    }

    /// The mean of `f(share of bits set)` over all blocks.
    pub(crate) fn mean(&self, f: impl Fn(f64) -> f64) -> f64 {
        let sum: f64 = self
            .blocks
            .iter()
            .enumerate()
            .filter(|&(_, &blocks)| blocks > 0)
            .map(|(x, &n)| n as f64 * f(x as f64 / self.block_bits()))
            .sum();
        sum / self.total().max(1) as f64
    }

    /// The chance that `probes` uniform positions in a uniform block are
    /// all set.
    pub(crate) fn pass(&self, probes: u32) -> f64 {
        self.mean(|fill| power(fill, probes))
    }

    /// Estimated number of uniform throws that set these bits: the inverse of
    /// E\[X\] = B (1 - (1 - 1/B)^throws), block by block, less the bias of
    /// inverting a mean, (e^x - 1 - x) / 2 throws per block at x throws per
    /// bit.
    ///
    /// A full block gives only a lower bound: it counts as if half a bit were
    /// clear, so that the estimate stays finite.
    pub(crate) fn estimated_throws(&self) -> f64 {
        let bits = self.block_bits();
        let scale = -1.0 / libm::log1p(-1.0 / bits);
        let per_block = self.mean(|fill| {
            let clear = (1.0 - fill).max(0.5 / bits);
            let per_bit = -libm::log(clear);
            let bias = 0.5 * (1.0 / clear - 1.0 - per_bit);
            (scale * per_bit - bias).max(0.0)
        });
        per_block * self.total() as f64
    }
}

/// `base^exponent`; `core` has no `powi`.
pub(crate) fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// Number of bits set in a block.
///
/// A loop and not an iterator: a closure can become a function without the
/// target features of its caller, which counts bit by bit.
#[inline(always)]
pub(crate) fn ones(block: &[u8]) -> u32 {
    let mut ones = 0;
    for chunk in block.chunks_exact(8) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        ones += u64::from_le_bytes(word).count_ones();
    }
    ones
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Scalar;
    use crate::block::bloom::{BlockProbe as _, Count, Probes};
    use crate::key::Stream;

    #[test]
    fn histogram_counts_blocks() {
        let mut bytes = [0u8; 192];
        bytes[0] = 0b111;
        bytes[64..128].fill(0xff);
        let wide = FillHistogram::of(&bytes, 512);
        assert_eq!((wide.blocks[3], wide.blocks[512]), (1, 1));
        assert_eq!((wide.blocks[0], wide.total(), wide.ones()), (1, 3, 515));
        let narrow = FillHistogram::of(&bytes, 256);
        assert_eq!((narrow.blocks[256], narrow.total()), (2, 6));
        assert!((wide.pass(1) - 515.0 / 1536.0).abs() < 1e-15);
    }

    #[test]
    fn throws_are_estimated_from_the_fill() {
        let mut bytes = vec![0u8; 64 * 1000];
        let mut hash = 1u64;
        for _ in 0..30_000 {
            hash = hash.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            let at = (Stream::new(63).word(hash) % 1000) as usize * 64;
            let probes = Probes::new(hash, Count::new(8), 512);
            probes.set(Scalar, &mut bytes[at..at + 64]);
        }
        let throws = FillHistogram::of(&bytes, 512).estimated_throws();
        assert!((throws / 240_000.0 - 1.0).abs() < 0.005, "{throws}");
    }
}

//! The local Bloom block: a key sets `probes` (k) bits inside one block of
//! 256 or 512 bits, or inside the part of it that is not taken by counters.
//!
//! Positions are independent and uniform *with repetition*, which is the
//! model the exact formula E\[(X/B)^k\] of `tamis-theory` describes. Eight
//! positions come from the eight 16-bit fields of two stretched words, each
//! scaled to the block by a 16-bit multiply-shift: one instruction for all
//! eight in SSE2, for any number of bits and not only powers of two.
//!
//! Why not 32-bit `hash * salt[lane]`, as split-block filters do: with 32
//! bits behind all positions two keys of a block coincide with probability
//! 2^-32, a floor that shows from 24 bits per key on.

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
pub(crate) mod avx512;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod groups;
pub(crate) mod scalar;

use alloc::vec;
use alloc::vec::Vec;

use crate::key::Stream;
use crate::simd::{Backend, Task, dispatch};

/// Positions made from one pair of words: a group.
pub(crate) const LANES: u32 = 8;

/// More groups of positions than it pays to know when the code is compiled,
/// or not the same number everywhere.
pub(crate) const ANY: u32 = u32::MAX;

/// How many positions a key has in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    pub(crate) all: u32,
    /// Those among the first [`LANES`], as ones: what a lookup needs of it
    /// if it has to look at no others, in the form in which it is needed.
    pub(crate) first: u32,
}

impl Count {
    #[inline(always)]
    pub(crate) const fn new(all: u32) -> Self {
        let first = match all {
            LANES.. => (1 << LANES) - 1,
            _ => (1 << all) - 1,
        };
        Self { all, first }
    }
}

/// The bits one key takes in one block.
#[derive(Debug, Clone, Copy)]
pub struct Probes {
    /// What the positions are derived from.
    pub(crate) hash: u64,
    pub(crate) count: Count,
    /// Positions lie below this.
    pub(crate) bits: u32,
    /// The words behind the first eight positions.
    pub(crate) first: [u64; 2],
}

impl Probes {
    #[inline(always)]
    pub(crate) fn new(hash: u64, count: Count, bits: u32) -> Self {
        Self { hash, count, bits, first: Self::first(hash) }
    }

    /// The words behind the first eight positions.
    #[inline(always)]
    pub(crate) fn first(hash: u64) -> [u64; 2] {
        let [a, b] = Self::streams(0);
        [a.word(hash), b.word(hash)]
    }

    /// The streams of the words behind the `group`-th eight positions.
    #[inline(always)]
    pub(crate) fn streams(group: u32) -> [Stream; 2] {
        let stream = 2 * group as usize;
        [Stream::new(stream), Stream::new(stream + 1)]
    }

    /// The two words behind the `group`-th eight positions.
    #[inline(always)]
    pub(crate) fn words(self, group: u32) -> [u64; 2] {
        if group == 0 {
            return self.first;
        }
        let [a, b] = Self::streams(group);
        [a.word(self.hash), b.word(self.hash)]
    }
}

/// Something that reads and sets bits in one block.
///
/// Public only because the sealed `Layout` names it.
pub trait BlockProbe: Copy {
    /// What of it takes time to work out: kept in a batch until the block
    /// is there.
    #[doc(hidden)]
    type Kept: Copy + Default;

    #[doc(hidden)]
    fn kept(self) -> Self::Kept;

    /// Calls `f` with every bit position.
    #[doc(hidden)]
    fn for_each_bit(self, f: impl FnMut(u32));

    /// Whether every bit is set in `block`. There are so many groups of
    /// [`LANES`] bits, the last of them perhaps not full, or [`ANY`] number
    /// of them.
    #[doc(hidden)]
    fn covered<B: Backend, const GROUPS: u32>(
        self,
        backend: B,
        block: &[u8],
    ) -> bool;

    /// Sets every bit.
    #[doc(hidden)]
    fn set<B: Backend>(self, backend: B, block: &mut [u8]);

    /// Sets every bit that is not set; whether there was one. A block that
    /// has all of them is not written to.
    #[doc(hidden)]
    fn set_missing<B: Backend>(self, backend: B, block: &mut [u8]) -> bool;
}

impl BlockProbe for Probes {
    type Kept = [u64; 2];

    #[inline(always)]
    fn kept(self) -> [u64; 2] {
        self.first
    }

    #[inline(always)]
    fn for_each_bit(self, mut f: impl FnMut(u32)) {
        let mut left = self.count.all;
        let mut group = 0;
        while left > 0 {
            for word in self.words(group) {
                for field in 0..LANES / 2 {
                    if left == 0 {
                        return;
                    }
                    left -= 1;
                    let field = (word >> (16 * field)) as u32 & 0xffff;
                    f((field * self.bits) >> 16);
                }
            }
            group += 1;
        }
    }

    #[inline(always)]
    fn covered<B: Backend, const GROUPS: u32>(
        self,
        backend: B,
        block: &[u8],
    ) -> bool {
        backend.all_set::<GROUPS>(block, self)
    }

    #[inline(always)]
    fn set<B: Backend>(self, backend: B, block: &mut [u8]) {
        backend.set_all(block, self);
    }

    #[inline(always)]
    fn set_missing<B: Backend>(self, backend: B, block: &mut [u8]) -> bool {
        backend.set_missing(block, self)
    }
}

/// A single bit: how the standard filter uses a block.
#[derive(Debug, Clone, Copy)]
pub struct OneBit(pub(crate) u32);

impl BlockProbe for OneBit {
    type Kept = u32;

    #[inline(always)]
    fn kept(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn for_each_bit(self, mut f: impl FnMut(u32)) {
        f(self.0);
    }

    #[inline(always)]
    fn covered<B: Backend, const GROUPS: u32>(
        self,
        _: B,
        block: &[u8],
    ) -> bool {
        block[self.0 as usize / 8] >> (self.0 % 8) & 1 != 0
    }

    #[inline(always)]
    fn set<B: Backend>(self, _backend: B, block: &mut [u8]) {
        block[self.0 as usize / 8] |= 1 << (self.0 % 8);
    }

    #[inline(always)]
    fn set_missing<B: Backend>(self, backend: B, block: &mut [u8]) -> bool {
        let missing = !self.covered::<B, ANY>(backend, block);
        if missing {
            self.set(backend, block);
        }
        missing
    }
}

/// How many blocks have how many bits set: all that is needed to say what a
/// Bloom kind will answer from the bits it really has.
#[derive(Debug, Clone, PartialEq)]
pub struct FillHistogram {
    /// `blocks[x]`: the number of blocks with exactly `x` bits set.
    pub(crate) blocks: Vec<u64>,
}

impl FillHistogram {
    pub(crate) fn of(bytes: &[u8], block_bits: u32) -> Self {
        struct Count<'a>(&'a [u8], usize);
        impl Task for Count<'_> {
            type Output = Vec<u64>;

            #[inline(always)]
            fn run<B: Backend>(self, _: B) -> Vec<u64> {
                let Self(bytes, block_bytes) = self;
                let mut blocks = vec![0; block_bytes * 8 + 1];
                for block in bytes.chunks_exact(block_bytes) {
                    blocks[ones(block) as usize] += 1;
                }
                blocks
            }
        }
        let block_bytes = block_bits as usize / 8;
        Self { blocks: dispatch(Count(bytes, block_bytes)) }
    }

    fn block_bits(&self) -> f64 {
        (self.blocks.len() - 1) as f64
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

    /// How many uniform throws would have set this many bits: the inverse
    /// of E\[X\] = B (1 - (1 - 1/B)^throws), block by block, less the bias
    /// of inverting a mean, (e^x - 1 - x) / 2 throws a block at x throws a
    /// bit.
    ///
    /// A full block only says "at least": it counts as if half a bit were
    /// left, so that the estimate stays finite and grows with the damage.
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

/// How many bits of a block are set.
///
/// A loop and not an iterator: a closure could become a function of its own,
/// without the instructions of the backend, and count bit by bit.
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
    use crate::simd::Scalar;
    use proptest::prelude::*;

    fn check_backend(backend: impl Backend) {
        proptest!(|(
            hash: u64,
            count in 1u32..=32,
            keys in proptest::collection::vec(any::<u64>(), 0..60),
            wide: bool,
            taken in prop_oneof![Just(0u32), Just(256), 0u32..60],
            clear in proptest::option::of(0u32..512),
        )| {
            let mut block = [0u8; 64];
            let block = &mut block[..if wide { 64 } else { 32 }];
            let bits = block.len() as u32 * 8;
            let taken = if wide { taken } else { taken % 60 };
            let probes = |hash| Probes::new(hash, Count::new(count), bits - taken);
            for hash in keys {
                probes(hash).set(backend, block);
            }
            let probes = probes(hash);
            let naive = |block: &[u8]| {
                let mut all = true;
                probes.for_each_bit(|bit| {
                    all &= block[bit as usize / 8] >> (bit % 8) & 1 == 1;
                });
                all
            };
            let covered = |block: &[u8]| {
                let covered = probes.covered::<_, ANY>(backend, block);
                let again = match count.div_ceil(LANES) {
                    1 => probes.covered::<_, 1>(backend, block),
                    2 => probes.covered::<_, 2>(backend, block),
                    _ => covered,
                };
                assert_eq!(covered, again);
                covered
            };
            prop_assert_eq!(covered(block), naive(block));
            let mut again = block.to_vec();
            let missing = probes.set_missing(backend, &mut again);
            prop_assert_eq!(missing, !naive(block));
            probes.set(backend, block);
            prop_assert_eq!(&again[..], &*block);
            prop_assert!(covered(block));
            if let Some(bit) = clear {
                let bit = bit % bits;
                block[bit as usize / 8] &= !(1 << (bit % 8));
                prop_assert_eq!(covered(block), naive(block));
            }
        });
    }

    #[test]
    fn scalar_agrees_with_the_definition() {
        check_backend(Scalar);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn avx2_agrees_with_the_definition() {
        match crate::simd::Avx2::new() {
            Some(backend) => check_backend(backend),
            None => eprintln!("this processor has no AVX2: not tested"),
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
    #[test]
    fn avx512_agrees_with_the_definition() {
        match crate::simd::Avx512::new() {
            Some(backend) => check_backend(backend),
            None => eprintln!("this processor has no AVX-512: not tested"),
        }
    }

    #[test]
    fn positions_are_frozen() {
        let positions = |bits| {
            let mut seen = Vec::new();
            let hash = 0x0123_4567_89ab_cdef;
            let count = Count::new(17);
            Probes::new(hash, count, bits).for_each_bit(|bit| seen.push(bit));
            seen
        };
        assert_eq!(
            positions(512),
            [
                229, 324, 243, 389, 193, 467, 78, 277, 411, 502, 258, 335, 79,
                259, 225, 364, 95
            ]
        );
        assert_eq!(
            positions(256),
            [
                114, 162, 121, 194, 96, 233, 39, 138, 205, 251, 129, 167, 39,
                129, 112, 182, 47
            ]
        );
        assert_eq!(
            positions(491),
            [
                219, 310, 233, 373, 185, 448, 74, 266, 394, 482, 248, 322, 76,
                249, 216, 349, 91
            ]
        );
    }

    #[test]
    fn set_missing_reports_whether_a_bit_was_new() {
        let mut block = [0; 64];
        let probes = Probes::new(5, Count::new(8), 512);
        assert!(probes.set_missing(Scalar, &mut block));
        assert!(!probes.set_missing(Scalar, &mut block));
        probes.for_each_bit(|bit| block[bit as usize / 8] = 0);
        assert!(probes.set_missing(Scalar, &mut block));
        assert!(OneBit(3).set_missing(Scalar, &mut [0; 64]));
        assert!(!OneBit(3).set_missing(Scalar, &mut [0xff; 64]));
    }

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

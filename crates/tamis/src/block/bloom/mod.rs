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
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
mod avx512;
mod fill;
#[cfg(any(all(target_arch = "x86_64", not(miri)), neon, simd128))]
mod groups;
#[cfg(neon)]
mod neon;
mod ops;
mod scalar;
#[cfg(simd128)]
mod simd128;

pub(crate) use fill::FillHistogram;
pub(crate) use fill::{ones, power};
pub(crate) use ops::Ops;

use crate::key::Stream;

/// Positions in a group: those derived from one pair of words.
pub(crate) const LANES: u32 = 8;

/// A number of groups that is not a compile-time constant.
pub(crate) const ANY: u32 = u32::MAX;

/// Number of positions of a key in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    pub(crate) all: u32,
    /// Mask of the lanes of the first group that hold a position.
    #[cfg_attr(
        any(not(target_arch = "x86_64"), miri),
        expect(dead_code, reason = "read by vector instructions of x86-64")
    )]
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

/// The positions of one key in one block.
#[derive(Debug, Clone, Copy)]
pub struct Probes {
    /// Source of the positions.
    pub(crate) hash: u64,
    pub(crate) count: Count,
    /// Upper bound of the positions, exclusive.
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

/// The positions of one key in one block, in whichever form a filter has
/// them.
pub trait BlockProbe: Copy {
    /// The part that is expensive to compute, kept in a batch until the block
    /// has arrived.
    #[doc(hidden)]
    type Kept: Copy + Default;

    #[doc(hidden)]
    fn kept(self) -> Self::Kept;

    /// Calls `f` with every bit position.
    #[doc(hidden)]
    fn for_each_bit(self, f: impl FnMut(u32));

    /// Whether every bit is set in `block`. The positions are `GROUPS` groups
    /// of [`LANES`], the last of them possibly partial, or [`ANY`] number of
    /// groups.
    #[doc(hidden)]
    fn covered<T: Ops, const GROUPS: u32>(
        self,
        token: T,
        block: &[u8],
    ) -> bool;

    /// Sets every bit.
    #[doc(hidden)]
    fn set<T: Ops>(self, token: T, block: &mut [u8]);

    /// Sets every clear bit. Returns whether one was clear.
    #[doc(hidden)]
    fn set_missing<T: Ops, const GROUPS: u32>(
        self,
        token: T,
        block: &mut [u8],
    ) -> bool;
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
    fn covered<T: Ops, const GROUPS: u32>(
        self,
        token: T,
        block: &[u8],
    ) -> bool {
        token.all_set::<GROUPS>(block, self)
    }

    #[inline(always)]
    fn set<T: Ops>(self, token: T, block: &mut [u8]) {
        token.set_all(block, self);
    }

    #[inline(always)]
    fn set_missing<T: Ops, const GROUPS: u32>(
        self,
        token: T,
        block: &mut [u8],
    ) -> bool {
        token.set_missing::<GROUPS>(block, self)
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
    fn covered<T: Ops, const GROUPS: u32>(self, _: T, block: &[u8]) -> bool {
        block[self.0 as usize / 8] >> (self.0 % 8) & 1 != 0
    }

    #[inline(always)]
    fn set<T: Ops>(self, _: T, block: &mut [u8]) {
        block[self.0 as usize / 8] |= 1 << (self.0 % 8);
    }

    /// Writes without a test, which a branch predictor cannot learn.
    #[inline(always)]
    fn set_missing<T: Ops, const GROUPS: u32>(
        self,
        token: T,
        block: &mut [u8],
    ) -> bool {
        let missing = !self.covered::<T, ANY>(token, block);
        self.set(token, block);
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Scalar;
    use proptest::prelude::*;

    fn check_token(token: impl Ops) {
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
                probes(hash).set(token, block);
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
                let covered = probes.covered::<_, ANY>(token, block);
                let again = match count.div_ceil(LANES) {
                    1 => probes.covered::<_, 1>(token, block),
                    2 => probes.covered::<_, 2>(token, block),
                    _ => covered,
                };
                assert_eq!(covered, again);
                covered
            };
            prop_assert_eq!(covered(block), naive(block));
            let before = block.to_vec();
            let mut again = block.to_vec();
            let missing = probes.set_missing::<_, ANY>(token, &mut again);
            prop_assert_eq!(missing, !naive(block));
            let mut by_groups = block.to_vec();
            let missing = match count.div_ceil(LANES) {
                1 => probes.set_missing::<_, 1>(token, &mut by_groups),
                2 => probes.set_missing::<_, 2>(token, &mut by_groups),
                _ => probes.set_missing::<_, ANY>(token, &mut by_groups),
            };
            prop_assert_eq!(missing, !naive(block));
            probes.set(token, block);
            prop_assert_eq!(&again[..], &*block);
            prop_assert_eq!(&by_groups[..], &*block);
            let mut expected = before;
            probes.for_each_bit(|bit| {
                expected[bit as usize / 8] |= 1 << (bit % 8);
            });
            prop_assert_eq!(&expected[..], &*block);
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
        check_token(Scalar);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn avx2_agrees_with_the_definition() {
        match crate::arch::Avx2::new() {
            Some(token) => check_token(token),
            None => eprintln!("this processor has no AVX2: not tested"),
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
    #[test]
    fn avx512_agrees_with_the_definition() {
        match crate::arch::Avx512::new() {
            Some(token) => check_token(token),
            None => eprintln!("this processor has no AVX-512: not tested"),
        }
    }

    #[cfg(neon)]
    #[test]
    fn neon_agrees_with_the_definition() {
        check_token(crate::arch::Neon);
    }

    #[cfg(simd128)]
    #[test]
    fn simd128_agrees_with_the_definition() {
        check_token(crate::arch::Simd128);
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
        assert!(probes.set_missing::<_, ANY>(Scalar, &mut block));
        assert!(!probes.set_missing::<_, ANY>(Scalar, &mut block));
        probes.for_each_bit(|bit| block[bit as usize / 8] = 0);
        assert!(probes.set_missing::<_, ANY>(Scalar, &mut block));
        assert!(OneBit(3).set_missing::<_, ANY>(Scalar, &mut [0; 64]));
        assert!(!OneBit(3).set_missing::<_, ANY>(Scalar, &mut [0xff; 64]));
    }
}

//! The standard Bloom filter.

use tamis_theory::standard;

use super::bit_filter::{BloomGeometry, Layout, Measured, Theory};
use super::bloom_kind::{bloom_kind, inner, inner_mut};
use crate::block::bloom::{ANY, FillHistogram, OneBit};
use crate::dispatch::CoreFns;
use crate::dispatch::pipeline::L3_BYTES;
use crate::format::Kind;
use crate::key::Stream;
use crate::memory::{BitSlice, BitSliceMut};
use crate::placement::Scattered;

bloom_kind! {
    /// The standard Bloom filter: `probes` (k) bits anywhere in one array.
    ///
    /// The smallest of the Bloom kinds, and the one that reads most: every
    /// probe is a cache line of its own. Prefer [`Blocked`](crate::Blocked) or
    /// [`Split`](crate::Split) unless memory alone decides.
    ///
    /// | | |
    /// |---|---|
    /// | bits per key at 1 % / 0.1 % / 0.01 % | 9.59 / 14.38 / 19.17 |
    /// | FPR at load n/m | (1 - e^(-kn/m))^k |
    /// | lines per hit / miss / insert | k / about 2 / k |
    /// | merge, fold | exact |
    ///
    /// **It cannot promise**: to forget a key; a rate below about n / 2^64, where
    /// two keys share their whole hash; anything about keys chosen
    /// with knowledge of the seed.
    ///
    /// ```
    /// use tamis::Bloom;
    ///
    /// let mut filter = Bloom::builder().items(1_000).fpr(0.001).build()?;
    /// filter.insert("apple");
    /// assert!(filter.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    Bloom,
    BloomLayout,
    "Bloom::builder().items(100).fpr(0.01)"
}

/// Bits of a key that are tested together.
const GROUP: usize = 2;

/// The layout of [`Bloom`].
#[derive(Debug, Clone, Copy)]
pub struct BloomLayout {
    geometry: BloomGeometry,
    placement: Scattered,
}

impl Layout for BloomLayout {
    const KIND: Kind = Kind::Bloom;
    const THEORY: Theory = Theory {
        predict: |_, bits, probes| standard::predict(bits, probes),
        best: |_, bits| standard::best(bits),
        for_fpr: |_, target| standard::for_fpr(target),
    };
    type Probe = OneBit;

    #[cfg_attr(
        feature = "std",
        expect(private_interfaces, reason = "the trait is sealed")
    )]
    #[inline(never)]
    fn core_fns(&self) -> &'static CoreFns<Self> {
        super::bit_kernels::core_fns(self)
    }

    fn new(geometry: BloomGeometry) -> Self {
        // Fits: the geometry's check bounds the number of blocks.
        let bits = geometry.blocks * u64::from(geometry.block_bits);
        Self { geometry, placement: Scattered { bits } }
    }

    #[inline(always)]
    fn geometry(&self) -> &BloomGeometry {
        &self.geometry
    }

    #[inline(always)]
    fn parts(&self) -> u32 {
        self.geometry.probes
    }

    #[inline(always)]
    fn part<const BYTES: usize>(&self, hash: u64, part: u32) -> (u64, OneBit) {
        let bit = self.placement.position(hash, part);
        let block_bits = 8 * BYTES as u64;
        // 256 or 512, so the remainder fits.
        (bit / block_bits, OneBit((bit % block_bits) as u32))
    }

    fn groups(&self) -> u32 {
        ANY
    }

    #[inline(always)]
    fn again<const BYTES: usize>(&self, _: u64, _: u32, bit: u32) -> OneBit {
        // Below the bits of a block, and seen to be.
        OneBit(bit % (8 * BYTES as u32))
    }

    /// Tests pairs of bits in a filter in cache: one mispredicted branch in
    /// four keys and not in two, for at most one load more. In memory each
    /// line counts.
    #[inline(always)]
    fn contains_inline(&self, blocks: &[u8], hash: u64) -> Option<bool> {
        let streams = Stream::first(self.geometry.probes as usize);
        let Some(bits) = BitSlice::new(blocks) else {
            return Some(true);
        };
        let is_set = |stream: &Stream| bits.choose(stream.word(hash)) & 1;
        if blocks.len() > L3_BYTES {
            return Some(streams.iter().all(|stream| is_set(stream) != 0));
        }
        let mut groups = streams.chunks_exact(GROUP);
        for group in &mut groups {
            if group.iter().fold(1, |all, stream| all & is_set(stream)) == 0 {
                return Some(false);
            }
        }
        let mut rest = groups.remainder().iter();
        Some(rest.all(|stream| is_set(stream) != 0))
    }

    #[inline(always)]
    fn insert_inline(&self, blocks: &mut [u8], hash: u64) -> Option<bool> {
        let mut all = 1;
        if let Some(mut bits) = BitSliceMut::new(blocks) {
            let mut set = |stream: &Stream| bits.set(stream.word(hash));
            let streams = Stream::first(self.geometry.probes as usize);
            // Unrolled, the rest as well: a loop's own instructions are a
            // sixth.
            let mut fours = streams.chunks_exact(4);
            for four in &mut fours {
                all &= set(&four[0]) & set(&four[1]);
                all &= set(&four[2]) & set(&four[3]);
            }
            all &= match fours.remainder() {
                [a, b, c, ..] => set(a) & set(b) & set(c),
                [a, b] => set(a) & set(b),
                [a] => set(a),
                [] => 1,
            };
        }
        Some(all & 1 == 0)
    }

    fn visits(&self) -> [(u32, u32); 2] {
        [(self.geometry.probes, 1), (0, 0)]
    }

    fn measure(&self, fill: &FillHistogram) -> Measured {
        let share = fill.mean(|fill| fill);
        // Probe i is read if all before it were set.
        let (mut fpr, mut reads_miss) = (1.0, 0.0);
        for _ in 0..self.geometry.probes {
            reads_miss += fpr;
            fpr *= share;
        }
        let reads_hit = f64::from(self.geometry.probes);
        Measured { fpr, reads_hit, reads_miss }
    }

    /// Halving the array halves every bit's position, so neighbouring
    /// *bits*, not blocks, become one.
    fn fold(pair: &[u8], into: &mut [u8]) {
        for (out, pair) in into.iter_mut().zip(pair.chunks_exact(2)) {
            *out = halve(pair[0]) | halve(pair[1]) << 4;
        }
    }
}

/// ORs the bits of a byte in pairs, into its lower four bits.
fn halve(byte: u8) -> u8 {
    let pairs = (byte | byte >> 1) & 0b0101_0101;
    let nibbles = (pairs | pairs >> 1) & 0b0011_0011;
    (nibbles | nibbles >> 2) & 0b0000_1111
}

#[cfg(test)]
mod tests {
    use super::halve;

    #[test]
    fn halves_every_byte() {
        for byte in 0..=u8::MAX {
            let expected = (0..4)
                .filter(|bit| byte >> (2 * bit) & 0b11 != 0)
                .fold(0, |sum, bit| sum | 1 << bit);
            assert_eq!(halve(byte), expected, "{byte:#010b}");
        }
    }
}

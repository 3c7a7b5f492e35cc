//! The split Bloom filter.

use tamis_theory::split;

use super::bit_filter::{BloomGeometry, Layout, Measured, Theory};
use super::bloom_kind::{bloom_kind, inner, inner_mut};
use crate::block::bloom::{ANY, Count, FillHistogram, LANES, Probes};
use crate::dispatch::CoreFns;
use crate::format::Kind;
use crate::placement::Pair;

bloom_kind! {
    /// A split Bloom filter: half of the `probes` (k) bits in each of two
    /// blocks, the second read only if the first passes.
    ///
    /// Two half-filters average out uneven blocks, so the rate comes close to
    /// the standard filter's, while nearly every non-member is turned away by
    /// its first line. The price is two lines for members and insertions.
    ///
    /// | 512-bit blocks | |
    /// |---|---|
    /// | bits per key at 1 % / 0.1 % / 0.01 % | 9.66 / 14.63 / 19.82 |
    /// | FPR at load r | E\[(X/B)^k1\] E\[(X/B)^k2\], k1 + k2 = k: `tamis_theory::split` |
    /// | lines per hit / miss / insert | 2 / 1.15 (8 bits per key) to 1.0002 (40) / 2 |
    /// | merge, fold | exact |
    ///
    /// **It cannot promise**: to forget a key; a rate below about n / 2^64, where
    /// two keys share their whole hash; anything about keys chosen
    /// with knowledge of the seed.
    ///
    /// ```
    /// use tamis::Split;
    ///
    /// let mut filter = Split::builder().items(1_000).fpr(0.0001).build()?;
    /// filter.insert("apple");
    /// assert!(filter.contains("apple"));
    /// assert_eq!(filter.stats().reads_hit, 2.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    Split,
    SplitLayout,
    "Split::builder().items(100).fpr(0.01)"
}

/// The layout of [`Split`].
#[derive(Debug, Clone, Copy)]
pub struct SplitLayout {
    geometry: BloomGeometry,
    placement: Pair,
    /// Bits in the first and in the second block; the odd one goes to the
    /// first, where it turns more non-members away.
    counts: [Count; 2],
}

impl Layout for SplitLayout {
    const KIND: Kind = Kind::Split;
    const MIN_PROBES: u32 = 2;
    const THEORY: Theory = Theory {
        predict: split::predict,
        best: split::best,
        for_fpr: split::for_fpr,
    };
    type Probe = Probes;

    #[cfg_attr(
        feature = "std",
        expect(private_interfaces, reason = "the trait is sealed")
    )]
    #[inline(never)]
    fn core_fns(&self) -> &'static CoreFns<Self> {
        super::bit_kernels::core_fns(self)
    }

    fn new(geometry: BloomGeometry) -> Self {
        let BloomGeometry { blocks, probes, .. } = geometry;
        Self {
            geometry,
            placement: Pair { blocks },
            counts: [probes.div_ceil(2), probes / 2].map(Count::new),
        }
    }

    #[inline(always)]
    fn geometry(&self) -> &BloomGeometry {
        &self.geometry
    }

    #[inline(always)]
    fn parts(&self) -> u32 {
        2
    }

    #[inline(always)]
    fn part<const BYTES: usize>(&self, hash: u64, part: u32) -> (u64, Probes) {
        let (block, of_part) = self.placement.block(hash, part);
        let first = Probes::first(of_part);
        (block, self.again::<BYTES>(hash, part, first))
    }

    fn groups(&self) -> u32 {
        let [one, other] = self.counts.map(|count| count.all.div_ceil(LANES));
        if one == other { one } else { ANY }
    }

    #[inline(always)]
    fn again<const BYTES: usize>(
        &self,
        hash: u64,
        part: u32,
        first: [u64; 2],
    ) -> Probes {
        let (_, hash) = self.placement.block(hash, part);
        let [one, other] = self.counts;
        let count = if part == 0 { one } else { other };
        Probes { hash, count, bits: 8 * BYTES as u32, first }
    }

    fn visits(&self) -> [(u32, u32); 2] {
        self.counts.map(|count| (1, count.all))
    }

    fn measure(&self, fill: &FillHistogram) -> Measured {
        let [first, second] = self.counts.map(|count| count.all);
        let pass = fill.pass(first);
        Measured {
            fpr: pass * fill.pass(second),
            reads_hit: 2.0,
            reads_miss: 1.0 + pass,
        }
    }
}

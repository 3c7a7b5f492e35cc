//! The blocked Bloom filter.

use tamis_theory::blocked;

use super::bit_filter::{BloomGeometry, Layout, Measured, Theory};
use super::bloom_kind::{bloom_kind, inner, inner_mut};
use crate::block::bloom::{Count, FillHistogram, LANES, Probes};
use crate::dispatch::CoreFns;
use crate::format::Kind;
use crate::placement::Single;

bloom_kind! {
    /// A blocked Bloom filter: all `probes` (k) bits of a key in one block, one
    /// cache line for every lookup and insertion.
    ///
    /// The number of probes is the true optimum of a *blocked* filter, which is
    /// lower than the textbook's `beta ln 2` because some blocks get more than
    /// their share of keys.
    ///
    /// | 512-bit blocks | |
    /// |---|---|
    /// | bits per key at 1 % / 0.1 % / 0.01 % | 9.92 / 15.55 / 22.03 |
    /// | FPR at load r | E\[(X/B)^k\], X bits set by k Poisson(r) throws: `tamis_theory::blocked` |
    /// | lines per hit / miss / insert | 1 / 1 / 1 |
    /// | merge, fold | exact |
    ///
    /// **It cannot promise**: to forget a key; a rate below about n / 2^64, where
    /// two keys share their whole hash; anything about keys chosen
    /// with knowledge of the seed.
    ///
    /// ```
    /// use tamis::Blocked;
    ///
    /// let mut filter = Blocked::builder().items(1_000).fpr(0.01).build()?;
    /// filter.insert("apple");
    /// assert!(filter.contains("apple"));
    /// assert_eq!(filter.stats().reads_miss, 1.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    Blocked,
    BlockedLayout,
    "Blocked::builder().items(100).fpr(0.01)"
}

/// The layout of [`Blocked`].
#[derive(Debug, Clone, Copy)]
pub struct BlockedLayout {
    geometry: BloomGeometry,
    placement: Single,
    count: Count,
}

impl Layout for BlockedLayout {
    const KIND: Kind = Kind::Blocked;
    const THEORY: Theory = Theory {
        predict: blocked::predict,
        best: blocked::best,
        for_fpr: blocked::for_fpr,
    };
    const IS_SINGLE: bool = true;
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
        Self {
            geometry,
            placement: Single { blocks: geometry.blocks },
            count: Count::new(geometry.probes),
        }
    }

    #[inline(always)]
    fn geometry(&self) -> &BloomGeometry {
        &self.geometry
    }

    #[inline(always)]
    fn parts(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn part<const BYTES: usize>(
        &self,
        hash: u64,
        _part: u32,
    ) -> (u64, Probes) {
        let first = Probes::first(hash);
        let probes = self.again::<BYTES>(hash, 0, first);
        (self.placement.block(hash), probes)
    }

    fn groups(&self) -> u32 {
        self.geometry.probes.div_ceil(LANES)
    }

    #[inline(always)]
    fn again<const BYTES: usize>(
        &self,
        hash: u64,
        _part: u32,
        first: [u64; 2],
    ) -> Probes {
        let (count, bits) = (self.count, 8 * BYTES as u32);
        Probes { hash, count, bits, first }
    }

    fn visits(&self) -> [(u32, u32); 2] {
        [(1, self.geometry.probes), (0, 0)]
    }

    fn measure(&self, fill: &FillHistogram) -> Measured {
        let fpr = fill.pass(self.geometry.probes);
        Measured { fpr, reads_hit: 1.0, reads_miss: 1.0 }
    }
}

//! Builders: from a number of keys and a size to a filter.

use tamis_theory::Prediction;

use super::bit_filter::{BitFilter, BloomGeometry, Layout};
use super::{FilterMut, sealed};
use crate::error::{Error, Result};
use crate::format::Counts;
use crate::key::{Key, KeyHasher};

/// Size of a filter: a false-positive rate, or memory.
///
/// ```
/// use tamis::{Blocked, Size};
/// let builder = Blocked::builder().items(100);
/// let by_rate = builder.size(Size::Fpr(0.01)).build()?;
/// assert!(by_rate == builder.fpr(0.01).build()?);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Size {
    /// The false-positive rate with all keys inserted, between 0 and 1.
    Fpr(f64),
    /// Bits of memory per key (beta), 0.5 to 1000.
    BitsPerKey(f64),
}

impl Size {
    /// Checks the range that all kinds share; a kind may need more.
    pub(super) fn check(self) -> Result<Self> {
        match self {
            Self::Fpr(fpr) if !(fpr > 0.0 && fpr < 1.0) => {
                Err(Error::InvalidArgument {
                    what: "false-positive rate",
                    why: "expected a number between 0 and 1, such as 0.01",
                })
            }
            Self::BitsPerKey(bits) if !(0.5..=1000.0).contains(&bits) => {
                Err(Error::InvalidArgument {
                    what: "bits per key",
                    why: "expected 0.5 to 1000",
                })
            }
            valid => Ok(valid),
        }
    }
}

/// Settings that all kinds share.
#[derive(Debug, Clone, Copy)]
pub struct Sizing {
    items: Option<u64>,
    size: Option<Size>,
    pub(super) block_bits: u32,
    pub(super) hasher: KeyHasher,
    foldable: u32,
}

impl Sizing {
    /// The size, within the range of all kinds.
    pub(super) fn size(&self) -> Result<Size> {
        self.size
            .ok_or(Error::InvalidArgument {
                what: "size",
                why: "give a false-positive rate or bits per key",
            })?
            .check()
    }

    /// Blocks for `items` keys with `bits_per_key` bits each.
    ///
    /// Never rounded to a power of two. The number is a multiple of 2 and of
    /// 2^`foldable`, and above 2^14 blocks a multiple of the largest power
    /// of two that costs less than one block in 2^14: such a filter halves
    /// down to some 2^14 blocks for 0.006 % of memory.
    pub(super) fn blocks(&self, items: u64, bits_per_key: f64) -> Result<u64> {
        let bits = items as f64 * bits_per_key;
        let exact = libm::ceil(bits / f64::from(self.block_bits)).max(1.0);
        if exact >= (1u64 << 55) as f64 {
            return Err(Error::Allocation { bytes: u64::MAX });
        }
        let exact = exact as u64;
        let cheap = match exact {
            1 => 1,
            _ => (1 << (exact >> 14).checked_ilog2().unwrap_or(0)).max(2),
        };
        Ok(exact.next_multiple_of(cheap.max(1 << self.foldable)))
    }
}

/// Filters that a [`Builder`] makes. Sealed.
///
/// ```
/// use tamis::{Blocked, Buildable, Builder, Result, TinySet};
///
/// fn per_run<F: Buildable>(builder: Builder<F>) -> Result<Vec<F>> {
///     [100, 1000].map(|n| builder.items(n).build()).into_iter().collect()
/// }
///
/// assert_eq!(per_run(Blocked::builder().fpr(0.01))?.len(), 2);
/// assert_eq!(per_run(TinySet::builder().fpr(0.01))?.len(), 2);
/// # Ok::<(), tamis::Error>(())
/// ```
pub trait Buildable: FilterMut + Sized + sealed::Sealed {
    /// Settings of this kind alone.
    #[doc(hidden)]
    type Settings: Copy + core::fmt::Debug;

    /// Geometry for any number of keys.
    #[doc(hidden)]
    type Design: Copy + core::fmt::Debug;

    #[doc(hidden)]
    fn design(
        sizing: &Sizing,
        settings: &Self::Settings,
    ) -> Result<Self::Design>;

    #[doc(hidden)]
    fn prediction(design: &Self::Design) -> Prediction;

    #[doc(hidden)]
    fn build(
        sizing: &Sizing,
        settings: &Self::Settings,
        design: &Self::Design,
        items: u64,
    ) -> Result<Self>;
}

/// Builds a filter from the number of keys and either the false-positive
/// rate or the bits per key.
///
/// ```
/// use tamis::{Blocked, KeyHasher};
///
/// let filter = Blocked::builder()
///     .items(1_000_000)
///     .fpr(0.001)
///     .hasher(KeyHasher::xxh3(42))
///     .build()?;
/// assert_eq!(filter.probes(), 9);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// A builder is `Copy` and can be stored. Finding the cheapest design costs
/// more than making a small filter: 1 to 6 ms for `Balanced` (`cargo run
/// --release -p tamis --example design`), less for the other kinds.
/// [`resolve`](Self::resolve) does it once for many filters:
///
/// ```
/// use tamis::{Builder, Result, TinySet};
///
/// struct Writer {
///     filters: Builder<TinySet>,
/// }
///
/// impl Writer {
///     fn filter_of_run(&self, keys: &[u64]) -> Result<TinySet> {
///         self.filters.build_from(keys)
///     }
/// }
///
/// let writer = Writer { filters: TinySet::builder().fpr(0.01).resolve()? };
/// assert_eq!(writer.filter_of_run(&[1, 2, 3])?.len(), 3);
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Builder<F: Buildable> {
    pub(super) sizing: Sizing,
    pub(super) settings: F::Settings,
    /// Computed by `resolve`; dropped by every change that it depends on.
    design: Option<F::Design>,
}

// By hand: `derive` would require `F: Copy`.
impl<F: Buildable> Copy for Builder<F> {}
impl<F: Buildable> Clone for Builder<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Buildable> core::fmt::Debug for Builder<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Builder {{ items: {:?}, ", self.sizing.items)?;
        write!(f, "size: {:?}, ", self.sizing.size)?;
        write!(f, "resolved: {} }}", self.design.is_some())
    }
}

impl<F: Buildable> Builder<F> {
    pub(super) fn new(settings: F::Settings) -> Self {
        let sizing = Sizing {
            items: None,
            size: None,
            block_bits: 512,
            hasher: KeyHasher::default(),
            foldable: 0,
        };
        Self { sizing, settings, design: None }
    }

    /// Changes a setting that the design depends on.
    pub(super) fn with(self, set: impl FnOnce(&mut F::Settings)) -> Self {
        let mut changed = Self { design: None, ..self };
        set(&mut changed.settings);
        changed
    }

    /// The builder of another filter type with the same settings.
    pub(super) fn map<G: Buildable>(
        self,
        settings: impl FnOnce(F::Settings) -> G::Settings,
        design: impl FnOnce(F::Design) -> G::Design,
    ) -> Builder<G> {
        Builder {
            sizing: self.sizing,
            settings: settings(self.settings),
            design: self.design.map(design),
        }
    }

    /// How many keys will be inserted. More fit, at a false-positive rate
    /// above the design's.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let filter = Blocked::builder().items(50).fpr(0.01).build()?;
    /// assert_eq!(filter.capacity(), 50);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(mut self, items: u64) -> Self {
        self.sizing.items = Some(items);
        self
    }

    /// Sizes the filter by its false-positive rate with all keys inserted.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let filter = TinySet::builder().items(50).fpr(0.01).build()?;
    /// assert!(filter.design_fpr() <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn fpr(self, fpr: f64) -> Self {
        self.size(Size::Fpr(fpr))
    }

    /// Sizes the filter by memory: bits of the blocks per key (beta).
    ///
    /// ```
    /// use tamis::Bloom;
    /// let filter = Bloom::builder().items(512).bits_per_key(10.0).build()?;
    /// assert_eq!(filter.block_count(), 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(self, bits_per_key: f64) -> Self {
        self.size(Size::BitsPerKey(bits_per_key))
    }

    /// Sizes the filter by rate or memory: [`fpr`](Self::fpr) or
    /// [`bits_per_key`](Self::bits_per_key) as a value.
    ///
    /// ```
    /// use tamis::{Blocked, Size};
    /// let builder = Blocked::builder().items(9).size(Size::Fpr(0.01));
    /// assert!(builder.build()?.design_fpr() <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.sizing.size = Some(size);
        self.design = None;
        self
    }

    /// Blocks of 512 bits (a cache line, the default) or 256; a `TinySet`
    /// takes any size, and is fast with these two.
    ///
    /// At rates of 1 % and above, lookups in a `TinySet` of 256-bit blocks
    /// are faster, because a block hardly ever has more than 64 entries:
    /// 9.30 bits per key instead of 8.98 at 1 %. At 0.1 % such blocks take
    /// 13.69 instead of 12.82 and are not faster.
    ///
    /// ```
    /// let builder = tamis::Blocked::builder().items(9).fpr(0.01);
    /// assert_eq!(builder.block_bits(256).build()?.block_bits(), 256);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn block_bits(mut self, block_bits: u32) -> Self {
        self.sizing.block_bits = block_bits;
        self.design = None;
        self
    }

    /// Hash function of the keys; XXH3 with seed 0 by default, so that
    /// filters built anywhere can be merged. Strangers who choose keys can make
    /// them collide under it; see [`keyed`](Self::keyed).
    ///
    /// ```
    /// use tamis::{Blocked, KeyHasher};
    /// let hasher = KeyHasher::xxh3(7);
    /// let builder = Blocked::builder().items(9).fpr(0.1).hasher(hasher);
    /// assert_eq!(*builder.build()?.hasher(), hasher);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(mut self, hasher: KeyHasher) -> Self {
        self.sizing.hasher = hasher;
        self
    }

    /// Hashes the keys with a secret that is drawn now
    /// ([`KeyHasher::random`]): for services whose keys come from strangers.
    ///
    /// Without it, strangers can choose keys that a filter answers "present"
    /// to, and fill single blocks. All filters of this builder share the
    /// secret and can be merged with each other, but not with those of
    /// another process; a saved filter contains it. SipHash takes longer than
    /// XXH3 for short keys.
    ///
    /// ```
    /// use tamis::{Blocked, HashId, Shared};
    /// let builder = Blocked::builder().items(9).fpr(0.1).keyed();
    /// let seen = Shared::from(builder.build()?);
    /// assert_eq!(seen.hasher().id(), HashId::SipHash13);
    /// assert!(builder.build()?.hasher() == seen.hasher());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "std")]
    #[must_use]
    pub fn keyed(self) -> Self {
        self.hasher(KeyHasher::random())
    }

    /// Rounds the number of blocks up to a multiple of 2^`times` (at most
    /// 2^32), so that the filter halves at least `times` times: for
    /// `folded_to`.
    ///
    /// The cost is at most 2^`times` - 1 blocks: 16 KiB of 64-byte blocks
    /// for 8 times. Without it a filter halves once, and from 2^15 blocks
    /// (1.7 million keys at 1 %) on down to some 2^14 blocks. Balanced
    /// filters do not halve and ignore it.
    ///
    /// ```
    /// use tamis::Blocked;
    ///
    /// let builder = Blocked::builder().items(1_000_000).fpr(0.01);
    /// let mut filter = builder.foldable(8).build()?;
    /// filter.extend(0..5_000u64);
    /// assert!(filter.bytes() < 1_260_000);
    /// assert!(filter.folded_to(0.01)?.bytes() < 10_000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn foldable(mut self, times: u32) -> Self {
        self.sizing.foldable = times.min(32);
        self
    }

    /// Computes the design now: the builder returned builds filters of any
    /// number of items without computing it again.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), except allocation.
    ///
    /// ```
    /// let builder = tamis::Blocked::builder().fpr(0.01).resolve()?;
    /// let (small, large) =
    ///     (builder.items(1_000).build()?, builder.items(9_000).build()?);
    /// assert_eq!(small.probes(), large.probes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn resolve(self) -> Result<Self> {
        Ok(Self { design: Some(self.design()?), ..self })
    }

    /// Bits per key, false-positive rate and reads of the design, predicted
    /// for a filter with all keys inserted.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`](Self::resolve).
    ///
    /// ```
    /// use tamis::{Blocked, TinySet};
    /// let (blocked, tinyset) = (Blocked::builder(), TinySet::builder());
    /// let bits = tinyset.fpr(0.001).predict()?.bits_per_key;
    /// assert!(bits < blocked.fpr(0.001).predict()?.bits_per_key);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self) -> Result<Prediction> {
        Ok(F::prediction(&self.design()?))
    }

    fn design(&self) -> Result<F::Design> {
        match self.design {
            Some(design) => Ok(design),
            None => F::design(&self.sizing, &self.settings),
        }
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if no design reaches the rate,
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::{Blocked, Error};
    ///
    /// assert!(Blocked::builder().items(9).fpr(0.01).build().is_ok());
    /// let unsized_error = Blocked::builder().build().unwrap_err();
    /// assert!(matches!(unsized_error, Error::InvalidArgument { .. }));
    /// ```
    pub fn build(&self) -> Result<F> {
        let design = self.design()?;
        let items = self.sizing.items.ok_or(Error::InvalidArgument {
            what: "items",
            why: "give the number of keys to expect",
        })?;
        F::build(&self.sizing, &self.settings, &design, items)
    }

    /// A filter with these keys, sized for their number unless
    /// [`items`](Self::items) was given.
    ///
    /// If the iterator has no exact size hint, the 8-byte hashes are
    /// buffered to count them.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build).
    ///
    /// ```
    /// use tamis::Blocked;
    ///
    /// let builder = Blocked::builder().fpr(0.01);
    /// let filter = builder.build_from(["apple", "pear"])?;
    /// assert_eq!((filter.len(), filter.capacity()), (2, 2));
    ///
    /// let odd = (0..1000u64).filter(|key| key % 2 == 1);
    /// assert_eq!(builder.build_from(odd)?.capacity(), 500);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build_from<K: Key>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<F> {
        let keys = keys.into_iter();
        let exact = match keys.size_hint() {
            (least, Some(most)) if least == most => Some(most as u64),
            _ => None,
        };
        if let Some(items) = self.sizing.items.or(exact) {
            let mut filter = self.items(items).build()?;
            super::extend(&mut filter, keys);
            return Ok(filter);
        }
        let hasher = self.sizing.hasher;
        let hashes: alloc::vec::Vec<u64> =
            keys.map(|key| hasher.hash(&key)).collect();
        let mut filter = self.items(hashes.len() as u64).build()?;
        filter.insert_hash_batch(&hashes);
        Ok(filter)
    }
}

/// The design of a Bloom kind.
pub(super) fn bloom_design<L: Layout>(
    sizing: &Sizing,
    probes: Option<u32>,
) -> Result<Prediction> {
    let size = sizing.size()?;
    let block_bits = sizing.block_bits;
    // Before the theory, which has designs for more block sizes.
    BloomGeometry { blocks: 1, block_bits, probes: L::MIN_PROBES }
        .check(L::MIN_PROBES)?;
    let design = match (size, probes) {
        (Size::Fpr(_), Some(_)) => {
            return Err(Error::InvalidArgument {
                what: "probes",
                why: "can be chosen with bits per key, not with a rate",
            });
        }
        (Size::Fpr(fpr), None) => {
            let design = (L::THEORY.for_fpr)(block_bits, fpr)?;
            let bits_per_key = round_up(design.bits_per_key);
            Prediction { bits_per_key, ..design }
        }
        (Size::BitsPerKey(bits), None) => (L::THEORY.best)(block_bits, bits)?,
        (Size::BitsPerKey(bits), Some(probes)) => {
            (L::THEORY.predict)(block_bits, bits, probes)?
        }
    };
    Ok(design)
}

/// The empty filter of a Bloom kind.
pub(super) fn bloom_build<L: Layout>(
    sizing: &Sizing,
    design: &Prediction,
    items: u64,
) -> Result<BitFilter<L>> {
    let geometry = BloomGeometry {
        blocks: sizing.blocks(items, design.bits_per_key)?,
        block_bits: sizing.block_bits,
        probes: design.probes,
    };
    let counts = Counts::empty(items, design.fpr);
    BitFilter::with_geometry(geometry, sizing.hasher, counts)
}

/// The next multiple of 2^-12 bits per key: a root is found only up to
/// rounding, and the last bits of a better computation must not make two
/// builds of the same filter differ.
pub(super) fn round_up(bits_per_key: f64) -> f64 {
    libm::ceil(bits_per_key * 4096.0) / 4096.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizing(foldable: u32) -> Sizing {
        Sizing {
            items: None,
            size: None,
            block_bits: 512,
            hasher: KeyHasher::default(),
            foldable,
        }
    }

    #[test]
    fn blocks_are_never_rounded_by_more_than_one_in_sixteen_thousand() {
        for exact in (1..200_000u64).step_by(7).chain([1 << 33, 10u64.pow(11)])
        {
            let got = sizing(0).blocks(exact * 512, 1.0).unwrap();
            assert!(got >= exact && got - exact <= 1 + (exact >> 14));
            assert!(got == 1 || got % 2 == 0);
        }
    }

    #[test]
    fn large_filters_fold_often() {
        let got = sizing(0).blocks(1_000_000_000, 10.0).unwrap();
        assert!(got.trailing_zeros() >= 10, "{got}");
    }

    #[test]
    fn foldable_filters_cost_less_than_two_to_the_folds() {
        for times in 0..12 {
            for exact in [1, 2, 3, 100, 12_345, 1 << 20] {
                let got = sizing(times).blocks(exact * 512, 1.0).unwrap();
                assert!(got.trailing_zeros() >= times);
                let cost = (1 << times) + (exact >> 14) + 1;
                assert!(got - exact <= cost, "{times} {exact} {got}");
            }
        }
    }

    #[test]
    fn sizes_beyond_memory_are_errors() {
        assert!(sizing(0).blocks(u64::MAX, 1000.0).is_err());
        assert_eq!(sizing(0).blocks(0, 10.0).unwrap(), 1);
    }
}

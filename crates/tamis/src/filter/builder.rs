//! From what is wanted to a filter.

use core::marker::PhantomData;

use tamis_theory::Prediction;

use super::BitFilter;
use super::bit_filter::{Geometry, Layout};
use crate::error::{Error, Result};
use crate::format::Counts;
use crate::key::KeyHasher;

/// What decides the size.
#[derive(Debug, Clone, Copy)]
enum Size {
    Unknown,
    /// A setting was changed after it had been computed.
    Stale,
    Fpr(f64),
    BitsPerKey(f64),
    /// Computed by the theory, once.
    Known(Prediction),
}

/// Builds a filter of the Bloom family: say how many keys, and either the
/// false-positive rate or the bits per key.
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
/// A builder can be reused. Finding the cheapest design for a rate takes
/// some milliseconds; whoever builds thousands of small filters calls
/// [`resolve`](Self::resolve) once and then builds from that.
#[derive(Debug, Clone, Copy)]
pub struct Builder<L> {
    items: Option<u64>,
    size: Size,
    block_bits: u32,
    probes: Option<u32>,
    hasher: KeyHasher,
    layout: PhantomData<L>,
}

impl<L: Layout> Builder<L> {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            size: Size::Unknown,
            block_bits: 512,
            probes: None,
            hasher: KeyHasher::default(),
            layout: PhantomData,
        }
    }

    /// How many keys will be inserted. More may be: the false-positive rate
    /// then rises above the design's.
    ///
    /// ```
    /// use tamis::{Blocked, Filter};
    /// let filter = Blocked::builder().items(50).fpr(0.01).build()?;
    /// assert_eq!(filter.stats().design_items, 50);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(self, items: u64) -> Self {
        Self { items: Some(items), ..self }
    }

    /// Size by the false-positive rate wanted with all keys inserted.
    ///
    /// ```
    /// use tamis::{Filter, Split};
    /// let filter = Split::builder().items(50).fpr(0.01).build()?;
    /// assert!(filter.stats().design_fpr <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn fpr(self, fpr: f64) -> Self {
        Self { size: Size::Fpr(fpr), ..self }
    }

    /// Size by memory: bits per key (beta).
    ///
    /// ```
    /// let filter =
    ///     tamis::Bloom::builder().items(512).bits_per_key(10.0).build()?;
    /// assert_eq!(filter.block_count(), 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(self, bits_per_key: f64) -> Self {
        Self { size: Size::BitsPerKey(bits_per_key), ..self }
    }

    /// Blocks of 512 bits (a cache line, the default) or 256.
    ///
    /// ```
    /// let builder = tamis::Blocked::builder().items(9).fpr(0.01);
    /// assert_eq!(builder.block_bits(256).build()?.block_bits(), 256);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn block_bits(self, block_bits: u32) -> Self {
        Self { block_bits, ..self.changed() }
    }

    /// Bits set per key (k), 1 to 32, instead of the best number for the
    /// bits per key. Needs [`bits_per_key`](Self::bits_per_key).
    ///
    /// ```
    /// let builder = tamis::Blocked::builder().items(9).bits_per_key(8.0);
    /// assert_eq!(builder.probes(3).build()?.probes(), 3);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        Self { probes: Some(probes), ..self.changed() }
    }

    /// How keys are hashed; XXH3 with seed 0 unless said otherwise.
    ///
    /// ```
    /// use tamis::{Blocked, Filter, HashId, KeyHasher};
    /// let secret = KeyHasher::siphash(0x5eed);
    /// let builder = Blocked::builder().items(9).fpr(0.1).hasher(secret);
    /// assert_eq!(builder.build()?.hasher().id(), HashId::SipHash13);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(self, hasher: KeyHasher) -> Self {
        Self { hasher, ..self }
    }

    /// A design that has been computed is not one for other settings.
    fn changed(self) -> Self {
        match self.size {
            Size::Known(_) => Self { size: Size::Stale, ..self },
            _ => self,
        }
    }

    /// Asks the theory now: the builder returned builds filters of any
    /// number of items without computing the design again.
    ///
    /// # Errors
    ///
    /// [`Error::Infeasible`] if there is no such design,
    /// [`Error::InvalidArgument`] if no size was given, or if a setting was
    /// changed after an earlier call.
    ///
    /// ```
    /// let builder = tamis::Blocked::builder().fpr(0.01).resolve()?;
    /// let (small, large) =
    ///     (builder.items(1_000).build()?, builder.items(9_000).build()?);
    /// assert_eq!(small.probes(), large.probes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn resolve(self) -> Result<Self> {
        Ok(Self { size: Size::Known(self.design()?), ..self })
    }

    fn design(&self) -> Result<Prediction> {
        // Before the theory, which knows more block sizes than the blocks.
        let block_bits = self.block_bits;
        Geometry { blocks: 1, block_bits, probes: L::MIN_PROBES }
            .check(L::MIN_PROBES)?;
        let design = match (self.size, self.probes) {
            (Size::Unknown, _) => {
                return Err(Error::InvalidArgument {
                    what: "size",
                    why: "give a false-positive rate or bits per key",
                });
            }
            (Size::Stale, _) => {
                return Err(Error::InvalidArgument {
                    what: "settings",
                    why: "changed after the design was resolved; give the \
                          size again",
                });
            }
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
            (Size::BitsPerKey(bits), None) => {
                (L::THEORY.best)(block_bits, bits)?
            }
            (Size::BitsPerKey(bits), Some(probes)) => {
                (L::THEORY.predict)(block_bits, bits, probes)?
            }
            (Size::Known(design), _) => design,
        };
        Ok(design)
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a setting is missing or out of range,
    /// [`Error::Infeasible`] if there is no such design,
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::{Blocked, Error};
    ///
    /// assert!(Blocked::builder().items(9).fpr(0.01).build().is_ok());
    /// let nothing_said = Blocked::builder().build().unwrap_err();
    /// assert!(matches!(nothing_said, Error::InvalidArgument { .. }));
    /// ```
    pub fn build(&self) -> Result<BitFilter<L>> {
        let design = self.design()?;
        let items = self.items.ok_or(Error::InvalidArgument {
            what: "items",
            why: "say how many keys to expect",
        })?;
        let geometry = Geometry {
            blocks: blocks(items, design.bits_per_key, self.block_bits)?,
            block_bits: self.block_bits,
            probes: design.probes,
        };
        let counts = Counts::empty(items, design.fpr);
        BitFilter::with_geometry(geometry, self.hasher, counts)
    }
}

/// The next multiple of 2^-12 bits per key: a root is found only up to
/// rounding, and the last bits of a better computation must not make two
/// builds of the same filter differ.
pub(super) fn round_up(bits_per_key: f64) -> f64 {
    libm::ceil(bits_per_key * 4096.0) / 4096.0
}

/// The number of blocks for `items` keys.
///
/// Never rounded to a power of two. It is rounded up to a multiple of 2, and
/// in filters of more than 2^14 blocks to a multiple of the largest power of
/// two that costs less than one block in 2^14: such a filter can be folded
/// down to some 2^14 blocks for 0.006 % of memory.
pub(super) fn blocks(
    items: u64,
    bits_per_key: f64,
    block_bits: u32,
) -> Result<u64> {
    let bits = items as f64 * bits_per_key;
    let exact = libm::ceil(bits / f64::from(block_bits)).max(1.0);
    if exact >= (1u64 << 55) as f64 {
        return Err(Error::Allocation { bytes: u64::MAX });
    }
    let exact = exact as u64;
    let multiple = match exact {
        1 => 1,
        _ => (1 << (exact >> 14).checked_ilog2().unwrap_or(0)).max(2),
    };
    Ok(exact.next_multiple_of(multiple))
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_are_never_rounded_by_more_than_one_in_sixteen_thousand() {
        for exact in (1..200_000u64).step_by(7).chain([1 << 33, 10u64.pow(11)])
        {
            let got = blocks(exact * 512, 1.0, 512).unwrap();
            assert!(got >= exact && got - exact <= 1 + (exact >> 14));
            assert!(got == 1 || got % 2 == 0);
        }
    }

    #[test]
    fn large_filters_fold_often() {
        let mut got = blocks(1_000_000_000, 10.0, 512).unwrap();
        let mut folds = 0;
        while got % 2 == 0 {
            got /= 2;
            folds += 1;
        }
        assert!(folds >= 10, "{folds}");
    }

    #[test]
    fn sizes_beyond_memory_are_errors() {
        assert!(blocks(u64::MAX, 1000.0, 512).is_err());
        assert_eq!(blocks(0, 10.0, 512).unwrap(), 1);
    }
}

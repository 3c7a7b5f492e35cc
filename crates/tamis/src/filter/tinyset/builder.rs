//! From what is wanted to a TinySet.

use core::ops::Range;

use tamis_theory::Prediction;
use tamis_theory::tinyset::{self, Block, two_level};

use super::TinySet;
use super::geometry::Geometry;
use crate::block::fingerprint::{Form, Shape};
use crate::error::{Error, Result};
use crate::filter::builder::{blocks, round_up};
use crate::format::Counts;
use crate::key::KeyHasher;

/// Builds a [`TinySet`]: say how many keys, and either the false-positive
/// rate or the bits per key.
///
/// ```
/// use tamis::{Filter, KeyHasher, TinySet};
///
/// let filter = TinySet::builder()
///     .items(1_000_000)
///     .fpr(0.01)
///     .removable()
///     .hasher(KeyHasher::xxh3(42))
///     .build()?;
/// assert!(filter.stats().bytes * 8 < 9_240_000);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// A builder can be reused; see [`resolve`](Self::resolve).
#[derive(Debug, Clone, Copy)]
pub struct TinySetBuilder {
    items: Option<u64>,
    size: Size,
    block_bits: u32,
    chains: Option<u32>,
    hasher: KeyHasher,
    removable: bool,
    repeats: bool,
    two_level: bool,
}

/// Lines that a key which is not there may read on average, in a filter of
/// two levels.
/// A little less than the 1.06 promised: a filter differs from its design by
/// chance.
const MOST_READS: f64 = 1.055;

/// Bits of the array for each key from which on heads are bytes. An entry
/// with such a head takes 9 of them; where the mean is less than this, more
/// than one block in ten has less.
const LEAST_FOR_BYTES: f64 = 10.8;

/// Bits of a line's array for each key, within which heads are placed: with
/// more, hardly a block has more entries than a word has bits, and all that a
/// lookup asks about can be asked of that word; with fewer, more than one
/// block in ten has no heads at all.
const FOR_PLACED: Range<f64> = 5.8..8.3;

/// What decides the size.
#[derive(Debug, Clone, Copy)]
enum Size {
    Unknown,
    /// A setting was changed after it had been computed.
    Stale,
    Fpr(f64),
    BitsPerKey(f64),
    Known(Design),
}

/// A design for any number of keys.
#[derive(Debug, Clone, Copy)]
struct Design {
    shape: Shape,
    /// Blocks of the first level per block of the second.
    ratio: Option<f64>,
    prediction: Prediction,
    /// What is built: those of the prediction, rounded up if they were
    /// computed.
    bits_per_key: f64,
}

impl TinySetBuilder {
    pub(super) fn new() -> Self {
        Self {
            items: None,
            size: Size::Unknown,
            block_bits: 512,
            chains: None,
            hasher: KeyHasher::default(),
            removable: false,
            repeats: false,
            two_level: false,
        }
    }

    /// How many keys will be inserted. More may be: the false-positive rate
    /// then rises above the design's.
    ///
    /// ```
    /// use tamis::{Filter, TinySet};
    /// let filter = TinySet::builder().items(50).fpr(0.01).build()?;
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
    /// use tamis::{Filter, TinySet};
    /// let filter = TinySet::builder().items(50).fpr(0.01).build()?;
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
    ///     tamis::TinySet::builder().items(512).bits_per_key(10.0).build()?;
    /// assert_eq!(filter.block_count(), 10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(self, bits_per_key: f64) -> Self {
        Self { size: Size::BitsPerKey(bits_per_key), ..self }
    }

    /// Blocks of 512 bits (a cache line, the default), of 256 bits, or of
    /// any other number; all but these two are slow, and are there to
    /// repeat the paper's experiments.
    ///
    /// At a rate of 1 % and above, lookups in blocks of 256 bits are faster,
    /// because such a block hardly ever has more entries than a word has
    /// bits, and take little more memory: 9.30 bits per key for 8.98 at 1 %.
    /// At 0.1 % they take 13.69 for 12.82, and whole lines are as fast.
    ///
    /// ```
    /// let builder = tamis::TinySet::builder().items(9).fpr(0.01);
    /// assert_eq!(builder.block_bits(256).build()?.chains(), 32);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn block_bits(self, block_bits: u32) -> Self {
        Self { block_bits, ..self.changed() }
    }

    /// Chains in a block (L), instead of one for every eight bits. Blocks
    /// with another number are slow.
    ///
    /// ```
    /// let builder = tamis::TinySet::builder().items(9).fpr(0.01);
    /// assert_eq!(builder.chains(80).build()?.chains(), 80);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn chains(self, chains: u32) -> Self {
        Self { chains: Some(chains), ..self.changed() }
    }

    /// Let keys be removed, for 0.5 % more memory. Every insertion is stored,
    /// repeats too, so that each can be taken back.
    ///
    /// ```
    /// use tamis::{Insert, Remove, TinySet};
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.01).removable().build()?;
    /// filter.insert("apple");
    /// assert!(filter.remove("apple")?);
    /// assert!(!filter.remove("apple")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn removable(self) -> Self {
        Self { removable: true, repeats: true, ..self.changed() }
    }

    /// Store a key again when it is inserted again, so that
    /// [`TinySet::count`] can tell how often it was.
    ///
    /// ```
    /// use tamis::{Insert, TinySet};
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.001).repeats().build()?;
    /// filter.insert_batch(&["apple"; 3]);
    /// assert_eq!(filter.count("apple"), Some(3));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn repeats(self) -> Self {
        Self { repeats: true, ..self }
    }

    /// Two levels: blocks that would be too full pass keys on to a small
    /// second level. Pays below a rate of 0.02 %, for 4 to 6 % of lookups
    /// that read a second line. Such a filter can neither be removed from,
    /// merged, folded nor grown.
    ///
    /// ```
    /// use tamis::{Filter, TinySet};
    /// let builder = TinySet::builder().items(1_000_000).fpr(0.0001);
    /// let (one, two) = (builder.build()?, builder.two_level().build()?);
    /// assert!(two.stats().bytes < one.stats().bytes * 97 / 100);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn two_level(self) -> Self {
        Self { two_level: true, ..self.changed() }
    }

    /// How keys are hashed; XXH3 with seed 0 unless said otherwise.
    ///
    /// ```
    /// use tamis::{Filter, HashId, KeyHasher, TinySet};
    /// let secret = KeyHasher::siphash(0x5eed);
    /// let builder = TinySet::builder().items(9).fpr(0.1).hasher(secret);
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
    /// let builder = tamis::TinySet::builder().fpr(0.01).resolve()?;
    /// let (small, large) =
    ///     (builder.items(1_000).build()?, builder.items(9_000).build()?);
    /// assert!(small.block_count() < large.block_count());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn resolve(self) -> Result<Self> {
        Ok(Self { size: Size::Known(self.design()?), ..self })
    }

    /// What the design is predicted to do at its design load.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`](Self::resolve).
    ///
    /// ```
    /// use tamis::TinySet;
    /// let one = TinySet::builder().fpr(0.0001);
    /// let two = one.two_level();
    /// assert!(two.predict()?.bits_per_key < one.predict()?.bits_per_key);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self) -> Result<Prediction> {
        Ok(self.design()?.prediction)
    }

    fn design(&self) -> Result<Design> {
        if let Size::Known(design) = self.size {
            return Ok(design);
        }
        let chains = self.chains.unwrap_or(self.block_bits / 8);
        let block = Block::new(self.block_bits, chains);
        if self.two_level {
            return self.two_level_design(block);
        }
        let form = if self.removable { Form::Elastic } else { Form::Plain };
        let shape = Shape::new(block, form);
        // Before the theory, which knows more shapes than the blocks.
        self.geometry(shape, 1, 0).check()?;
        let (prediction, bits_per_key) = match self.size {
            Size::Fpr(fpr) => {
                let design = tinyset::for_fpr(shape.block, fpr)?;
                (design, round_up(design.bits_per_key))
            }
            Size::BitsPerKey(bits) => {
                let load = shape.block.load(bits)?;
                (tinyset::predict(shape.block, load)?, bits)
            }
            _ => return Err(self.unsized_error()),
        };
        // Where many blocks have no room for heads of a byte none gets
        // them: a lookup would have to guess which kind it meets.
        let load = f64::from(self.block_bits) / prediction.bits_per_key;
        let room = f64::from(shape.block.array_bits()) / load;
        let line = (self.block_bits, chains) == (512, 64);
        let shape = if room >= LEAST_FOR_BYTES {
            shape.with_head(8)
        } else if line && FOR_PLACED.contains(&room) {
            shape.with_placed_heads()
        } else {
            shape.with_head(4)
        };
        Ok(Design { shape, ratio: None, prediction, bits_per_key })
    }

    fn unsized_error(&self) -> Error {
        match self.size {
            Size::Stale => Error::InvalidArgument {
                what: "settings",
                why: "changed after the design was resolved; give the size \
                      again",
            },
            _ => Error::InvalidArgument {
                what: "size",
                why: "give a false-positive rate or bits per key",
            },
        }
    }

    fn two_level_design(&self, block: Block) -> Result<Design> {
        let invalid =
            |why| Err(Error::InvalidArgument { what: "levels", why });
        if self.removable {
            return invalid("a filter of two levels is not removable");
        }
        let fpr = match self.size {
            Size::Fpr(fpr) => fpr,
            Size::BitsPerKey(_) => {
                return invalid("two levels are sized by a rate");
            }
            _ => return Err(self.unsized_error()),
        };
        let (design, prediction) = two_level::for_fpr(block, fpr, MOST_READS)?;
        let shape = Shape::new(block, Form::Capped(design.cap));
        let geometry = self.geometry(shape, 1, 1);
        if shape.cut(design.cap).base < 8 {
            return invalid("pay only below a rate of about 0.1 %");
        }
        geometry.check()?;
        let bits_per_key = round_up(prediction.bits_per_key);
        let ratio = Some(design.ratio);
        Ok(Design { shape, ratio, prediction, bits_per_key })
    }

    fn geometry(&self, shape: Shape, blocks: u64, second: u64) -> Geometry {
        let Self { removable, repeats, .. } = *self;
        Geometry { blocks, shape, second, removable, repeats }
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
    /// use tamis::{Error, TinySet};
    ///
    /// assert!(TinySet::builder().items(9).fpr(0.01).build().is_ok());
    /// let nothing_said = TinySet::builder().build().unwrap_err();
    /// assert!(matches!(nothing_said, Error::InvalidArgument { .. }));
    /// ```
    pub fn build(&self) -> Result<TinySet> {
        let Design { shape, ratio, prediction, bits_per_key } =
            self.design()?;
        let items = self.items.ok_or(Error::InvalidArgument {
            what: "items",
            why: "say how many keys to expect",
        })?;
        // Both levels together have the bits per key.
        let share = ratio.map_or(1.0, |ratio| ratio / (1.0 + ratio));
        let first = bits_per_key * share;
        let blocks = blocks(items, first, self.block_bits)?;
        let second =
            ratio.map_or(0, |ratio| libm::ceil(blocks as f64 / ratio) as u64);
        let geometry = self.geometry(shape, blocks, second);
        let counts = Counts::empty(items, prediction.fpr);
        TinySet::with_geometry(geometry, self.hasher, counts)
    }
}

//! The design of a TinySet.

use core::ops::Range;

use tamis_theory::Prediction;
use tamis_theory::tinyset::{self, Block, two_level};

use super::TinySet;
use super::geometry::TinySetGeometry;
use crate::block::fingerprint::{Form, HeadLayout, Shape};
use crate::error::{Error, Result};
use crate::filter::builder::{Buildable, Builder, Size, Sizing, round_up};
use crate::format::Counts;

/// TinySetSettings of a TinySet alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct TinySetSettings {
    chains: Option<u32>,
    removable: bool,
    repeats: bool,
    two_level: bool,
}

/// Least array bits per key for 8-bit heads. An entry with such a head takes
/// 9 bits; below this mean more than one block in ten has less.
const LEAST_FOR_BYTES: f64 = 10.8;

/// Array bits per key for which 4-bit heads of a line are reversed. Above,
/// hardly a block has more than 64 entries and lookups need one word; below,
/// more than one block in ten has no heads.
const FOR_REVERSED: Range<f64> = 5.8..8.3;

/// A design for any number of keys.
#[derive(Debug, Clone, Copy)]
pub struct TinySetDesign {
    shape: Shape,
    /// Blocks of the first level per block of the second.
    ratio: Option<f64>,
    prediction: Prediction,
    /// Bits per key built: the prediction's, rounded up if computed.
    bits_per_key: f64,
}

impl Builder<TinySet> {
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
        self.with(|settings| settings.chains = Some(chains))
    }

    /// Allows [`TinySet::remove`], for 0.5 % more memory. Every insertion is
    /// stored, repeats too, so that each can be taken back.
    ///
    /// From 16 insertions on a key stays, whatever is removed; see
    /// [`Removal::Stuck`](crate::Removal::Stuck).
    ///
    /// ```
    /// use tamis::{Removal, TinySet};
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.01).removable().build()?;
    /// filter.insert("apple");
    /// assert_eq!(filter.remove("apple")?, Removal::Removed);
    /// assert_eq!(filter.remove("apple")?, Removal::Absent);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn removable(self) -> Self {
        self.with(|settings| {
            settings.removable = true;
            settings.repeats = true;
        })
    }

    /// Stores a key again when it is inserted again, up to 16 times, for
    /// [`TinySet::count`].
    ///
    /// ```
    /// use tamis::TinySet;
    /// let mut filter =
    ///     TinySet::builder().items(9).fpr(0.001).repeats().build()?;
    /// filter.insert_batch(&["apple"; 3]);
    /// assert_eq!(filter.count("apple"), Some(3));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn repeats(mut self) -> Self {
        if !self.settings.two_level {
            return self.with(|settings| settings.repeats = true);
        }
        // The design of two levels does not depend on it.
        self.settings.repeats = true;
        self
    }

    /// Adds a small second level for the keys of blocks that would be too
    /// full. Pays below a rate of 0.02 %; 4 to 6 % of lookups read a second
    /// line. Such a filter takes no removals, and does not merge, halve or
    /// double.
    ///
    /// ```
    /// use tamis::TinySet;
    /// let builder = TinySet::builder().items(1_000_000).fpr(0.0001);
    /// let (one, two) = (builder.build()?, builder.two_level().build()?);
    /// assert!(two.bytes() < one.bytes() * 97 / 100);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn two_level(self) -> Self {
        self.with(|settings| settings.two_level = true)
    }
}

impl Buildable for TinySet {
    type Settings = TinySetSettings;
    type Design = TinySetDesign;

    fn design(
        sizing: &Sizing,
        settings: &TinySetSettings,
    ) -> Result<TinySetDesign> {
        let size = sizing.size()?;
        let block_bits = sizing.block_bits;
        let chains = settings.chains.unwrap_or(block_bits / 8);
        let block = Block::new(block_bits, chains);
        if settings.two_level {
            return settings.two_level_design(size, block);
        }
        let form = match settings.removable {
            true => Form::Elastic,
            false => Form::Plain,
        };
        let shape = Shape::new(block, form);
        // Before the theory, which has designs for more shapes.
        settings.geometry(shape, 1, 0).check()?;
        let (predict, for_fpr): (fn(_, _) -> _, fn(_, _) -> _) =
            match settings.repeats {
                true => (tinyset::predict, tinyset::for_fpr),
                false => (tinyset::predict_once, tinyset::for_fpr_once),
            };
        let (prediction, bits_per_key) = match size {
            Size::Fpr(fpr) => {
                let design: Prediction = for_fpr(shape.block, fpr)?;
                (design, round_up(design.bits_per_key))
            }
            Size::BitsPerKey(bits) => {
                let load = shape.block.load(bits)?;
                (predict(shape.block, load)?, bits)
            }
        };
        // Where many blocks have no room for 8-bit heads none gets them: a
        // mix of both would make lookups mispredict.
        let load = f64::from(block_bits) / prediction.bits_per_key;
        let room = f64::from(shape.block.array_bits()) / load;
        let line = (block_bits, chains) == (512, 64);
        let shape = if room >= LEAST_FOR_BYTES {
            shape.with_heads(HeadLayout::Bytes)
        } else if line && FOR_REVERSED.contains(&room) {
            shape.with_heads(HeadLayout::NibblesReversed)
        } else {
            shape.with_heads(HeadLayout::Nibbles)
        };
        Ok(TinySetDesign { shape, ratio: None, prediction, bits_per_key })
    }

    fn prediction(design: &TinySetDesign) -> Prediction {
        design.prediction
    }

    fn build(
        sizing: &Sizing,
        settings: &TinySetSettings,
        design: &TinySetDesign,
        items: u64,
    ) -> Result<Self> {
        let TinySetDesign { shape, ratio, prediction, bits_per_key } = *design;
        // `bits_per_key` covers both levels.
        let share = ratio.map_or(1.0, |ratio| ratio / (1.0 + ratio));
        let blocks = sizing.blocks(items, bits_per_key * share)?;
        let second =
            ratio.map_or(0, |ratio| libm::ceil(blocks as f64 / ratio) as u64);
        let geometry = settings.geometry(shape, blocks, second);
        let counts = Counts::empty(items, prediction.fpr);
        Self::with_geometry(geometry, sizing.hasher, counts)
    }
}

impl TinySetSettings {
    fn two_level_design(
        &self,
        size: Size,
        block: Block,
    ) -> Result<TinySetDesign> {
        let invalid =
            |why| Err(Error::InvalidArgument { what: "levels", why });
        if self.removable {
            return invalid("a filter of two levels is not removable");
        }
        let Size::Fpr(fpr) = size else {
            return invalid("two levels are sized by a rate");
        };
        let (design, prediction) =
            two_level::for_fpr(block, fpr, two_level::MOST_READS)?;
        let shape = Shape::new(block, Form::Capped(design.cap));
        let geometry = self.geometry(shape, 1, 1);
        if !design.pays() {
            return invalid("pay only below a rate of about 0.1 %");
        }
        geometry.check()?;
        let bits_per_key = round_up(prediction.bits_per_key);
        let ratio = Some(design.ratio);
        Ok(TinySetDesign { shape, ratio, prediction, bits_per_key })
    }

    fn geometry(
        &self,
        shape: Shape,
        blocks: u64,
        second: u64,
    ) -> TinySetGeometry {
        let Self { removable, repeats, .. } = *self;
        TinySetGeometry { blocks, shape, second, removable, repeats }
    }
}

//! The kinds of filters and their predictions.

use super::Size;
use crate::tinyset::{self, Block, two_level};
use crate::{Error, Prediction, Result, blocked, split, standard, tune};

/// Kind of a filter, with the forms that `build` offers.
///
/// ```
/// use tamis_theory::plan::Kind;
///
/// assert_eq!(Kind::TwoLevels.name(), "tinyset");
/// assert_eq!(Kind::TwoLevels.title(), "tinyset, 2 levels");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All probes in one block.
    Blocked,
    /// Half of the probes in each of two blocks.
    Split,
    /// Probes anywhere.
    Bloom,
    /// Fingerprints in one block.
    TinySet,
    /// The same with removals.
    Removable,
    /// Fingerprints, with a second level for full blocks.
    TwoLevels,
    /// Blocks that refuse keys.
    Balanced,
}

impl Kind {
    /// All kinds, in the order of the table of `plan`.
    ///
    /// ```
    /// use tamis_theory::plan::Kind;
    /// assert_eq!(Kind::ALL[0], Kind::Blocked);
    /// ```
    pub const ALL: [Self; 7] = [
        Self::Blocked,
        Self::Split,
        Self::Bloom,
        Self::TinySet,
        Self::Removable,
        Self::TwoLevels,
        Self::Balanced,
    ];

    /// Name after `build --kind`.
    ///
    /// ```
    /// use tamis_theory::plan::Kind;
    /// assert_eq!(Kind::Removable.name(), "tinyset");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Split => "split",
            Self::Bloom => "bloom",
            Self::TinySet | Self::Removable | Self::TwoLevels => "tinyset",
            Self::Balanced => "balanced",
        }
    }

    /// Name with the form.
    ///
    /// ```
    /// use tamis_theory::plan::Kind;
    /// assert_eq!(Kind::Removable.title(), "tinyset, removable");
    /// ```
    pub const fn title(self) -> &'static str {
        match self {
            Self::Removable => "tinyset, removable",
            Self::TwoLevels => "tinyset, 2 levels",
            plain => plain.name(),
        }
    }

    /// Levels of fingerprint blocks, `None` for kinds without fingerprints.
    ///
    /// ```
    /// use tamis_theory::plan::Kind;
    /// assert_eq!(Kind::TinySet.levels(), Some(1));
    /// assert_eq!(Kind::Balanced.levels(), None);
    /// ```
    pub const fn levels(self) -> Option<u32> {
        match self {
            Self::TinySet | Self::Removable => Some(1),
            Self::TwoLevels => Some(2),
            _ => None,
        }
    }

    /// Whether keys can be removed.
    ///
    /// ```
    /// use tamis_theory::plan::Kind;
    /// assert!(Kind::Removable.removable() && !Kind::TinySet.removable());
    /// ```
    pub const fn removable(self) -> bool {
        matches!(self, Self::Removable)
    }

    /// Whether two filters can be merged.
    ///
    /// ```
    /// use tamis_theory::plan::Kind;
    /// assert!(Kind::Bloom.mergeable() && !Kind::Balanced.mergeable());
    /// ```
    pub const fn mergeable(self) -> bool {
        !matches!(self, Self::TwoLevels | Self::Balanced)
    }

    /// Whether a filter of this kind has every rate and memory that one of
    /// the other kinds has.
    pub(super) const fn has_every_size(self) -> bool {
        matches!(self, Self::Blocked | Self::Split | Self::Bloom)
    }

    /// Memory, rate and reads of a filter of this size in blocks of
    /// `block_bits`.
    ///
    /// Equals the prediction of the builders of `tamis`.
    ///
    /// ```
    /// use tamis_theory::plan::{Kind, Size};
    ///
    /// let p = Kind::TinySet.predict(Size::Fpr(0.01), 512)?;
    /// assert!((p.bits_per_key - 8.98).abs() < 5e-3);
    /// // Two levels are sized by a rate, and pay below 0.1 %.
    /// let two = |fpr| Kind::TwoLevels.predict(Size::Fpr(fpr), 512);
    /// assert!(two(0.01).is_err() && two(0.0001)?.reads_miss < 1.06);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn predict(self, size: Size, block_bits: u32) -> Result<Prediction> {
        if !matches!(block_bits, 256 | 512) {
            return Err(Error::BlockBits { block_bits });
        }
        let block = Block::new(block_bits, block_bits / 8);
        match (self, size) {
            (Self::Blocked, Size::Fpr(fpr)) => {
                blocked::for_fpr(block_bits, fpr)
            }
            (Self::Blocked, Size::BitsPerKey(bits)) => {
                blocked::best(block_bits, bits)
            }
            (Self::Split, Size::Fpr(fpr)) => split::for_fpr(block_bits, fpr),
            (Self::Split, Size::BitsPerKey(bits)) => {
                split::best(block_bits, bits)
            }
            (Self::Bloom, Size::Fpr(fpr)) => standard::for_fpr(fpr),
            (Self::Bloom, Size::BitsPerKey(bits)) => standard::best(bits),
            (Self::TinySet, Size::Fpr(fpr)) => {
                tinyset::for_fpr_once(block, fpr)
            }
            (Self::TinySet, Size::BitsPerKey(bits)) => {
                tinyset::predict_once(block, block.load(bits)?)
            }
            (Self::Removable, size) => {
                // Two flags: free slots, and entries without their extra
                // bit.
                let block = Block { flag_bits: 2, ..block };
                match size {
                    Size::Fpr(fpr) => tinyset::for_fpr(block, fpr),
                    Size::BitsPerKey(bits) => {
                        tinyset::predict(block, block.load(bits)?)
                    }
                }
            }
            (Self::TwoLevels, Size::Fpr(fpr)) => {
                let (design, prediction) =
                    two_level::for_fpr(block, fpr, two_level::MOST_READS)?;
                match design.pays() {
                    true => Ok(prediction),
                    false => Err(no_second_level()),
                }
            }
            (Self::TwoLevels, Size::BitsPerKey(_)) => Err(no_second_level()),
            (Self::Balanced, size) => {
                let (reads, mode) =
                    (tune::MAX_READS_MISS, Some(tune::Mode::Popcount));
                let design = match size {
                    Size::Fpr(fpr) => {
                        tune::for_fpr(block_bits, fpr, reads, mode)
                    }
                    Size::BitsPerKey(bits) => {
                        tune::best(block_bits, bits, reads, mode)
                    }
                }?;
                Ok(design.prediction)
            }
        }
    }
}

fn no_second_level() -> Error {
    Error::NoDesign { max_reads_miss: two_level::MOST_READS }
}

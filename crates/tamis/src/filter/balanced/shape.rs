//! The geometry of a balanced filter, and its bytes.

use crate::block::guarded::Division;
use crate::error::{Error, Result};
use crate::format::{GeometryBytes, Reader};
use crate::overflow::Overflow;
use crate::placement::{Admission, MAX_CHOICES, Proposals, Scheme};

/// When a block refuses a key.
///
/// ```
/// use tamis::Threshold;
/// let at_keys = Threshold::Keys { threshold: 9, admission: 0.5 };
/// let at_bits = Threshold::SetBits { set_bits: 240 };
/// assert_ne!(at_keys, at_bits);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Threshold {
    /// By the number of keys in it, counted in the block.
    Keys {
        /// A block below it takes every key (h).
        threshold: u32,
        /// The chance that a block exactly at the threshold takes one more
        /// (p); decided by the key's hash, so that a lookup can repeat it.
        admission: f64,
    },
    /// By the number of bits set in it: no counter, and it balances the
    /// quantity that the false-positive rate depends on.
    SetBits {
        /// A block with this many bits set refuses.
        set_bits: u32,
    },
}

/// [`Threshold`] with the admission as an integer, for the hot path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Count(Admission),
    Popcount { set_bits: u32 },
}

impl Refusal {
    pub(super) fn new(threshold: Threshold) -> Result<Self> {
        match threshold {
            Threshold::Keys { threshold, admission } => {
                if threshold > MAX_THRESHOLD {
                    return Err(Error::InvalidArgument {
                        what: "threshold",
                        why: "expected at most 126 keys",
                    });
                }
                if !(0.0..=1.0).contains(&admission) {
                    return Err(Error::InvalidArgument {
                        what: "admission",
                        why: "expected a probability",
                    });
                }
                Ok(Self::Count(Admission::new(threshold, admission)))
            }
            Threshold::SetBits { set_bits } => Ok(Self::Popcount { set_bits }),
        }
    }

    /// Whether a block refuses a key with this ticket.
    ///
    /// Monotone in the block's content: a block that refuses a key now will
    /// always refuse it, and one that does not never did. A lookup's early
    /// stop relies on it.
    #[inline(always)]
    pub(super) fn refuses(
        self,
        division: Division,
        block: &[u8],
        ticket: impl FnOnce() -> u64,
    ) -> bool {
        match self {
            Self::Count(admission) => {
                admission.refuses(division.load(block), ticket)
            }
            Self::Popcount { set_bits } => division.ones(block) >= set_bits,
        }
    }

    /// The share of non-members that a block with this load and this many
    /// bits set would have refused.
    pub(super) fn share(self, load: u32, ones: u32) -> f64 {
        match self {
            Self::Count(admission) => admission.refused_share(load),
            Self::Popcount { set_bits } => f64::from(ones >= set_bits),
        }
    }

    pub(super) fn threshold(self) -> Threshold {
        match self {
            Self::Count(admission) => Threshold::Keys {
                threshold: admission.threshold,
                admission: admission.probability(),
            },
            Self::Popcount { set_bits } => Threshold::SetBits { set_bits },
        }
    }
}

/// The largest threshold whose counter has seven bits.
const MAX_THRESHOLD: u32 = 126;

/// Bits that count up to one above the threshold: ceil(log2(h + 2)).
fn counter_bits(refusal: Refusal) -> u32 {
    match refusal {
        Refusal::Count(Admission { threshold, .. }) => {
            u32::BITS - (threshold + 1).leading_zeros()
        }
        Refusal::Popcount { .. } => 0,
    }
}

/// The geometry: scheme, blocks and their division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BalancedShape {
    pub(super) scheme: Scheme,
    pub(super) overflow: Overflow,
    pub(super) refusal: Refusal,
    pub(super) block_bits: u32,
    pub(super) probes: u32,
    pub(super) tracking_bits: u32,
    pub(super) proposals: Proposals,
}

/// Counts that go with the geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Keys placed by each choice.
    pub(super) placed: [u64; MAX_CHOICES],
    /// Keys refused by every choice, without those returned.
    pub(super) refused: u64,
    /// Keys refused by every choice and put into their first block, because
    /// the list was full; counted there as well. Not stored in files.
    pub(super) returned: u64,
}

impl Tally {
    /// Counts a key of the first block that all blocks had refused.
    pub(super) fn return_key(&mut self) {
        self.returned += 1;
        self.placed[0] = self.placed[0].saturating_add(1);
    }

    /// All keys. Saturates: a file may contain any counts.
    pub(super) fn items(&self) -> u64 {
        self.placed
            .iter()
            .fold(self.refused, |sum, &placed| sum.saturating_add(placed))
    }
}

impl BalancedShape {
    pub(super) fn choices(&self) -> u32 {
        self.proposals.choices()
    }

    pub(super) fn blocks(&self) -> u64 {
        match self.scheme {
            Scheme::Multilevel => self.levels().iter().sum(),
            _ => self.levels().first().copied().unwrap_or(0),
        }
    }

    pub(super) fn payload(&self) -> Option<u64> {
        self.blocks().checked_mul(u64::from(self.block_bits / 8))
    }

    /// The blocks of each level; of the one array for every choice of the
    /// single and sequential schemes.
    pub(super) fn levels(&self) -> &[u64] {
        self.proposals.sizes()
    }

    /// Whether a choice takes every key.
    pub(super) fn absorbs(&self, choice: u32) -> bool {
        self.overflow == Overflow::Absorb && choice + 1 == self.choices()
    }

    /// How the blocks of a choice are divided. An absorbing *level* has
    /// blocks of its own, which need neither counter nor tracking bits.
    pub(super) fn division(&self, choice: u32) -> Division {
        let alone = self.scheme == Scheme::Multilevel || self.choices() == 1;
        let bare = alone && self.absorbs(choice);
        Division {
            block_bits: self.block_bits,
            counter_bits: if bare { 0 } else { counter_bits(self.refusal) },
            tracking_bits: if bare { 0 } else { self.tracking_bits },
        }
    }

    /// Checks all ranges, for settings and for files.
    pub(super) fn check(&self) -> Result<()> {
        let invalid = |what, why| Err(Error::InvalidArgument { what, why });
        if !matches!(self.block_bits, 256 | 512) {
            return invalid("block bits", "a block has 256 or 512 bits");
        }
        if !(1..=tamis_theory::MAX_PROBES).contains(&self.probes) {
            return invalid("probes", "expected 1 to 32");
        }
        if self.tracking_bits > 32 {
            return invalid("tracking bits", "expected at most 32");
        }
        let fits = match self.scheme {
            Scheme::Single => self.choices() == 1,
            _ => self.choices() >= 1,
        };
        if !fits {
            return invalid("choices", "expected 1 for single, else 1 to 8");
        }
        match self.refusal {
            Refusal::Count(Admission { threshold, share }) => {
                if threshold > MAX_THRESHOLD || share > Admission::ONE {
                    return invalid("threshold", "out of range");
                }
            }
            Refusal::Popcount { set_bits } => {
                if set_bits > self.block_bits {
                    return invalid("threshold", "more bits than a block has");
                }
            }
        }
        let levels = self.levels();
        let total =
            levels.iter().try_fold(0u64, |sum, &level| sum.checked_add(level));
        let most = 1 << 55;
        if levels.contains(&0) || total.is_none_or(|total| total >= most) {
            return invalid("blocks", "expected 1 to 2^55 - 1 blocks");
        }
        let same = levels.windows(2).all(|pair| pair[0] == pair[1]);
        if self.scheme != Scheme::Multilevel && !same {
            return invalid("blocks", "one array has one size");
        }
        Ok(())
    }

    /// Fixed fields, then one size per choice; the tally behind them.
    pub(super) fn encode(&self, tally: &Tally) -> GeometryBytes {
        let mut out = GeometryBytes::default();
        let (kind, threshold, admission) = match self.refusal {
            Refusal::Count(Admission { threshold, share }) => {
                (0u16, threshold, share)
            }
            Refusal::Popcount { set_bits } => (1, set_bits, 0),
        };
        for small in [
            code(&Scheme::ALL, &self.scheme),
            code(&Overflow::ALL, &self.overflow),
            kind,
            self.choices() as u16,
        ] {
            out.put(&small.to_le_bytes());
        }
        for word in
            [self.block_bits, self.probes, self.tracking_bits, threshold]
        {
            out.put(&word.to_le_bytes());
        }
        out.put(&admission.to_le_bytes());
        for level in self.levels() {
            out.put(&level.to_le_bytes());
        }
        out.put(&tally.refused.to_le_bytes());
        for placed in &tally.placed[..self.levels().len()] {
            out.put(&placed.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(bytes: &[u8], items: u64) -> Result<(Self, Tally)> {
        let corrupt = |why| Error::Corrupt { field: "geometry", why };
        let mut at = Reader { bytes };
        let scheme = from_code(&Scheme::ALL, at.u16()?)
            .ok_or(corrupt("unknown scheme"))?;
        let overflow = from_code(&Overflow::ALL, at.u16()?)
            .ok_or(corrupt("unknown overflow"))?;
        let kind = at.u16()?;
        let choices = usize::from(at.u16()?);
        if !(1..=MAX_CHOICES).contains(&choices) {
            return Err(corrupt("expected 1 to 8 choices"));
        }
        let [block_bits, probes, tracking_bits, threshold] =
            [at.u32()?, at.u32()?, at.u32()?, at.u32()?];
        let admission = at.u64()?;
        let refusal = match (kind, admission) {
            (0, share) => Refusal::Count(Admission { threshold, share }),
            (1, 0) => Refusal::Popcount { set_bits: threshold },
            _ => return Err(corrupt("unknown threshold")),
        };
        let mut levels = [0; MAX_CHOICES];
        for level in &mut levels[..choices] {
            *level = at.u64()?;
        }
        let mut tally = Tally { refused: at.u64()?, ..Tally::default() };
        for placed in &mut tally.placed[..choices] {
            *placed = at.u64()?;
        }
        at.end()?;
        if overflow == Overflow::Absorb && tally.refused != 0 {
            return Err(corrupt("keys refused by a filter that takes all"));
        }
        if tally.items() != items {
            return Err(corrupt("its counts do not add up to the items"));
        }
        let shape = Self {
            scheme,
            overflow,
            refusal,
            block_bits,
            probes,
            tracking_bits,
            proposals: Proposals::new(scheme, &levels[..choices]),
        };
        shape.check().map_err(|error| match error {
            Error::InvalidArgument { why, .. } => corrupt(why),
            other => other,
        })?;
        Ok((shape, tally))
    }
}

fn code<T: PartialEq>(all: &[T], one: &T) -> u16 {
    // Everything is in its own list.
    all.iter().position(|other| other == one).unwrap_or(0) as u16
}

fn from_code<T: Copy>(all: &[T], code: u16) -> Option<T> {
    all.get(usize::from(code)).copied()
}

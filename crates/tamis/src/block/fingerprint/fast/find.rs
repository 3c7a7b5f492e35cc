//! The slots of a chain: rank in the index, select in the *last* plane.

use super::{BlockKey, FastBlock, FormKind, FormSpec, HeadSpec, word};
use crate::block::fingerprint::Ops;

/// Bytes from the first word of the *last* plane to the second window, which
/// begins at slot 16.
const SECOND_WINDOW: usize = 2;

/// The chain structure of a block whose *last* plane is in one word.
#[derive(Clone, Copy)]
pub(super) struct Chains {
    /// The first flag: *spilled* or *free*.
    pub(super) flag: bool,
    pub(super) worn: bool,
    pub(super) capacity: u32,
    /// The *last* plane behind `FRONT` ones.
    pub(super) starts: u64,
}

/// One chain of a block whose *last* plane is in two words.
pub(super) struct WideChain {
    pub(super) flag: bool,
    pub(super) worn: bool,
    pub(super) capacity: u32,
    /// Slot mask.
    pub(super) span: u128,
    /// First slot.
    pub(super) start: u32,
}

/// The *last* plane of a block with reversed heads, from slot 16 on.
pub(super) struct SecondWindow {
    /// Chains that end in the first 16 slots.
    pub(super) passed: u32,
    /// Chains that end later. Wraps below zero for a block without chains,
    /// and for one with so few entries that the slots hold bits of other
    /// planes.
    pub(super) left: u32,
    /// The word of the plane; of an elastic block from slot 14 on.
    word: u64,
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> FastBlock<'_, BYTES, F, H> {
    /// The flags, and the *last* plane with `front` ones (1 or 2) in front.
    #[inline(always)]
    pub(super) fn starts(
        block: &[u8; BYTES],
        front: u32,
    ) -> (bool, bool, u64) {
        let after = word(block, BYTES / 8);
        let starts = match (F::KIND, front) {
            (FormKind::Plain, 1) => after << 1 | 1,
            (FormKind::Plain, _) => after << 2 | 3,
            (FormKind::Capped, 1) => after | 1,
            (FormKind::Capped, _) => after << 1 | 3,
            (FormKind::Elastic, 1) => after >> 1 | 1,
            (FormKind::Elastic, _) => after | 3,
        };
        (
            Self::FLAGS != 0 && after & 1 == 1,
            F::ELASTIC && after & 2 == 2,
            starts,
        )
    }

    /// The chain structure, if the block has chains and its *last* plane is
    /// in one word with the ones in front. A half line must have at most
    /// `most` entries.
    #[inline(always)]
    pub(super) fn find<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        index: u64,
        most: u32,
    ) -> Option<Chains> {
        let (flag, worn, starts) = Self::starts(block, Self::FRONT);
        let phantom = F::ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        if F::ELASTIC && (index == 0 || chains > 64) {
            return None;
        }
        let masks = &self.tables.masks;
        let last = if Self::FRONT == 1 { masks.one } else { masks.next };
        let total = token.deposit(last.wrapping_shl(chains), starts);
        let end = total.trailing_zeros();
        // Without chains, and with 64, `total` is a one in front: no end.
        let none = match Self::FRONT {
            1 => total <= 1,
            // One comparison for both reasons.
            _ => end.wrapping_sub(2) >= most,
        };
        if none {
            return None;
        }
        let mut capacity = end - (Self::FRONT - 1);
        if F::SPILLS && flag {
            // A damaged block: it has no heads behind those of the cap.
            if capacity > self.tables.cap {
                return None;
            }
            capacity = self.tables.cap;
        }
        Some(Chains { flag, worn, capacity, starts })
    }

    /// The chain structure of a block whose *last* plane ends in the second
    /// word, and the slots of one chain.
    #[inline(always)]
    pub(super) fn find_wide<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        index: u64,
        chain: u32,
    ) -> Option<WideChain> {
        let (flag, worn, starts, rest) = Self::two_words(block);
        let phantom = F::ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let words = (starts, rest, starts.count_ones());
        // `chains <= 65`.
        let total = deposit_wide(token, 1 << chains, words);
        if total == 0 {
            return None;
        }
        let capacity = total.trailing_zeros();
        let marks = deposit_wide(token, 3 << rank, words);
        let start = marks & marks.wrapping_neg();
        let present = u128::from(index >> chain & 1);
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        let start = start.trailing_zeros();
        Some(WideChain { flag, worn, capacity, span, start })
    }

    /// [`starts`](Self::starts) with one one in front, and the word behind
    /// it.
    #[inline(always)]
    fn two_words(block: &[u8; BYTES]) -> (bool, bool, u64, u64) {
        let (flag, worn, starts) = Self::starts(block, 1);
        let next = word(block, BYTES / 8 + 8);
        match F::KIND {
            FormKind::Plain => {
                let before = word(block, BYTES / 8);
                (flag, worn, starts, next << 1 | before >> 63)
            }
            FormKind::Capped => (flag, worn, starts, next),
            FormKind::Elastic => (flag, worn, starts | next << 63, next >> 1),
        }
    }

    /// The second window of the *last* plane.
    #[inline(always)]
    pub(super) fn second_window(
        block: &[u8; BYTES],
        index: u64,
    ) -> SecondWindow {
        let (flag, ..) = Self::starts(block, 2);
        let chains = index.count_ones() + u32::from(F::ELASTIC && flag);
        let first = (word(block, BYTES / 8) >> Self::FLAGS) as u16;
        let passed = first.count_ones();
        SecondWindow {
            passed,
            left: chains.wrapping_sub(passed),
            word: word(block, BYTES / 8 + SECOND_WINDOW),
        }
    }
}

impl SecondWindow {
    /// Number of chain ends in the window.
    #[inline(always)]
    pub(super) fn ends<F: FormSpec>(&self) -> u32 {
        match F::KIND {
            FormKind::Plain => self.word.count_ones(),
            // Without the two slots in front, which `passed` counts.
            _ => (self.word & !3).count_ones(),
        }
    }

    /// The window with two ones in front of slot 16.
    #[inline(always)]
    pub(super) fn starts<F: FormSpec>(&self) -> u64 {
        match F::KIND {
            FormKind::Plain => self.word << 2 | 3,
            _ => self.word | 3,
        }
    }
}

/// [`Ops::deposit`] into two words, the first of which has `passed` ones.
#[inline(always)]
fn deposit_wide<T: Ops>(
    token: T,
    bits: u128,
    (low, high, passed): (u64, u64, u32),
) -> u128 {
    let low = token.deposit(bits as u64, low);
    let high = token.deposit((bits >> passed) as u64, high);
    u128::from(low) | u128::from(high) << 64
}

/// The index shifted so that the key's chain is the highest bit.
#[inline(always)]
pub(super) fn through(index: u64, key: BlockKey) -> u64 {
    index.wrapping_shl(key.chain as u32)
}

/// The slots from the first mark to the second: a chain, up to the start of
/// the next.
#[inline(always)]
pub(super) fn span(marks: u64) -> u64 {
    let start = marks & marks.wrapping_neg();
    marks.wrapping_sub(start << 1)
}

/// All ones if the highest bit is set, else zero. Not a branch, which half of
/// all keys would mispredict.
#[inline(always)]
pub(super) fn all_or_none(word: u64) -> u64 {
    (word as i64 >> 63) as u64
}

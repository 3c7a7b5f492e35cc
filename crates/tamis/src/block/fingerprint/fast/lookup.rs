//! Lookups.
//!
//! | function | handles | caller |
//! |---|---|---|
//! | [`lookup`](FastBlock::lookup) | every block | batches, tests |
//! | [`lookup_fast`](FastBlock::lookup_fast) | blocks with the expected number of entries | every lookup |
//! | [`lookup_wide`](FastBlock::lookup_wide) | the others | when `lookup_fast` returns `None` |
//! | [`lookup_reference`](FastBlock::lookup_reference) | more than two words of slots; damaged | `lookup_wide` |

use super::find::{Chains, WideChain, all_or_none, span, through};
use super::{BlockKey, ENTRIES, FastBlock, FormSpec, HeadSpec, top};
use crate::arch::WithToken;
use crate::block::Verdict;
use crate::block::fingerprint::layout::{HeadLayout, head_bits};
use crate::block::fingerprint::ops::{Heads, LINE, Ops, Planes, Tail};
use crate::block::fingerprint::reference;
use crate::block::fingerprint::scalar::reversed_head;

/// Slots to compare: a slot mask and the slot of its bit 0 (`u32::MAX` is
/// slot -1).
type Slots = (u64, u32);

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> FastBlock<'_, BYTES, F, H> {
    /// Looks a key up.
    #[inline(always)]
    pub(crate) fn lookup<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        key: BlockKey,
    ) -> Verdict {
        match self.lookup_fast(token, block, key) {
            Some(verdict) => verdict,
            None => self.lookup_outlined(token, block, key),
        }
    }

    /// [`lookup_wide`](Self::lookup_wide), out of line.
    #[inline(always)]
    pub(crate) fn lookup_outlined<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        key: BlockKey,
    ) -> Verdict {
        token.call_cold(LookupWide(self, block, key))
    }

    /// Looks a key up, if the block has the expected number of entries.
    #[inline(always)]
    pub(crate) fn lookup_fast<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        key: BlockKey,
    ) -> Option<Verdict> {
        if let (true, Some(line)) = (Self::REVERSED, Self::line(block)) {
            return self.lookup_reversed::<T, false>(token, block, line, key);
        }
        let index = Self::index(block);
        let most = match H::IS_NIBBLES {
            true => Self::NIBBLE_HEADS,
            false => Self::WORD,
        };
        let chains = self.find(token, block, index, most)?;
        if F::SPILLS && chains.flag && index >> key.chain() == 0 {
            return Some(Verdict::Continue);
        }
        self.lookup_in_chains::<T, true>(token, block, index, chains, key)
    }

    /// Looks a key up given the chain structure. With `FAST` returns `None`
    /// for blocks that the fast path does not handle.
    #[inline(always)]
    fn lookup_in_chains<T: Ops, const FAST: bool>(
        self,
        token: T,
        block: &[u8; BYTES],
        index: u64,
        chains: Chains,
        key: BlockKey,
    ) -> Option<Verdict> {
        let through = through(index, key);
        // Rank of the key's chain, if it exists.
        let rank = through.count_ones().wrapping_sub(2 - Self::FRONT);
        let marks = self.tables.masks.pair.wrapping_shl(rank);
        let marks = token.deposit(marks, chains.starts);
        let span = span(marks) & all_or_none(through);
        self.lookup_in_span::<T, FAST>(token, block, chains, span, key)
    }

    /// Looks a key up among the slots of `span`, whose bit `FRONT - 1` is
    /// slot 0.
    #[inline(always)]
    pub(super) fn lookup_in_span<T: Ops, const FAST: bool>(
        self,
        token: T,
        block: &[u8; BYTES],
        chains: Chains,
        span: u64,
        key: BlockKey,
    ) -> Option<Verdict> {
        let capacity = chains.capacity;
        let shape = (capacity, chains.worn);
        let padding = Self::FRONT - 1;
        let from = 0u32.wrapping_sub(padding);
        let shown = capacity + padding;
        if let (true, Some(line)) = (Self::REVERSED, Self::line(block)) {
            let equal =
                token.match_heads_reversed::<false>(line, key.head, span);
            let equal = (equal, from);
            self.compare::<T, FAST>(token, block, shape, 4, equal, key)
        } else if !H::IS_NIBBLES && capacity <= self.tables.byte_heads {
            let heads = Heads { bits: 8, value: key.head, capacity: shown };
            let equal = (token.match_heads(block, heads, span), from);
            self.compare::<T, FAST>(token, block, shape, 8, equal, key)
        } else if BYTES == 64 || capacity <= Self::NIBBLE_HEADS {
            let value = Self::nibble_head(key);
            let heads = Heads { bits: 4, value, capacity: shown };
            let equal = (token.match_heads(block, heads, span), from);
            self.compare::<T, FAST>(token, block, shape, 4, equal, key)
        } else if FAST {
            None
        } else {
            // Too many entries for heads: all bits are in planes.
            let equal = (span, from);
            self.compare::<T, FAST>(token, block, shape, 0, equal, key)
        }
    }

    /// Looks a key up in a block with reversed heads, if its chain lies in
    /// one window of the *last* plane: that of the first slots, or that
    /// `FROM_SLOT_16`.
    ///
    /// The exact number of entries is computed only after an equal head. It
    /// must be at most 80 (elastic: 78), so that the end of the *last* plane
    /// is in the second window; up to 89 have heads.
    #[inline(always)]
    fn lookup_reversed<T: Ops, const FROM_SLOT_16: bool>(
        self,
        token: T,
        block: &[u8; BYTES],
        line: &[u8; LINE],
        key: BlockKey,
    ) -> Option<Verdict> {
        let masks = &self.tables.masks;
        let index = Self::index(block);
        let (_, worn, starts) = Self::starts(block, 2);
        let through = through(index, key);
        let second_window = || Self::second_window(block, index);
        let (second, starts, rank) = match FROM_SLOT_16 {
            false => (None, starts, through.count_ones()),
            true => {
                let second = second_window();
                let rank = through.count_ones().wrapping_sub(second.passed);
                // The chain starts in the first 16 slots.
                if (rank as i32) < 2 {
                    return None;
                }
                let starts = second.starts::<F>();
                (Some(second), starts, rank)
            }
        };
        let marks = token.deposit(masks.pair.wrapping_shl(rank), starts);
        let end = marks & marks.wrapping_sub(1);
        // The chain ends behind the window.
        if end == 0 {
            return None;
        }
        let start = marks & marks.wrapping_neg();
        let span = end.wrapping_sub(start) & all_or_none(through);
        let second = second.unwrap_or_else(second_window);
        // Saturated, too few entries, or too many.
        if second.left > second.ends::<F>() {
            return None;
        }
        let value = key.head;
        let equal =
            token.match_heads_reversed::<FROM_SLOT_16>(line, value, span);
        if equal == 0 {
            return Some(Verdict::Absent);
        }
        // With 64 chains the last has the rank of the first.
        if !FROM_SLOT_16 && equal & 1 == 1 {
            return None;
        }
        let total = masks.next.wrapping_shl(second.left);
        let total = token.deposit(total, second.starts::<F>());
        let at_once = T::WIDE && !FROM_SLOT_16;
        // The end is one of the ones in front: none. Or fewer entries than
        // are compared at once.
        let least = match at_once {
            true => 1 << (Self::LEAST_NIBBLES - 15),
            false => 1 << 2,
        };
        if total < least {
            return None;
        }
        let capacity = total.trailing_zeros() + 15;
        if at_once {
            let tail = Tail::new(capacity, 4, key.fraction(), worn);
            let equal = equal & token.match_tails(block, Self::TAILS, tail);
            return Some(Verdict::from_match(equal != 0));
        }
        let shape = (capacity, worn);
        if FROM_SLOT_16 {
            let equal = (equal, 15);
            self.compare::<T, false>(token, block, shape, 4, equal, key)
        } else {
            let equal = (equal, u32::MAX);
            self.compare::<T, true>(token, block, shape, 4, equal, key)
        }
    }

    /// The 4-bit head of a key.
    #[inline(always)]
    fn nibble_head(key: BlockKey) -> u8 {
        match H::LAYOUT {
            HeadLayout::Bytes => top(key.fraction(), 4),
            _ => key.head,
        }
    }

    /// Compares the bits behind heads of `head` bits in the slots of `equal`.
    ///
    /// With `FAST` compares all slots at once where that is fast; `None` if
    /// the block has too few entries for it.
    #[inline(always)]
    fn compare<T: Ops, const FAST: bool>(
        self,
        token: T,
        block: &[u8; BYTES],
        (capacity, worn): (u32, bool),
        head: u32,
        (equal, from): Slots,
        key: BlockKey,
    ) -> Option<Verdict> {
        let mut equal = equal;
        // One absent key in hundreds gets here, with 4-bit heads one in
        // twenty.
        if FAST && Self::BY_TAILS && T::WIDE && equal != 0 {
            if head == 8 && self.tables.sparse {
                let shape = (capacity, worn);
                let equal = (equal, from);
                return self.compare_first(token, block, shape, equal, key);
            }
            let least = match head {
                8 => Self::LEAST_BYTES,
                _ => Self::LEAST_NIBBLES,
            };
            if capacity < least {
                return None;
            }
            let wanted = Tail::new(capacity, head, key.fraction(), worn);
            equal &= token.match_tails(block, Self::TAILS, wanted);
            return Some(Verdict::from_match(equal != 0));
        }
        while equal != 0 {
            let slot = from.wrapping_add(equal.trailing_zeros());
            let cut = self.cut(capacity);
            let planes = Planes {
                first: Self::FIRST + cut.capacity + slot,
                stride: cut.capacity,
                count: cut.width(slot) - head,
            };
            let worn = u32::from(F::ELASTIC && worn);
            let vague = worn & u32::from(slot < cut.wide);
            let tail = key.fraction() << head;
            if tail_matches(token, block, planes, tail, vague) {
                return Some(Verdict::Maybe);
            }
            equal &= equal - 1;
        }
        Some(Verdict::Absent)
    }

    /// [`compare`](Self::compare) for sparse lines with 8-bit heads: the first
    /// slot of `equal` in up to 16 planes. `None` if another slot has to be
    /// compared.
    #[inline(always)]
    fn compare_first<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        (capacity, worn): (u32, bool),
        (equal, from): Slots,
        key: BlockKey,
    ) -> Option<Verdict> {
        if capacity < Self::LEAST_SPARSE {
            return None;
        }
        let slot = from.wrapping_add(equal.trailing_zeros());
        // Not `Cut::width`: a comparison of bytes takes its operand from
        // memory, and a miss then needs no register that must be saved first
        // (misses: 4 %).
        let (base, wide) = self.tables.cuts[capacity as usize % ENTRIES];
        let is_wide = (slot as u8) < wide;
        let planes = Planes {
            first: Self::FIRST + capacity + slot,
            stride: capacity,
            count: u32::from(base).wrapping_sub(8) + u32::from(is_wide),
        };
        let vague = u32::from(F::ELASTIC && worn && is_wide);
        let tail = key.fraction() << 8;
        let differing = differing(token, block, planes, tail, vague);
        if differing == 0 {
            return Some(Verdict::Maybe);
        }
        (equal & (equal - 1) == 0).then_some(Verdict::Absent)
    }

    /// Looks a key up in a block with more or fewer entries than the fast
    /// path handles.
    #[inline(always)]
    fn lookup_wide<T: Ops>(
        self,
        token: T,
        block: &[u8; BYTES],
        key: BlockKey,
    ) -> Verdict {
        if let (true, Some(line)) = (Self::REVERSED, Self::line(block)) {
            let verdict =
                self.lookup_reversed::<T, true>(token, block, line, key);
            if let Some(verdict) = verdict {
                return verdict;
            }
        }
        let index = Self::index(block);
        let short = BYTES == 32 && !F::SPILLS;
        let tails = Self::BY_TAILS && T::WIDE;
        let chains = match !Self::REVERSED && (short || tails) {
            true => self.find(token, block, index, Self::WORD),
            false => None,
        };
        let verdict = chains.and_then(|chains| {
            self.lookup_in_chains::<T, false>(token, block, index, chains, key)
        });
        if let Some(verdict) = verdict {
            return verdict;
        }
        if index == 0 {
            return Self::lookup_without_chains(block);
        }
        let Some(wide) = self.find_wide(token, block, index, key.chain())
        else {
            return self.lookup_reference(block, key);
        };
        let WideChain { worn, capacity, span, .. } = wide;
        let shape = (capacity, worn);
        let bits = head_bits(self.cut(capacity).base, 4);
        let compare = |equal| {
            self.compare::<T, false>(token, block, shape, bits, equal, key)
                .unwrap_or(Verdict::Maybe)
        };
        if bits == 0 || Self::REVERSED {
            let equal = match bits {
                0 => span,
                _ => Self::match_one_by_one(block, key.head, span),
            };
            let upper = ((equal >> 64) as u64, 64);
            return match compare(upper) {
                Verdict::Absent => compare((equal as u64, 0)),
                verdict => verdict,
            };
        }
        // The heads of the last 64 entries fill the upper half.
        let shown = capacity.min(64);
        let from = capacity - shown;
        let value = Self::nibble_head(key);
        let heads = Heads { bits, value, capacity: shown };
        let among = (span >> from) as u64;
        let upper = token.match_heads(block, heads, among);
        if compare((upper, from)) == Verdict::Maybe {
            return Verdict::Maybe;
        }
        let among = span as u64 & ((1 << from) - 1);
        if among == 0 {
            return Verdict::Absent;
        }
        let heads = Heads { bits, value, capacity: from };
        let lower = token.match_heads_low_half(block, heads, among);
        compare((lower, 0))
    }

    /// The slots of `among`, a chain's, with this reversed head.
    fn match_one_by_one(block: &[u8; BYTES], value: u8, among: u128) -> u128 {
        let (mut left, mut equal) = (among, 0);
        while left != 0 {
            let slot = left.trailing_zeros();
            left &= left - 1;
            let here = reversed_head(block, slot) == value;
            equal |= u128::from(here) << slot;
        }
        equal
    }

    /// Looks a key up in a block that is empty, saturated or all spilled.
    #[cold]
    #[inline(never)]
    fn lookup_without_chains(block: &[u8; BYTES]) -> Verdict {
        match block[BYTES / 8] {
            0 => Verdict::Absent,
            1 if F::SPILLS => Verdict::Continue,
            _ => Verdict::Maybe,
        }
    }

    /// Looks a key up in a block fuller than any design, or damaged.
    #[cold]
    #[inline(never)]
    fn lookup_reference(self, block: &[u8; BYTES], key: BlockKey) -> Verdict {
        reference::lookup(&self.shape(), block, key.chain(), key.fraction())
    }
}

/// [`FastBlock::lookup_wide`], out of line.
pub(super) struct LookupWide<'a, const BYTES: usize, F, H>(
    pub(super) FastBlock<'a, BYTES, F, H>,
    pub(super) &'a [u8; BYTES],
    pub(super) BlockKey,
);

impl<T: Ops, const BYTES: usize, F: FormSpec, H: HeadSpec> WithToken<T>
    for LookupWide<'_, BYTES, F, H>
{
    type Output = Verdict;

    #[inline(always)]
    fn run(self, token: T) -> Verdict {
        let Self(block, bytes, key) = self;
        block.lookup_wide(token, bytes, key)
    }
}

/// Compares the bits behind the head. If `vague` is 1, a 0 in the last plane
/// matches every key. A number and not a bool: half of all entries would
/// mispredict the branch.
#[inline(always)]
fn tail_matches<const BYTES: usize, T: Ops>(
    token: T,
    block: &[u8; BYTES],
    planes: Planes,
    tail: u64,
    vague: u32,
) -> bool {
    let (mut planes, mut tail) = (planes, tail);
    let most = T::PLANES;
    while planes.count > most {
        let first = Planes { count: most, ..planes };
        if token.differing_planes(block, first, tail) != 0 {
            return false;
        }
        planes.count -= most;
        planes.first += most * planes.stride;
        tail <<= most;
    }
    differing(token, block, planes, tail, vague) == 0
}

/// [`Ops::differing_planes`] without a plane in which a 0 matches every key.
#[inline(always)]
fn differing<const BYTES: usize, T: Ops>(
    token: T,
    block: &[u8; BYTES],
    planes: Planes,
    tail: u64,
    vague: u32,
) -> u32 {
    let differing = token.differing_planes(block, planes, tail);
    let last = planes.count.wrapping_sub(1);
    let wanted = tail.wrapping_shl(last).wrapping_shr(63) as u32 & vague;
    differing & !wanted.wrapping_shl(last)
}

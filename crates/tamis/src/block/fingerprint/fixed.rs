//! Blocks of a cache line with 64 chains, and of half a line with 32: the
//! fast way for what every key does. Bit for bit what
//! [`State`](super::State) does.

use tamis_theory::tinyset::Block;

use super::{Cut, Form, Heads, NewHead, Planes, Shape, State, head_bits};
use crate::simd::{Backend, Task};

/// [`Form::flags`] of the forms.
const PLAIN: u32 = 0;
const CAPPED: u32 = 1;
const ELASTIC: u32 = 2;

/// What a lookup in one block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    No,
    Maybe,
    /// The chain has moved to the second level.
    Spilled,
}

/// What to do about keys that may be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Store them, without looking.
    Store,
    /// Store them, and say so.
    Tell,
    /// Leave them: an entry that answers for a key now answers for it
    /// always, since what is cut off later is cut off both.
    Skip,
}

/// What an insertion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Insertion {
    /// Stored; it was not there, or nobody asked.
    New,
    /// It may have been there; stored again unless repeats are skipped.
    Again,
    /// Nothing has been changed: take the block apart for this.
    Slow,
}

/// A shape whose block is `BYTES` bytes with as many chains, and which has
/// so many bits of flags, as told by its form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed<const BYTES: usize, const FLAGS: u32> {
    /// R: where fingerprints end even if there is room.
    longest: u32,
    /// What a block is cut for once chains have left it.
    cap: u32,
    /// Entries up to which heads are bytes.
    byte_heads: u32,
    /// Bits of the longest heads.
    head: u32,
}

/// Entries the tables know.
const MOST: usize = 96;

/// Bytes in the larger of the blocks.
pub(crate) const LINE: usize = 64;

impl<const BYTES: usize, const FLAGS: u32> Fixed<BYTES, FLAGS> {
    const BLOCK: Block = Block {
        flag_bits: FLAGS,
        ..Block::new(BYTES as u32 * 8, BYTES as u32)
    };
    const ARRAY: u32 = Self::BLOCK.array_bits();
    /// Where the *last* plane begins.
    const FIRST: u32 = BYTES as u32 + FLAGS;
    /// Entries up to which heads can be bytes, and up to which they can be
    /// half of one.
    const BYTE_HEADS: u32 = Self::ARRAY / 9;
    const HALF_HEADS: u32 = Self::ARRAY / 5;

    /// The cut for every number of entries: a division less a lookup.
    const CUTS: [(u8, u8); MOST] = {
        let mut cuts = [(0, 0); MOST];
        let mut entries = 0;
        while entries < MOST {
            let (base, wide) = Self::BLOCK.widths(entries as u32);
            cuts[entries] = (base as u8, wide as u8);
            entries += 1;
        }
        cuts
    };

    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let Block { block_bits, chains, flag_bits, remainder_bits, .. } =
            shape.block;
        let same = block_bits == Self::BLOCK.block_bits
            && chains == Self::BLOCK.chains
            && flag_bits == Self::BLOCK.flag_bits
            // The tables end there, and heads are not cut.
            && (8..=Block::REMAINDER_BITS).contains(&remainder_bits);
        let cap = match shape.form {
            Form::Capped(cap) => cap,
            _ => 0,
        };
        let byte_heads = match shape.head {
            8 => Self::BYTE_HEADS,
            _ => 0,
        };
        let longest = remainder_bits;
        let head = shape.head;
        (same && cap < 64).then_some(Self { longest, cap, byte_heads, head })
    }

    /// The shape this is the fast way of.
    pub(crate) fn shape(&self) -> Shape {
        let form = match FLAGS {
            PLAIN => Form::Plain,
            CAPPED => Form::Capped(self.cap),
            _ => Form::Elastic,
        };
        let block = Block { remainder_bits: self.longest, ..Self::BLOCK };
        Shape::new(block, form).with_head(self.head)
    }

    /// [`Shape::chain`], with everything known.
    #[inline(always)]
    pub(crate) fn chain(hash: u64) -> u32 {
        ((hash as u16 as u32) * BYTES as u32) >> 16
    }

    #[inline(always)]
    fn cut(&self, capacity: u32) -> Cut {
        let (base, wide) =
            Self::CUTS.get(capacity as usize).copied().unwrap_or_default();
        let (mut base, mut wide) = (u32::from(base), u32::from(wide));
        if base >= self.longest {
            (base, wide) = (self.longest, 0);
        }
        Cut { capacity, base, wide, head: head_bits(base, self.head) }
    }

    #[inline(always)]
    fn index(block: &[u8; BYTES]) -> u64 {
        match BYTES {
            64 => word(block, 0),
            _ => word(block, 0) & 0xffff_ffff,
        }
    }

    /// Whether the block may hold a key.
    #[inline(always)]
    pub(crate) fn look<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        chain: u32,
        fraction: u64,
    ) -> Answer {
        let index = Self::index(block);
        if index == 0 {
            return self.look_without_chains(block);
        }
        let Some(found) = self.find(backend, block, index, chain) else {
            let key = (index, chain, fraction);
            return backend.outline(LookWide(*self, block, key));
        };
        if FLAGS == CAPPED && found.flag && index >> chain == 0 {
            return Answer::Spilled;
        }
        self.look_at(backend, block, found, chain, fraction)
    }

    /// A lookup whose chain has been found.
    #[inline(always)]
    fn look_at<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        found: Found,
        chain: u32,
        fraction: u64,
    ) -> Answer {
        let capacity = found.capacity;
        if capacity <= self.byte_heads {
            let heads = Heads { bits: 8, value: top(fraction, 8), capacity };
            let equal = backend.equal_heads(block, heads, found.span);
            self.compare(backend, block, found, 8, (equal, 0), fraction)
        } else if BYTES == 64 || capacity <= Self::HALF_HEADS {
            let heads = Heads { bits: 4, value: top(fraction, 4), capacity };
            let equal = backend.equal_heads(block, heads, found.span);
            self.compare(backend, block, found, 4, (equal, 0), fraction)
        } else {
            self.look_far(block, chain, fraction)
        }
    }

    /// Compares what is behind the heads: of the slots that are ones in
    /// `equal`, which begins at a slot.
    #[inline(always)]
    fn compare<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        found: Found,
        head: u32,
        (equal, from): (u64, u32),
        fraction: u64,
    ) -> Answer {
        let mut equal = equal;
        // A key that is not here gets past this once in hundreds of times.
        while equal != 0 {
            let slot = from + equal.trailing_zeros();
            let cut = self.cut(found.capacity);
            let planes = Planes {
                first: Self::FIRST + cut.capacity + slot,
                stride: cut.capacity,
                count: cut.width(slot) - head,
            };
            let worn = FLAGS == ELASTIC && found.worn && slot < cut.wide;
            let tail = fraction << head;
            if tail_matches(backend, block, planes, tail, worn) {
                return Answer::Maybe;
            }
            equal &= equal - 1;
        }
        Answer::No
    }

    /// Empty, saturated, or all spilled.
    #[cold]
    #[inline(never)]
    fn look_without_chains(&self, block: &[u8; BYTES]) -> Answer {
        match block[BYTES / 8] {
            0 => Answer::No,
            1 if FLAGS == CAPPED => Answer::Spilled,
            _ => Answer::Maybe,
        }
    }

    /// The flags, and the *last* plane with a one in front: chain r begins
    /// at its r-th one.
    #[inline(always)]
    fn starts(block: &[u8; BYTES]) -> (bool, bool, u64) {
        let after = word(block, BYTES / 8);
        match FLAGS {
            PLAIN => (false, false, after << 1 | 1),
            CAPPED => (after & 1 == 1, false, after | 1),
            _ => (after & 1 == 1, after & 2 == 2, after >> 1 | 1),
        }
    }

    /// The slots of a chain and the block's capacity, if the *last* plane
    /// has at most 63 bits (62 behind two flags).
    #[inline(always)]
    fn find<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        chain: u32,
    ) -> Option<Found> {
        let (flag, worn, starts) = Self::starts(block);
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        if FLAGS == ELASTIC && chains > 64 {
            return None;
        }
        // Not 1 << chains, which could be 64.
        let total = backend.select(starts, 2 << (chains - 1));
        if total == 0 {
            return None;
        }
        let capacity = match FLAGS == CAPPED && flag {
            true => self.cap,
            false => total.trailing_zeros(),
        };
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let marks = backend.select(starts, 3 << rank);
        let start = marks & marks.wrapping_neg();
        // From the start of the chain to the start of the next; nothing if
        // the chain is empty. Not a branch: half of all keys go either way.
        let present = index >> chain & 1;
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        Some(Found { flag, worn, capacity, span, start })
    }

    /// A lookup in a block whose *last* plane is longer than a word: one in
    /// six at a rate of 1 %.
    #[inline(always)]
    fn look_wide<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        (index, chain, fraction): (u64, u32, u64),
    ) -> Answer {
        let wide = match self.find_wide(backend, block, index, chain) {
            Some(wide) if wide.capacity <= Self::HALF_HEADS => wide,
            _ => return self.look_far(block, chain, fraction),
        };
        let Wide { flag, worn, capacity, span, .. } = wide;
        let found = Found { flag, worn, capacity, span: 0, start: 0 };
        // The heads of the last 64 entries fill the upper half.
        let shown = capacity.min(64);
        let from = capacity - shown;
        let (bits, value) = (4, top(fraction, 4));
        let heads = Heads { bits, value, capacity: shown };
        let among = (span >> from) as u64;
        let upper = backend.equal_heads(block, heads, among);
        let upper = (upper, from);
        if self.compare(backend, block, found, bits, upper, fraction)
            == Answer::Maybe
        {
            return Answer::Maybe;
        }
        let among = span as u64 & ((1 << from) - 1);
        if among == 0 {
            return Answer::No;
        }
        let heads = Heads { bits, value, capacity: from };
        let lower = backend.equal_low_heads(block, heads, among);
        self.compare(backend, block, found, bits, (lower, 0), fraction)
    }

    /// Like [`find`](Self::find), if the *last* plane has more bits than a
    /// word, but less than two.
    #[inline(always)]
    fn find_wide<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        chain: u32,
    ) -> Option<Wide> {
        if BYTES != 64 {
            return None;
        }
        let (flag, worn, starts) = Self::starts(block);
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        // The rest of the plane, and how many bits of `starts` are before.
        let (rest, bits) = match FLAGS {
            PLAIN => (word(block, 15) >> 7, 64),
            CAPPED => (word(block, 16), 64),
            _ => (word(block, 16), 63),
        };
        let passed = starts.count_ones();
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let ahead = 1u64.checked_shl(chains.checked_sub(passed)?)?;
        let total = backend.select(rest, ahead);
        if total == 0 {
            return None;
        }
        let capacity = bits + total.trailing_zeros();
        let ranks = 3u128 << rank;
        let low = backend.select(starts, ranks as u64);
        let high = backend.select(rest, (ranks >> passed) as u64);
        let marks = u128::from(low) | u128::from(high) << bits;
        let start = marks & marks.wrapping_neg();
        let present = u128::from(index >> chain & 1);
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        let start = start.trailing_zeros();
        Some(Wide { flag, worn, capacity, span, start })
    }

    /// A lookup in a block fuller than any design asks for, or damaged.
    #[cold]
    #[inline(never)]
    fn look_far(
        &self,
        block: &[u8; BYTES],
        chain: u32,
        fraction: u64,
    ) -> Answer {
        let state = State::read_or_saturated(&self.shape(), block);
        match state.count(chain, fraction) {
            Some(0) => Answer::No,
            _ => Answer::Maybe,
        }
    }

    /// Stores a key. Expects a block that [`State`] or this has written.
    #[inline(always)]
    pub(crate) fn insert<B: Backend>(
        &self,
        backend: B,
        block: &mut [u8; BYTES],
        chain: u32,
        fraction: u64,
        repeats: Repeats,
    ) -> Insertion {
        let index = Self::index(block);
        let (flag, old, start, answer) = if index == 0 {
            // Empty, or else saturated or all spilled.
            (block[BYTES / 8] != 0, 0, 0, Answer::No)
        } else if let Some(found) = self.find(backend, block, index, chain) {
            let answer = match repeats {
                Repeats::Store => Answer::No,
                _ => self.look_at(backend, block, found, chain, fraction),
            };
            let start = found.start.trailing_zeros();
            (found.flag || found.worn, found.capacity, start, answer)
        } else if let Some(wide) = self.find_wide(backend, block, index, chain)
        {
            let answer = match repeats {
                Repeats::Store => Answer::No,
                _ => {
                    let key = (index, chain, fraction);
                    backend.outline(LookWide(*self, block, key))
                }
            };
            (wide.flag || wide.worn, wide.capacity, wide.start, answer)
        } else {
            return Insertion::Slow;
        };
        let capacity = old + 1;
        // A block with free slots, or one that moves chains away, is taken
        // apart; and so is one whose heads are too short to be any.
        if flag
            || FLAGS == CAPPED && capacity > self.cap
            || capacity > Self::HALF_HEADS
        {
            return Insertion::Slow;
        }
        let done = match answer {
            Answer::Maybe => Insertion::Again,
            _ => Insertion::New,
        };
        if done == Insertion::Again && repeats == Repeats::Skip {
            return done;
        }
        let one = One {
            cut: self.cut(capacity),
            start,
            present: index >> chain & 1 == 1,
            fraction,
        };
        if capacity == self.byte_heads + 1 && capacity > 1 {
            Self::halve_heads(block, index | 1 << chain, one);
            return done;
        }
        let mut rest = [0; LINE / 8];
        Self::planes(backend, block, one, &mut rest);
        match BYTES {
            64 => rest[0] = index | 1 << chain,
            _ => rest[0] |= 1 << chain,
        }
        backend.add_head(block, Self::head(block, one), &rest);
        done
    }

    /// Writes a block without heads into `rest`: all planes with one more
    /// bit in each, but no more of them than fit. What is in front of them
    /// stays what it was in a block of half a line, and 0 in one of a line.
    ///
    /// The planes are one row of bits: moved apart at every slot that the
    /// new entry takes, and cut off at the end.
    #[inline(always)]
    fn planes<B: Backend>(
        backend: B,
        block: &[u8; BYTES],
        one: One,
        rest: &mut [u64; LINE / 8],
    ) {
        let One { cut, start, present, fraction } = one;
        let full = 1 + cut.base - cut.head;
        let end = Self::FIRST + full * cut.capacity + cut.wide;
        let mut gap = Self::FIRST + start;
        // What comes into the gaps, in the order of the planes.
        let tail = fraction << cut.head;
        let mut new = tail.reverse_bits() << 1 | u64::from(!present);
        let stride = STRIDES.get(cut.capacity as usize).copied().unwrap_or(1);
        // The index of a block of a line is a word of its own.
        let mut at = if BYTES == 64 { 64 } else { 0 };
        let mut from = at;
        for out in rest.iter_mut().skip(at as usize / 64) {
            let here = gap - at;
            let gaps = if here < 64 { stride << here } else { 0 };
            let taken = gaps.count_ones();
            // 64 bits from anywhere; behind the block there are none, and
            // none are asked for.
            let (low, shift) = (from as usize / 64, from % 64);
            let high = (low + 1).min(BYTES / 8 - 1);
            let bits = word(block, low * 8) >> shift
                // In two steps, since a shift by 64 is none.
                | word(block, high * 8) << 1 << (63 - shift);
            *out = backend.apart(bits, gaps) | backend.select(gaps, new);
            at += 64;
            if at >= end {
                *out &= u64::MAX >> (at - end);
                return;
            }
            // Fewer than 64: a block has room for less than that.
            new >>= taken;
            gap += taken * cut.capacity;
            from += 64 - taken;
        }
    }

    /// Adds the entry with which bytes become too long for heads: their
    /// lower halves become planes.
    #[cold]
    #[inline(never)]
    fn halve_heads(block: &mut [u8; BYTES], index: u64, one: One) {
        let One { cut, start, present, fraction } = one;
        let (start, old) = (start as usize, cut.capacity as usize - 1);
        let mut heads = [0; LINE];
        let (before, behind) = block[BYTES - old..].split_at(start);
        heads[..start].copy_from_slice(before);
        heads[start] = top(fraction, 8);
        heads[start + 1..][..behind.len()].copy_from_slice(behind);
        let heads = &heads[..=old];

        let mut bits = Row { block: [0; LINE], at: 0 };
        bits.put(index, BYTES as u32);
        bits.put(0, FLAGS);
        // Less than a word, like all planes here.
        let last = bits_at(block, Self::FIRST);
        let below = (1 << start) - 1;
        let last =
            last & below | (last & !below) << 1 | u64::from(!present) << start;
        bits.put(last, cut.capacity);
        for bit in cut.head..8 {
            let plane = (0..).zip(heads).fold(0, |plane, (slot, head)| {
                plane | u64::from(head >> (7 - bit) & 1) << slot
            });
            let all = bit < cut.base;
            bits.put(plane, if all { cut.capacity } else { cut.wide });
        }
        for head in heads {
            bits.put(u64::from(head >> 4), 4);
        }
        block.copy_from_slice(&bits.block[..BYTES]);
    }

    /// Where the new head goes.
    #[inline(always)]
    fn head(block: &[u8; BYTES], one: One) -> NewHead {
        let One { cut, start, fraction, .. } = one;
        let head = top(fraction, cut.head);
        let begin = BYTES as u32 * 8 - cut.head * cut.capacity;
        let place = begin + cut.head * start;
        let at = place as usize / 8;
        let byte = match place % 8 {
            0 if cut.head == 8 => head,
            0 => block[at] & 0xf0 | head,
            _ => block[at] >> 4 | head << 4,
        };
        NewHead { bits: cut.head, begin, at: at as u8, byte }
    }
}

/// [`Fixed::look_wide`], out of line.
struct LookWide<'a, const BYTES: usize, const FLAGS: u32>(
    Fixed<BYTES, FLAGS>,
    &'a [u8; BYTES],
    (u64, u32, u64),
);

impl<const BYTES: usize, const FLAGS: u32> Task
    for LookWide<'_, BYTES, FLAGS>
{
    type Output = Answer;

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) -> Answer {
        let Self(fixed, block, key) = self;
        fixed.look_wide(backend, block, key)
    }
}

/// Ones at multiples of a number of entries: a slot in every plane.
const STRIDES: [u64; MOST] = {
    let mut strides = [1; MOST];
    let mut entries = 1;
    while entries < 64 {
        let mut at = entries;
        while at < 64 {
            strides[entries] |= 1 << at;
            at += entries;
        }
        entries += 1;
    }
    strides
};

/// Compares what is behind the head.
#[inline(always)]
fn tail_matches<const BYTES: usize, B: Backend>(
    backend: B,
    block: &[u8; BYTES],
    planes: Planes,
    tail: u64,
    worn: bool,
) -> bool {
    let (mut planes, mut tail) = (planes, tail);
    while planes.count > 8 {
        let first = Planes { count: 8, ..planes };
        if backend.differing(block, first, tail) != 0 {
            return false;
        }
        planes.count -= 8;
        planes.first += 8 * planes.stride;
        tail <<= 8;
    }
    let mut differing = backend.differing(block, planes, tail);
    if worn && planes.count > 0 {
        // A 0 in the extra plane, the last one, differs from nothing.
        let wanted = (tail >> (64 - planes.count)) as u32 & 1;
        differing &= !(wanted << (planes.count - 1));
    }
    differing == 0
}

/// A block, written from its first bit on.
struct Row {
    block: [u8; LINE],
    at: u32,
}

impl Row {
    /// Appends the lowest `bits` bits of `word`.
    fn put(&mut self, word: u64, bits: u32) {
        for bit in 0..bits {
            let place = self.at + bit;
            let one = (word >> bit & 1) as u8;
            self.block[place as usize / 8] |= one << (place % 8);
        }
        self.at += bits;
    }
}

/// Where a chain is.
#[derive(Clone, Copy)]
struct Found {
    /// The first flag and the second.
    flag: bool,
    worn: bool,
    capacity: u32,
    /// A one for every slot of the chain.
    span: u64,
    /// A one at the slot where the chain begins or would begin.
    start: u64,
}

/// Where a chain is in a block of more than a word of entries.
struct Wide {
    flag: bool,
    worn: bool,
    capacity: u32,
    span: u128,
    start: u32,
}

/// One more entry.
#[derive(Clone, Copy)]
struct One {
    /// With it.
    cut: Cut,
    /// The slot it gets.
    start: u32,
    /// Whether its chain has entries.
    present: bool,
    fraction: u64,
}

/// The first `bits` (at most 8) bits of a fraction.
#[inline(always)]
fn top(fraction: u64, bits: u32) -> u8 {
    (fraction >> 56) as u8 >> (8 - bits)
}

#[inline(always)]
fn word<const BYTES: usize>(block: &[u8; BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(word)
}

/// At least 57 bits from a place on, or what is left; zeros follow behind
/// the block.
#[inline(always)]
fn bits_at<const BYTES: usize>(block: &[u8; BYTES], place: u32) -> u64 {
    let at = (place as usize / 8).min(BYTES - 8);
    // Less than 64 for every place in the block.
    word(block, at) >> ((place - at as u32 * 8) & 63)
}

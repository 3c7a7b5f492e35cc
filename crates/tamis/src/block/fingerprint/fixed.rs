//! Blocks of a cache line with 64 chains, and of half a line with 32: the
//! fast way for what every key does. Bit for bit what
//! [`State`](super::State) does.

mod insertion;

use insertion::Plan;
pub(crate) use insertion::{Insertion, Repeats};

use bytemuck::TransparentWrapper;
use tamis_theory::tinyset::Block;

use super::scalar::placed_head;
use super::{Cut, Form, Heads, Planes, Shape, State, Tail, Tails, head_bits};
use crate::simd::{Backend, Task};

/// [`Form::flags`] of the forms.
const PLAIN: u32 = 0;
const CAPPED: u32 = 1;
const ELASTIC: u32 = 2;

/// Heads of half a byte that are placed: what is known of a chain is enough to
/// compare them, however many entries there are behind it.
pub(crate) const PLACED: u8 = 1;
/// So few that some of them have more than 8 bits behind their heads, which
/// are bytes: no test guesses which.
pub(crate) const SPARSE: u8 = 2;
/// Fewer than a word has bits, with heads of half a byte: no test asks
/// whether they are bytes.
pub(crate) const HALVED: u8 = 3;
/// Nothing is expected: blocks of a second level, which few lookups meet, and
/// those with remainders of a length that nobody builds.
pub(crate) const ANY: u8 = 4;

/// What is known of blocks before there are any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Of a block, in the mean.
    pub(crate) entries: u32,
    /// Whether all blocks are likely to be in a cache.
    pub(crate) cached: bool,
}

/// What a lookup in one block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    No,
    Maybe,
    /// The chain has moved to the second level.
    Spilled,
}

/// A shape whose block is `BYTES` bytes with as many chains, and which has
/// so many bits of flags, as told by its form. `FILL` is how full blocks
/// tend to be if it matters, and changes no answer.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Fixed<
    const BYTES: usize,
    const FLAGS: u32,
    const FILL: u8 = 0,
>(Known);

// SAFETY: `repr(transparent)` with `Known` as the one field.
#[expect(unsafe_code, reason = "derive would need a procedural macro")]
unsafe impl<const BYTES: usize, const FLAGS: u32, const FILL: u8>
    TransparentWrapper<Known> for Fixed<BYTES, FLAGS, FILL>
{
}

/// What is known of a shape, and has the same type for all of them: nobody
/// who knows the shape has to ask for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// R: where fingerprints end even if there is room.
    longest: u32,
    /// How they are cut, for every number of entries.
    cuts: &'static [(u8, u8); MOST],
    /// What a block is cut for once chains have left it.
    cap: u32,
    /// Entries up to which heads are bytes.
    byte_heads: u32,
    /// Bits of the longest heads.
    head: u32,
    /// Entries up to which a block need not be taken apart to add one.
    most: u32,
    plans: &'static [Plan; MOST],
    /// 1 to 3, to be shifted: as constants they would be an instruction
    /// and a register each, at every key.
    one: u64,
    two: u64,
    three: u64,
}

impl Known {
    /// Of shapes without a fast way; nobody looks at its tables.
    pub(crate) const NOTHING: Self = Self {
        longest: 0,
        cuts: &Fixed::<LINE, PLAIN>::CUTS[0],
        cap: 0,
        byte_heads: 0,
        head: 0,
        most: 0,
        plans: Fixed::<LINE, PLAIN>::plans_for(0),
        one: 1,
        two: 2,
        three: 3,
    };
}

/// Entries the tables know: more than the fast way can handle, and a power
/// of two, by which an index is reduced in one step.
const MOST: usize = 128;

/// How many bytes behind the first that word of the *last* plane begins in
/// which the end of a placed block is looked for.
const SECOND: usize = 2;

/// What a block is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// The chain with every bit inverted, and anything above 16 bits.
    chain: u64,
    /// Of this no fingerprint has the lowest 16 bits.
    fraction: u64,
    /// The head, if it is as long as expected.
    head: u8,
}

impl Key {
    #[inline(always)]
    pub(crate) fn new(chain: u32, fraction: u64, head: u8) -> Self {
        Self { chain: u64::from(!chain), fraction, head }
    }

    /// All of it in two words.
    #[inline(always)]
    pub(crate) fn pack(self) -> (u64, u64) {
        let word = self.fraction & !0xffff | self.chain & 0xffff;
        (word, self.head.into())
    }

    /// What was packed.
    #[inline(always)]
    pub(crate) fn unpack((word, head): (u64, u64)) -> Self {
        Self { chain: word, fraction: word, head: head as u8 }
    }

    #[inline(always)]
    pub(crate) fn chain(self) -> u32 {
        (!self.chain & 0xffff) as u32
    }

    #[inline(always)]
    pub(crate) fn fraction(self) -> u64 {
        self.fraction
    }
}

/// The largest R.
const LONGEST: usize = Block::REMAINDER_BITS as usize;

/// Bytes in the larger of the blocks.
pub(crate) const LINE: usize = 64;

impl<const BYTES: usize, const FLAGS: u32, const FILL: u8>
    Fixed<BYTES, FLAGS, FILL>
{
    const BLOCK: Block = Block {
        flag_bits: FLAGS,
        ..Block::new(BYTES as u32 * 8, BYTES as u32)
    };
    const ARRAY: u32 = Self::BLOCK.array_bits();
    /// Whether chains can move away.
    pub(crate) const SPILL: bool = FLAGS == CAPPED;
    /// Where the *last* plane begins.
    const FIRST: u32 = BYTES as u32 + FLAGS;
    /// Ones in front of the *last* plane where chains are looked for. With
    /// two the chain of rank r begins at the one of rank r, counted from 1
    /// as a count of ones is; but of a line, words have no room for them,
    /// unless it is one whose first entries are enough.
    const FRONT: u32 = if BYTES == 32 || FILL == PLACED { 2 } else { 1 };
    /// Entries of which a word has room behind them.
    const WORD: u32 = 64 - Self::FRONT;
    /// Entries up to which heads can be bytes, and up to which they can be
    /// half of one.
    const BYTE_HEADS: u32 = Self::ARRAY / 9;
    const HALF_HEADS: u32 = Self::ARRAY / 5;

    /// The cut for every number of entries: a division less a lookup. One
    /// table for every R.
    const CUTS: &[[(u8, u8); MOST]; LONGEST + 1] = &{
        let mut tables = [[(0, 0); MOST]; LONGEST + 1];
        let mut longest = 0;
        while longest <= LONGEST {
            let remainder_bits = longest as u32;
            let block = Block { remainder_bits, ..Self::BLOCK };
            let mut entries = 0;
            while entries < MOST {
                let (base, wide) = block.widths(entries as u32);
                tables[longest][entries] = (base as u8, wide as u8);
                entries += 1;
            }
            longest += 1;
        }
        tables
    };

    /// Whether what is behind the heads of usual blocks is compared by
    /// [`TAILS`](Self::TAILS), where vectors are wide. In sparse ones there
    /// is too much of it.
    const BY_TAILS: bool = FLAGS != CAPPED
        && match FILL {
            HALVED | PLACED => true,
            0 => BYTES == 64,
            _ => false,
        };
    const TAILS: &Tails = &match Self::BY_TAILS {
        true => {
            let form =
                if FLAGS == PLAIN { Form::Plain } else { Form::Elastic };
            let shape = Shape::new(Self::BLOCK, form).with_head(Self::HEAD);
            Tails::new(&shape, Self::FRONT - 1)
        }
        false => Tails::NONE,
    };
    const LEAST_HALVES: u32 = Tails::least(Self::BLOCK, 4);
    const LEAST_BYTES: u32 = Tails::least(Self::BLOCK, 8);

    /// The fast way for a shape, if that is what is expected of its blocks.
    pub(crate) fn new(shape: Shape, expected: Expected) -> Option<Self> {
        let Block { block_bits, chains, flag_bits, remainder_bits, .. } =
            shape.block;
        let same = block_bits == Self::BLOCK.block_bits
            && chains == Self::BLOCK.chains
            && flag_bits == Self::BLOCK.flag_bits
            // The tables end there, and heads are not cut.
            && (8..=Block::REMAINDER_BITS).contains(&remainder_bits)
            // Longer than all that are compared by these.
            && (!Self::BY_TAILS || remainder_bits >= 16)
            && shape.placed == (FILL == PLACED)
            && match FILL {
                PLACED => BYTES == 64 && FLAGS != CAPPED && shape.head == 4,
                HALVED => FLAGS != CAPPED && shape.head == 4,
                SPARSE => shape.head == 8 && Self::is_sparse(expected),
                _ => shape.head == 8 || !Self::BY_TAILS,
            };
        let cap = match shape.form {
            Form::Capped(cap) => cap,
            _ => 0,
        };
        let byte_heads = match shape.head {
            8 => Self::BYTE_HEADS,
            _ => 0,
        };
        let most = match (remainder_bits, shape.form) {
            (..Block::REMAINDER_BITS, _) => 0, // Nobody builds these.
            (_, Form::Capped(cap)) => cap.min(Self::HALF_HEADS),
            // Beyond these there are no heads.
            _ => Self::HALF_HEADS,
        };
        (same && cap < 64).then_some(Self(Known {
            longest: remainder_bits,
            // Checked above.
            cuts: &Self::CUTS[remainder_bits as usize % (LONGEST + 1)],
            cap,
            byte_heads,
            head: shape.head,
            most,
            plans: Self::plans_for(shape.head),
            one: 1,
            two: 2,
            three: 3,
        }))
    }

    /// What is known of it.
    pub(crate) fn known(&self) -> Known {
        self.0
    }

    /// Whether a block with few entries, two standard deviations below what
    /// is expected, has more than 8 bits behind heads of 8.
    ///
    /// While blocks come from memory a wrong guess costs little, and what
    /// is done in order not to guess costs more.
    fn is_sparse(Expected { entries, cached }: Expected) -> bool {
        let few = entries.saturating_sub(2 * entries.isqrt());
        // A bit of *last*, and 17 of fingerprint.
        cached && few.saturating_mul(1 + 8 + 9) < Self::ARRAY
    }

    /// The shape this is the fast way of.
    pub(crate) fn shape(&self) -> Shape {
        let form = match FLAGS {
            PLAIN => Form::Plain,
            CAPPED => Form::Capped(self.0.cap),
            _ => Form::Elastic,
        };
        let block = Block { remainder_bits: self.0.longest, ..Self::BLOCK };
        let shape = Shape::new(block, form);
        match FILL {
            PLACED => shape.with_placed_heads(),
            _ => shape.with_head(self.0.head),
        }
    }

    /// Bits of the heads that are expected.
    const HEAD: u32 = match FILL {
        HALVED | PLACED => 4,
        _ => 8,
    };

    /// What a block is asked for.
    #[inline(always)]
    pub(crate) fn key(chain: u32, fraction: u64) -> Key {
        Key::new(chain, fraction, top(fraction, Self::HEAD))
    }

    /// [`Shape::chain`], with everything known.
    #[inline(always)]
    pub(crate) fn chain(hash: u64) -> u32 {
        // Of 64 bits, as the hashes that are next to this one.
        (((hash & 0xffff) * BYTES as u64) >> 16) as u32
    }

    #[inline(always)]
    fn cut(&self, capacity: u32) -> Cut {
        let (base, wide) =
            self.0.cuts.get(capacity as usize).copied().unwrap_or_default();
        let (base, wide) = (u32::from(base), u32::from(wide));
        Cut { capacity, base, wide, head: head_bits(base, self.0.head) }
    }

    #[inline(always)]
    fn index(block: &[u8; BYTES]) -> u64 {
        match block.first_chunk::<4>() {
            // Not as a part of a word, which would have to be cut off.
            Some(&bytes) if BYTES == 32 => u32::from_le_bytes(bytes).into(),
            _ => word(block, 0),
        }
    }

    /// Whether the block may hold a key.
    #[inline(always)]
    pub(crate) fn look<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        key: Key,
    ) -> Answer {
        match self.look_usual(backend, block, key) {
            Some(answer) => answer,
            None => backend.outline_rare(LookHarder(self, block, key)),
        }
    }

    /// The same, if the block has as many entries as expected.
    #[inline(always)]
    pub(crate) fn look_usual<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        key: Key,
    ) -> Option<Answer> {
        if let (PLACED, Some(line)) = (FILL, Self::line(block)) {
            return self.look_placed(backend, block, line, key);
        }
        let index = Self::index(block);
        let most = match FILL {
            HALVED => Self::HALF_HEADS,
            _ => Self::WORD,
        };
        let found = self.find(backend, block, index, most)?;
        if FLAGS == CAPPED && found.flag && index >> key.chain() == 0 {
            return Some(Answer::Spilled);
        }
        self.look_at::<B, true>(backend, block, index, found, key)
    }

    /// A lookup in a block of which it is known where chains begin; if it
    /// has to be `USUAL`, none if it is not.
    #[inline(always)]
    fn look_at<B: Backend, const USUAL: bool>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        found: Found,
        key: Key,
    ) -> Option<Answer> {
        let through = through(index, key);
        // Of the chain itself, if there is one.
        let rank = through.count_ones().wrapping_sub(2 - Self::FRONT);
        let marks = self.0.three.wrapping_shl(rank);
        let marks = backend.select(found.starts, marks);
        let span = span(marks) & all_or_none(through);
        self.look_in::<B, USUAL>(backend, block, found, span, key)
    }

    /// A lookup among some of the slots, the first of which is behind the
    /// ones in front but one.
    #[inline(always)]
    fn look_in<B: Backend, const USUAL: bool>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        found: Found,
        span: u64,
        key: Key,
    ) -> Option<Answer> {
        let capacity = found.capacity;
        let shape = (capacity, found.worn);
        let before = Self::FRONT - 1;
        let from = 0u32.wrapping_sub(before);
        let shown = capacity + before;
        if let (PLACED, Some(line)) = (FILL, Self::line(block)) {
            let equal = backend.equal_placed::<false>(line, key.head, span);
            let equal = (equal, from);
            self.compare::<B, USUAL>(backend, block, shape, 4, equal, key)
        } else if FILL != HALVED && capacity <= self.0.byte_heads {
            let heads = Heads { bits: 8, value: key.head, capacity: shown };
            let equal = (backend.equal_heads(block, heads, span), from);
            self.compare::<B, USUAL>(backend, block, shape, 8, equal, key)
        } else if BYTES == 64 || capacity <= Self::HALF_HEADS {
            let value = Self::half_head(key);
            let heads = Heads { bits: 4, value, capacity: shown };
            let equal = (backend.equal_heads(block, heads, span), from);
            self.compare::<B, USUAL>(backend, block, shape, 4, equal, key)
        } else if USUAL {
            None
        } else {
            // Too many for heads: all their bits are in planes.
            let equal = (span, from);
            self.compare::<B, USUAL>(backend, block, shape, 0, equal, key)
        }
    }

    /// A lookup where heads are placed, if the key's chain would be among the
    /// first entries and there are not so many that there are no heads.
    ///
    /// How many there are exactly is asked only behind an equal head.
    #[inline(always)]
    fn look_placed<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        line: &[u8; LINE],
        key: Key,
    ) -> Option<Answer> {
        let index = Self::index(block);
        let (_, worn, starts) = Self::starts(block, 2);
        let through = through(index, key);
        let marks = self.0.three.wrapping_shl(through.count_ones());
        let marks = backend.select(starts, marks);
        let end = marks & marks.wrapping_sub(1);
        // Behind the first entries, where few chains are.
        if end == 0 {
            return None;
        }
        let start = marks & marks.wrapping_neg();
        let span = end.wrapping_sub(start) & all_or_none(through);
        let (_, left, second) = Self::later(block, index);
        let ends = match FLAGS {
            PLAIN => second.count_ones(),
            // Behind the two slots that were counted in front, too.
            _ => (second & !3).count_ones(),
        };
        // Saturated, with so few entries that bits of other planes have been
        // counted, or with more than the 80 (or 78) that are counted here: up
        // to 89 have heads.
        if left > ends {
            return None;
        }
        let equal = backend.equal_placed::<false>(line, key.head, span);
        if equal == 0 {
            return Some(Answer::No);
        }
        // With 64 chains the last has the rank of the first.
        if equal & 1 == 1 {
            return None;
        }
        let second = Self::behind_two(second);
        let total = backend.select(second, self.0.two.wrapping_shl(left));
        // No place for an end (they are behind the two ones in front), or too
        // many planes to compare all at once.
        let least = match B::WIDE {
            true => 1 << (Self::LEAST_HALVES - 15),
            false => 1 << 2,
        };
        if total < least {
            return None;
        }
        let capacity = total.trailing_zeros() + 15;
        if B::WIDE {
            let tail = Tail::new(capacity, 4, key.fraction(), worn);
            let equal = equal & backend.equal_tails(block, Self::TAILS, tail);
            let no = equal == 0;
            return Some(if no { Answer::No } else { Answer::Maybe });
        }
        let equal = (equal, u32::MAX);
        let shape = (capacity, worn);
        self.compare::<B, true>(backend, block, shape, 4, equal, key)
    }

    /// The same for a chain that is not among the first entries, in a block
    /// with 17 to 77 of them.
    #[inline(always)]
    fn look_later<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        line: &[u8; LINE],
        key: Key,
    ) -> Option<Answer> {
        let index = Self::index(block);
        let (_, worn, _) = Self::starts(block, 2);
        let (passed, left, second) = Self::later(block, index);
        let second = Self::behind_two(second);
        let through = through(index, key);
        let rank = through.count_ones().wrapping_sub(passed);
        // A start among the first 16; also if all chains end there.
        if (rank as i32) < 2 {
            return None;
        }
        let total = backend.select(second, self.0.two.wrapping_shl(left));
        let marks = self.0.three.wrapping_shl(rank);
        let marks = backend.select(second, marks);
        let end = marks & marks.wrapping_sub(1);
        if total < 1 << 2 || end == 0 {
            return None;
        }
        let start = marks & marks.wrapping_neg();
        let span = end.wrapping_sub(start) & all_or_none(through);
        let equal = backend.equal_placed::<true>(line, key.head, span);
        let shape = (total.trailing_zeros() + 15, worn);
        let equal = (equal, 15);
        self.compare::<B, false>(backend, block, shape, 4, equal, key)
    }

    /// Of the *last* plane: how many chains end in the first 16 slots, how
    /// many are left (fewer than none where there are no chains, or bits of
    /// other planes in these slots), and the word from there on; of an
    /// elastic block from two slots before that.
    #[inline(always)]
    fn later(block: &[u8; BYTES], index: u64) -> (u32, u32, u64) {
        let (flag, ..) = Self::starts(block, 2);
        let chains = index.count_ones() + u32::from(FLAGS == ELASTIC && flag);
        let first = (word(block, BYTES / 8) >> FLAGS) as u16;
        let passed = first.count_ones();
        let second = word(block, BYTES / 8 + SECOND);
        (passed, chains.wrapping_sub(passed), second)
    }

    /// That word with two ones in front of the slot behind the first 16.
    #[inline(always)]
    fn behind_two(second: u64) -> u64 {
        match FLAGS {
            PLAIN => second << 2 | 3,
            _ => second | 3,
        }
    }

    /// The block, if it is a line.
    #[inline(always)]
    fn line(block: &[u8; BYTES]) -> Option<&[u8; LINE]> {
        block.first_chunk()
    }

    /// A head of half a byte.
    #[inline(always)]
    fn half_head(key: Key) -> u8 {
        match Self::HEAD {
            4 => key.head,
            _ => top(key.fraction(), 4),
        }
    }

    /// Compares what is behind the heads: of the slots that are ones in
    /// `equal`, which begins at a slot, or before the first of them.
    ///
    /// If the block has to be `USUAL`, all slots are compared at once, where
    /// that can be done; none if it has so few entries that it cannot.
    #[inline(always)]
    fn compare<B: Backend, const USUAL: bool>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        (capacity, worn): (u32, bool),
        head: u32,
        (equal, from): (u64, u32),
        key: Key,
    ) -> Option<Answer> {
        let mut equal = equal;
        // A key that is not here gets past this once in hundreds of times,
        // or, with heads of half a byte, in twenty.
        if USUAL && Self::BY_TAILS && B::WIDE && equal != 0 {
            let least = match head {
                8 => Self::LEAST_BYTES,
                _ => Self::LEAST_HALVES,
            };
            if capacity < least {
                return None;
            }
            let wanted = Tail::new(capacity, head, key.fraction(), worn);
            equal &= backend.equal_tails(block, Self::TAILS, wanted);
            let no = equal == 0;
            return Some(if no { Answer::No } else { Answer::Maybe });
        }
        while equal != 0 {
            let slot = from.wrapping_add(equal.trailing_zeros());
            let cut = self.cut(capacity);
            let planes = Planes {
                first: Self::FIRST + cut.capacity + slot,
                stride: cut.capacity,
                count: cut.width(slot) - head,
            };
            let worn = u32::from(FLAGS == ELASTIC && worn);
            let vague = worn & u32::from(slot < cut.wide);
            let tail = key.fraction() << head;
            let matches = tail_matches::<BYTES, FILL, B>;
            if matches(backend, block, planes, tail, vague) {
                return Some(Answer::Maybe);
            }
            equal &= equal - 1;
        }
        Some(Answer::No)
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

    /// The flags, and the *last* plane with one or two ones in front.
    #[inline(always)]
    fn starts(block: &[u8; BYTES], front: u32) -> (bool, bool, u64) {
        let after = word(block, BYTES / 8);
        let starts = match (FLAGS, front) {
            (PLAIN, 1) => after << 1 | 1,
            (PLAIN, _) => after << 2 | 3,
            (CAPPED, 1) => after | 1,
            (CAPPED, _) => after << 1 | 3,
            (_, 1) => after >> 1 | 1,
            _ => after | 3,
        };
        (
            FLAGS != PLAIN && after & 1 == 1,
            FLAGS == ELASTIC && after & 2 == 2,
            starts,
        )
    }

    /// Where chains begin and the block's capacity, if there are chains and
    /// the *last* plane is in one word with the ones in front. (In half a
    /// line with at most this many entries, which are fewer.)
    #[inline(always)]
    fn find<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        most: u32,
    ) -> Option<Found> {
        let (flag, worn, starts) = Self::starts(block, Self::FRONT);
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        if FLAGS == ELASTIC && (index == 0 || chains > 64) {
            return None;
        }
        let last = if Self::FRONT == 1 { self.0.one } else { self.0.two };
        let total = backend.select(starts, last.wrapping_shl(chains));
        let end = total.trailing_zeros();
        // Without chains, and with 64, this is a one in front: no place for
        // an end.
        let none = match Self::FRONT {
            1 => total <= 1,
            // In one comparison with the other reason not to go on.
            _ => end.wrapping_sub(2) >= most,
        };
        if none {
            return None;
        }
        let mut capacity = end - (Self::FRONT - 1);
        if FLAGS == CAPPED && flag {
            // Damaged: there are no heads behind those of the cap.
            if capacity > self.0.cap {
                return None;
            }
            capacity = self.0.cap;
        }
        Some(Found { flag, worn, capacity, starts })
    }

    /// A lookup in a block with more or fewer entries than expected: in one
    /// whose heads are not placed, more than fit a word.
    #[inline(always)]
    pub(crate) fn look_harder<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        key: Key,
    ) -> Answer {
        if let (PLACED, Some(line)) = (FILL, Self::line(block)) {
            if let Some(answer) = self.look_later(backend, block, line, key) {
                return answer;
            }
        }
        let index = Self::index(block);
        let short = BYTES == 32 && FLAGS != CAPPED;
        let tails = Self::BY_TAILS && B::WIDE;
        let found = match FILL != PLACED && (short || tails) {
            true => self.find(backend, block, index, Self::WORD),
            false => None,
        };
        let answer = found.and_then(|found| {
            self.look_at::<B, false>(backend, block, index, found, key)
        });
        if let Some(answer) = answer {
            return answer;
        }
        if index == 0 {
            return self.look_without_chains(block);
        }
        let Some(wide) = self.find_wide(backend, block, index, key.chain())
        else {
            return self.look_far(block, key);
        };
        let Wide { worn, capacity, span, .. } = wide;
        let shape = (capacity, worn);
        let bits = head_bits(self.cut(capacity).base, 4);
        let compare = |equal| {
            self.compare::<B, false>(backend, block, shape, bits, equal, key)
                .unwrap_or(Answer::Maybe)
        };
        if bits == 0 {
            let upper = ((span >> 64) as u64, 64);
            return match compare(upper) {
                Answer::No => compare((span as u64, 0)),
                answer => answer,
            };
        }
        if FILL == PLACED {
            let equal = Self::equal_one_by_one(block, key.head, span);
            let upper = ((equal >> 64) as u64, 64);
            return match compare(upper) {
                Answer::No => compare((equal as u64, 0)),
                answer => answer,
            };
        }
        // The heads of the last 64 entries fill the upper half.
        let shown = capacity.min(64);
        let from = capacity - shown;
        let value = Self::half_head(key);
        let heads = Heads { bits, value, capacity: shown };
        let among = (span >> from) as u64;
        let upper = backend.equal_heads(block, heads, among);
        if compare((upper, from)) == Answer::Maybe {
            return Answer::Maybe;
        }
        let among = span as u64 & ((1 << from) - 1);
        if among == 0 {
            return Answer::No;
        }
        let heads = Heads { bits, value, capacity: from };
        let lower = backend.equal_low_heads(block, heads, among);
        compare((lower, 0))
    }

    /// Which of some slots have this placed head: a chain's, which are few.
    fn equal_one_by_one(block: &[u8; BYTES], value: u8, among: u128) -> u128 {
        let (mut left, mut equal) = (among, 0);
        while left != 0 {
            let slot = left.trailing_zeros();
            left &= left - 1;
            let here = placed_head(block, slot) == value;
            equal |= u128::from(here) << slot;
        }
        equal
    }

    /// [`starts`](Self::starts), and what follows behind 64 bits of it.
    #[inline(always)]
    fn two_words(block: &[u8; BYTES]) -> (bool, bool, u64, u64) {
        let (flag, worn, starts) = Self::starts(block, 1);
        let next = word(block, BYTES / 8 + 8);
        match FLAGS {
            PLAIN => {
                let before = word(block, BYTES / 8);
                (flag, worn, starts, next << 1 | before >> 63)
            }
            CAPPED => (flag, worn, starts, next),
            _ => (flag, worn, starts | next << 63, next >> 1),
        }
    }

    /// Like [`find`](Self::find), if the *last* plane ends before the second
    /// word does.
    #[inline(always)]
    fn find_wide<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        chain: u32,
    ) -> Option<Wide> {
        let (flag, worn, starts, rest) = Self::two_words(block);
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let words = (starts, rest, starts.count_ones());
        // At most 65.
        let total = select_wide(backend, words, 1 << chains);
        if total == 0 {
            return None;
        }
        let capacity = total.trailing_zeros();
        let marks = select_wide(backend, words, 3 << rank);
        let start = marks & marks.wrapping_neg();
        let present = u128::from(index >> chain & 1);
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        let start = start.trailing_zeros();
        Some(Wide { flag, worn, capacity, span, start })
    }

    /// A lookup in a block fuller than any design asks for, or damaged.
    #[cold]
    #[inline(never)]
    fn look_far(&self, block: &[u8; BYTES], key: Key) -> Answer {
        let state = State::read_or_saturated(&self.shape(), block);
        match state.count(key.chain(), key.fraction()) {
            Some(0) => Answer::No,
            _ => Answer::Maybe,
        }
    }
}

/// [`Fixed::look_harder`], out of line.
struct LookHarder<'a, const BYTES: usize, const FLAGS: u32, const FILL: u8>(
    &'a Fixed<BYTES, FLAGS, FILL>,
    &'a [u8; BYTES],
    Key,
);

impl<const BYTES: usize, const FLAGS: u32, const FILL: u8> Task
    for LookHarder<'_, BYTES, FLAGS, FILL>
{
    type Output = Answer;

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) -> Answer {
        let Self(fixed, block, key) = self;
        fixed.look_harder(backend, block, key)
    }
}

/// Compares what is behind the head. If `vague` is 1, a 0 in the last plane
/// says nothing: a number, because half of all entries go either way.
#[inline(always)]
fn tail_matches<const BYTES: usize, const FILL: u8, B: Backend>(
    backend: B,
    block: &[u8; BYTES],
    planes: Planes,
    tail: u64,
    vague: u32,
) -> bool {
    let (mut planes, mut tail) = (planes, tail);
    let mut differing;
    if FILL == SPARSE && B::PLANES < 16 && planes.count <= 16 {
        let first = Planes { count: planes.count.min(8), ..planes };
        let further = Planes {
            first: planes.first + 8 * planes.stride,
            count: planes.count.saturating_sub(8),
            ..planes
        };
        differing = backend.differing(block, first, tail);
        differing |= backend.differing(block, further, tail << 8) << 8;
    } else {
        let most = B::PLANES;
        while planes.count > most {
            let first = Planes { count: most, ..planes };
            if backend.differing(block, first, tail) != 0 {
                return false;
            }
            planes.count -= most;
            planes.first += most * planes.stride;
            tail <<= most;
        }
        differing = backend.differing(block, planes, tail);
    }
    let last = planes.count.wrapping_sub(1);
    let wanted = tail.wrapping_shl(last).wrapping_shr(63) as u32 & vague;
    differing &= !wanted.wrapping_shl(last);
    differing == 0
}

/// Where chains are.
#[derive(Clone, Copy)]
struct Found {
    /// The first flag and the second.
    flag: bool,
    worn: bool,
    capacity: u32,
    /// As [`Fixed::starts`].
    starts: u64,
}

/// Where a chain is in a block of more than a word of entries.
struct Wide {
    flag: bool,
    worn: bool,
    capacity: u32,
    span: u128,
    start: u32,
}

/// [`Backend::select`] in two words, the first of which has so many ones.
#[inline(always)]
fn select_wide<B: Backend>(
    backend: B,
    (low, high, passed): (u64, u64, u32),
    ranks: u128,
) -> u128 {
    let low = backend.select(low, ranks as u64);
    let high = backend.select(high, (ranks >> passed) as u64);
    u128::from(low) | u128::from(high) << 64
}

/// The chains up to that of a key, which is the highest bit.
#[inline(always)]
fn through(index: u64, key: Key) -> u64 {
    index.wrapping_shl(key.chain as u32)
}

/// The slots from one mark to the other: a chain, up to the start of the
/// next.
#[inline(always)]
fn span(marks: u64) -> u64 {
    let start = marks & marks.wrapping_neg();
    marks.wrapping_sub(start << 1)
}

/// All bits if the highest is set, else none. Not a branch, where half of
/// all keys go either way.
#[inline(always)]
fn all_or_none(word: u64) -> u64 {
    (word as i64 >> 63) as u64
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

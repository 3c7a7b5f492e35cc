//! Blocks of a cache line with 64 chains, and of half a line with 32: the
//! fast way for what every key does. Bit for bit what
//! [`State`](super::State) does.

mod insertion;

use insertion::Plan;
pub(crate) use insertion::{Insertion, Repeats};

use tamis_theory::tinyset::Block;

use super::{Cut, Form, Heads, Planes, Shape, State, head_bits};
use crate::simd::{Backend, Task, unseen};

/// [`Form::flags`] of the forms.
const PLAIN: u32 = 0;
const CAPPED: u32 = 1;
const ELASTIC: u32 = 2;

/// About as many entries as a word has bits, or more, with heads of half a
/// byte: no test guesses how many words the *last* plane has.
pub(crate) const CROWDED: u8 = 1;
/// So few that some of them have more than 8 bits behind their heads, which
/// are bytes: no test guesses which.
pub(crate) const SPARSE: u8 = 2;
/// Fewer than a word has bits, with heads of half a byte: no test asks
/// whether they are bytes.
pub(crate) const HALVED: u8 = 3;

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
pub(crate) struct Fixed<
    const BYTES: usize,
    const FLAGS: u32,
    const FILL: u8 = 0,
> {
    /// R: where fingerprints end even if there is room.
    longest: u32,
    /// How they are cut, for every number of entries.
    cuts: &'static [(u8, u8); MOST],
    /// What a block is cut for once chains have left it.
    cap: u32,
    /// Entries up to which heads are bytes, and the zeros behind the *last*
    /// plane of so many in a word: from as many on they are.
    byte_heads: u32,
    byte_zeros: u32,
    /// Bits of the longest heads.
    head: u32,
    /// Entries up to which a block need not be taken apart to add one.
    most: u32,
    plans: &'static [Plan; MOST],
    /// 1 and 3, to be shifted: as constants they would be an instruction
    /// and a register each, at every key. No 1 if fingerprints are shorter
    /// than usual: then no block is a usual one.
    one: u64,
    three: u64,
}

/// Entries the tables know: more than the fast way can handle, and a power
/// of two, by which an index is reduced in one step.
const MOST: usize = 128;

/// Where the second word of a crowded block's *last* plane begins: the byte,
/// and how many slots come before.
const SECOND_BYTE: usize = 11;
const SECOND: u32 = 8 * SECOND_BYTE as u32 - 63;

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

    /// The fast way for a shape, if that is what is expected of its blocks.
    pub(crate) fn new(shape: Shape, expected: Expected) -> Option<Self> {
        let Block { block_bits, chains, flag_bits, remainder_bits, .. } =
            shape.block;
        let same = block_bits == Self::BLOCK.block_bits
            && chains == Self::BLOCK.chains
            && flag_bits == Self::BLOCK.flag_bits
            // The tables end there, and heads are not cut.
            && (8..=Block::REMAINDER_BITS).contains(&remainder_bits)
            && (FILL == 0 || remainder_bits == Block::REMAINDER_BITS)
            && match FILL {
                CROWDED => {
                    BYTES == 64
                        && FLAGS != CAPPED
                        && shape.head == 4
                        && Self::is_crowded(expected)
                }
                HALVED => BYTES == 64 && shape.head == 4,
                SPARSE => shape.head == 8 && Self::is_sparse(expected),
                _ => true,
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
        (same && cap < 64).then_some(Self {
            longest: remainder_bits,
            // Checked above.
            cuts: &Self::CUTS[remainder_bits as usize % (LONGEST + 1)],
            cap,
            byte_heads,
            byte_zeros: 63 - byte_heads,
            head: shape.head,
            most,
            plans: Self::plans_for(shape.head),
            one: u64::from(remainder_bits == Block::REMAINDER_BITS),
            three: 3,
        })
    }

    /// Whether about one block in ten or more has more entries than a word
    /// has bits: such a block is 1.3 standard deviations above the mean. Of
    /// fewer, to guess wrong costs less than a second word for all.
    fn is_crowded(Expected { entries, .. }: Expected) -> bool {
        entries.saturating_add(13 * entries.isqrt() / 10) > 63
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
            self.cuts.get(capacity as usize).copied().unwrap_or_default();
        let (base, wide) = (u32::from(base), u32::from(wide));
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
        match self.look_usual(backend, block, chain, fraction) {
            Some(answer) => answer,
            None => {
                let key = (Self::index(block), chain, fraction);
                backend.outline(LookHarder(self, block, key))
            }
        }
    }

    /// The same, if the block has as many entries as expected.
    #[inline(always)]
    pub(crate) fn look_usual<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        chain: u32,
        fraction: u64,
    ) -> Option<Answer> {
        let index = Self::index(block);
        if FILL == CROWDED {
            let Crowd { shape, last } =
                self.find_crowded(backend, block, index, chain)?;
            let compare = Self::compare::<B, 4, false, false>;
            return compare(self, backend, block, shape, last, fraction);
        }
        let found = self.find::<_, false>(backend, block, index, chain)?;
        if Self::has_spilled(found, index, chain) {
            return Some(Answer::Spilled);
        }
        self.look_at::<_, false>(backend, block, found, fraction)
    }

    /// Whether a chain has moved to the second level: those behind the
    /// highest one that is here.
    #[inline(always)]
    fn has_spilled(found: Found, index: u64, chain: u32) -> bool {
        FLAGS == CAPPED && found.flag && index >> chain == 0
    }

    /// A lookup whose chain has been found. Nothing, if it takes more than
    /// in a usual block, and not `ALL` of that is wanted.
    #[inline(always)]
    fn look_at<B: Backend, const ALL: bool>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        found: Found,
        fraction: u64,
    ) -> Option<Answer> {
        let Found { shape, last, .. } = found;
        if FILL != HALVED && shape.number >= self.byte_zeros {
            self.compare::<_, 8, ALL, true>(
                backend, block, shape, last, fraction,
            )
        } else if BYTES == 64 || shape.capacity() <= Self::HALF_HEADS {
            self.compare::<_, 4, ALL, true>(
                backend, block, shape, last, fraction,
            )
        } else {
            None
        }
    }

    /// Compares entries, of a chain that is ones in `last`, of which the
    /// highest stands for the last slot.
    #[inline(always)]
    fn compare<
        B: Backend,
        const HEAD: u32,
        const ALL: bool,
        const ZEROS: bool,
    >(
        &self,
        backend: B,
        block: &[u8; BYTES],
        shape: Filled<ZEROS>,
        last: u64,
        fraction: u64,
    ) -> Option<Answer> {
        let heads = Heads { bits: HEAD, value: top(fraction, HEAD) };
        let equal = (backend.equal_heads(block, heads, last), 0);
        let compare = Self::compare_tails::<B, HEAD, ALL, ZEROS>;
        compare(self, backend, block, shape, equal, fraction)
    }

    /// Compares what is behind the heads of those that are ones in `equal`,
    /// of which the highest has so many slots behind it.
    #[inline(always)]
    fn compare_tails<
        B: Backend,
        const HEAD: u32,
        const ALL: bool,
        const ZEROS: bool,
    >(
        &self,
        backend: B,
        block: &[u8; BYTES],
        shape: Filled<ZEROS>,
        (equal, behind): (u64, u32),
        fraction: u64,
    ) -> Option<Answer> {
        if equal == 0 {
            return Some(Answer::No);
        }
        // A key that is not here gets past this once in dozens of times. So
        // nothing that is only needed here is to be worked out before.
        let found = shape;
        let shape = Filled { number: unseen(shape.number), ..shape };
        let capacity = shape.capacity();
        // What need not be worked out may be known: that is what a loop over
        // crowded blocks has registers for.
        let end = if ZEROS { capacity } else { found.capacity() };
        let tail = fraction << HEAD;
        let mut equal = equal;
        while equal != 0 {
            let slot = end
                .wrapping_sub(64 + behind)
                .wrapping_add(equal.trailing_zeros());
            let mut planes = Planes {
                first: Self::FIRST + capacity + slot,
                stride: capacity,
                // They go on to where heads begin.
                end: (8 * BYTES as u32).wrapping_sub(HEAD * capacity),
            };
            // Or to where fingerprints are as long as they can be. Usually
            // that is more than what is compared at once.
            let longest = planes.first + planes.stride * (self.longest - HEAD);
            if ALL {
                planes.end = planes.end.min(longest);
            }
            if FLAGS == ELASTIC && shape.worn {
                let cut = self.cut(capacity);
                let mut count = cut.width(slot) - HEAD;
                if slot < cut.wide && count > 0 {
                    // In the extra plane, the last one, a 0 is as good as
                    // a 1.
                    count -= (tail >> (64 - count)) as u32 & 1;
                }
                planes.end = planes.first + planes.stride * count;
            }
            let (at_once, mut tail) = (at_once::<FILL, B>(), tail);
            while has_planes::<BYTES, FILL, B>(backend, block, planes, tail) {
                planes.first += at_once * planes.stride;
                if planes.first >= planes.end {
                    return Some(Answer::Maybe);
                }
                // Behind half a byte of head there are few bits, which is
                // enough to know in blocks that mostly have such.
                if !ALL && matches!(FILL, CROWDED | HALVED) {
                    return None;
                }
                planes.end = planes.end.min(longest);
                tail <<= at_once;
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

    /// The slots of a chain and the block's capacity, if there are chains
    /// and the *last* plane has at most 63 bits (62 behind two flags); in a
    /// usual block, or in `ALL`.
    #[inline(always)]
    fn find<B: Backend, const ALL: bool>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        chain: u32,
    ) -> Option<Found> {
        let (flag, worn, starts) = Self::starts(block);
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        if FLAGS == ELASTIC && (index == 0 || chains > 64) {
            return None;
        }
        // Without chains, and with 64, this is the one in front: no place
        // for an end.
        let one = if ALL { 1 } else { self.one };
        let total = backend.select(starts, one.wrapping_shl(chains));
        if total <= 1 {
            return None;
        }
        let zeros = match FLAGS == CAPPED && flag {
            true => 63 - self.cap,
            false => total.leading_zeros(),
        };
        let rank = (index & ((1 << chain) - 1)).count_ones();
        // Twice what they would be: so all that is left to shift by is the
        // zeros.
        let marks = backend.select(starts << 1, self.three.wrapping_shl(rank));
        let start = marks & marks.wrapping_neg();
        // From the start of the chain to the start of the next, or to the
        // end if that is lost; nothing if the chain is empty. Not a branch:
        // half of all keys go either way.
        let present = index >> chain & 1;
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        let (shape, last) = (Filled { number: zeros, worn }, span << zeros);
        let start = start.trailing_zeros() - 1;
        Some(Found { flag, shape, last, start })
    }

    /// A lookup in a block that is not a usual one: with more or fewer
    /// entries than expected.
    #[inline(always)]
    fn look_harder<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        (index, chain, fraction): (u64, u32, u64),
    ) -> Answer {
        if index == 0 {
            return self.look_without_chains(block);
        }
        let found = self.find::<_, true>(backend, block, index, chain);
        let answer = match found {
            Some(found) if Self::has_spilled(found, index, chain) => {
                Some(Answer::Spilled)
            }
            Some(found) => {
                self.look_at::<_, true>(backend, block, found, fraction)
            }
            None => self.look_wide(backend, block, (index, chain, fraction)),
        };
        answer.unwrap_or_else(|| self.look_far(block, chain, fraction))
    }

    /// A lookup in a block with more entries than a word has bits.
    #[inline(always)]
    fn look_wide<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        (index, chain, fraction): (u64, u32, u64),
    ) -> Option<Answer> {
        let wide = self.find_wide(backend, block, index, chain)?;
        let Wide { worn, capacity, span, .. } = wide;
        if capacity > Self::HALF_HEADS {
            return None;
        }
        let shape = Filled { number: capacity, worn };
        // The heads of the last 64 entries fill the upper half.
        let span = span << (128 - capacity);
        let last = (span >> 64) as u64;
        let compare = Self::compare::<B, 4, true, false>;
        let upper = compare(self, backend, block, shape, last, fraction)?;
        if upper == Answer::Maybe || span as u64 == 0 {
            return Some(upper);
        }
        let heads = Heads { bits: 4, value: top(fraction, 4) };
        let equal = backend.equal_low_heads(block, heads, span as u64);
        let equal = (equal, 64);
        let compare = Self::compare_tails::<B, 4, true, false>;
        compare(self, backend, block, shape, equal, fraction)
    }

    /// [`starts`](Self::starts), and what follows behind 64 bits of it.
    #[inline(always)]
    fn two_words(block: &[u8; BYTES]) -> (bool, bool, u64, u64) {
        let (flag, worn, starts) = Self::starts(block);
        match FLAGS {
            PLAIN => (flag, worn, starts, word(block, 15) >> 7),
            CAPPED => (flag, worn, starts, word(block, 16)),
            _ => {
                let next = word(block, 16);
                (flag, worn, starts | next << 63, next >> 1)
            }
        }
    }

    /// Like [`find`](Self::find), if the *last* plane ends in the second of
    /// two words: behind [`SECOND`] and less than a word from there.
    ///
    /// The second begins so early that it has the end whether the plane is
    /// longer than a word or not. Which of them has the chain is not a
    /// branch: nobody could guess it.
    #[inline(always)]
    fn find_crowded<B: Backend>(
        &self,
        backend: B,
        block: &[u8; BYTES],
        index: u64,
        chain: u32,
    ) -> Option<Crowd> {
        let (flag, worn, first) = Self::starts(block);
        let second = word(block, SECOND_BYTE) >> FLAGS;
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        // At least one, so that 64 chains are not too many to shift by.
        let passed = (first & ((1 << SECOND) - 1)).count_ones();
        let ahead = chains.checked_sub(passed)?;
        if FLAGS == ELASTIC && (index == 0 || chains > 64) {
            return None;
        }
        let total = backend.select(second, self.one.wrapping_shl(ahead));
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let (rank, early) = rank.overflowing_sub(passed);
        let (word, rank, end) = match early {
            true => (first, rank.wrapping_add(passed), SECOND),
            false => (second, rank, 0),
        };
        let marks = backend.select(word, self.three.wrapping_shl(rank));
        let start = marks & marks.wrapping_neg();
        let present = index >> chain & 1;
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        let end = end + total.trailing_zeros();
        // Heads in the other half of the block, or an end that is not in
        // the same word, which takes dozens of repeats.
        if start.trailing_zeros() + 64 < end || marks == start || total == 0 {
            return None;
        }
        // The last slot becomes the highest bit, wherever the word began.
        let last = span.rotate_right(end);
        let capacity = SECOND + total.trailing_zeros();
        Some(Crowd { shape: Filled { number: capacity, worn }, last })
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
        let (flag, worn, starts, rest) = Self::two_words(block);
        let phantom = FLAGS == ELASTIC && flag;
        let chains = index.count_ones() + u32::from(phantom);
        let passed = starts.count_ones();
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let ahead = 1u64.checked_shl(chains.checked_sub(passed)?)?;
        let total = backend.select(rest, ahead);
        if total == 0 {
            return None;
        }
        let capacity = 64 + total.trailing_zeros();
        let ranks = 3u128 << rank;
        let low = backend.select(starts, ranks as u64);
        let high = backend.select(rest, (ranks >> passed) as u64);
        let marks = u128::from(low) | u128::from(high) << 64;
        let start = marks & marks.wrapping_neg();
        let present = u128::from(index >> chain & 1);
        let span = marks.wrapping_sub(start << 1) & present.wrapping_neg();
        let start = start.trailing_zeros();
        Some(Wide { flag, worn, capacity, span, start })
    }

    /// A lookup in a block fuller or emptier than any design asks for, or
    /// damaged.
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
}

/// [`Fixed::look_harder`], out of line.
struct LookHarder<'a, const BYTES: usize, const FLAGS: u32, const FILL: u8>(
    &'a Fixed<BYTES, FLAGS, FILL>,
    &'a [u8; BYTES],
    (u64, u32, u64),
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

/// How many planes are compared at once.
const fn at_once<const FILL: u8, B: Backend>() -> u32 {
    if FILL == SPARSE || B::WIDE { 16 } else { 8 }
}

/// [`Backend::has_planes`] for as many.
#[inline(always)]
fn has_planes<const BYTES: usize, const FILL: u8, B: Backend>(
    backend: B,
    block: &[u8; BYTES],
    planes: Planes,
    tail: u64,
) -> bool {
    match at_once::<FILL, B>() {
        16 => backend.has_planes::<BYTES, true>(block, planes, tail),
        _ => backend.has_planes::<BYTES, false>(block, planes, tail),
    }
}

/// How full a block is, as what is found first: the number of entries, or
/// the `ZEROS` that the *last* plane, with a bit in front, leaves in a word.
#[derive(Clone, Copy)]
struct Filled<const ZEROS: bool> {
    number: u32,
    /// The second flag.
    worn: bool,
}

impl<const ZEROS: bool> Filled<ZEROS> {
    #[inline(always)]
    const fn capacity(self) -> u32 {
        if ZEROS { 63 - self.number } else { self.number }
    }
}

/// Where a chain is.
#[derive(Clone, Copy)]
struct Found {
    /// The first flag.
    flag: bool,
    shape: Filled<true>,
    /// A one for every slot of the chain; the highest stands for the last
    /// slot of the block.
    last: u64,
    /// The slot where the chain begins or would begin.
    start: u32,
}

/// Where a chain is in a block of about a word of entries.
#[derive(Clone, Copy)]
struct Crowd {
    shape: Filled<false>,
    /// A one for every slot of the chain; the highest stands for the last
    /// slot of the block.
    last: u64,
}

/// Where a chain is in a block of more than a word of entries.
struct Wide {
    flag: bool,
    worn: bool,
    capacity: u32,
    span: u128,
    start: u32,
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

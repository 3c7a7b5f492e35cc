//! One more entry in a block, without taking it apart.

use super::{
    ANY, Answer, CAPPED, Fixed, LINE, LookHarder, MOST, PLACED, span, top,
    word,
};
use crate::block::fingerprint::{Cut, Lanes, NewEntry, NewHead, head_bits};
use crate::simd::{Backend, Task};
use tamis_theory::tinyset::Block;

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

/// Entries from which on no lane of 32 bits gets more than two bits of the
/// new entry, and none moves by more than a lane.
const MANY: u32 = 16;

/// Words that the flags and planes of fewer entries can have.
const WORDS: usize = 6;

/// What an insertion needs to know of the number of entries it leads to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Ones at multiples of the number of entries: a slot in every plane.
    stride: u64,
    capacity: u8,
    /// Bits of a fingerprint behind its head, and how many have one more.
    tail: u8,
    wide: u8,
    /// Half bytes of a head, and the one where heads begin.
    halves: u8,
    begin: u8,
    lanes: Lanes,
    parts: [Part; WORDS],
}

impl Plan {
    const fn new(block: Block, cut: Cut) -> Self {
        let Cut { capacity, base, wide, head } = cut;
        let mut stride = 1;
        let mut at = capacity;
        while at > 0 && at < 64 {
            stride |= 1 << at;
            at += capacity;
        }
        let mut parts = [Part::new(block, capacity, 0); WORDS];
        let mut word = 1;
        while word < WORDS {
            parts[word] = Part::new(block, capacity, word);
            word += 1;
        }
        let tail = base - head;
        Self {
            stride,
            capacity: capacity as u8,
            tail: tail as u8,
            wide: wide as u8,
            halves: (head / 4) as u8,
            begin: ((block.block_bits - head * capacity) / 4) as u8,
            lanes: Lanes::new(block, capacity),
            parts,
        }
    }
}

/// Bits of the new entry, seen from a word of a block's flags and planes: in
/// a row of bits that stand `capacity` apart, if the first stood in the first
/// slot.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// How many come before the word; more than any entry has are as good as
    /// all.
    passed: u8,
    /// The place of the word behind the last of those.
    skew: i8,
}

impl Part {
    const fn new(block: Block, capacity: u32, at: usize) -> Self {
        let place = (64 * at as u32).saturating_sub(block.flag_bits);
        if capacity == 0 {
            return Self { passed: 0, skew: 0 };
        }
        let passed = place / capacity;
        let passed = if passed > 62 { 62 } else { passed as u8 };
        Self { passed, skew: (place % capacity) as i8 }
    }
}

/// The words of a block's planes, moved apart: no more entries than a word
/// has bits.
struct Words<'a, const BYTES: usize, const FLAGS: u32> {
    block: &'a [u8; BYTES],
    plan: &'static Plan,
    /// The slot of the new entry.
    start: u32,
    /// Its bits in the planes, that of the first plane lowest.
    new: u64,
}

impl<const BYTES: usize, const FLAGS: u32> Words<'_, BYTES, FLAGS> {
    /// The flags and planes of a block with one more bit in each plane. What
    /// is there behind them is not cut off.
    ///
    /// The planes are one row of bits, moved apart at every slot that the
    /// new entry takes.
    #[inline(always)]
    fn all<B: Backend, const HALVES: u8>(&self, backend: B) -> [u64; WORDS] {
        let mut planes = [0; WORDS];
        planes[0] = self.get(backend, 0);
        planes[1] = self.get(backend, 1);
        planes[2] = self.get(backend, 2);
        if BYTES == 64 {
            planes[3] = self.get(backend, 3);
            planes[4] = self.get(backend, 4);
            // With heads of a byte there are never more than five.
            if HALVES == 1 {
                planes[5] = self.get(backend, 5);
            }
        }
        planes
    }

    /// One of them. None waits for another: how many bits come before it
    /// follows from the slot.
    // A method and not a closure: a closure could become a function of its
    // own, without the instructions of the backend.
    #[inline(always)]
    fn get<B: Backend>(&self, backend: B, at: usize) -> u64 {
        let Self { block, plan, start, new } = *self;
        let here = word(block, BYTES / 8 + 8 * at);
        if at == 0 {
            let gaps = plan.stride.wrapping_shl(FLAGS + start);
            return backend.apart(here, gaps) | backend.select(gaps, new);
        }
        let Part { passed, skew } = plan.parts[at];
        let gap = start.wrapping_sub(skew as u32);
        // All ones if the word begins behind the slot, which nobody can
        // guess: no branch.
        let late = (gap as i32 >> 31) as u32;
        let passed = u32::from(passed).wrapping_sub(late);
        let gap = gap.wrapping_add(u32::from(plan.capacity) & late);
        let gaps = plan.stride.wrapping_shl(gap);
        let before = word(block, BYTES / 8 + 8 * at - 8);
        let rest = (before >> 1).wrapping_shr(63 ^ passed);
        let bits = here.wrapping_shl(passed) | rest;
        let new = new.wrapping_shr(passed);
        backend.apart(bits, gaps) | backend.select(gaps, new)
    }
}

/// Adds an entry to a block that has some, and whose heads stay as long as
/// they are: `HALVES` half bytes, or none.
#[inline(always)]
fn add<
    B: Backend,
    const BYTES: usize,
    const FLAGS: u32,
    const FILL: u8,
    const HALVES: u8,
>(
    backend: B,
    block: &mut [u8; BYTES],
    index: u64,
    plan: &'static Plan,
    one: One,
) {
    let One { start, present, fraction } = one;
    // Of the tail as many bits as this entry has, at most 24.
    let tail = (fraction << (4 * HALVES) >> 33) as u32;
    let bits = u32::from(plan.tail) + u32::from(start < plan.wide.into());
    let value = top(fraction, 8);
    let head = NewHead {
        halves: HALVES,
        begin: plan.begin,
        at: match FILL {
            PLACED => 2 * BYTES as u8 - 1 - start as u8,
            _ => plan.begin + HALVES * start as u8,
        },
        value: match HALVES {
            2 => value,
            _ => value >> 4 | value & 0xf0,
        },
    };
    let capacity = u32::from(plan.capacity);
    // The words of half a line are few, and take less than to guess which
    // way is a block's.
    if HALVES == 0 || BYTES == 64 && capacity >= MANY {
        let new = (tail | u32::from(!present) << 31)
            & !(u32::MAX >> ((bits + 1) & 31));
        let lanes = &plan.lanes;
        let entry = NewEntry { index, start, new, capacity, lanes, head };
        backend.add_entry(block, entry);
        return;
    }
    // The tail the other way round before it is cut: that need not wait for
    // the block.
    let new = tail.reverse_bits() | u32::from(!present);
    let new = u64::from(new) & ((2 << bits) - 1);
    let words = Words::<BYTES, FLAGS> { block, plan, start, new };
    let rest = in_front::<BYTES>(index, words.all::<B, HALVES>(backend));
    backend.add_head(block, head, rest);
}

/// A block up to its heads, in words.
#[inline(always)]
fn in_front<const BYTES: usize>(
    index: u64,
    planes: [u64; WORDS],
) -> [u64; LINE / 8] {
    let [a, b, c, d, e, f] = planes;
    if BYTES == 64 {
        return [index, a, b, c, d, e, f, 0];
    }
    let words = [index | a << 32, a >> 32 | b << 32, b >> 32 | c << 32];
    let [x, y, z] = words;
    [x, y, z, c >> 32, 0, 0, 0, 0]
}

/// [`add`] to a block without heads, out of line: few blocks have none.
struct Headless<'a, const BYTES: usize, const FLAGS: u32> {
    block: &'a mut [u8; BYTES],
    index: u64,
    plan: &'static Plan,
    one: One,
}

impl<const BYTES: usize, const FLAGS: u32> Task
    for Headless<'_, BYTES, FLAGS>
{
    type Output = ();

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) {
        let Self { block, index, plan, one } = self;
        // Where heads would be does not matter.
        add::<B, BYTES, FLAGS, ANY, 0>(backend, block, index, plan, one);
    }
}

impl<const BYTES: usize, const FLAGS: u32, const FILL: u8>
    Fixed<BYTES, FLAGS, FILL>
{
    /// Plans with heads of at most a byte, and at most half of one: to make
    /// one takes two dozen steps.
    const PLANS: &[[Plan; MOST]; 2] = &[Self::plans(8), Self::plans(4)];

    const fn plans(head: u32) -> [Plan; MOST] {
        let mut plans = [Self::plan_for(0, head); MOST];
        // As many as `Words` has.
        let words = match (BYTES, head) {
            (32, _) => 3,
            (_, 8) => WORDS - 1,
            _ => WORDS,
        };
        let mut entries = 1;
        while entries < MOST {
            let plan = Self::plan_for(entries as u32, head);
            let planes = (1 + plan.tail as usize) * entries;
            let bits = FLAGS as usize + planes + plan.wide as usize;
            let few = BYTES == 32 || entries < MANY as usize;
            assert!(plan.halves == 0 || !few || bits <= 64 * words);
            plans[entries] = plan;
            entries += 1;
        }
        plans
    }

    const fn plan_for(capacity: u32, head: u32) -> Plan {
        let (base, wide) = Self::BLOCK.widths(capacity);
        let head = head_bits(base, head);
        Plan::new(Self::BLOCK, Cut { capacity, base, wide, head })
    }

    /// The plans for blocks with heads of at most so many bits.
    pub(super) const fn plans_for(head: u32) -> &'static [Plan; MOST] {
        &Self::PLANS[(head != 8) as usize]
    }

    /// Stores a key. Expects a block that [`State`](super::State) or this
    /// has written.
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
        if index == 0 {
            let cut = self.cut(1);
            return Self::insert_first(block, cut, chain, fraction);
        }
        let key = Self::key(chain, fraction);
        let (flag, old, start, answer) = if let Some(found) =
            self.find(backend, block, index, Self::WORD)
        {
            // Of the chain, whether there is one or not: where it begins or
            // would begin.
            let rank = (index & ((1 << chain) - 1)).count_ones();
            let before = Self::FRONT - 1;
            let marks = self.0.three.wrapping_shl(rank + before);
            let marks = backend.select(found.starts, marks);
            let present = index >> chain & 1;
            let span = span(marks) & present.wrapping_neg();
            let answer = match repeats {
                Repeats::Store => Some(Answer::No),
                _ => self.look_in::<B, true>(backend, block, found, span, key),
            };
            let answer = match answer {
                Some(answer) => answer,
                None => backend.outline(LookHarder(self, block, key)),
            };
            let start = marks.trailing_zeros() - before;
            (found.flag || found.worn, found.capacity, start, answer)
        } else if let Some(wide) = self.find_wide(backend, block, index, chain)
        {
            let answer = match repeats {
                Repeats::Store => Answer::No,
                _ => backend.outline(LookHarder(self, block, key)),
            };
            (wide.flag || wide.worn, wide.capacity, wide.start, answer)
        } else {
            return Insertion::Slow;
        };
        let capacity = old + 1;
        // A block with free slots, or one that moves chains away, is taken
        // apart.
        if flag || capacity > self.0.most && !self.is_headless(capacity) {
            return Insertion::Slow;
        }
        let done = match answer {
            Answer::Maybe => Insertion::Again,
            _ => Insertion::New,
        };
        if done == Insertion::Again && repeats == Repeats::Skip {
            return done;
        }
        let present = index >> chain & 1 == 1;
        let index = index | 1 << chain;
        if capacity == self.0.byte_heads + 1 {
            let one = One { start, present, fraction };
            Self::halve_heads(block, index, self.cut(capacity), one);
            return done;
        }
        // There are plans for more than ever come here.
        let plan = &self.0.plans[capacity as usize % MOST];
        let one = One { start, present, fraction };
        match plan.halves {
            2 => add::<B, BYTES, FLAGS, FILL, 2>(
                backend, block, index, plan, one,
            ),
            1 => add::<B, BYTES, FLAGS, FILL, 1>(
                backend, block, index, plan, one,
            ),
            _ => backend.outline(Headless::<BYTES, FLAGS> {
                block,
                index,
                plan,
                one,
            }),
        }
        done
    }

    /// Whether an entry can be added in place to a block that has no heads
    /// any more: not the one with which it loses them.
    #[inline(always)]
    fn is_headless(&self, capacity: u32) -> bool {
        // Each entry needs a bit of *last* and one of fingerprint.
        let most = (Self::ARRAY / 2).min(MOST as u32 - 1);
        FLAGS != CAPPED
            && self.0.most == Self::HALF_HEADS
            && (Self::HALF_HEADS + 2..=most).contains(&capacity)
    }

    /// Stores a key in a block without chains, if that is because it is
    /// empty: others are saturated, or have all spilled.
    #[inline(never)]
    fn insert_first(
        block: &mut [u8; BYTES],
        cut: Cut,
        chain: u32,
        fraction: u64,
    ) -> Insertion {
        if block[BYTES / 8] != 0 {
            return Insertion::Slow;
        }
        let mut row = Row::new();
        row.put(1 << chain, BYTES as u32);
        row.put(0, FLAGS);
        row.put(1, 1);
        let tail = reversed(fraction << cut.head);
        row.put(u64::from(tail), cut.base - cut.head);
        row.at = BYTES as u32 * 8 - cut.head;
        row.put(top(fraction, cut.head).into(), cut.head);
        row.write(block);
        Insertion::New
    }

    /// Adds the entry with which bytes become too long for heads: their
    /// lower halves become planes.
    #[cold]
    #[inline(never)]
    fn halve_heads(block: &mut [u8; BYTES], index: u64, cut: Cut, one: One) {
        let One { start, present, fraction } = one;
        let (start, old) = (start as usize, cut.capacity as usize - 1);
        let mut heads = [0; LINE];
        let (before, behind) = block[BYTES - old..].split_at(start);
        heads[..start].copy_from_slice(before);
        heads[start] = top(fraction, 8);
        heads[start + 1..][..behind.len()].copy_from_slice(behind);

        let mut row = Row::new();
        row.put(index, BYTES as u32);
        row.put(0, FLAGS);
        // Less than a word, like all planes here.
        let last = bits_at(block, Self::FIRST);
        let below = (1 << start) - 1;
        let last =
            last & below | (last & !below) << 1 | u64::from(!present) << start;
        row.put(last, cut.capacity);
        for bit in cut.head..8 {
            let all = bit < cut.base;
            let bits = if all { cut.capacity } else { cut.wide };
            row.put(plane(&heads, 7 - bit), bits);
        }
        for &head in &heads[..=old] {
            row.put(u64::from(head >> 4), 4);
        }
        row.write(block);
    }
}

/// One bit of every byte.
fn plane(bytes: &[u8; LINE], bit: u32) -> u64 {
    (0..LINE / 8).fold(0, |plane, at| {
        let bits = word(bytes, 8 * at) >> bit & 0x0101_0101_0101_0101;
        // The product has the sum of all bytes in its highest, each with a
        // bit of its own.
        let byte = bits.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        plane | byte << (8 * at)
    })
}

/// A block, written from its first bit on.
struct Row {
    words: [u64; LINE / 8 + 1],
    at: u32,
}

impl Row {
    fn new() -> Self {
        Self { words: [0; LINE / 8 + 1], at: 0 }
    }

    fn write(&self, block: &mut [u8]) {
        for (bytes, word) in block.chunks_exact_mut(8).zip(self.words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Appends the lowest `bits` bits of `word`.
    fn put(&mut self, word: u64, bits: u32) {
        let word = u128::from(word) & ((1 << bits) - 1);
        let word = word << (self.at % 64);
        let at = self.at as usize / 64;
        self.words[at] |= word as u64;
        self.words[at + 1] |= (word >> 64) as u64;
        self.at += bits;
    }
}

/// One more entry.
#[derive(Clone, Copy)]
struct One {
    /// The slot it gets.
    start: u32,
    /// Whether its chain has entries.
    present: bool,
    fraction: u64,
}

/// The highest 24 bits, the highest of them first. No entry has more.
#[inline(always)]
fn reversed(word: u64) -> u32 {
    (word >> 40 << 40).reverse_bits() as u32
}

/// At least 57 bits from a place on, or what is left; zeros follow behind
/// the block.
#[inline(always)]
fn bits_at<const BYTES: usize>(block: &[u8; BYTES], place: u32) -> u64 {
    let at = (place as usize / 8).min(BYTES - 8);
    // Less than 64 for every place in the block.
    word(block, at) >> ((place - at as u32 * 8) & 63)
}

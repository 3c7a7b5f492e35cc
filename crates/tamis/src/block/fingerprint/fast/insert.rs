//! Insertions in place: one more entry in a block, without decoding it.
//!
//! | path | blocks | code |
//! |---|---|---|
//! | first entry | empty | `insert_first` |
//! | by words | fewer than 16 entries, and half lines | [`PlaneWords`] |
//! | by 32-bit lanes | lines with 16 entries or more; blocks without heads | `Ops::insert_entry` |
//! | heads become nibbles | the entry with which 8-bit heads no longer fit | `heads_to_nibbles` |
//! | decoded | everything else: [`InsertOutcome::NeedsDecoding`] | the caller |

use tamis_theory::tinyset::Block;

use super::find::span as span_of;
use super::lookup::LookupWide;
use super::{ENTRIES, FastBlock, FormSpec, HeadSpec, top, word};
use crate::arch::WithToken;
use crate::block::Verdict;
use crate::block::fingerprint::layout::{Cut, STUCK, head_bits};
use crate::block::fingerprint::ops::{
    LINE, LaneOffsets, NewEntry, NewHead, Ops, lane_offset,
};

/// Treatment of a key that may be present already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatPolicy {
    /// Store it, without a lookup.
    Store,
    /// Store it, and report that it may have been present.
    StoreAndReport,
    /// Leave it out: an entry that matches a key now matches it always, since
    /// later insertions shorten both.
    Skip,
}

/// The outcome of an insertion in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum InsertOutcome {
    /// Stored. It was absent, or the policy requires no lookup.
    New,
    /// It may have been present; stored again unless the policy is to skip.
    Repeated,
    /// The block is unchanged and has to be decoded for this insertion.
    NeedsDecoding,
}

/// Entries from which on no 32-bit lane gets more than two bits of the new
/// entry, and no bit moves by more than a lane.
const MANY: u32 = 16;

/// Words of the flags and planes of fewer entries.
const WORDS: usize = 6;

/// The parameters of an insertion, by number of entries after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct InsertParams {
    /// Ones at multiples of the number of entries: one slot in every plane.
    stride: u64,
    capacity: u8,
    /// Bits of a fingerprint behind its head, and slots with one more.
    tail: u8,
    wide: u8,
    /// Nibbles of a head, and the nibble at which heads begin.
    nibbles: u8,
    begin: u8,
    lanes: LaneOffsets,
    words: [WordOffset; WORDS],
}

impl InsertParams {
    const fn new(block: Block, cut: Cut) -> Self {
        let Cut { capacity, base, wide, head } = cut;
        let mut stride = 1;
        let mut at = capacity;
        while at > 0 && at < 64 {
            stride |= 1 << at;
            at += capacity;
        }
        let mut words = [WordOffset::new(block, capacity, 0); WORDS];
        let mut word = 1;
        while word < WORDS {
            words[word] = WordOffset::new(block, capacity, word);
            word += 1;
        }
        let tail = base - head;
        Self {
            stride,
            capacity: capacity as u8,
            tail: tail as u8,
            wide: wide as u8,
            nibbles: (head / 4) as u8,
            begin: ((block.block_bits - head * capacity) / 4) as u8,
            lanes: LaneOffsets::new(block, capacity),
            words,
        }
    }
}

/// [`LaneOffsets`] of one word of a block's flags and planes.
#[derive(Debug, Clone, Copy)]
struct WordOffset {
    passed: u8,
    skew: i8,
}

impl WordOffset {
    const fn new(block: Block, capacity: u32, at: usize) -> Self {
        let place = (64 * at as u32).saturating_sub(block.flag_bits);
        let (passed, skew) = lane_offset(place as i32, capacity);
        Self { passed, skew }
    }
}

/// The words of a block's planes with a gap for a new entry in each plane, for
/// at most 64 entries.
struct PlaneWords<'a, const BYTES: usize> {
    block: &'a [u8; BYTES],
    params: &'static InsertParams,
    /// Flag bits in front of the planes.
    flags: u32,
    /// Slot of the new entry.
    start: u32,
    /// Its bits in the planes, that of the first plane lowest.
    new: u64,
}

impl<const BYTES: usize> PlaneWords<'_, BYTES> {
    /// The flags and planes with one more bit in each plane, followed by
    /// arbitrary bits.
    #[inline(always)]
    fn all<T: Ops, const NIBBLES: u8>(&self, token: T) -> [u64; WORDS] {
        let mut planes = [0; WORDS];
        planes[0] = self.get(token, 0);
        planes[1] = self.get(token, 1);
        planes[2] = self.get(token, 2);
        if BYTES == 64 {
            planes[3] = self.get(token, 3);
            planes[4] = self.get(token, 4);
            // With 8-bit heads at most five words.
            if NIBBLES == 1 {
                planes[5] = self.get(token, 5);
            }
        }
        planes
    }

    /// Word `at`. No word depends on another: the number of gaps in front of
    /// it follows from the slot.
    // A method and not a closure, which can become a function without the
    // target features of its caller.
    #[inline(always)]
    fn get<T: Ops>(&self, token: T, at: usize) -> u64 {
        let Self { block, params, flags, start, new } = *self;
        let here = word(block, BYTES / 8 + 8 * at);
        if at == 0 {
            let gaps = params.stride.wrapping_shl(flags + start);
            return token.expand_around(here, gaps) | token.deposit(new, gaps);
        }
        let WordOffset { passed, skew } = params.words[at];
        let gap = start.wrapping_sub(skew as u32);
        // All ones if the word begins behind the slot. Not a branch, which
        // would be mispredicted.
        let late = (gap as i32 >> 31) as u32;
        let passed = u32::from(passed).wrapping_sub(late);
        let gap = gap.wrapping_add(u32::from(params.capacity) & late);
        let gaps = params.stride.wrapping_shl(gap);
        let before = word(block, BYTES / 8 + 8 * at - 8);
        let rest = (before >> 1).wrapping_shr(63 ^ passed);
        let bits = here.wrapping_shl(passed) | rest;
        let new = new.wrapping_shr(passed);
        token.expand_around(bits, gaps) | token.deposit(new, gaps)
    }
}

/// Adds an entry to a block that has some, and whose heads keep their length
/// of `NIBBLES` nibbles.
#[inline(always)]
fn add<
    T: Ops,
    const BYTES: usize,
    F: FormSpec,
    H: HeadSpec,
    const NIBBLES: u8,
>(
    token: T,
    block: &mut [u8; BYTES],
    index: u64,
    params: &'static InsertParams,
    place: NewPlace,
) {
    let NewPlace { start, present, fraction } = place;
    // The tail, cut to the bits this entry has, at most 24.
    let tail = (fraction << (4 * NIBBLES) >> 33) as u32;
    let bits = u32::from(params.tail) + u32::from(start < params.wide.into());
    let value = top(fraction, 8);
    let head = NewHead {
        nibbles: NIBBLES,
        begin: params.begin,
        at: match H::LAYOUT.is_reversed() {
            true => 2 * BYTES as u8 - 1 - start as u8,
            false => params.begin + NIBBLES * start as u8,
        },
        value: match NIBBLES {
            2 => value,
            _ => value >> 4 | value & 0xf0,
        },
    };
    let capacity = u32::from(params.capacity);
    // A half line has few words: computing them costs less than mispredicting
    // which path a block takes.
    if NIBBLES == 0 || BYTES == 64 && capacity >= MANY {
        let new = (tail | u32::from(!present) << 31)
            & !(u32::MAX >> ((bits + 1) & 31));
        let lanes = &params.lanes;
        let entry = NewEntry { index, start, new, capacity, lanes, head };
        token.insert_entry(block, entry);
        return;
    }
    // Reversed before it is cut, which does not depend on the block.
    let new = tail.reverse_bits() | u32::from(!present);
    let new = u64::from(new) & ((2 << bits) - 1);
    let flags = F::KIND.flags();
    let words = PlaneWords { block, params, flags, start, new };
    let rest = in_front::<BYTES>(index, words.all::<T, NIBBLES>(token));
    token.insert_head(block, head, rest);
}

/// The words of a block in front of its heads.
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
struct AddHeadless<'a, const BYTES: usize, F, H> {
    block: &'a mut [u8; BYTES],
    index: u64,
    params: &'static InsertParams,
    place: NewPlace,
    spec: core::marker::PhantomData<(F, H)>,
}

impl<T: Ops, const BYTES: usize, F: FormSpec, H: HeadSpec> WithToken<T>
    for AddHeadless<'_, BYTES, F, H>
{
    type Output = ();

    #[inline(always)]
    fn run(self, token: T) {
        let Self { block, index, params, place, .. } = self;
        add::<T, BYTES, F, H, 0>(token, block, index, params, place);
    }
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> FastBlock<'_, BYTES, F, H> {
    /// Parameters for heads of at most 8 bits, and of at most 4: computing
    /// one takes two dozen instructions.
    const INSERTS: &'static [[InsertParams; ENTRIES]; 2] =
        &[Self::inserts(8), Self::inserts(4)];

    const fn inserts(head: u32) -> [InsertParams; ENTRIES] {
        let mut all = [Self::params(0, head); ENTRIES];
        // The words that `PlaneWords` computes.
        let words = match (BYTES, head) {
            (32, _) => 3,
            (_, 8) => WORDS - 1,
            _ => WORDS,
        };
        let mut entries = 1;
        while entries < ENTRIES {
            let params = Self::params(entries as u32, head);
            let planes = (1 + params.tail as usize) * entries;
            let bits = Self::FLAGS as usize + planes + params.wide as usize;
            let few = BYTES == 32 || entries < MANY as usize;
            assert!(params.nibbles == 0 || !few || bits <= 64 * words);
            all[entries] = params;
            entries += 1;
        }
        all
    }

    const fn params(capacity: u32, head: u32) -> InsertParams {
        let (base, wide) = Self::BLOCK.widths(capacity);
        let head = head_bits(base, head);
        InsertParams::new(Self::BLOCK, Cut { capacity, base, wide, head })
    }

    /// The parameters for blocks with heads of at most `head` bits.
    pub(super) const fn inserts_for(
        head: u32,
    ) -> &'static [InsertParams; ENTRIES] {
        &Self::INSERTS[(head != 8) as usize]
    }

    /// Stores a key in a block that [`DecodedBlock`] or this has written.
    ///
    /// [`DecodedBlock`]: crate::block::fingerprint::DecodedBlock
    #[inline(always)]
    pub(crate) fn insert<T: Ops>(
        self,
        token: T,
        block: &mut [u8; BYTES],
        chain: u32,
        fraction: u64,
        repeats: RepeatPolicy,
    ) -> InsertOutcome {
        let index = Self::index(block);
        if index == 0 {
            let cut = self.cut(1);
            return insert_first(block, Self::FLAGS, cut, chain, fraction);
        }
        let key = Self::key(chain, fraction);
        // A chain of `STUCK` entries can have a stuck group: it is decoded. An
        // absent chain has the marks of the next one.
        let (flag, old, start, verdict) = if let Some(chains) =
            self.find(token, block, index, Self::WORD)
        {
            // The start of the chain, or the slot where it would start.
            let rank = (index & ((1 << chain) - 1)).count_ones();
            let padding = Self::FRONT - 1;
            let marks = self.tables.masks.pair.wrapping_shl(rank + padding);
            let marks = token.deposit(marks, chains.starts);
            let present = index >> chain & 1;
            let span = span_of(marks) & present.wrapping_neg();
            let start = marks.trailing_zeros();
            let long = marks.wrapping_shr(start) >= 1 << STUCK;
            if repeats != RepeatPolicy::Skip && long {
                return InsertOutcome::NeedsDecoding;
            }
            let verdict = match repeats {
                RepeatPolicy::Store => Some(Verdict::Absent),
                _ => self.lookup_in_span::<T, true>(
                    token, block, chains, span, key,
                ),
            };
            let verdict = match verdict {
                Some(verdict) => verdict,
                None => token.call_outlined(LookupWide(self, block, key)),
            };
            let start = start - padding;
            (chains.flag || chains.worn, chains.capacity, start, verdict)
        } else if let Some(wide) = self.find_wide(token, block, index, chain) {
            let span = wide.span;
            if repeats != RepeatPolicy::Skip && span >> (STUCK - 1) & span != 0
            {
                return InsertOutcome::NeedsDecoding;
            }
            let verdict = match repeats {
                RepeatPolicy::Store => Verdict::Absent,
                _ => token.call_outlined(LookupWide(self, block, key)),
            };
            (wide.flag || wide.worn, wide.capacity, wide.start, verdict)
        } else {
            return InsertOutcome::NeedsDecoding;
        };
        let capacity = old + 1;
        // Blocks with free slots and blocks that spill chains are decoded.
        if flag || capacity > self.tables.most && !self.is_headless(capacity) {
            return InsertOutcome::NeedsDecoding;
        }
        let outcome = match verdict {
            Verdict::Maybe => InsertOutcome::Repeated,
            _ => InsertOutcome::New,
        };
        if outcome == InsertOutcome::Repeated && repeats == RepeatPolicy::Skip
        {
            return outcome;
        }
        let present = index >> chain & 1 == 1;
        let index = index | 1 << chain;
        let place = NewPlace { start, present, fraction };
        if capacity == self.tables.byte_heads + 1 {
            let cut = self.cut(capacity);
            heads_to_nibbles(block, Self::FLAGS, index, cut, place);
            return outcome;
        }
        // `capacity < ENTRIES`: `most` and `is_headless` bound it.
        let params = &self.tables.inserts[capacity as usize % ENTRIES];
        match params.nibbles {
            2 => add::<T, BYTES, F, H, 2>(token, block, index, params, place),
            1 => add::<T, BYTES, F, H, 1>(token, block, index, params, place),
            _ => token.call_outlined(AddHeadless::<BYTES, F, H> {
                block,
                index,
                params,
                place,
                spec: core::marker::PhantomData,
            }),
        }
        outcome
    }

    /// Whether the entry that makes `capacity` can be added in place to a
    /// block without heads. The entry with which it loses them cannot.
    #[inline(always)]
    fn is_headless(self, capacity: u32) -> bool {
        // Each entry needs a bit of *last* and one of fingerprint.
        let most = (Self::ARRAY / 2).min(ENTRIES as u32 - 1);
        !F::SPILLS
            && self.tables.most == Self::NIBBLE_HEADS
            && (Self::NIBBLE_HEADS + 2..=most).contains(&capacity)
    }
}

/// Stores a key in a block without chains, if it is empty and not
/// saturated or all spilled.
///
/// This and [`heads_to_nibbles`] are compiled once per block size, not once
/// per kernel.
#[inline(never)]
fn insert_first<const BYTES: usize>(
    block: &mut [u8; BYTES],
    flags: u32,
    cut: Cut,
    chain: u32,
    fraction: u64,
) -> InsertOutcome {
    if block[BYTES / 8] != 0 {
        return InsertOutcome::NeedsDecoding;
    }
    let mut row = BitWriter::new();
    row.put(1 << chain, BYTES as u32);
    row.put(0, flags);
    row.put(1, 1);
    let tail = reversed(fraction << cut.head);
    row.put(u64::from(tail), cut.base - cut.head);
    row.at = BYTES as u32 * 8 - cut.head;
    row.put(top(fraction, cut.head).into(), cut.head);
    row.write(block);
    InsertOutcome::New
}

/// Adds the entry with which 8-bit heads no longer fit: their low nibbles
/// become planes.
#[cold]
#[inline(never)]
fn heads_to_nibbles<const BYTES: usize>(
    block: &mut [u8; BYTES],
    flags: u32,
    index: u64,
    cut: Cut,
    place: NewPlace,
) {
    let NewPlace { start, present, fraction } = place;
    let (start, old) = (start as usize, cut.capacity as usize - 1);
    let mut heads = [0; LINE];
    let (before, behind) = block[BYTES - old..].split_at(start);
    heads[..start].copy_from_slice(before);
    heads[start] = top(fraction, 8);
    heads[start + 1..][..behind.len()].copy_from_slice(behind);

    let mut row = BitWriter::new();
    row.put(index, BYTES as u32);
    row.put(0, flags);
    // Fewer than 64 slots, as in all planes here.
    let last = bits_at(block, BYTES as u32 + flags);
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

/// Bit `bit` of every byte.
fn plane(bytes: &[u8; LINE], bit: u32) -> u64 {
    (0..LINE / 8).fold(0, |plane, at| {
        let bits = word(bytes, 8 * at) >> bit & 0x0101_0101_0101_0101;
        // The multiplication gathers bit 0 of all bytes in the highest byte.
        let byte = bits.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        plane | byte << (8 * at)
    })
}

/// Writes a block from its first bit on.
struct BitWriter {
    words: [u64; LINE / 8 + 1],
    at: u32,
}

impl BitWriter {
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

/// Where a new entry goes.
#[derive(Clone, Copy)]
struct NewPlace {
    /// Its slot.
    start: u32,
    /// Whether its chain has entries already.
    present: bool,
    fraction: u64,
}

/// The highest 24 bits reversed. No entry has more.
#[inline(always)]
fn reversed(word: u64) -> u32 {
    (word >> 40 << 40).reverse_bits() as u32
}

/// At least 57 bits from `place` on, as far as the block goes, then zeros.
#[inline(always)]
fn bits_at<const BYTES: usize>(block: &[u8; BYTES], place: u32) -> u64 {
    let at = (place as usize / 8).min(BYTES - 8);
    // Less than 64 for every place in the block.
    word(block, at) >> ((place - at as u32 * 8) & 63)
}

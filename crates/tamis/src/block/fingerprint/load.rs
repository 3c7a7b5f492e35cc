//! The entries of a block, found without decoding it.

use alloc::vec::Vec;
use core::ops::Range;

use super::layout::{Cut, Form, STUCK, Shape};

/// The first bits of a fraction in the highest bits, their number in the
/// lowest. Sorted, every fingerprint follows its prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    /// Of a settled entry: R is at most 40, so the length needs 6 bits.
    pub(super) fn new(prefix: u64, bits: u32) -> Self {
        debug_assert!(bits <= 41, "an entry is not cut");
        Self(prefix | u64::from(bits))
    }

    fn bits(self) -> u32 {
        (self.0 & 0x3f) as u32
    }

    /// Half intervals of `base` bits that match.
    fn half_intervals(self, base: u32) -> u32 {
        1 << (base + 1 - self.bits())
    }

    /// The first `bits` bits.
    fn first(self, bits: u32) -> u64 {
        self.0.checked_shr(64 - bits).unwrap_or(0)
    }

    pub(super) fn matches(self, fraction: u64) -> bool {
        (self.0 ^ fraction).checked_shr(64 - self.bits()).unwrap_or(0) == 0
    }

    /// Whether this matches every key that `other` matches, which is not
    /// shorter.
    fn covers(self, other: Self) -> bool {
        self.matches(other.0)
    }
}

/// The fractions that match entries, as disjoint intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Union {
    /// Their measure in halves of the interval of `base` bits: no fingerprint
    /// is shorter.
    pub(crate) half_intervals: u32,
    /// Their number: entries that no other entry covers.
    pub(crate) entries: u32,
}

impl core::ops::AddAssign for Union {
    fn add_assign(&mut self, other: Self) {
        self.half_intervals += other.half_intervals;
        self.entries += other.entries;
    }
}

/// The union of the fingerprints of a chain.
pub(super) fn union_of(chain: &mut [Fingerprint], base: u32) -> Union {
    chain.sort_unstable();
    let mut union = Union::default();
    let mut kept: Option<Fingerprint> = None;
    for &here in &*chain {
        if !kept.is_some_and(|before| before.covers(here)) {
            union.half_intervals += here.half_intervals(base);
            union.entries += 1;
            kept = Some(here);
        }
    }
    union
}

/// Share of all fractions in `half_intervals` of a chain.
pub(super) fn share(base: u32, half_intervals: u32) -> f64 {
    f64::from(half_intervals) / (1u64 << (base + 1)) as f64
}

/// The places of the entries of a block.
pub(super) struct Outline<'a> {
    shape: &'a Shape,
    bits: BlockBits<'a>,
    /// Entries.
    slots: u32,
    cut: Cut,
    /// The chains from here on have moved to the second level.
    spilled_from: u32,
    worn: bool,
}

impl<'a> Outline<'a> {
    /// The outline of a block; `None` if it is saturated or damaged.
    ///
    /// Agrees with [`DecodedBlock::read`](super::DecodedBlock::read).
    pub(super) fn of(shape: &'a Shape, block: &'a [u8]) -> Option<Self> {
        let bits = BlockBits(block);
        let chains = shape.block.chains;
        let used = bits.ones(0, chains);
        let flag = shape.form != Form::Plain && bits.get(chains);
        let spilled = flag && matches!(shape.form, Form::Capped(_));
        let spilled_from = match spilled {
            true => bits.highest(chains).map_or(0, |bit| bit + 1),
            false => chains,
        };
        if used == 0 {
            let from = chains + u32::from(spilled);
            let empty = bits.ones(from, shape.block.block_bits) == 0;
            return empty.then_some(Self {
                shape,
                bits,
                slots: 0,
                cut: shape.cut(0),
                spilled_from,
                worn: false,
            });
        }
        let (first, end) =
            (shape.first(), shape.first() + shape.block.array_bits());
        let last = bits.select(first, end, used - 1)?;
        let slots = last + 1 - first;
        let capacity = match (shape.form, flag) {
            (Form::Elastic, true) => {
                bits.select(last + 1, end, 0)? + 1 - first
            }
            (Form::Capped(cap), _) if slots > cap => return None,
            (Form::Capped(cap), true) => cap,
            _ => slots,
        };
        let cut = shape.cut(capacity);
        let worn = shape.form == Form::Elastic && bits.get(chains + 1);
        Some(Self { shape, bits, slots, cut, spilled_from, worn })
    }

    /// Whether keys of this chain are in the second level.
    pub(super) fn has_spilled(&self, chain: u32) -> bool {
        chain >= self.spilled_from
    }

    /// The slots of a chain.
    pub(super) fn span(&self, chain: u32) -> Range<u32> {
        if !self.bits.get(chain) {
            return 0..0;
        }
        let first = self.shape.first();
        let end = first + self.slots;
        let start = match self.bits.ones(0, chain) {
            0 => 0,
            // `of` found one for every chain.
            rank => self
                .bits
                .select(first, end, rank - 1)
                .map_or(0, |last| last + 1 - first),
        };
        start..self.end(start)
    }

    /// The slot after the last one of the chain of `slot`.
    fn end(&self, slot: u32) -> u32 {
        let first = self.shape.first();
        let end = first + self.slots;
        let last = self.bits.select(first + slot, end, 0);
        // `of` found the end of every chain.
        last.map_or(self.slots, |last| last + 1 - first)
    }

    /// Position of the head in slot 0, and the distance from one to the next.
    fn heads(&self) -> (u32, i32) {
        let Self { shape, cut, .. } = self;
        let (end, step) = (shape.block.block_bits, cut.head as i32);
        match shape.heads.is_reversed() {
            true => (end - cut.head, -step),
            false => (end - cut.head * cut.capacity, step),
        }
    }

    /// The fingerprint in a slot, without a bit that does not count.
    pub(super) fn fingerprint(&self, slot: u32) -> Fingerprint {
        let Self { shape, bits, cut, .. } = self;
        let mut known = cut.width(slot);
        let mut prefix = 0;
        if cut.head > 0 {
            let (first, step) = self.heads();
            let place = first.wrapping_add_signed(step * slot as i32);
            prefix = bits.word(place, cut.head) << (64 - cut.head);
        }
        let mut place = shape.first() + cut.capacity + slot;
        for bit in cut.head..known {
            prefix |= u64::from(bits.get(place)) << (63 - bit);
            place += cut.capacity;
        }
        // The extra bit of a worn block counts only if it is 1.
        if self.worn && known > cut.base && prefix >> (64 - known) & 1 == 0 {
            known = cut.base;
        }
        Fingerprint::new(prefix, known)
    }

    /// The half intervals of the entries in some slots of one chain, summed,
    /// and their union.
    fn union_in(&self, slots: Range<u32>) -> (u32, Union) {
        let base = self.cut.base;
        let mut some = [Fingerprint(0); 16];
        let mut all;
        let chain = match some.get_mut(..slots.len()) {
            Some(chain) => chain,
            None => {
                all = alloc::vec![Fingerprint(0); slots.len()];
                &mut all
            }
        };
        let mut sum = 0;
        for (fingerprint, slot) in chain.iter_mut().zip(slots) {
            *fingerprint = self.fingerprint(slot);
            sum += fingerprint.half_intervals(base);
        }
        (sum, union_of(chain, base))
    }

    /// Number of stuck groups.
    fn stuck(&self) -> u32 {
        if !self.has_long_chain() {
            return 0;
        }
        let (mut stuck, mut slot) = (0, 0);
        while slot < self.slots {
            let chain = slot..self.end(slot);
            slot = chain.end;
            if chain.len() < STUCK as usize {
                continue;
            }
            let mut groups: Vec<u64> = chain
                .map(|slot| self.fingerprint(slot).first(self.cut.base))
                .collect();
            groups.sort_unstable();
            let groups = groups.chunk_by(|a, b| a == b);
            stuck += groups.filter(|g| g.len() >= STUCK as usize).count();
        }
        stuck as u32
    }

    /// Whether a chain has [`STUCK`] entries: that number of slots less one
    /// without an end, then any.
    fn has_long_chain(&self) -> bool {
        const { assert!(STUCK == 16) };
        let first = self.shape.first();
        (0..self.slots).step_by(56 - 15).any(|from| {
            let len = (self.slots - from).min(56);
            let mut open = !self.bits.word(first + from, len);
            open &= (1 << len) - 1;
            // Starts of 2, 4, 8 and 15 such slots.
            for slots in [1, 2, 4, 7] {
                open &= open >> slots;
            }
            open != 0
        })
    }

    /// The union of all entries.
    fn union(&self) -> Union {
        match self.cut.base {
            0..=3 => self.union_by_planes(),
            _ => self.union_by_pairs(),
        }
    }

    /// [`union`](Self::union) of fingerprints that seldom agree:
    /// compares those of a chain in pairs, all pairs of slots at a distance
    /// at once.
    fn union_by_pairs(&self) -> Union {
        let Self { shape, bits, slots, cut, worn, .. } = *self;
        let first = shape.first();
        let wide = cut.wide.min(slots);
        let extra = first + cut.capacity * (1 + cut.base - cut.head);
        // Entries whose extra bit counts.
        let longer = match worn {
            false => wide,
            true => bits.ones(extra, extra + wide),
        };
        let mut union =
            Union { half_intervals: 2 * slots - longer, entries: slots };
        let (first_head, step) = self.heads();
        let head = |slot: u32| {
            let place = first_head.wrapping_add_signed(step * slot as i32);
            bits.from(place)
        };
        let mask = (1 << cut.head) - 1;
        // The chains of slots below are counted.
        let mut done = 0;
        for from in (0..slots).step_by(56) {
            let len = (slots - from).min(56);
            let mut chain = (1 << len) - 1;
            // Slots that agree in `base` bits with a later one.
            let mut agreeing = 0;
            for distance in 1..slots - from {
                // Slots whose chain has one at this distance.
                chain &= !bits.word(first + from + distance - 1, len);
                if chain == 0 {
                    break;
                }
                let mut equal = chain;
                for row in 1..=cut.base - cut.head {
                    let plane = first + cut.capacity * row + from;
                    let here = bits.word(plane, len);
                    equal &= !(here ^ bits.word(plane + distance, len));
                }
                for slot in ones(equal) {
                    let here = from + slot;
                    let differ = head(here) ^ head(here + distance);
                    agreeing |= u64::from(differ & mask == 0) << slot;
                }
            }
            for slot in ones(agreeing) {
                let start = from + slot;
                if start < done {
                    continue;
                }
                // No slot before `start` agrees with one of its chain.
                done = self.end(start);
                let (sum, chain) = self.union_in(start..done);
                union += chain;
                union.half_intervals -= sum;
                union.entries -= done - start;
            }
        }
        union
    }

    /// [`union`](Self::union) of short fingerprints without heads: for each
    /// value counts the chains that have an entry with it.
    fn union_by_planes(&self) -> Union {
        const VALUES: usize = 1 << 3;
        let Self { shape, bits, slots, cut, worn, .. } = self;
        let first = shape.first();
        let base = cut.base as usize;
        // Chains that have an entry with the value that matches an extra bit
        // of 0, of 1, and both.
        let mut chains = [0; 3];
        // Carries from one word to the next, for a chain that goes on there.
        let mut carry = [[0; 3]; VALUES];
        for from in (0..*slots).step_by(56) {
            let len = (slots - from).min(56);
            let mask = (1 << len) - 1;
            let row =
                |row: u32| bits.word(first + cut.capacity * row + from, len);
            let last = row(0);
            let open = !last & mask;
            let mut planes = [0; 3];
            for (plane, at) in planes.iter_mut().zip(1..=cut.base) {
                *plane = row(at);
            }
            let wide = (1u64 << cut.wide.saturating_sub(from).min(len)) - 1;
            let extra = match wide {
                0 => 0,
                _ => row(cut.base + 1) & wide,
            };
            let zero = mask & !extra;
            let one = match worn {
                false => mask & (!wide | extra),
                true => mask,
            };
            for (value, carry) in carry.iter_mut().enumerate().take(1 << base)
            {
                let mut equal = mask;
                for (bit, plane) in planes.iter().enumerate().take(base) {
                    equal &= match value >> bit & 1 {
                        0 => !plane,
                        _ => *plane,
                    };
                }
                let matching = [zero, one, zero & one];
                for (i, carry) in carry.iter_mut().enumerate() {
                    let here = equal & matching[i];
                    // The addition carries from every entry to the end of
                    // its chain.
                    let any = (here & open) + open + *carry;
                    chains[i] += ((any | here) & last).count_ones();
                    *carry = any >> len;
                }
            }
        }
        let [zero, one, both] = chains;
        // Both halves of an interval match one entry or two.
        Union { half_intervals: zero + one, entries: zero + one - both }
    }
}

/// The load of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockLoad {
    Saturated,
    Holding {
        /// Entries.
        slots: u32,
        /// Slots the block is cut for.
        capacity: u32,
        /// Bits of the shortest fingerprints.
        base: u32,
        union: Union,
        /// Stuck groups.
        stuck: u32,
        /// The chains from here on have moved to the second level.
        spilled_from: u32,
    },
}

impl BlockLoad {
    /// Agrees with [`DecodedBlock`](super::DecodedBlock), also on damaged
    /// blocks.
    pub(crate) fn of(shape: &Shape, block: &[u8]) -> Self {
        let Some(outline) = Outline::of(shape, block) else {
            return Self::Saturated;
        };
        let (union, stuck) = (outline.union(), outline.stuck());
        let Outline { slots, cut, spilled_from, .. } = outline;
        let Cut { capacity, base, .. } = cut;
        Self::Holding { slots, capacity, base, union, stuck, spilled_from }
    }

    /// The false-positive rate of the block.
    pub(crate) fn rate(&self, shape: &Shape) -> f64 {
        let &Self::Holding { base, union, .. } = self else { return 1.0 };
        share(base, union.half_intervals) / f64::from(shape.block.chains)
    }
}

/// Share of the fractions that match an entry of a chain: 1 in a saturated
/// block.
pub(crate) fn chain_share(shape: &Shape, block: &[u8], chain: u32) -> f64 {
    let Some(outline) = Outline::of(shape, block) else { return 1.0 };
    let (_, union) = outline.union_in(outline.span(chain));
    share(outline.cut.base, union.half_intervals)
}

/// Positions of the ones of a word.
fn ones(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (place < 64).then_some(place)
    })
}

/// A block as a sequence of bits.
#[derive(Clone, Copy)]
struct BlockBits<'a>(&'a [u8]);

impl BlockBits<'_> {
    fn get(self, bit: u32) -> bool {
        self.0[bit as usize / 8] >> (bit % 8) & 1 == 1
    }

    /// The `bits <= 56` bits from `at` on.
    fn word(self, at: u32, bits: u32) -> u64 {
        self.from(at) & ((1 << bits) - 1)
    }

    /// The bits from `at` on: 57 or more, or the remainder of the block.
    fn from(self, at: u32) -> u64 {
        // The last eight bytes where a word from `at` on would leave the block.
        let byte = (at as usize / 8).min(self.0.len().saturating_sub(8));
        let word = match self.0.get(byte..byte + 8) {
            Some(bytes) => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }
            // A block of less than eight bytes.
            None => {
                let bytes = self.0.iter().rev();
                bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
            }
        };
        word >> (at as usize - 8 * byte)
    }

    /// The bits of a range, 56 per word, each with its position.
    fn words(self, from: u32, to: u32) -> impl Iterator<Item = (u32, u64)> {
        (from..to)
            .step_by(56)
            .map(move |at| (at, self.word(at, (to - at).min(56))))
    }

    /// Ones of a range.
    fn ones(self, from: u32, to: u32) -> u32 {
        self.words(from, to).map(|(_, word)| word.count_ones()).sum()
    }

    /// Position of the highest one below `to`.
    fn highest(self, to: u32) -> Option<u32> {
        (0..to).rev().find(|&bit| self.get(bit))
    }

    /// Position of the one of rank `rank` of a range.
    fn select(self, from: u32, to: u32, mut rank: u32) -> Option<u32> {
        for (at, mut word) in self.words(from, to) {
            let ones = word.count_ones();
            if rank < ones {
                for _ in 0..rank {
                    word &= word - 1;
                }
                return Some(at + word.trailing_zeros());
            }
            rank -= ones;
        }
        None
    }
}

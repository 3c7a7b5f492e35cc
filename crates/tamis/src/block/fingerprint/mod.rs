//! The fingerprint block: every key stored in it has a *chain* and a
//! *fingerprint*, and the fingerprints share the block's bits evenly, so
//! that they shrink as the block fills (TinySet, Einziger and Friedman).
//!
//! # Layout
//!
//! With X entries, ordered by chain and, inside a chain, newest first:
//!
//! ```text
//! | index | flags| last | plane h | plane h+1 | ... | plane base | heads |
//! | L bits| 0..2 |  X   |    X    |     X     |     |  X or less | h X   |
//! ```
//!
//! * *index*: bit c tells whether chain c has entries.
//! * *flags*: see [`Form`].
//! * *last*: bit i tells whether entry i is the last of its chain. With the
//!   index this says which entries belong to which chain, and how many
//!   there are: no counter is stored.
//! * *heads*: the first h bits of all fingerprints, right-aligned in the
//!   block. h is 8 if fingerprints have 8 bits or more, else 4 if they have
//!   4 or more, else 0; in a structure whose blocks mostly have shorter
//!   fingerprints it is never 8, so that blocks are alike. A vector
//!   comparison looks at all heads at once. They are in the order of the
//!   entries or, if they are *placed*, in the reverse order: the place of a
//!   head then follows from its slot alone, and a lookup that ends with the
//!   heads need not know how many entries there are.
//! * *plane j*: bit j of all fingerprints. The last plane is cut off where
//!   the heads begin, so that the first entries have one bit more than the
//!   others.
//!
//! Why planes and not fields: one more entry takes a bit out of every
//! fingerprint, and in planes that means that the last plane ends earlier.
//! Nothing has to be repacked, and the extra bits of the first entries
//! (*mod* in the paper) are simply what fits of the next plane.
//!
//! A fingerprint is cut from the front of the key's *fraction*: what
//! remains of the hash once the block is chosen, as a binary fraction. Its
//! first bit is therefore the address bit that a filter of twice as many
//! blocks would use, which is what makes halving and doubling possible, and
//! shorter fingerprints are prefixes of longer ones.
//!
//! A block that cannot take another entry (an entry needs one bit) is
//! *saturated*: no bit in the index, all other bits set. It answers "maybe"
//! to every key from then on.

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
pub(crate) mod avx512;
mod contents;
mod fixed;
pub(crate) mod scalar;
mod summary;

pub(crate) use contents::{Entry, State};
pub(crate) use fixed::{
    ANY, Answer, Expected, Fixed, HALVED, Insertion, Key, Known, LINE, PLACED,
    Repeats, SPARSE,
};
pub(crate) use summary::Summary;

#[cfg(test)]
mod tests;

use tamis_theory::tinyset::Block;

/// What the flag bits of a block mean, if there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// There are none: entries are only added, and there are as many as the
    /// *last* plane has bits.
    Plain,
    /// One: set if chains have moved to a second level. Such a block is cut
    /// for this many entries for ever, and its highest chain tells which
    /// keys are still here.
    Capped(u32),
    /// Two, since fingerprints cannot grow back when others leave.
    ///
    /// The first, *free*: there are free slots behind the entries, which
    /// look like one more chain. They say for how many entries the block
    /// was cut.
    ///
    /// The second, *worn*: an entry has moved to a place whose extra bit it
    /// never had. From then on an extra bit counts only if it is 1. Blocks
    /// that have not lost an entry pay nothing for those that have.
    Elastic,
}

impl Form {
    /// Bits of flags.
    pub(crate) const fn flags(self) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Capped(_) => 1,
            Self::Elastic => 2,
        }
    }
}

/// The shape all blocks of a structure have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) block: Block,
    pub(crate) form: Form,
    /// Bits of the longest heads, 8 or 4.
    pub(crate) head: u32,
    /// Whether they are placed, the first entry's last. Only those of 4 bits
    /// are: where they can be bytes, how long they are has to be known first.
    pub(crate) placed: bool,
}

impl Shape {
    pub(crate) const fn new(block: Block, form: Form) -> Self {
        let block =
            Block { flag_bits: form.flags(), wildcard: false, ..block };
        Self { block, form, head: 8, placed: false }
    }

    /// With heads of at most this many bits, 8 or 4.
    pub(crate) const fn with_head(self, head: u32) -> Self {
        Self { head, placed: false, ..self }
    }

    /// With heads of 4 bits that are placed.
    pub(crate) const fn with_placed_heads(self) -> Self {
        Self { head: 4, placed: true, ..self }
    }

    /// In another form.
    pub(crate) const fn with_form(self, form: Form) -> Self {
        let Self { head, placed, .. } = self;
        Self { head, placed, ..Self::new(self.block, form) }
    }

    /// Bytes from one block to the next.
    pub(crate) const fn bytes(&self) -> usize {
        self.block.block_bits.div_ceil(8) as usize
    }

    /// Where the *last* plane begins.
    pub(crate) const fn first(&self) -> u32 {
        self.block.chains + self.block.flag_bits
    }

    /// The chain of a key: as even as 16 bits allow for every number of
    /// chains, and from the end of the hash that neither the block nor the
    /// fingerprint is made of.
    #[inline(always)]
    pub(crate) const fn chain(&self, hash: u64) -> u32 {
        ((hash as u16 as u32) * self.block.chains) >> 16
    }

    /// How a block of this capacity is cut.
    pub(crate) const fn cut(&self, capacity: u32) -> Cut {
        let (base, wide) = self.block.widths(capacity);
        Cut { capacity, base, wide, head: head_bits(base, self.head) }
    }

    /// The least capacity in which no entry needs more than `known` bits,
    /// the extra one apart.
    pub(crate) fn capacity_for(&self, known: u32) -> u32 {
        if known >= self.block.remainder_bits {
            return 0;
        }
        self.block.array_bits() / (known + 2) + 1
    }
}

/// How many bits of a fingerprint are its head.
pub(crate) const fn head_bits(base: u32, longest: u32) -> u32 {
    match base {
        8.. => longest,
        4..=7 => 4,
        _ => 0,
    }
}

/// How the array is cut for a number of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// X: slots.
    pub(crate) capacity: u32,
    /// Bits every fingerprint has.
    pub(crate) base: u32,
    /// How many have one more.
    pub(crate) wide: u32,
    /// Bits of a head.
    pub(crate) head: u32,
}

impl Cut {
    /// Bits of the fingerprint in this slot.
    pub(crate) const fn width(&self, slot: u32) -> u32 {
        self.base + (slot < self.wide) as u32
    }

    /// Where this bit of the first fingerprint is, and how far it is from
    /// one fingerprint to the next.
    pub(crate) const fn row(&self, shape: &Shape, bit: u32) -> (u32, i32) {
        let end = shape.block.block_bits;
        // The first bit of a head is its highest.
        if bit >= self.head {
            (shape.first() + self.capacity * (1 + bit - self.head), 1)
        } else if shape.placed {
            (end - 1 - bit, -(self.head as i32))
        } else {
            let first = end - self.head * self.capacity;
            (first + self.head - 1 - bit, self.head as i32)
        }
    }
}

/// Heads to compare with: `capacity` of them, right-aligned in the block.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// Bits of a head, 8 or 4.
    pub(crate) bits: u32,
    pub(crate) value: u8,
    /// At most 64, and no more than fit the block.
    pub(crate) capacity: u32,
}

/// One more head among those of a block: those in front of it move down by
/// one, those behind it stay. Places are counted in half bytes.
#[derive(Debug, Clone, Copy)]
pub struct NewHead {
    /// Half bytes of a head: 2, 1, or 0 if there are no heads, which then
    /// begin where the block ends.
    pub(crate) halves: u8,
    /// Where the heads begin, the new one counted.
    pub(crate) begin: u8,
    /// Where the new head goes.
    pub(crate) at: u8,
    /// The head as a byte: if it has only half of one, twice.
    pub(crate) value: u8,
}

/// Bits of one entry in up to eight planes.
#[derive(Debug, Clone, Copy)]
pub struct Planes {
    /// The place of the first.
    pub(crate) first: u32,
    /// From one to the next.
    pub(crate) stride: u32,
    /// How many; all lie inside the block.
    pub(crate) count: u32,
}

/// What is looked for behind heads.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    /// For how many entries the block is cut.
    pub(crate) entries: u32,
    /// Up to eight bits, the first highest.
    pub(crate) bits: u8,
    /// Whether a 0 in the plane that only some entries have a bit in says
    /// nothing.
    pub(crate) vague: bool,
}

impl Tail {
    /// What a fraction has behind a head of so many bits.
    #[inline(always)]
    fn new(entries: u32, head: u32, fraction: u64, vague: bool) -> Self {
        Self { entries, bits: (fraction << head >> 56) as u8, vague }
    }
}

/// Where the bits behind heads are, for every number of entries: 64 bits of
/// each of eight planes, which are those of 64 entries.
///
/// They are found without knowing which entry is looked for, and so at the
/// same time as that.
#[repr(align(64))] // What a vector loads is in one line.
pub struct Tails {
    /// The byte of the block in which each byte of a plane begins; the first
    /// plane is the last.
    pub(crate) bytes: [[u8; 64]; Tails::MOST],
    /// Which of its bits belong to an entry: all, or some, or none.
    pub(crate) masks: [[u64; 8]; Tails::MOST],
    /// How far behind the beginning of a byte it begins.
    pub(crate) shifts: [[u8; 8]; Tails::MOST],
}

impl Tails {
    /// Numbers of entries, from none on.
    pub(crate) const MOST: usize = 128;

    /// Of no entries.
    pub(crate) const NONE: Self = Self {
        bytes: [[0; 64]; Self::MOST],
        masks: [[0; 8]; Self::MOST],
        shifts: [[0; 8]; Self::MOST],
    };

    /// For the first entries, with so many bits before the first of them that
    /// stand for none; without such a bit, of blocks that have fewer than 64.
    pub(crate) const fn new(shape: &Shape, before: u32) -> Self {
        let mut tails = Self::NONE;
        let mut entries = 1;
        while entries < Self::MOST {
            let cut = shape.cut(entries as u32);
            let mut lane = 0;
            while lane < 8 {
                let bit = cut.head + 7 - lane as u32;
                let (first, _) = cut.row(shape, bit);
                let place = (first - before) as usize;
                let mut byte = 0;
                while byte < 8 {
                    // What is behind the block belongs to no entry.
                    tails.bytes[entries][8 * lane + byte] =
                        (place / 8 + byte) as u8 % 64;
                    byte += 1;
                }
                tails.shifts[entries][lane] = place as u8 % 8;
                let known = cut.wide + before;
                let known = if known > 64 { 64 } else { known };
                tails.masks[entries][lane] = if bit < cut.base {
                    u64::MAX
                } else if bit > cut.base || known == 0 {
                    0
                } else {
                    // Never all ones, which say that every entry has it.
                    u64::MAX >> (64 - known) >> before << before
                };
                lane += 1;
            }
            entries += 1;
        }
        tails
    }

    /// From how many entries on eight planes are all that a block with heads
    /// of so many bits has.
    pub(crate) const fn least(block: Block, head: u32) -> u32 {
        let mut entries = 1;
        while block.widths(entries).0 + 1 > head + 8 {
            entries += 1;
        }
        entries
    }
}

/// One more entry in a block that has many: a bit of it comes into every
/// plane, and what is behind it moves on.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry {
    /// The index, the new entry's chain among the others.
    pub(crate) index: u64,
    /// The slot it gets.
    pub(crate) start: u32,
    /// Its bits in the planes, that of the first plane highest.
    pub(crate) new: u32,
    /// Entries, the new one counted.
    pub(crate) capacity: u32,
    /// For this capacity.
    pub(crate) lanes: &'static Lanes,
    pub(crate) head: NewHead,
}

/// Where bits of an entry are, seen from each of a block's lanes of 32
/// bits: in a row of bits that stand `capacity` apart, if the first stood
/// in the first slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    /// How many come before the lane.
    pub(crate) passed: [u8; 16],
    /// The place of the lane behind the last of those; negative if none
    /// comes before it.
    pub(crate) skew: [i8; 16],
}

impl Lanes {
    pub(crate) const fn new(block: Block, capacity: u32) -> Self {
        let mut lanes = Self { passed: [0; 16], skew: [0; 16] };
        let mut lane = 0;
        while lane < 16 {
            let first = (block.chains + block.flag_bits) as i32;
            let place = 32 * lane as i32 - first;
            if place < 0 || capacity == 0 {
                lanes.skew[lane] = place as i8;
            } else {
                lanes.passed[lane] = (place / capacity as i32) as u8;
                lanes.skew[lane] = (place % capacity as i32) as i8;
            }
            lane += 1;
        }
        lanes
    }
}

//! Where the bits of a block are: [`Shape`] for a structure, [`Cut`] for a
//! number of entries.

use tamis_theory::tinyset::Block;

/// Entries with which a group is *stuck*. A group is the entries of a chain
/// that agree in the bits which all fingerprints of the block have.
///
/// A stuck group stores no key that it already matches, and gives up no entry:
/// copies of one key cannot fill a block. A counting filter's counters stick
/// at 16 or less as well. See [`Shape::refuses_copies`].
pub(crate) const STUCK: u32 = 16;

/// The meaning of a block's flag bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// No flag. Entries are only added, and the block is cut for its number
    /// of entries.
    Plain,
    /// One flag, *spilled*: chains have moved to a second level. Such a block
    /// stays cut for `cap` slots; its highest chain bounds the chains that
    /// are still in it.
    Capped(u32),
    /// Two flags, because fingerprints cannot grow back when entries leave.
    ///
    /// The first, *free*: the block has free slots behind its entries, which
    /// look like one more chain. They give the number of slots the block is
    /// cut for.
    ///
    /// The second, *worn*: an entry has moved to a slot whose extra bit it
    /// never had. From then on an extra bit counts only if it is 1. Blocks
    /// that have not lost an entry pay nothing for those that have.
    Elastic,
}

impl Form {
    /// Number of flag bits.
    pub(crate) const fn flags(self) -> u32 {
        match self {
            Self::Plain => 0,
            Self::Capped(_) => 1,
            Self::Elastic => 2,
        }
    }
}

/// Length and order of a structure's heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadLayout {
    /// 8 bits while fingerprints have 8, then 4; slot 0 first.
    Bytes,
    /// 4 bits; slot 0 first.
    Nibbles,
    /// 4 bits; slot 0 last, at the end of the block. The place of a head then
    /// follows from its slot alone, so that a lookup that ends at the heads
    /// needs no count of the entries.
    NibblesReversed,
}

impl HeadLayout {
    /// Bits of the longest heads.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Bytes => 8,
            Self::Nibbles | Self::NibblesReversed => 4,
        }
    }

    pub(crate) const fn is_reversed(self) -> bool {
        matches!(self, Self::NibblesReversed)
    }
}

/// The shape all blocks of a structure have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) block: Block,
    pub(crate) form: Form,
    pub(crate) heads: HeadLayout,
}

impl Shape {
    /// A shape with [`HeadLayout::Bytes`].
    pub(crate) const fn new(block: Block, form: Form) -> Self {
        let block =
            Block { flag_bits: form.flags(), wildcard: false, ..block };
        Self { block, form, heads: HeadLayout::Bytes }
    }

    pub(crate) const fn with_heads(self, heads: HeadLayout) -> Self {
        Self { heads, ..self }
    }

    pub(crate) const fn with_form(self, form: Form) -> Self {
        Self::new(self.block, form).with_heads(self.heads)
    }

    /// Bytes from one block to the next.
    pub(crate) const fn bytes(&self) -> usize {
        self.block.block_bits.div_ceil(8) as usize
    }

    /// Position of the first bit of the *last* plane.
    pub(crate) const fn first(&self) -> u32 {
        self.block.chains + self.block.flag_bits
    }

    /// The chain of a key, from the low 16 bits of the hash, which neither
    /// the block nor the fingerprint uses. As even as 16 bits allow for every
    /// number of chains.
    #[inline(always)]
    pub(crate) const fn chain(&self, hash: u64) -> u32 {
        ((hash as u16 as u32) * self.block.chains) >> 16
    }

    /// The cut of a block with `capacity` slots.
    pub(crate) const fn cut(&self, capacity: u32) -> Cut {
        let (base, wide) = self.block.widths(capacity);
        Cut { capacity, base, wide, head: head_bits(base, self.heads.bits()) }
    }

    /// Whether stuck groups of fingerprints of `base` bits refuse keys.
    ///
    /// Without bits a group is a chain, and its entries are mostly of
    /// different keys: the block is overfull and saturates. Where entries may
    /// leave, it cannot: a group that was stuck before it lost its bits stays
    /// so.
    pub(crate) fn refuses_copies(&self, base: u32) -> bool {
        base > 0 || self.form == Form::Elastic
    }

    /// The least capacity in which no entry needs more than `bits` bits, the
    /// extra one apart.
    pub(crate) fn capacity_for(&self, bits: u32) -> u32 {
        if bits >= self.block.remainder_bits {
            return 0;
        }
        self.block.array_bits() / (bits + 2) + 1
    }
}

/// Bits of the heads of fingerprints with `base` bits, if heads have at most
/// `longest`.
pub(crate) const fn head_bits(base: u32, longest: u32) -> u32 {
    match base {
        8.. => longest,
        4..=7 => 4,
        _ => 0,
    }
}

/// Division of a block's array among its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// X: slots.
    pub(crate) capacity: u32,
    /// Bits of every fingerprint.
    pub(crate) base: u32,
    /// Slots whose fingerprint has one bit more: the first `wide`.
    pub(crate) wide: u32,
    /// Bits of a head.
    pub(crate) head: u32,
}

impl Cut {
    /// Bits of the fingerprint in a slot.
    pub(crate) const fn width(&self, slot: u32) -> u32 {
        self.base + (slot < self.wide) as u32
    }

    /// Position of bit `bit` of the fingerprint in slot 0, and the distance
    /// from one slot to the next.
    pub(crate) const fn row(&self, shape: &Shape, bit: u32) -> (u32, i32) {
        let end = shape.block.block_bits;
        // The first bit of a head is its highest.
        if bit >= self.head {
            (shape.first() + self.capacity * (1 + bit - self.head), 1)
        } else if shape.heads.is_reversed() {
            (end - 1 - bit, -(self.head as i32))
        } else {
            let first = end - self.head * self.capacity;
            (first + self.head - 1 - bit, self.head as i32)
        }
    }
}

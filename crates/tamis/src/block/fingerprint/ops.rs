//! The operations a fingerprint block needs from an instruction set.
//!
//! To add an instruction set, implement [`Ops`] for its token in a file named
//! after it; `tests.rs` runs every implementation against the one for
//! [`Scalar`](crate::arch::Scalar).

use tamis_theory::tinyset::Block;

use super::layout::Shape;
use crate::arch::Token;

pub(crate) use crate::memory::LINE;

/// Fingerprint block operations. Every implementation gives the same answers;
/// the one for [`Scalar`](crate::arch::Scalar) is their definition.
///
/// Blocks have `BYTES` = 32 or 64 bytes. A *slot mask* has bit `i` for slot
/// `i`.
pub(crate) trait Ops: Token {
    /// Number of planes that [`differing_planes`](Self::differing_planes)
    /// compares at once.
    const PLANES: u32;

    /// Whether vectors have eight lanes of 64 bits with byte permutations:
    /// [`match_tails`](Self::match_tails) is then fast, and planning lookups
    /// in rows pays.
    const WIDE: bool = false;

    /// PDEP: the low bits of `bits`, in order, at the ones of `mask`.
    ///
    /// ```text
    /// mask  0 1 1 0 1 0 0 1
    /// bits          c b a      (rank 3 is the highest one of mask)
    /// out   0 d c 0 b 0 0 a
    /// ```
    ///
    /// With a one at rank r of `bits` this selects the one of rank r of
    /// `mask`.
    fn deposit(self, bits: u64, mask: u64) -> u64;

    /// PDEP around gaps: the bits of `word`, in order, at the zeros of
    /// `gaps`; bits that no longer fit are dropped.
    fn expand_around(self, word: u64, gaps: u64) -> u64;

    /// The slots of the mask `among` whose head is `heads.value`.
    fn match_heads<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64;

    /// [`match_heads`](Self::match_heads) for 4-bit heads in the lower half
    /// of a 64-byte block: those of the slots in front of the last 64, of
    /// which `heads.capacity` exist.
    fn match_heads_low_half<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        heads: Heads,
        among: u64,
    ) -> u64;

    /// The slots of the mask `among` whose reversed 4-bit head is `value`.
    /// Bit `i + 1` of both masks stands for slot `i`, or for slot `i + 16` if
    /// `FROM_SLOT_16`. Bit 0 of `among` is returned unchanged.
    fn match_heads_reversed<const FROM_SLOT_16: bool>(
        self,
        block: &[u8; LINE],
        value: u8,
        among: u64,
    ) -> u64;

    /// The planes in which one entry differs from `tail`, whose highest bit
    /// belongs to the first plane. Bit `i` stands for plane `i`;
    /// `planes.count <= Self::PLANES`.
    fn differing_planes<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        planes: Planes,
        tail: u64,
    ) -> u32;

    /// The slots of the first 64 whose bits behind the head are `wanted`; bit
    /// `i` stands for slot `i` less the padding of `tables`. Fast if
    /// [`WIDE`](Self::WIDE).
    fn match_tails<const BYTES: usize>(
        self,
        block: &[u8; BYTES],
        tables: &TailTables,
        wanted: Tail,
    ) -> u64;

    /// Writes `rest` in front of the heads and inserts a head among them.
    /// The bits of `rest` at the places of heads are ignored.
    fn insert_head<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        head: NewHead,
        rest: [u64; 8],
    );

    /// Inserts an entry into a block with at least 15: one bit into every
    /// plane, and a head.
    fn insert_entry<const BYTES: usize>(
        self,
        block: &mut [u8; BYTES],
        entry: NewEntry,
    );
}

/// Heads to compare with: `capacity` of them, right-aligned in the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    /// Bits of a head, 8 or 4.
    pub(crate) bits: u32,
    pub(crate) value: u8,
    /// At most 64, and no more than fit the block.
    pub(crate) capacity: u32,
}

/// A head to be inserted: the heads in front of it move down by one, those
/// behind it stay. Places are counted in nibbles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewHead {
    /// Nibbles of a head: 2, 1, or 0 for a block without heads, whose heads
    /// begin at its end.
    pub(crate) nibbles: u8,
    /// Place of the first head after the insertion.
    pub(crate) begin: u8,
    /// Place of the new head.
    pub(crate) at: u8,
    /// The head as a byte; a 4-bit head stands in both nibbles.
    pub(crate) value: u8,
}

/// The bits of one entry in up to [`Ops::PLANES`] planes, all inside the
/// block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes {
    /// Position of the bit in the first plane.
    pub(crate) first: u32,
    /// Distance from one plane to the next.
    pub(crate) stride: u32,
    pub(crate) count: u32,
}

/// The bits behind a head to compare with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    /// Slots the block is cut for.
    pub(crate) entries: u32,
    /// Up to eight bits, the first highest.
    pub(crate) bits: u8,
    /// Whether a 0 in the plane of extra bits matches every key: the block is
    /// worn.
    pub(crate) worn: bool,
}

impl Tail {
    /// The bits of `fraction` behind a head of `head` bits.
    #[inline(always)]
    pub(super) fn new(
        entries: u32,
        head: u32,
        fraction: u64,
        worn: bool,
    ) -> Self {
        Self { entries, bits: (fraction << head >> 56) as u8, worn }
    }
}

/// Positions of the bits behind heads for every number of entries: eight
/// planes of 64 entries each.
///
/// The tables depend on the number of entries only, so a lookup loads them
/// while the chain is still being found.
#[repr(align(64))] // A vector load stays inside one line.
pub(crate) struct TailTables {
    /// For each byte of each plane, the byte of the block it begins in; the
    /// first plane is the last row.
    pub(crate) bytes: [[u8; 64]; TailTables::ENTRIES],
    /// Mask of the bits of each plane that belong to an entry.
    pub(crate) masks: [[u64; 8]; TailTables::ENTRIES],
    /// Distance of each plane's first bit from the start of its byte.
    pub(crate) shifts: [[u8; 8]; TailTables::ENTRIES],
}

impl TailTables {
    /// Numbers of entries covered: 0 to 127.
    pub(crate) const ENTRIES: usize = 128;

    /// Tables that no lookup reads.
    pub(crate) const UNUSED: Self = Self {
        bytes: [[0; 64]; Self::ENTRIES],
        masks: [[0; 8]; Self::ENTRIES],
        shifts: [[0; 8]; Self::ENTRIES],
    };

    /// Tables for slot masks with `padding` bits in front of slot 0. With
    /// `padding == 0` valid only for fewer than 64 entries.
    pub(crate) const fn new(shape: &Shape, padding: u32) -> Self {
        let mut tables = Self::UNUSED;
        let mut entries = 1;
        while entries < Self::ENTRIES {
            let cut = shape.cut(entries as u32);
            let mut lane = 0;
            while lane < 8 {
                let bit = cut.head + 7 - lane as u32;
                let (first, _) = cut.row(shape, bit);
                let place = (first - padding) as usize;
                let mut byte = 0;
                while byte < 8 {
                    // Bytes behind the block belong to no entry.
                    tables.bytes[entries][8 * lane + byte] =
                        (place / 8 + byte) as u8 % 64;
                    byte += 1;
                }
                tables.shifts[entries][lane] = place as u8 % 8;
                let with_bit = cut.wide + padding;
                let with_bit = if with_bit > 64 { 64 } else { with_bit };
                tables.masks[entries][lane] = if bit < cut.base {
                    u64::MAX
                } else if bit > cut.base || with_bit == 0 {
                    0
                } else {
                    // Never all ones: those mark a plane of all entries.
                    u64::MAX >> (64 - with_bit) >> padding << padding
                };
                lane += 1;
            }
            entries += 1;
        }
        tables
    }

    /// Smallest number of entries whose fingerprints have at most `head + 8`
    /// bits, so that eight planes hold all of them.
    pub(crate) const fn least(block: Block, head: u32) -> u32 {
        let mut entries = 1;
        while block.widths(entries).0 + 1 > head + 8 {
            entries += 1;
        }
        entries
    }
}

/// An entry to be inserted into a block with many: one bit into every plane,
/// which moves everything behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEntry {
    /// The chain index after the insertion.
    pub(crate) index: u64,
    /// Slot of the new entry.
    pub(crate) start: u32,
    /// Its bits in the planes, that of the first plane highest.
    pub(crate) new: u32,
    /// Entries after the insertion.
    pub(crate) capacity: u32,
    /// The table for `capacity`.
    pub(crate) lanes: &'static LaneOffsets,
    pub(crate) head: NewHead,
}

/// Offsets of an entry's plane bits relative to each 32-bit lane of a block,
/// for an entry in slot 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneOffsets {
    /// Bits of the entry in front of the lane.
    pub(crate) passed: [u8; 16],
    /// Distance of the lane's start behind the last of these bits; negative
    /// if there are none.
    pub(crate) skew: [i8; 16],
}

impl LaneOffsets {
    pub(crate) const fn new(block: Block, capacity: u32) -> Self {
        let mut lanes = Self { passed: [0; 16], skew: [0; 16] };
        let mut lane = 0;
        while lane < 16 {
            let first = (block.chains + block.flag_bits) as i32;
            let place = 32 * lane as i32 - first;
            (lanes.passed[lane], lanes.skew[lane]) =
                lane_offset(place, capacity);
            lane += 1;
        }
        lanes
    }
}

/// [`LaneOffsets`] of the lane that begins `place` bits behind the first
/// plane. More than 62 bits in front of a lane count as 62: no entry has
/// more.
pub(super) const fn lane_offset(place: i32, capacity: u32) -> (u8, i8) {
    if place < 0 || capacity == 0 {
        return (0, place as i8);
    }
    let passed = place / capacity as i32;
    let passed = if passed > 62 { 62 } else { passed as u8 };
    (passed, (place % capacity as i32) as i8)
}

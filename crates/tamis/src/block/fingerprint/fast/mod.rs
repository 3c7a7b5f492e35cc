//! Lookups and insertions in place, for lines of 64 bytes with 64 chains and
//! half lines of 32 bytes with 32. Bit for bit equal to
//! [`DecodedBlock`](super::DecodedBlock).
//!
//! # Overview of types
//!
//! * [`FastBlock`]: the operations, specialised by block size, [`FormSpec`]
//!   and [`HeadSpec`]. A view of [`BlockTables`].
//! * [`BlockTables`]: everything that depends on the shape, computed once per
//!   structure.
//! * [`BlockKey`]: chain, fraction and head of a key, computed before its
//!   block arrives.
//! * `find.rs`: the slots of a chain. `lookup.rs`, `insert.rs`: the
//!   operations.
//!
//! # Lookup
//!
//! ```text
//! index    = first word of the block
//! rank     = ones of index below the key's chain
//! starts   = the *last* plane with FRONT ones in front of it
//! span     = slots between the ones of rank `rank` and `rank + 1` of starts
//! capacity = place of the one whose rank is the number of chains
//! equal    = match_heads(key's head) & span
//! for each slot of equal: compare the bits in the planes
//! ```
//!
//! Deviations from this, all for speed:
//!
//! 1. FRONT is 2 where a word has room for it: the chain of rank r then begins
//!    at the one of rank r counted from 1, which is what `count_ones` returns
//!    for the chains up to and including the key's.
//! 2. With [`Reversed`] heads the capacity is computed only after an equal
//!    head, and the chain is searched in the first 64 slots, then in 64 slots
//!    from slot 16 on.
//! 3. With `Ops::WIDE` all slots are compared at once by `match_tails`, except
//!    in filters with few entries a block (`SPARSE`).
//!
//! # Specialisations
//!
//! Each is one [`FastBlock`] type; `filter/tinyset/kernels.rs` lists them and
//! takes the first that fits. No two fit the same shape: without one of them
//! its shapes take the reference. *Saves*: instructions of a single miss and a
//! single hit less than the reference takes (AVX2; `cargo xtask instructions`,
//! path in parentheses).
//!
//! | type | condition | saves |
//! |---|---|---|
//! | `<64, Plain, Reversed>` | a line; 4-bit heads, reversed: 5.8 to 8.3 bits of room per key | 92 %, 88 % (`tinyset 1%`) |
//! | `<64, Plain, Bytes>` | a line; 8-bit heads: more room | 93 %, 90 % (`tinyset 0.1%`) |
//! | `<64, Plain, Nibbles>` | a line; 4-bit heads: other room | as `Reversed`; misses count the entries |
//! | `<32, Plain, _>` | half a line | 92 %, 90 % (`tinyset-half 1%`) |
//! | `<_, Elastic, _>` | removable or grown: free slots, worn blocks | 90 %, 85 % (`tinyset removable`) |
//! | `<_, Capped, Bytes>` | two levels: the spilled flag | 86 %, 84 % (`tinyset two levels`) |
//!
//! Every other shape takes the reference (`tinyset reference`).

mod find;
mod insert;
mod lookup;
mod spec;

pub(crate) use insert::{InsertOutcome, RepeatPolicy};
pub(crate) use spec::{
    Bytes, Capped, Elastic, FormSpec, HeadSpec, Nibbles, Plain, Reversed,
};

use core::marker::PhantomData;

use insert::InsertParams;
use tamis_theory::tinyset::Block;

use super::layout::{Cut, Form, HeadLayout, Shape, head_bits};
use super::ops::{LINE, TailTables};
use spec::FormKind;

/// Numbers of entries in the tables: more than the fast path handles, and a
/// power of two, by which an index is reduced with one instruction.
const ENTRIES: usize = 128;

/// The largest R.
const LONGEST: usize = Block::REMAINDER_BITS as usize;

/// Mean number of entries below which blocks are sparse. Tails behind 8-bit
/// heads have at most 8 planes from 27 entries a line on; at a mean of 30
/// (0.01 %) every fifth hit finds fewer.
const SPARSE: u64 = 35;

/// A block of `BYTES` bytes with `BYTES` chains.
pub(crate) struct FastBlock<'a, const BYTES: usize, F, H> {
    tables: &'a BlockTables,
    spec: PhantomData<(F, H)>,
}

// Manual impls: `derive` would require `F: Copy` and `H: Copy`.
impl<const BYTES: usize, F, H> Clone for FastBlock<'_, BYTES, F, H> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<const BYTES: usize, F, H> Copy for FastBlock<'_, BYTES, F, H> {}

/// Everything a [`FastBlock`] needs of its shape, with one type for all
/// specialisations.
#[derive(Clone, Copy)]
pub(crate) struct BlockTables {
    /// R: the longest fingerprint.
    longest: u32,
    /// Base and wide of a cut, by number of slots.
    cuts: &'static [(u8, u8); ENTRIES],
    /// Slots of a block that has spilled chains.
    cap: u32,
    /// Largest number of entries with 8-bit heads.
    byte_heads: u32,
    /// Bits of the longest heads.
    head: u32,
    /// Largest number of entries after an insertion in place with heads.
    most: u32,
    inserts: &'static [InsertParams; ENTRIES],
    masks: RankMasks,
    /// Whether lookups compare tails slot by slot, because many blocks have
    /// fewer entries than [`match_tails`](super::Ops::match_tails) compares at
    /// once.
    sparse: bool,
    /// The same for batches.
    sparse_batches: bool,
}

/// Masks to be shifted by a rank. As memory operands: as constants each would
/// be an instruction and a register per key (2 of 51 instructions of a miss).
#[derive(Clone, Copy)]
struct RankMasks {
    /// The one of rank 0.
    one: u64,
    /// The one of rank 1.
    next: u64,
    /// The ones of ranks 0 and 1.
    pair: u64,
}

impl RankMasks {
    const NEW: Self = Self { one: 0b01, next: 0b10, pair: 0b11 };
}

impl BlockTables {
    /// Tables of a shape without a fast path.
    pub(crate) const UNUSED: Self = Self {
        longest: 0,
        cuts: &FastBlock::<LINE, Plain, Bytes>::CUTS[0],
        cap: 0,
        byte_heads: 0,
        head: 0,
        most: 0,
        inserts: FastBlock::<LINE, Plain, Bytes>::inserts_for(8),
        masks: RankMasks::NEW,
        sparse: false,
        sparse_batches: false,
    };

    /// Prepares for blocks with `entries` entries on average, which are in
    /// cache or in memory. The answers do not depend on it.
    #[inline(always)]
    pub(crate) fn set_load(&mut self, entries: u64, in_cache: bool) {
        // In memory single hits are slower slot by slot (56 ns instead of 47),
        // batches are faster there as well (9.5 instead of 10.8).
        self.sparse_batches = entries < SPARSE;
        self.sparse = self.sparse_batches && in_cache;
    }

    /// The tables for a batch.
    #[inline(always)]
    pub(crate) fn for_batches(self) -> Self {
        Self { sparse: self.sparse_batches, ..self }
    }
}

/// The part of a key that its block stores or compares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockKey {
    /// The chain with every bit inverted; bits above 16 are arbitrary.
    chain: u64,
    /// The low 16 bits are in no fingerprint and arbitrary.
    fraction: u64,
    /// The head, of the length that [`HeadSpec`] names.
    head: u8,
}

impl BlockKey {
    #[inline(always)]
    pub(crate) fn new(chain: u32, fraction: u64, head: u8) -> Self {
        Self { chain: u64::from(!chain), fraction, head }
    }

    /// The key in two words.
    #[inline(always)]
    pub(crate) fn pack(self) -> (u64, u64) {
        let word = self.fraction & !0xffff | self.chain & 0xffff;
        (word, self.head.into())
    }

    /// Inverse of [`pack`](Self::pack).
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

impl<'a, const BYTES: usize, F: FormSpec, H: HeadSpec>
    FastBlock<'a, BYTES, F, H>
{
    const FLAGS: u32 = F::KIND.flags();
    const BLOCK: Block = Block {
        flag_bits: Self::FLAGS,
        ..Block::new(BYTES as u32 * 8, BYTES as u32)
    };
    const ARRAY: u32 = Self::BLOCK.array_bits();
    /// Position of the first bit of the *last* plane.
    const FIRST: u32 = BYTES as u32 + Self::FLAGS;
    /// Whether heads are reversed.
    const REVERSED: bool = H::LAYOUT.is_reversed();
    /// Ones in front of the *last* plane; see the module's documentation. A
    /// line needs the whole word for its slots, unless heads are reversed.
    const FRONT: u32 = if BYTES == 32 || Self::REVERSED { 2 } else { 1 };
    /// Slots in a word behind the ones in front.
    const WORD: u32 = 64 - Self::FRONT;
    /// Largest number of entries with heads of 8 bits, and of 4.
    const BYTE_HEADS: u32 = Self::ARRAY / 9;
    const NIBBLE_HEADS: u32 = Self::ARRAY / 5;

    /// Base and wide by R and number of slots: a load instead of a division.
    const CUTS: &'static [[(u8, u8); ENTRIES]; LONGEST + 1] = &{
        let mut tables = [[(0, 0); ENTRIES]; LONGEST + 1];
        let mut longest = 0;
        while longest <= LONGEST {
            let remainder_bits = longest as u32;
            let block = Block { remainder_bits, ..Self::BLOCK };
            let mut entries = 0;
            while entries < ENTRIES {
                let (base, wide) = block.widths(entries as u32);
                tables[longest][entries] = (base as u8, wide as u8);
                entries += 1;
            }
            longest += 1;
        }
        tables
    };

    /// Whether the fast path compares tails by
    /// [`match_tails`](super::Ops::match_tails) where that is fast.
    const BY_TAILS: bool = !F::SPILLS && (H::IS_NIBBLES || BYTES == 64);
    const TAILS: &'static TailTables = &match Self::BY_TAILS {
        true => {
            let form = match F::KIND {
                FormKind::Plain => Form::Plain,
                _ => Form::Elastic,
            };
            // The planes are where they are in whichever order heads are.
            let heads = match H::IS_NIBBLES {
                true => HeadLayout::Nibbles,
                false => HeadLayout::Bytes,
            };
            let shape = Shape::new(Self::BLOCK, form).with_heads(heads);
            TailTables::new(&shape, Self::FRONT - 1)
        }
        false => TailTables::UNUSED,
    };
    /// Smallest number of entries whose tails are compared at once.
    const LEAST_NIBBLES: u32 = TailTables::least(Self::BLOCK, 4);
    const LEAST_BYTES: u32 = TailTables::least(Self::BLOCK, 8);
    /// Smallest number of entries whose tails behind 8-bit heads are in 16
    /// planes.
    const LEAST_SPARSE: u32 = TailTables::least(Self::BLOCK, 16);

    /// The tables of `shape`, if this specialisation fits it.
    pub(crate) fn tables(shape: Shape) -> Option<BlockTables> {
        let Block { block_bits, chains, flag_bits, remainder_bits, .. } =
            shape.block;
        let fits = block_bits == Self::BLOCK.block_bits
            && chains == Self::BLOCK.chains
            && flag_bits == Self::BLOCK.flag_bits
            // The tables end there, and heads are not cut.
            && (8..=Block::REMAINDER_BITS).contains(&remainder_bits)
            // Longer than every tail that is compared at once.
            && (!Self::BY_TAILS || remainder_bits >= 16)
            && match H::LAYOUT {
                // Two levels have one specialisation for both lengths.
                HeadLayout::Bytes if F::SPILLS => !shape.heads.is_reversed(),
                HeadLayout::NibblesReversed => {
                    shape.heads == H::LAYOUT && BYTES == 64 && !F::SPILLS
                }
                heads => shape.heads == heads && !(H::IS_NIBBLES && F::SPILLS),
            };
        let cap = match shape.form {
            Form::Capped(cap) => cap,
            _ => 0,
        };
        let byte_heads = match shape.heads {
            HeadLayout::Bytes => Self::BYTE_HEADS,
            _ => 0,
        };
        let most = match (remainder_bits, shape.form) {
            // Insertions have tables for the longest R only.
            (..Block::REMAINDER_BITS, _) => 0,
            (_, Form::Capped(cap)) => cap.min(Self::NIBBLE_HEADS),
            _ => Self::NIBBLE_HEADS,
        };
        (fits && cap < 64).then_some(BlockTables {
            longest: remainder_bits,
            // `remainder_bits <= LONGEST` was checked above.
            cuts: &Self::CUTS[remainder_bits as usize % (LONGEST + 1)],
            cap,
            byte_heads,
            head: shape.heads.bits(),
            most,
            inserts: Self::inserts_for(shape.heads.bits()),
            masks: RankMasks::NEW,
            sparse: false,
            sparse_batches: false,
        })
    }

    /// The operations on blocks with these tables, which
    /// [`tables`](Self::tables) of this specialisation must have returned:
    /// with others answers are wrong (no undefined behaviour).
    #[inline(always)]
    pub(crate) fn new(tables: &'a BlockTables) -> Self {
        Self { tables, spec: PhantomData }
    }

    /// The shape of the blocks.
    pub(crate) fn shape(self) -> Shape {
        let form = match F::KIND {
            FormKind::Plain => Form::Plain,
            FormKind::Capped => Form::Capped(self.tables.cap),
            FormKind::Elastic => Form::Elastic,
        };
        let remainder_bits = self.tables.longest;
        let block = Block { remainder_bits, ..Self::BLOCK };
        let heads = match H::LAYOUT {
            HeadLayout::Bytes if self.tables.head == 4 => HeadLayout::Nibbles,
            heads => heads,
        };
        Shape::new(block, form).with_heads(heads)
    }

    /// The key of a chain and fraction.
    #[inline(always)]
    pub(crate) fn key(chain: u32, fraction: u64) -> BlockKey {
        BlockKey::new(chain, fraction, top(fraction, H::LAYOUT.bits()))
    }

    /// [`Shape::chain`] with a constant number of chains.
    #[inline(always)]
    pub(crate) fn chain(hash: u64) -> u32 {
        // In 64 bits, so that it vectorises beside the hashes.
        (((hash & 0xffff) * BYTES as u64) >> 16) as u32
    }

    #[inline(always)]
    fn cut(self, capacity: u32) -> Cut {
        let cuts = self.tables.cuts;
        let (base, wide) =
            cuts.get(capacity as usize).copied().unwrap_or_default();
        let (base, wide) = (u32::from(base), u32::from(wide));
        Cut { capacity, base, wide, head: head_bits(base, self.tables.head) }
    }

    /// The chain index.
    #[inline(always)]
    fn index(block: &[u8; BYTES]) -> u64 {
        match block.first_chunk::<4>() {
            // A 32-bit load zero-extends; a part of a word needs a mask.
            Some(&bytes) if BYTES == 32 => u32::from_le_bytes(bytes).into(),
            _ => word(block, 0),
        }
    }

    /// The block as a line, if it is one.
    #[inline(always)]
    fn line(block: &[u8; BYTES]) -> Option<&[u8; LINE]> {
        block.first_chunk()
    }
}

/// The first `bits <= 8` bits of a fraction.
#[inline(always)]
fn top(fraction: u64, bits: u32) -> u8 {
    (fraction >> 56) as u8 >> (8 - bits)
}

/// The word that begins at byte `at`.
#[inline(always)]
fn word<const BYTES: usize>(block: &[u8; BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(word)
}

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
//! * *index*: bit c is set if chain c has entries.
//! * *flags*: see [`Form`].
//! * *last*: bit i is set if entry i is the last of its chain. Index and
//!   *last* together give the slots of every chain and the number of
//!   entries: no counter is stored.
//! * *heads*: the first h bits of all fingerprints, right-aligned in the
//!   block. h is 8 if fingerprints have 8 bits or more, else 4 if they have 4
//!   or more, else 0; [`HeadLayout`] limits it to 4 in structures whose
//!   blocks mostly have shorter fingerprints, and gives the order. One vector
//!   comparison tests all heads.
//! * *plane j*: bit j of all fingerprints. The last plane ends where the
//!   heads begin, so that the first entries have one bit more than the
//!   others.
//!
//! Planes instead of fields: one more entry takes a bit out of every
//! fingerprint, and in planes the last plane then ends earlier. Nothing is
//! repacked, and the extra bits of the first entries (*mod* in the paper) are
//! the part of the next plane that fits.
//!
//! A fingerprint is a prefix of the key's *fraction*: the rest of the hash
//! once the block is chosen, as a binary fraction. Its first bit is the
//! address bit that a filter of twice the number of blocks uses, which makes
//! halving and doubling possible.
//!
//! A block that cannot take another entry (an entry needs one bit) is
//! *saturated*: no bit in the index, all other bits set. From then on it
//! answers "maybe" to every key.
//!
//! Copies of one key do not saturate a block: a *group*, the entries of a
//! chain that agree in the bits which all fingerprints of the block have, is
//! *stuck* from [`STUCK`](layout::STUCK) entries on. It stores no key that it
//! matches, and gives up no entry.
//!
//! # Overview of types
//!
//! * [`Shape`], [`Form`], [`HeadLayout`], [`Cut`] (`layout.rs`): where the
//!   bits are.
//! * [`DecodedBlock`] (`reference.rs`): the reference codec, for blocks of
//!   every shape: decode, change, encode.
//! * [`FastBlock`] (`fast/`): lookups and insertions in place for lines of 64
//!   bytes and half lines of 32, bit for bit equal to the reference.
//! * [`Ops`] (`ops.rs`): the vector operations of the fast block, implemented
//!   in one file per instruction set: `scalar.rs`, `avx2.rs`, `avx512.rs`,
//!   `neon.rs`, `simd128.rs`.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
mod avx512;
#[cfg(any(neon, simd128, test))]
mod bits;
mod fast;
mod layout;
mod load;
#[cfg(neon)]
mod neon;
mod ops;
mod reference;
mod scalar;
#[cfg(simd128)]
mod simd128;

pub(crate) use fast::{
    BlockKey, BlockTables, Bytes, Capped, Elastic, FastBlock, FormSpec,
    HeadSpec, InsertOutcome, Nibbles, Plain, RepeatPolicy, Reversed,
};
pub(crate) use layout::{Form, HeadLayout, Shape};
pub(crate) use load::{BlockLoad, Union, chain_share};
pub(crate) use ops::Ops;
pub use reference::Removal;
pub(crate) use reference::{DecodedBlock, Entry, lookup as lookup_reference};

#[cfg(test)]
mod tests;

//! The numbers behind tamis.
//!
//! Pure functions from a memory budget to what a filter will do with it:
//! false-positive rate, bits per key, blocks read by a member and by a
//! non-member. Nothing here allocates more than a few megabytes, nothing
//! panics, and every transcendental function comes from `libm`, so
//! that a geometry computed from a target is the same on every machine.
//!
//! ```
//! use tamis_theory::{blocked, split, standard};
//!
//! // What does one cache line per lookup cost at 10 bits per key?
//! let one_line = blocked::best(512, 10.0)?;
//! let two_lines = split::best(512, 10.0)?;
//! let classic = standard::best(10.0)?;
//! assert!(classic.fpr < two_lines.fpr && two_lines.fpr < one_line.fpr);
//! assert!(one_line.reads_miss < two_lines.reads_miss);
//! # Ok::<(), tamis_theory::Error>(())
//! ```
//!
//! # Where to look
//!
//! | question | module |
//! |---|---|
//! | memory for a false-positive rate, or the reverse | [`standard`], [`blocked`], [`split`] |
//! | the same for fingerprints in one block, or in two levels | [`tinyset`] |
//! | how well can keys be balanced with so many reads? | [`bound`] |
//! | which threshold and levels reach that? | [`single`], [`sequential`], [`multilevel`] |
//! | what does a balanced filter do? | [`balanced`] |
//! | which balanced filter is best? | [`tune`] |
//! | one block of a filter | [`block`] |
//! | chained tables, and the least loaded of d | [`variance`] |
//! | the same again, step by step | [`dynamics`] |
//! | how full do the levels of a hash table get? | [`crisis`] |
//! | what does it take to know the level of each item? | [`summary`] |
//!
//! Theorem and equation numbers are those of Kanizo, Hay and Keslassy,
//! *Access-Efficient Balanced Bloom Filters*. Where a formula differs from
//! the printed one, the text beside it says so.
//!
//! # Words
//!
//! | here | in the paper | meaning |
//! |---|---|---|
//! | `load` | r | keys per block |
//! | `access_budget` | a | average blocks read per insertion |
//! | `choices` | d | blocks proposed per key |
//! | `overflow_fraction` | gamma | share of keys in no block |
//! | `threshold` | h = k0 | a block below it takes every key |
//! | `admission` | p | chance that a block at the threshold takes one more |
//! | `level_shares` | alpha | share of blocks in each level |
//! | `block_bits` | B | size of a block |
//! | `probes` | k | bits set per key |
//! | `bits_per_key` | beta | memory per key, everything counted |
//! | `reads_hit` | a | blocks read by a member |
//! | `reads_miss` | E(P) | blocks read by a non-member |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod balanced;
pub mod block;
pub mod blocked;
pub mod bound;
mod check;
mod coverage;
pub mod crisis;
mod distribution;
mod dot;
pub mod dynamics;
mod error;
mod load;
pub mod multilevel;
mod ode;
mod poisson;
mod prediction;
mod quadrature;
mod search;
pub mod sequential;
pub mod single;
pub mod split;
pub mod standard;
pub mod summary;
pub mod tinyset;
pub mod tune;
pub mod variance;

pub use distribution::Distribution;
pub use error::{Error, Result};
pub use prediction::{MAX_PROBES, Prediction};

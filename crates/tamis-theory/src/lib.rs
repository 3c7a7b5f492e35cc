//! Formulas that predict and size the filters and tables of tamis.
//!
//! Pure functions from a memory budget to the false-positive rate, the bits
//! per key, and the blocks read by a member and by a non-member, or from a
//! target back to the memory. No function panics or allocates more than a
//! few megabytes. Every transcendental function comes from `libm`, so a
//! geometry computed from a target is the same on every machine.
//!
//! ```
//! use tamis_theory::{blocked, split, standard};
//!
//! // The cost of one cache line per lookup at 10 bits per key.
//! let one_line = blocked::best(512, 10.0)?;
//! let two_lines = split::best(512, 10.0)?;
//! let classic = standard::best(10.0)?;
//! assert!(classic.fpr < two_lines.fpr && two_lines.fpr < one_line.fpr);
//! assert!(one_line.reads_miss < two_lines.reads_miss);
//! # Ok::<(), tamis_theory::Error>(())
//! ```
//!
//! # Modules
//!
//! | subject | module |
//! |---|---|
//! | memory for a false-positive rate, or the reverse | [`standard`], [`blocked`], [`split`] |
//! | the same for fingerprints in one block, or in two levels | [`tinyset`] |
//! | memory that no filter can do without | [`limit`] |
//! | the best balance of keys with a reads per key | [`bound`] |
//! | the same for hash functions with different distributions | [`mixture`] |
//! | thresholds and levels that reach it | [`single`], [`sequential`], [`multilevel`] |
//! | false-positive rate and reads of a balanced filter | [`balanced`] |
//! | search for the best balanced filter | [`tune`] |
//! | one block of a filter | [`block`] |
//! | comparison of the kinds, and a recommendation | [`plan`] |
//! | chained tables, and the least loaded of d | [`variance`] |
//! | the same schemes as differential equations | [`dynamics`] |
//! | occupancy of the levels of a hash table | [`crisis`] |
//! | memory to record the level of each item | [`summary`] |
//!
//! Feature `tables` has [`crisis`] and [`summary`]; `models`, the default, also
//! those by which no filter or table is sized: [`limit`], [`mixture`],
//! [`variance`], [`dynamics`] and [`balanced::returned`].
//!
//! Theorem and equation numbers are those of Kanizo, Hay and Keslassy,
//! *Access-Efficient Balanced Bloom Filters*. Deviations from the printed
//! formulas are noted beside the code.
//!
//! # Names and symbols
//!
//! | here | in the paper | meaning |
//! |---|---|---|
//! | `load` | r | keys per block |
//! | `access_budget` | a | average blocks read per insertion |
//! | `choices` | d | blocks proposed per key |
//! | `overflow_fraction` | gamma | share of keys in no block |
//! | `threshold` | h = k0 | a block below it accepts every key |
//! | `admission` | p | probability that a block at the threshold accepts one more |
//! | `level_shares` | alpha | share of blocks in each level |
//! | `block_bits` | B | size of a block |
//! | `probes` | k | bits set per key |
//! | `bits_per_key` | beta | memory per key, all parts included |
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
mod checked;
mod coverage;
#[cfg(feature = "tables")]
pub mod crisis;
mod distribution;
mod dot;
#[cfg(feature = "models")]
pub mod dynamics;
mod error;
#[cfg(feature = "models")]
pub mod limit;
mod load;
#[cfg(feature = "models")]
pub mod mixture;
pub mod multilevel;
#[cfg(feature = "models")]
mod ode;
pub mod plan;
mod poisson;
mod prediction;
mod quadrature;
mod search;
pub mod sequential;
pub mod single;
pub mod split;
pub mod standard;
#[cfg(feature = "tables")]
pub mod summary;
pub mod tinyset;
pub mod tune;
#[cfg(feature = "models")]
pub mod variance;

pub use distribution::Distribution;
pub use error::{Error, Result};
pub use prediction::{MAX_PROBES, Prediction};

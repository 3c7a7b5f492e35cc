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
//! # Words
//!
//! | here | in the papers | meaning |
//! |---|---|---|
//! | `bits_per_key` | beta | memory per key, everything counted |
//! | `block_bits` | B | size of a block |
//! | `probes` | k | bits set per key |
//! | `load` | r | keys per block |
//! | `reads_hit` | a | blocks read by a member |
//! | `reads_miss` | E(P) | blocks read by a non-member |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod blocked;
pub mod bound;
mod check;
mod coverage;
mod distribution;
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
pub mod variance;

pub use distribution::Distribution;
pub use error::{Error, Result};
pub use prediction::{MAX_PROBES, Prediction};

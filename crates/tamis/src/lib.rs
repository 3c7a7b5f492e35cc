#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

/// The examples of the repository's front page, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct RepositoryReadme;

mod balance;
mod batch;
mod block;
mod error;
mod filter;
mod format;
mod key;
mod named;
mod overflow;
#[cfg(feature = "std")]
mod parallel;
mod placement;
mod search;
#[cfg(feature = "serde")]
mod serde;
mod simd;
mod storage;
pub mod summary;
pub mod table;

pub use error::{Error, Result};
#[cfg(feature = "std")]
pub use filter::Shared;
pub use filter::{
    AnyFilter, Balanced, BalancedBuilder, BitFilter, BlockState, Blocked,
    Bloom, Builder, Filter, Fold, Grow, Insert, LoadHistogram, Merge,
    Parameter, Remove, Split, Stats, Stored, Threshold, TinySet,
    TinySetBuilder, Window,
};
#[cfg(feature = "std")]
pub use format::Mapped;
pub use format::{FORMAT_VERSION, Header, Image, Kind, Persist, image_len};
pub use key::{HashId, Key, KeyHasher};
pub use overflow::Overflow;
pub use placement::Scheme;
pub use storage::Owned;
#[doc(no_inline)]
pub use tamis_theory as theory;

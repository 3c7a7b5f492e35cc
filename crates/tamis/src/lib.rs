#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(feature = "std"),
    expect(unreachable_pub, reason = "reachable through `Shared`, with std")
)]

extern crate alloc;

/// The examples of the repository's front page, compiled and run.
#[cfg(all(doctest, feature = "table"))]
#[doc = include_str!("../../../README.md")]
struct RepositoryReadme;

#[macro_use]
mod arch;
mod block;
mod dispatch;
mod error;
mod filter;
mod format;
pub mod inspect;
mod key;
mod memory;
mod named;
mod overflow;
#[cfg(feature = "std")]
mod parallel;
mod placement;
mod placement_design;
mod plan;
mod search;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "table")]
pub mod summary;
#[cfg(feature = "table")]
pub mod table;

pub use block::fingerprint::Removal;
pub use error::{Error, Result};
pub use filter::{
    AnyFilter, Balanced, Blocked, Bloom, Buildable, Builder, Filter,
    FilterMut, Header, Prefer, Size, Split, Stats, Threshold, TinySet, Window,
};
#[cfg(feature = "std")]
pub use filter::{FileLock, Shareable, Shared};
#[cfg(feature = "std")]
pub use format::Mapped;
pub use format::{Kind, Metadata};
pub use key::{HashId, Key, KeyHasher};
pub use memory::Owned;
pub use overflow::Overflow;
pub use placement::Scheme;
pub use plan::{Plan, PlannedDesign};
pub use tamis_theory::{Error as TheoryError, Prediction};

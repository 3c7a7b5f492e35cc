//! Tests that run the `tamis` program.
//!
//! One test crate with a module per theme: linked once.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod arguments;
mod balanced;
mod compressed;
mod cookbook;
mod damage;
mod formats;
mod fullness;
mod in_place;
#[cfg(feature = "lab")]
mod lab;
mod lifecycle;
mod mapped;
mod merge_fold;
mod output;
mod pipes;
mod reports;
mod rows;
mod seen;
mod sizing;
mod statistics;
mod store;
mod support;
mod tinyset;
mod writers;

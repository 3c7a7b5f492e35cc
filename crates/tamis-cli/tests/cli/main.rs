//! The command line from outside: what a shell sees of `tamis`.
//!
//! One test crate with a module per theme, so that the binary is linked
//! against once.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod arguments;
mod balanced;
mod compressed;
mod damage;
mod formats;
mod lifecycle;
mod merge_fold;
mod pipes;
mod reports;
mod sizing;
mod statistics;
mod support;
mod tinyset;

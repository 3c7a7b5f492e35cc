//! The experiments and the list of claims.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod answers;
mod verdicts;

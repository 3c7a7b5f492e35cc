//! The experiments and the list of claims.

mod answers;
mod verdicts;

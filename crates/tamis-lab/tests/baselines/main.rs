//! Every baseline keeps its keys, and has the rate of its formula and the
//! memory of the published columns.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod columns;
mod histories;
mod rates;

//! Tests of the SQL functions, in one program: linking DataFusion takes longer
//! than running them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod common;
mod readme;
mod sql;
mod stages;

//! Baselines, the measurement of them, and the experiments of
//! `tamis lab`.

pub mod balanced;
pub mod baseline;
pub mod claims;
pub mod experiment;
pub mod picture;
pub mod report;
pub mod simulation;
mod trace;

//! Baselines and the measurement of them, for the experiments of
//! `tamis-lab`.

pub mod baseline;
pub mod simulation;

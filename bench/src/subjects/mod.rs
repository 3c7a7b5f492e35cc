//! Filters of tamis and of other crates.

pub(crate) mod ours;
pub(crate) mod peers;

//! The filters.

pub(crate) mod ours;
pub(crate) mod peers;

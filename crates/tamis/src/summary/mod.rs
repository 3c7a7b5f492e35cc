//! Which proposal won, so that a lookup reads few blocks.

pub(crate) mod tracking;

//! What one fixed-size piece of memory stores.

pub(crate) mod bloom;

//! What one fixed-size piece of memory stores.

pub(crate) mod bloom;
pub(crate) mod fingerprint;
pub(crate) mod guarded;

#![doc = include_str!("../README.md")]

mod batch;
mod error;
mod keys;
mod record;

pub use batch::{contains, contains_bools, insert};
pub use error::{Error, Result};
pub use keys::{Integer, KeyType, Keys, Value};
pub use record::{Digest, KeyFormat, KeyRecord};

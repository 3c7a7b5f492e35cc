//! serde: a filter is serialised as the bytes of its file.
//!
//! Formats with a byte type (bincode, postcard, CBOR) store the bytes once;
//! formats without one (JSON) store a sequence of numbers.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::filter::{AnyFilter, Balanced, Blocked, Bloom, Split, TinySet};
use crate::format::Persist;

/// Collects bytes from any form in which a format delivers them, and passes
/// them to the function.
struct BytesVisitor<F>(F);

impl<'de, T, F> Visitor<'de> for BytesVisitor<F>
where
    F: FnOnce(&[u8]) -> crate::Result<T>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a tamis filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        (self.0)(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(
        self,
        mut elements: A,
    ) -> Result<T, A::Error> {
        // The length is a claim of the input: it limits no allocation.
        let mut bytes = Vec::new();
        while let Some(byte) = elements.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

macro_rules! serde_as_bytes {
    ($($filter:ident),*) => {$(
        impl<D: AsRef<[u8]>> Serialize for $filter<D> {
            fn serialize<S: Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&Persist::to_bytes(self))
            }
        }

        /// Copies the filter and [verifies](crate::Filter::verify) it.
        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<E: Deserializer<'de>>(
                deserializer: E,
            ) -> Result<Self, E::Error> {
                deserializer.deserialize_byte_buf(BytesVisitor(|bytes: &[u8]| {
                    let view = $filter::from_bytes(bytes)?;
                    crate::Filter::verify(&view)?;
                    view.into_owned()
                }))
            }
        }
    )*};
}
serde_as_bytes!(Bloom, Blocked, Split, Balanced, TinySet, AnyFilter);

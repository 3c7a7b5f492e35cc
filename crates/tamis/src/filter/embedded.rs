//! Methods of filters inside the files of other programs: headers parsed
//! once, and the compact form.

use alloc::vec::Vec;

use super::{AnyFilter, Balanced, Blocked, Bloom, Split, TinySet};
use crate::error::Result;
use crate::format::{Header, Persist as _};

macro_rules! embedded {
    ($($name:ident, $open:expr;)*) => {$(
        impl<D: AsRef<[u8]>> $name<D> {
            /// `from_bytes` with a header that was parsed before from the
            /// same bytes.
            ///
            /// Costs a few nanoseconds where `from_bytes` costs tens: a
            /// storage engine that opens a filter at each lookup keeps one
            /// [`Header`](crate::Header) per filter.
            ///
            /// `data` must hold the bytes that the header was parsed from.
            /// Its length is checked and the header in it is not read:
            /// other bytes give wrong answers, never undefined behaviour.
            ///
            /// # Errors
            ///
            /// [`Error::Length`](crate::Error::Length) for another number of
            /// bytes, [`Error::WrongKind`](crate::Error::WrongKind), or an
            /// error of the geometry.
            ///
            /// ```
            /// use tamis::{Blocked, Header};
            ///
            /// let mut filter = Blocked::builder().items(99).fpr(0.01).build()?;
            /// filter.insert("apple");
            /// let bytes = filter.to_bytes();
            ///
            /// let header = Header::parse(&bytes)?; // once
            /// let filter = Blocked::from_bytes_with(&header, &bytes[..])?;
            /// assert!(filter.contains("apple"));
            /// assert!(Blocked::from_bytes_with(&header, &bytes[1..]).is_err());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn from_bytes_with(header: &Header, data: D) -> Result<Self> {
                header.check_length(data.as_ref())?;
                ($open)(header, data)
            }

            /// The filter as bytes with a header of 32 bytes, and the blocks
            /// right behind it: for filters of a few kilobytes inside the
            /// files of another program. `from_bytes` opens both forms.
            ///
            /// Blocks straddle cache lines, unless the program places the
            /// image so that byte 32 of it is at a multiple of 64.
            ///
            /// # Errors
            ///
            /// [`Error::Unsupported`](crate::Error::Unsupported) for a
            /// [`Balanced`](crate::Balanced) filter, a hash with a key or a
            /// seed, a [`TinySet`](crate::TinySet) of two levels or with a
            /// number of chains of its own, and 2^32 keys or blocks.
            ///
            /// ```
            /// use tamis::Blocked;
            ///
            /// let mut filter =
            ///     Blocked::builder().items(1000).fpr(0.01).build()?;
            /// filter.insert("apple");
            /// let bytes = filter.to_compact_bytes()?;
            /// assert_eq!(bytes.len() + 96, filter.to_bytes().len());
            /// assert!(Blocked::from_bytes(&bytes[..])?.contains("apple"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn to_compact_bytes(&self) -> Result<Vec<u8>> {
                self.image().to_compact_bytes()
            }
        }
    )*};
}
embedded! {
    Bloom, Bloom::from_header;
    Blocked, Blocked::from_header;
    Split, Split::from_header;
    Balanced, Balanced::from_header;
    TinySet, TinySet::from_header;
    AnyFilter, AnyFilter::from_header;
}

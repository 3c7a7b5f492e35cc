//! Filters inside the files of other programs: headers parsed once, and the
//! compact form.

use alloc::vec::Vec;

use super::{AnyFilter, Balanced, Blocked, Bloom, Split, TinySet};
use crate::error::{Error, Result};
use crate::format::{
    FORMAT_VERSION, ImageHeader, Kind, Persist as _, check_length, image_len,
};
use crate::key::KeyHasher;

/// The parsed and checked header of a filter in bytes.
///
/// Opening a filter parses its header, which costs tens of nanoseconds. A
/// program that opens the same bytes again and again (a storage engine that
/// reads filters through a block cache) parses once, keeps the `Header`
/// (`Copy`, without a borrow of the bytes), and opens with
/// `from_bytes_with`, which costs a few:
///
/// ```
/// use tamis::{Blocked, Header};
///
/// let mut filter = Blocked::builder().items(1000).fpr(0.01).build()?;
/// filter.insert("apple");
/// let bytes = filter.to_bytes();
///
/// let header = Header::parse(&bytes)?; // once
/// assert_eq!((header.kind(), header.items()), (tamis::Kind::Blocked, 1));
/// for _ in 0..3 {
///     let filter = Blocked::from_bytes_with(&header, &bytes)?;
///     assert!(filter.contains("apple"));
/// }
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Header {
    /// Length of the image.
    bytes: u64,
    /// The opened filter, with an empty slice in place of the image.
    filter: AnyFilter<&'static [u8]>,
}

impl core::fmt::Debug for Header {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Header")
            .field("kind", &self.kind())
            .field("hasher", self.hasher())
            .field("items", &self.items())
            .field("design_items", &self.design_items())
            .field("design_fpr", &self.design_fpr())
            .field("bytes", &self.bytes)
            .finish()
    }
}

impl Header {
    /// Version of the byte format that this build writes, and the newest
    /// that it reads. It reads every older one.
    ///
    /// ```
    /// assert_eq!(tamis::Header::FORMAT_VERSION, 1);
    /// ```
    pub const FORMAT_VERSION: u16 = FORMAT_VERSION;

    /// Length of the image at the start of `bytes`, in constant time: where
    /// the next one begins in a file that holds one image behind the other.
    ///
    /// `bytes` must contain the whole header; anything may follow the image.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse), except [`Error::Length`].
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked, Header, Kind, Split};
    ///
    /// let mut file = Blocked::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// file.extend(Split::builder().items(9).fpr(0.1).build()?.to_bytes());
    ///
    /// let len = Header::image_len(&file)? as usize;
    /// let (first, second) = file.split_at(len);
    /// assert_eq!(AnyFilter::from_bytes(first)?.kind(), Kind::Blocked);
    /// assert_eq!(AnyFilter::from_bytes(second)?.kind(), Kind::Split);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn image_len(bytes: &[u8]) -> Result<u64> {
        image_len(bytes)
    }

    /// Parses the header of the image that `image` holds, and checks it, in
    /// time independent of the payload and without allocation.
    ///
    /// Finds every changed header byte (by the checksum) and every missing
    /// or extra byte; does not read the payload.
    ///
    /// # Errors
    ///
    /// One of the format's errors, with the expected and the found value.
    ///
    /// ```
    /// assert!(tamis::Header::parse(b"no header").is_err());
    /// ```
    pub fn parse(image: &[u8]) -> Result<Self> {
        match ImageHeader::parse(image) {
            Ok(ref header) => {
                let filter = AnyFilter::from_header(header, &[][..])?;
                Ok(Self { bytes: header.bytes, filter })
            }
            Err(error) => Err(error),
        }
    }

    /// Kind of the filter.
    ///
    /// ```
    /// use tamis::{Bloom, Header, Kind};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// assert_eq!(Header::parse(&bytes)?.kind(), Kind::Bloom);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.filter.kind()
    }

    /// Hash function of the keys.
    ///
    /// ```
    /// use tamis::{Bloom, Header, KeyHasher};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// assert_eq!(*Header::parse(&bytes)?.hasher(), KeyHasher::default());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        self.filter.hasher()
    }

    /// Keys inserted, repeats included.
    ///
    /// ```
    /// use tamis::{Bloom, Header};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// assert_eq!(Header::parse(&bytes)?.items(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> u64 {
        self.filter.len()
    }

    /// Keys the filter was sized for.
    ///
    /// ```
    /// use tamis::{Bloom, Header};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// assert_eq!(Header::parse(&bytes)?.design_items(), 9);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn design_items(&self) -> u64 {
        self.filter.capacity()
    }

    /// Predicted false-positive rate with
    /// [`design_items`](Self::design_items) keys.
    ///
    /// ```
    /// use tamis::{Bloom, Header};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// assert!(Header::parse(&bytes)?.design_fpr() <= 0.1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn design_fpr(&self) -> f64 {
        self.filter.design_fpr()
    }

    /// Length of the image, header included.
    ///
    /// ```
    /// use tamis::{Bloom, Header};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// assert_eq!(Header::parse(&bytes)?.bytes(), bytes.len() as u64);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The filter of a kind in `$any`.
macro_rules! of_kind {
    (AnyFilter, $any:expr) => {
        Ok($any)
    };
    ($name:ident, $any:expr) => {
        match $any {
            AnyFilter::$name(filter) => Ok(filter),
            other => Err(Error::WrongKind {
                expected: Kind::$name.name(),
                found: other.kind().name(),
            }),
        }
    };
}

macro_rules! embedded {
    ($($name:ident)*) => {$(
        impl<'a> $name<&'a [u8]> {
            /// `from_bytes` with a header that was parsed before from the
            /// same bytes.
            ///
            /// Copies the result of the first opening: a storage engine that
            /// opens a filter at each lookup keeps one
            /// [`Header`](crate::Header) per filter, and uses the filter in a
            /// `match` by reference: `?` copies it once more, which takes longer
            /// than opening.
            ///
            /// `bytes` must be those that the header was parsed from. Their
            /// number is checked and the header in them is not read: other
            /// bytes give wrong answers, never undefined behaviour.
            ///
            /// # Errors
            ///
            /// [`Error::Length`](crate::Error::Length) for another number of
            /// bytes, [`Error::WrongKind`](crate::Error::WrongKind).
            ///
            /// ```
            /// use tamis::{Blocked, Header};
            ///
            /// let mut filter = Blocked::builder().items(99).fpr(0.01).build()?;
            /// filter.insert("apple");
            /// let bytes = filter.to_bytes();
            ///
            /// let header = Header::parse(&bytes)?; // once
            /// let filter = Blocked::from_bytes_with(&header, &bytes)?;
            /// assert!(filter.contains("apple"));
            /// assert!(Blocked::from_bytes_with(&header, &bytes[1..]).is_err());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn from_bytes_with(
                header: &Header,
                bytes: &'a [u8],
            ) -> Result<Self> {
                check_length(header.bytes, bytes)?;
                let template: Result<&Self> = of_kind!($name, &header.filter);
                Ok(template?.rebound(bytes))
            }
        }

        impl<D: AsRef<[u8]>> $name<D> {
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
embedded! { Bloom Blocked Split Balanced TinySet AnyFilter }

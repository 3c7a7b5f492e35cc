//! The record of a file that names the type of its keys.

use std::fmt;

use tamis::{AnyFilter, Metadata};

use crate::{Error, KeyType, Keys, Result, Value};

/// Names of metadata entries.
const KEY_FORMAT: &str = "key-format";
const DIGEST: &str = "digest";

/// Notation of the keys of a filter, as users of the command line write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyFormat {
    /// Text, one key per line.
    Lines,
    /// Text, each key ends with a NUL byte.
    Nul,
    /// 64-bit integers.
    U64le,
    /// Bytes, in hexadecimal digits.
    Hex,
}

/// Function that users apply to their keys before they look them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Digest {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// MD5.
    Md5,
    /// MD4 of the UTF-16 form.
    Ntlm,
}

macro_rules! named {
    ($type:ty { $($variant:ident => $name:literal,)* }) => {
        impl $type {
            /// The name in files and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
named!(KeyFormat {
    Lines => "lines",
    Nul => "nul",
    U64le => "u64le",
    Hex => "hex",
});
named!(Digest {
    Sha1 => "sha1",
    Sha256 => "sha256",
    Md5 => "md5",
    Ntlm => "ntlm",
});

impl Digest {
    /// Length in bytes.
    ///
    /// ```
    /// assert_eq!(tamis_arrow::Digest::Sha1.len(), 20);
    /// ```
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no digest is empty")]
    pub fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Md5 | Self::Ntlm => 16,
        }
    }
}

/// Record of the keys of a filter, in its metadata; the command line writes
/// and reads the same. Empty in filters that the Rust library built without
/// one: these take keys of all types.
///
/// | stored | takes |
/// |---|---|
/// | `lines`, `nul` | strings and bytes |
/// | `u64le` | integers |
/// | `hex` | bytes |
/// | `hex` and a digest | bytes of the digest's length |
///
/// ```
/// use tamis::{AnyFilter, Kind};
/// use tamis_arrow::{KeyRecord, KeyType, Value};
///
/// let builder = AnyFilter::builder(Kind::TinySet).items(9).fpr(0.01);
/// let mut filter = builder.build()?;
/// KeyRecord::for_type(KeyType::Integer).store(&mut filter)?;
/// assert_eq!(filter.metadata()?.get("key-format"), Some("u64le"));
///
/// let record = KeyRecord::of(&filter.metadata()?)?;
/// assert!(record.admit_value(Value::Integer(7)).is_ok());
/// assert!(record.admit_value(Value::Text("7")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyRecord {
    format: Option<KeyFormat>,
    digest: Option<Digest>,
}

impl KeyRecord {
    /// The record for keys of a type: `u64le` for integers, else `lines`.
    ///
    /// ```
    /// use tamis_arrow::{KeyFormat, KeyRecord, KeyType};
    /// let record = KeyRecord::for_type(KeyType::Text);
    /// assert_eq!(record, KeyRecord::new(KeyFormat::Lines));
    /// ```
    #[must_use]
    pub fn for_type(key_type: KeyType) -> Self {
        Self::new(match key_type {
            KeyType::Integer => KeyFormat::U64le,
            KeyType::Text | KeyType::Binary => KeyFormat::Lines,
        })
    }

    /// The record of a format.
    ///
    /// ```
    /// use tamis_arrow::{KeyFormat, KeyRecord};
    /// assert_eq!(KeyRecord::new(KeyFormat::Hex).to_string(), "hex");
    /// ```
    #[must_use]
    pub fn new(format: KeyFormat) -> Self {
        Self { format: Some(format), digest: None }
    }

    /// The record in the metadata of a filter.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownRecord`] if a newer version wrote it.
    ///
    /// ```
    /// let filter = tamis::Bloom::builder().items(9).fpr(0.1).build()?;
    /// let record = tamis_arrow::KeyRecord::of(&filter.metadata()?)?;
    /// assert!(record.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(metadata: &Metadata<'_>) -> Result<Self> {
        let unknown = |entry, value: &str| Error::UnknownRecord {
            entry,
            value: value.into(),
        };
        let format = metadata.get(KEY_FORMAT).map(|name| {
            KeyFormat::from_name(name).ok_or_else(|| unknown(KEY_FORMAT, name))
        });
        let digest = metadata.get(DIGEST).map(|name| {
            Digest::from_name(name).ok_or_else(|| unknown(DIGEST, name))
        });
        Ok(Self { format: format.transpose()?, digest: digest.transpose()? })
    }

    /// Writes the record into the metadata of a filter.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] if the metadata is full or damaged.
    ///
    /// ```
    /// use tamis_arrow::{KeyFormat, KeyRecord};
    ///
    /// let builder = tamis::Bloom::builder().items(9).fpr(0.1);
    /// let mut filter = tamis::AnyFilter::from(builder.build()?);
    /// KeyRecord::new(KeyFormat::Hex).store(&mut filter)?;
    /// assert_eq!(filter.metadata()?.get("key-format"), Some("hex"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store(self, filter: &mut AnyFilter) -> Result<()> {
        let name = self.format.map_or("", KeyFormat::name);
        filter.set_metadata(KEY_FORMAT, name)?;
        filter.set_metadata(DIGEST, self.digest.map_or("", Digest::name))?;
        Ok(())
    }

    /// The format; `None` without a record.
    ///
    /// ```
    /// assert_eq!(tamis_arrow::KeyRecord::default().format(), None);
    /// ```
    #[must_use]
    pub fn format(self) -> Option<KeyFormat> {
        self.format
    }

    /// True without a record: keys of all types are admitted.
    ///
    /// ```
    /// assert!(tamis_arrow::KeyRecord::default().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Checks the type of a key.
    ///
    /// # Errors
    ///
    /// [`Error::OtherKeys`] or [`Error::NoDigests`].
    ///
    /// ```
    /// use tamis_arrow::{KeyFormat, KeyRecord, Value};
    ///
    /// let hex = KeyRecord::new(KeyFormat::Hex);
    /// assert!(hex.admit_value(Value::Binary(b"\xab")).is_ok());
    /// assert!(hex.admit_value(Value::Text("ab")).is_err());
    /// ```
    #[inline]
    pub fn admit_value(self, value: Value<'_>) -> Result<()> {
        let key_type = value.key_type();
        match (self.digest, value) {
            (None, _) => self.admit_type(key_type),
            (Some(digest), Value::Binary(bytes))
                if bytes.len() == digest.len() =>
            {
                Ok(())
            }
            (Some(digest), _) => {
                Err(Error::NoDigests { digest, found: key_type })
            }
        }
    }

    /// Checks the type of the keys of a column.
    ///
    /// # Errors
    ///
    /// [`Error::OtherKeys`] or [`Error::NoDigests`].
    ///
    /// ```
    /// use tamis_arrow::{KeyFormat, KeyRecord, Keys};
    ///
    /// let keys = Keys::from_integers(&tamis::KeyHasher::default(), &[1u8]);
    /// assert!(KeyRecord::new(KeyFormat::U64le).admit(&keys).is_ok());
    /// assert!(KeyRecord::new(KeyFormat::Lines).admit(&keys).is_err());
    /// ```
    pub fn admit(self, keys: &Keys<'_>) -> Result<()> {
        match self.digest {
            None => self.admit_type(keys.key_type()),
            Some(digest) => keys.check_digests(digest),
        }
    }

    #[inline]
    fn admit_type(self, found: KeyType) -> Result<()> {
        let Some(format) = self.format else { return Ok(()) };
        let is_admitted = match format {
            KeyFormat::Lines | KeyFormat::Nul => found != KeyType::Integer,
            KeyFormat::U64le => found == KeyType::Integer,
            KeyFormat::Hex => found == KeyType::Binary,
        };
        match is_admitted {
            true => Ok(()),
            false => Err(Error::OtherKeys { format, found }),
        }
    }

    /// The record of the union of two filters.
    ///
    /// # Errors
    ///
    /// [`Error::DifferentKeys`] if their keys differ.
    ///
    /// ```
    /// use tamis_arrow::{KeyFormat, KeyRecord};
    ///
    /// let lines = KeyRecord::new(KeyFormat::Lines);
    /// assert_eq!(lines.common(KeyRecord::default())?, lines);
    /// assert!(lines.common(KeyRecord::new(KeyFormat::U64le)).is_err());
    /// # Ok::<(), tamis_arrow::Error>(())
    /// ```
    pub fn common(self, other: Self) -> Result<Self> {
        let is_text =
            |format| matches!(format, Some(KeyFormat::Lines | KeyFormat::Nul));
        let is_same_format = self.format == other.format
            || is_text(self.format) && is_text(other.format);
        match () {
            () if other.format.is_none() => Ok(self),
            () if self.format.is_none() => Ok(other),
            () if is_same_format && self.digest == other.digest => Ok(self),
            () => Err(Error::DifferentKeys {
                ours: self.to_string(),
                theirs: other.to_string(),
            }),
        }
    }
}

impl fmt::Display for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.digest, self.format) {
            (Some(digest), _) => write!(f, "{digest} digests"),
            (None, Some(format)) => f.write_str(format.name()),
            (None, None) => f.write_str("of any type"),
        }
    }
}

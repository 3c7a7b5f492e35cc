//! Columns and values as key hashes.

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ByteArrayType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray,
};
use arrow_buffer::{ArrowNativeType as _, NullBuffer};
use arrow_schema::DataType;
use tamis::KeyHasher;

use crate::{Digest, Error, Result};

/// Type of the keys of a column or value. Text and binary values with the
/// same bytes are the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// Integers, as 64 bits.
    Integer,
    /// Strings.
    Text,
    /// Bytes.
    Binary,
}

impl KeyType {
    /// The type of the keys of an Arrow column.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedType`] for a type without keys.
    ///
    /// ```
    /// use arrow_schema::DataType;
    /// use tamis_arrow::KeyType;
    ///
    /// assert_eq!(KeyType::of(&DataType::UInt8)?, KeyType::Integer);
    /// assert_eq!(KeyType::of(&DataType::Utf8View)?, KeyType::Text);
    /// assert!(KeyType::of(&DataType::Float64).is_err());
    /// # Ok::<(), tamis_arrow::Error>(())
    /// ```
    pub fn of(data_type: &DataType) -> Result<Self> {
        use DataType::{
            Binary, BinaryView, Dictionary, FixedSizeBinary, Int8, Int16,
            Int32, Int64, LargeBinary, LargeUtf8, UInt8, UInt16, UInt32,
            UInt64, Utf8, Utf8View,
        };
        let hint = match data_type {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32
            | UInt64 => return Ok(Self::Integer),
            Utf8 | LargeUtf8 | Utf8View => return Ok(Self::Text),
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => {
                return Ok(Self::Binary);
            }
            Dictionary(_, values) => return Self::of(values),
            DataType::Boolean => "a key has more than two values",
            floating if floating.is_floating() => {
                "equal numbers can differ in their bits; cast to int64 or \
                 to a string"
            }
            temporal if temporal.is_temporal() => {
                "the unit is not part of the key; cast to int64 in a unit of \
                 your choice, or to a string"
            }
            DataType::Struct(_) => {
                "select one column, or join several into a string"
            }
            DataType::Null => "cast the column to the type of its keys",
            nested if nested.is_nested() => "flatten the column first",
            _ => "cast to int64, to a string or to binary",
        };
        Err(Error::UnsupportedType { found: data_type.to_string(), hint })
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "integers",
            Self::Text => "strings",
            Self::Binary => "bytes",
        })
    }
}

/// Integers that widen to the 64 bits of a key.
pub trait Integer: Copy + Sync + 'static {
    /// The number in 64 bits, two's complement.
    ///
    /// ```
    /// use tamis_arrow::Integer;
    /// assert_eq!((-1i8).widen(), u64::MAX);
    /// assert_eq!(255u8.widen(), 255);
    /// ```
    fn widen(self) -> u64;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            #[inline(always)]
            fn widen(self) -> u64 {
                // Sign extension of signed types.
                self as i64 as u64
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

/// A single key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer, widened by [`Integer::widen`].
    Integer(u64),
    /// A string.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

impl Value<'_> {
    /// The type of the key.
    ///
    /// ```
    /// use tamis_arrow::{KeyType, Value};
    /// assert_eq!(Value::Text("a").key_type(), KeyType::Text);
    /// ```
    #[must_use]
    pub fn key_type(self) -> KeyType {
        match self {
            Self::Integer(_) => KeyType::Integer,
            Self::Text(_) => KeyType::Text,
            Self::Binary(_) => KeyType::Binary,
        }
    }

    /// The hash of the key.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis_arrow::Value;
    ///
    /// let hasher = KeyHasher::default();
    /// let text = Value::Text("tamis").hash(&hasher);
    /// assert_eq!(text, Value::Binary(b"tamis").hash(&hasher));
    /// assert_eq!(text, hasher.hash("tamis"));
    /// assert_eq!(Value::Integer(42).hash(&hasher), hasher.hash(&42u64));
    /// ```
    #[inline]
    #[must_use]
    pub fn hash(self, hasher: &KeyHasher) -> u64 {
        match self {
            Self::Integer(number) => hasher.hash(&number),
            Self::Text(text) => hasher.hash(text),
            Self::Binary(bytes) => hasher.hash(bytes),
        }
    }
}

/// The keys of a column, which a hasher turns into hashes range by range.
pub struct Keys<'a> {
    hasher: KeyHasher,
    key_type: KeyType,
    len: usize,
    nulls: Option<NullBuffer>,
    source: Source<'a>,
}

/// Memory of a column.
enum Source<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    Bytes {
        offsets: &'a [i32],
        data: &'a [u8],
    },
    LargeBytes {
        offsets: &'a [i64],
        data: &'a [u8],
    },
    TextView(&'a GenericByteViewArray<arrow_array::types::StringViewType>),
    BinaryView(&'a GenericByteViewArray<arrow_array::types::BinaryViewType>),
    FixedBytes {
        data: &'a [u8],
        width: usize,
    },
    PaddedBytes {
        data: &'a [u8],
        width: usize,
    },
    PaddedText {
        data: &'a [u32],
        width: usize,
    },
    /// Values by row; `lengths` are those of the values in bytes.
    Dictionary {
        rows: Vec<usize>,
        hashes: Vec<u64>,
        lengths: Vec<usize>,
    },
}

impl<'a> Keys<'a> {
    /// The keys of an Arrow array.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedType`] for a type without keys.
    ///
    /// ```
    /// use arrow_array::{Float64Array, StringArray};
    /// use tamis::KeyHasher;
    /// use tamis_arrow::Keys;
    ///
    /// let hasher = KeyHasher::default();
    /// let column = StringArray::from(vec![Some("a"), None]);
    /// let keys = Keys::from_array(&hasher, &column)?;
    /// let mut hashes = Vec::new();
    /// keys.hash_present(0..2, &mut hashes);
    /// assert_eq!(hashes, [hasher.hash("a")]);
    ///
    /// let numbers = Float64Array::from(vec![0.5]);
    /// assert!(Keys::from_array(&hasher, &numbers).is_err());
    /// # Ok::<(), tamis_arrow::Error>(())
    /// ```
    pub fn from_array(
        hasher: &KeyHasher,
        array: &'a dyn Array,
    ) -> Result<Self> {
        Ok(Self {
            hasher: *hasher,
            key_type: KeyType::of(array.data_type())?,
            len: array.len(),
            nulls: array
                .logical_nulls()
                .filter(|nulls| nulls.null_count() > 0),
            source: Source::of(hasher, array)?,
        })
    }

    /// The keys of a slice of integers.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis_arrow::Keys;
    ///
    /// let hasher = KeyHasher::default();
    /// let mut hashes = Vec::new();
    /// Keys::from_integers(&hasher, &[7i16, -1]).hash(0..2, &mut hashes);
    /// assert_eq!(hashes, [hasher.hash(&7u64), hasher.hash(&-1i64)]);
    /// ```
    #[must_use]
    pub fn from_integers<T: Integer>(
        hasher: &KeyHasher,
        values: &'a [T],
    ) -> Self
    where
        Integers<'a>: From<&'a [T]>,
    {
        let Integers(source) = values.into();
        Self::without_nulls(hasher, KeyType::Integer, values.len(), source)
    }

    /// The keys of a numpy array of type `S`: strings of `width` bytes each,
    /// whose trailing NULs are no part of the key.
    ///
    /// # Panics
    ///
    /// Panics unless the length of `data` is a multiple of `width`, which is
    /// not 0.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis_arrow::Keys;
    ///
    /// let hasher = KeyHasher::default();
    /// let mut hashes = Vec::new();
    /// Keys::from_padded_bytes(&hasher, b"ab\0abc", 3).hash(0..2, &mut hashes);
    /// assert_eq!(hashes, [hasher.hash("ab"), hasher.hash("abc")]);
    /// ```
    #[must_use]
    pub fn from_padded_bytes(
        hasher: &KeyHasher,
        data: &'a [u8],
        width: usize,
    ) -> Self {
        assert_eq!(data.len() % width, 0, "all strings have one width");
        let source = Source::PaddedBytes { data, width };
        let len = data.len() / width;
        Self::without_nulls(hasher, KeyType::Binary, len, source)
    }

    /// The keys of a numpy array of type `U`: strings of `width` code points
    /// each, whose trailing NULs are no part of the key.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedType`] if a value is not Unicode text.
    ///
    /// # Panics
    ///
    /// Panics unless the length of `data` is a multiple of `width`, which is
    /// not 0.
    ///
    /// ```
    /// use tamis::KeyHasher;
    /// use tamis_arrow::Keys;
    ///
    /// let hasher = KeyHasher::default();
    /// let mut hashes = Vec::new();
    /// let data = [0xe9, 0, 0x61, 0x62];
    /// Keys::from_padded_text(&hasher, &data, 2)?.hash(0..2, &mut hashes);
    /// assert_eq!(hashes, [hasher.hash("é"), hasher.hash("ab")]);
    /// # Ok::<(), tamis_arrow::Error>(())
    /// ```
    pub fn from_padded_text(
        hasher: &KeyHasher,
        data: &'a [u32],
        width: usize,
    ) -> Result<Self> {
        assert_eq!(data.len() % width, 0, "all strings have one width");
        if data.iter().any(|&code| char::from_u32(code).is_none()) {
            return Err(Error::UnsupportedType {
                found: "surrogate".into(),
                hint: "encode the strings as UTF-8",
            });
        }
        let source = Source::PaddedText { data, width };
        let len = data.len() / width;
        Ok(Self::without_nulls(hasher, KeyType::Text, len, source))
    }

    fn without_nulls(
        hasher: &KeyHasher,
        key_type: KeyType,
        len: usize,
        source: Source<'a>,
    ) -> Self {
        Self { hasher: *hasher, key_type, len, nulls: None, source }
    }

    /// The type of the keys.
    ///
    /// ```
    /// use tamis_arrow::{KeyType, Keys};
    /// let keys = Keys::from_integers(&tamis::KeyHasher::default(), &[7u8]);
    /// assert_eq!(keys.key_type(), KeyType::Integer);
    /// ```
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The number of rows, nulls included.
    ///
    /// ```
    /// use tamis_arrow::Keys;
    /// let keys = Keys::from_integers(&tamis::KeyHasher::default(), &[7u8]);
    /// assert_eq!(keys.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without rows.
    ///
    /// ```
    /// use tamis_arrow::Keys;
    /// let keys = Keys::from_integers(&tamis::KeyHasher::default(), &[7u8]);
    /// assert!(!keys.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rows without key; `None` if every row has one.
    ///
    /// ```
    /// use tamis_arrow::Keys;
    /// let keys = Keys::from_integers(&tamis::KeyHasher::default(), &[7u8]);
    /// assert!(keys.nulls().is_none());
    /// ```
    #[must_use]
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// The number of rows with a key.
    ///
    /// ```
    /// use arrow_array::StringArray;
    /// use tamis_arrow::Keys;
    ///
    /// let column = StringArray::from(vec![Some("a"), None]);
    /// let hasher = tamis::KeyHasher::default();
    /// assert_eq!(Keys::from_array(&hasher, &column)?.present(), 1);
    /// # Ok::<(), tamis_arrow::Error>(())
    /// ```
    #[must_use]
    pub fn present(&self) -> usize {
        self.len - self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    /// Appends the hashes of a range of rows to `out`; the value for a null is
    /// arbitrary.
    ///
    /// # Panics
    ///
    /// Panics if the range exceeds the rows.
    ///
    /// ```
    /// use tamis_arrow::Keys;
    ///
    /// let hasher = tamis::KeyHasher::default();
    /// let mut hashes = Vec::new();
    /// Keys::from_integers(&hasher, &[7u8, 8, 9]).hash(1..3, &mut hashes);
    /// assert_eq!(hashes, [hasher.hash(&8u64), hasher.hash(&9u64)]);
    /// ```
    pub fn hash(&self, range: Range<usize>, out: &mut Vec<u64>) {
        let hasher = &self.hasher;
        match &self.source {
            Source::I8(values) => integers(hasher, &values[range], out),
            Source::I16(values) => integers(hasher, &values[range], out),
            Source::I32(values) => integers(hasher, &values[range], out),
            Source::I64(values) => integers(hasher, &values[range], out),
            Source::U8(values) => integers(hasher, &values[range], out),
            Source::U16(values) => integers(hasher, &values[range], out),
            Source::U32(values) => integers(hasher, &values[range], out),
            Source::U64(values) => integers(hasher, &values[range], out),
            Source::Bytes { offsets, data } => {
                let offsets = &offsets[range.start..=range.end];
                out.extend(offsets.windows(2).map(|ends| {
                    let (start, end) =
                        (ends[0].as_usize(), ends[1].as_usize());
                    hasher.hash(&data[start..end])
                }));
            }
            Source::LargeBytes { offsets, data } => {
                let offsets = &offsets[range.start..=range.end];
                out.extend(offsets.windows(2).map(|ends| {
                    let (start, end) =
                        (ends[0].as_usize(), ends[1].as_usize());
                    hasher.hash(&data[start..end])
                }));
            }
            Source::TextView(array) => {
                out.extend(range.map(|row| hasher.hash(array.value(row))));
            }
            Source::BinaryView(array) => {
                out.extend(range.map(|row| hasher.hash(array.value(row))));
            }
            Source::FixedBytes { data: _, width: 0 } => {
                out.extend(range.map(|_| hasher.hash("")));
            }
            Source::FixedBytes { data, width } => {
                let rows = &data[range.start * width..range.end * width];
                out.extend(rows.chunks(*width).map(|row| hasher.hash(row)));
            }
            Source::PaddedBytes { data, width } => {
                let rows = &data[range.start * width..range.end * width];
                let key = |row| hasher.hash(unpadded(row, &0));
                out.extend(rows.chunks(*width).map(key));
            }
            Source::PaddedText { data, width } => {
                let rows = &data[range.start * width..range.end * width];
                let mut text = String::new();
                out.extend(rows.chunks(*width).map(|row| {
                    text.clear();
                    let codes = unpadded(row, &0).iter();
                    text.extend(codes.filter_map(|&c| char::from_u32(c)));
                    hasher.hash(&text)
                }));
            }
            Source::Dictionary { rows, hashes, .. } => {
                out.extend(rows[range].iter().map(|&row| hashes[row]));
            }
        }
    }

    /// Appends the hashes of the keys in a range of rows to `out`, without
    /// nulls.
    ///
    /// # Panics
    ///
    /// Panics if the range exceeds the rows.
    ///
    /// ```
    /// use arrow_array::Int8Array;
    /// use tamis_arrow::Keys;
    ///
    /// let hasher = tamis::KeyHasher::default();
    /// let column = Int8Array::from(vec![None, Some(8)]);
    /// let mut hashes = Vec::new();
    /// Keys::from_array(&hasher, &column)?.hash_present(0..2, &mut hashes);
    /// assert_eq!(hashes, [hasher.hash(&8u64)]);
    /// # Ok::<(), tamis_arrow::Error>(())
    /// ```
    pub fn hash_present(&self, range: Range<usize>, out: &mut Vec<u64>) {
        let (before, mut row) = (out.len(), range.start);
        self.hash(range, out);
        if let Some(nulls) = &self.nulls {
            let mut kept = before;
            for at in before..out.len() {
                out[kept] = out[at];
                kept += usize::from(nulls.is_valid(row));
                row += 1;
            }
            out.truncate(kept);
        }
    }

    /// Checks that all keys are digests of a function, by their length.
    ///
    /// # Errors
    ///
    /// [`Error::NoDigests`] for a key of another type or length.
    pub(crate) fn check_digests(&self, digest: Digest) -> Result<()> {
        let width = digest.len();
        let is_present =
            |row| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let has_width = |row: usize| self.byte_len(row) == width;
        let are_digests = self.key_type == KeyType::Binary
            && (0..self.len).all(|row| !is_present(row) || has_width(row));
        match are_digests {
            true => Ok(()),
            false => Err(Error::NoDigests { digest, found: self.key_type }),
        }
    }
}

/// Memory of integers; made from slices.
#[doc(hidden)]
pub struct Integers<'a>(Source<'a>);

macro_rules! integers_from {
    ($($variant:ident $type:ty),*) => {$(
        impl<'a> From<&'a [$type]> for Integers<'a> {
            fn from(values: &'a [$type]) -> Self {
                Self(Source::$variant(values))
            }
        }
    )*};
}
integers_from!(
    I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64
);

#[inline(always)]
fn integers<T: Integer>(hasher: &KeyHasher, values: &[T], out: &mut Vec<u64>) {
    out.extend(values.iter().map(|value| hasher.hash(&value.widen())));
}

/// The values before the trailing ones that equal `padding`.
fn unpadded<'a, T: PartialEq>(row: &'a [T], padding: &T) -> &'a [T] {
    let len = row.iter().rposition(|value| value != padding);
    &row[..len.map_or(0, |last| last + 1)]
}

impl<'a> Source<'a> {
    fn of(hasher: &KeyHasher, array: &'a dyn Array) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Int8 => {
                Self::I8(array.as_primitive::<Int8Type>().values())
            }
            DataType::Int16 => {
                Self::I16(array.as_primitive::<Int16Type>().values())
            }
            DataType::Int32 => {
                Self::I32(array.as_primitive::<Int32Type>().values())
            }
            DataType::Int64 => {
                Self::I64(array.as_primitive::<Int64Type>().values())
            }
            DataType::UInt8 => {
                Self::U8(array.as_primitive::<UInt8Type>().values())
            }
            DataType::UInt16 => {
                Self::U16(array.as_primitive::<UInt16Type>().values())
            }
            DataType::UInt32 => {
                Self::U32(array.as_primitive::<UInt32Type>().values())
            }
            DataType::UInt64 => {
                Self::U64(array.as_primitive::<UInt64Type>().values())
            }
            DataType::Utf8 => bytes(array.as_string::<i32>()),
            DataType::LargeUtf8 => large_bytes(array.as_string::<i64>()),
            DataType::Binary => bytes(array.as_binary::<i32>()),
            DataType::LargeBinary => large_bytes(array.as_binary::<i64>()),
            DataType::Utf8View => Self::TextView(array.as_string_view()),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => {
                fixed_bytes(array.as_fixed_size_binary())
            }
            DataType::Dictionary(_, _) => dictionary(hasher, array)?,
            other => {
                KeyType::of(other)?;
                // `of` refuses all types but those above.
                return Err(Error::UnsupportedType {
                    found: other.to_string(),
                    hint: "cast to int64, to a string or to binary",
                });
            }
        })
    }
}

fn bytes<T: ByteArrayType<Offset = i32>>(
    array: &GenericByteArray<T>,
) -> Source<'_> {
    Source::Bytes { offsets: array.value_offsets(), data: array.value_data() }
}

fn large_bytes<T: ByteArrayType<Offset = i64>>(
    array: &GenericByteArray<T>,
) -> Source<'_> {
    Source::LargeBytes {
        offsets: array.value_offsets(),
        data: array.value_data(),
    }
}

fn fixed_bytes(array: &FixedSizeBinaryArray) -> Source<'_> {
    let width = array.value_length().as_usize();
    Source::FixedBytes { data: array.value_data(), width }
}

/// Hashes every value of a dictionary once.
fn dictionary<'a>(
    hasher: &KeyHasher,
    array: &dyn Array,
) -> Result<Source<'a>> {
    let array = array.as_any_dictionary();
    let values = Keys::from_array(hasher, array.values())?;
    if values.is_empty() {
        // No value: every row is null.
        let (hashes, lengths) = (vec![0], vec![0]);
        return Ok(Source::Dictionary {
            rows: vec![0; array.len()],
            hashes,
            lengths,
        });
    }
    let mut hashes = Vec::with_capacity(values.len());
    values.hash(0..values.len(), &mut hashes);
    let lengths = (0..values.len()).map(|row| values.byte_len(row)).collect();
    Ok(Source::Dictionary { rows: array.normalized_keys(), hashes, lengths })
}

impl Keys<'_> {
    /// The length of a binary value in bytes; 0 for other types.
    fn byte_len(&self, row: usize) -> usize {
        match &self.source {
            Source::Bytes { offsets, .. } => {
                (offsets[row + 1] - offsets[row]).as_usize()
            }
            Source::LargeBytes { offsets, .. } => {
                (offsets[row + 1] - offsets[row]).as_usize()
            }
            Source::BinaryView(array) => array.value(row).len(),
            // A digest may end with NULs, which numpy does not keep apart
            // from padding.
            Source::FixedBytes { width, .. }
            | Source::PaddedBytes { width, .. } => *width,
            Source::Dictionary { rows, lengths, .. } => lengths[rows[row]],
            _ => 0,
        }
    }
}

//! The vectors of `docs/format.md`, every column type beside `tamis::Key`,
//! slices, nulls and threads.

#![expect(clippy::unwrap_used, reason = "a failure is the failure of a test")]

use std::num::NonZero;
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray,
    DictionaryArray, FixedSizeBinaryArray, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray,
    ListArray, StringArray, StringViewArray, StructArray,
    TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use proptest::prelude::*;
use tamis::{AnyFilter, HashId, KeyHasher, Kind};
use tamis_arrow::{
    Digest, Error, KeyFormat, KeyRecord, KeyType, Keys, Value, contains,
    contains_bools, insert,
};

const ONE: NonZero<usize> = NonZero::<usize>::MIN;

fn hashes(hasher: &KeyHasher, array: &dyn Array) -> Vec<u64> {
    let keys = Keys::from_array(hasher, array).unwrap();
    let mut out = Vec::new();
    keys.hash(0..keys.len(), &mut out);
    out
}

/// Every column type that holds the string.
fn text_columns(text: &str) -> Vec<ArrayRef> {
    let bytes = text.as_bytes();
    let values = Arc::new(StringArray::from(vec!["other", text]));
    let binary = Arc::new(BinaryArray::from(vec![bytes]));
    let dictionary = |values: ArrayRef, at| -> ArrayRef {
        let rows = Int8Array::from(vec![at]);
        Arc::new(DictionaryArray::<Int8Type>::new(rows, values))
    };
    let fixed = FixedSizeBinaryArray::try_from_iter([bytes].into_iter());
    vec![
        Arc::new(StringArray::from(vec![text])),
        Arc::new(LargeStringArray::from(vec![text])),
        Arc::new(StringViewArray::from(vec![text])),
        Arc::new(BinaryArray::from(vec![bytes])),
        Arc::new(LargeBinaryArray::from(vec![bytes])),
        Arc::new(BinaryViewArray::from(vec![bytes])),
        Arc::new(fixed.unwrap()),
        dictionary(values, 1),
        dictionary(binary, 0),
    ]
}

#[test]
fn vectors_are_those_of_the_format() {
    let hashers = [
        KeyHasher::xxh3(0),
        KeyHasher::xxh3(42),
        KeyHasher::new(
            HashId::SipHash13,
            0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100,
        )
        .unwrap(),
    ];
    let texts = [
        (
            "tamis",
            [
                0x059d_e48c_2aa7_e0bc,
                0x3d92_91a9_6ab6_7cd6,
                0x7be7_0630_87c4_19d8,
            ],
        ),
        (
            "a",
            [
                0xe6c6_32b6_1e96_4e1f,
                0x4c43_7dd4_7f07_16f4,
                0x1c26_97ab_786a_6237,
            ],
        ),
    ];
    for (text, expected) in texts {
        for (hasher, expected) in hashers.iter().zip(expected) {
            for column in text_columns(text) {
                let found = hashes(hasher, &column);
                assert_eq!(found, [expected], "{}", column.data_type());
            }
            assert_eq!(Value::Text(text).hash(hasher), expected);
        }
    }
    let forty_two =
        [0xd5a6_f8c8_38df_27c8, 0xbffc_1505_8f95_6b16, 0x2d9b_012a_8072_94cb];
    let columns: [ArrayRef; 8] = [
        Arc::new(Int8Array::from(vec![42])),
        Arc::new(Int16Array::from(vec![42])),
        Arc::new(Int32Array::from(vec![42])),
        Arc::new(Int64Array::from(vec![42])),
        Arc::new(UInt8Array::from(vec![42])),
        Arc::new(UInt16Array::from(vec![42])),
        Arc::new(UInt32Array::from(vec![42])),
        Arc::new(UInt64Array::from(vec![42])),
    ];
    for (hasher, expected) in hashers.iter().zip(forty_two) {
        for column in &columns {
            assert_eq!(hashes(hasher, column), [expected]);
        }
        assert_eq!(Value::Integer(42).hash(hasher), expected);
    }
    let minus_one = [0xff; 8];
    for hasher in &hashers {
        let expected = hasher.hash(&minus_one);
        let signed = Int8Array::from(vec![-1]);
        assert_eq!(hashes(hasher, &signed), [expected]);
        let wide = Int64Array::from(vec![-1]);
        assert_eq!(hashes(hasher, &wide), [expected]);
        // 2^64 - 1 has the bytes of -1, 255 has not.
        let unsigned = UInt64Array::from(vec![u64::MAX]);
        assert_eq!(hashes(hasher, &unsigned), [expected]);
        assert_ne!(hashes(hasher, &UInt8Array::from(vec![255])), [expected]);
    }
}

#[test]
fn unsuitable_columns_are_refused_with_a_hint() {
    let hasher = KeyHasher::default();
    let numbers = Int32Array::from(vec![1]);
    let columns: [(ArrayRef, &str); 5] = [
        (Arc::new(Float64Array::from(vec![0.5])), "cast to int64"),
        (Arc::new(BooleanArray::from(vec![true])), "two values"),
        (Arc::new(TimestampSecondArray::from(vec![1])), "unit"),
        (
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
                Some([Some(1)]),
            ])),
            "flatten",
        ),
        (
            Arc::new(StructArray::from(vec![(
                Arc::new(arrow_schema::Field::new(
                    "n",
                    numbers.data_type().clone(),
                    false,
                )),
                Arc::new(numbers) as ArrayRef,
            )])),
            "one column",
        ),
    ];
    for (column, hint) in columns {
        let error = Keys::from_array(&hasher, &column).err().unwrap();
        assert!(matches!(error, Error::UnsupportedType { .. }));
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn dictionaries_without_values_and_with_null_values() {
    let hasher = KeyHasher::default();
    let empty = DictionaryArray::<UInt16Type>::new(
        UInt16Array::from(vec![None, None]),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    let keys = Keys::from_array(&hasher, &empty).unwrap();
    assert_eq!((keys.len(), keys.present()), (2, 0));
    let values = StringArray::from(vec![Some("a"), None]);
    let rows = Int8Array::from(vec![Some(0), Some(1), None]);
    let nulls = DictionaryArray::<Int8Type>::new(rows, Arc::new(values));
    let keys = Keys::from_array(&hasher, &nulls).unwrap();
    let mut present = Vec::new();
    keys.hash_present(0..3, &mut present);
    assert_eq!(present, [hasher.hash("a")]);
}

#[test]
fn records_admit_and_refuse() {
    let values = [
        Value::Integer(7),
        Value::Text("12345678901234567890"),
        Value::Binary(b"12345678901234567890"),
    ];
    let sha1 = {
        let mut filter =
            AnyFilter::builder(Kind::Bloom).items(9).fpr(0.1).build().unwrap();
        filter.set_metadata("key-format", "hex").unwrap();
        filter.set_metadata("digest", "sha1").unwrap();
        KeyRecord::of(&filter.metadata().unwrap()).unwrap()
    };
    assert_eq!(sha1.to_string(), format!("{} digests", Digest::Sha1));
    for (record, admitted) in [
        (KeyRecord::default(), [true, true, true]),
        (KeyRecord::new(KeyFormat::Lines), [false, true, true]),
        (KeyRecord::new(KeyFormat::Nul), [false, true, true]),
        (KeyRecord::new(KeyFormat::U64le), [true, false, false]),
        (KeyRecord::new(KeyFormat::Hex), [false, false, true]),
        (sha1, [false, false, true]),
    ] {
        for (value, admitted) in values.into_iter().zip(admitted) {
            let result = record.admit_value(value);
            assert_eq!(result.is_ok(), admitted, "{record} {value:?}");
        }
    }
    assert!(sha1.admit_value(Value::Binary(b"password")).is_err());
    // By column, a wrong length in any row is refused.
    let hasher = KeyHasher::default();
    let (right, wrong): (&[u8], &[u8]) = (&[1; 20], b"password");
    for (rows, admitted) in
        [(vec![right, right], true), (vec![right, wrong], false)]
    {
        let plain = BinaryArray::from(rows.clone());
        let view = BinaryViewArray::from(rows.clone());
        let dictionary = DictionaryArray::<Int8Type>::new(
            Int8Array::from(vec![0, 1]),
            Arc::new(plain.clone()),
        );
        let columns: [&dyn Array; 3] = [&plain, &view, &dictionary];
        for column in columns {
            let keys = Keys::from_array(&hasher, column).unwrap();
            assert_eq!(sha1.admit(&keys).is_ok(), admitted);
        }
    }
    assert!(sha1.common(KeyRecord::new(KeyFormat::Hex)).is_err());
    let nul = KeyRecord::new(KeyFormat::Nul);
    assert_eq!(nul.common(KeyRecord::for_type(KeyType::Text)).unwrap(), nul);
}

#[test]
fn unknown_records_are_refused() {
    for (entry, value) in [("key-format", "utf16"), ("digest", "crc32")] {
        let mut filter =
            AnyFilter::builder(Kind::Bloom).items(9).fpr(0.1).build().unwrap();
        filter.set_metadata(entry, value).unwrap();
        let error = KeyRecord::of(&filter.metadata().unwrap()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(entry) && message.contains(value));
    }
}

#[test]
fn threads_give_the_bytes_and_answers_of_one() {
    let numbers: Vec<i32> = (0..300_001).collect();
    for kind in [Kind::Blocked, Kind::TinySet, Kind::Balanced] {
        let builder = AnyFilter::builder(kind).items(200_000).fpr(0.01);
        let mut one = builder.build().unwrap();
        let mut four = builder.build().unwrap();
        let keys = Keys::from_integers(one.hasher(), &numbers);
        insert(&mut one, &keys, 0..200_000, ONE);
        let threads = NonZero::new(4).unwrap();
        insert(&mut four, &keys, 0..200_000, threads);
        assert!(one == four, "{kind}");
        let found = contains(&one, &keys, ONE);
        assert_eq!(contains(&one, &keys, threads), found);
        assert_eq!(found.slice(0, 200_000).true_count(), 200_000);
        assert!(found.slice(200_000, 100_001).true_count() < 2_000);
        let mut bools = vec![false; keys.len()];
        contains_bools(&one, &keys, &mut bools, threads);
        assert!(found.values().iter().eq(bools.iter().copied()));
    }
}

proptest! {
    /// A slice of a column with nulls has the keys and answers of its values,
    /// inserted and looked up one by one.
    #[test]
    fn slices_with_nulls_equal_single_keys(
        rows in proptest::collection::vec(
            proptest::option::of("[a-c]{0,3}"), 1..200,
        ),
        start in 0usize..200,
        len in 0usize..200,
        form in 0usize..6,
    ) {
        let start = start.min(rows.len());
        let len = len.min(rows.len() - start);
        let bytes = || rows.iter().map(|row| row.as_ref().map(|s| {
            let mut padded = [b'-'; 3];
            padded[..s.len()].copy_from_slice(s.as_bytes());
            padded
        }));
        let column: ArrayRef = match form {
            0 => Arc::new(StringArray::from(rows.clone())),
            1 => Arc::new(LargeStringArray::from(rows.clone())),
            2 => Arc::new(StringViewArray::from_iter(rows.iter())),
            3 => Arc::new(DictionaryArray::<Int32Type>::from_iter(
                rows.iter().map(Option::as_deref),
            )),
            4 => Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                bytes(), 3,
            ).unwrap()),
            _ => Arc::new(Int16Array::from_iter(
                rows.iter().map(|row| row.as_ref().map(|s| s.len() as i16)),
            )),
        };
        let single = |hasher: &KeyHasher, row: usize| {
            let text = rows[row].as_ref()?;
            Some(match form {
                4 => hasher.hash(&bytes().nth(row)??),
                5 => hasher.hash(&(text.len() as u64)),
                _ => hasher.hash(text),
            })
        };
        let slice = column.slice(start, len);
        let builder = AnyFilter::builder(Kind::Blocked).items(500).fpr(1e-6);
        let (mut filter, mut expected) =
            (builder.build().unwrap(), builder.build().unwrap());
        let keys = Keys::from_array(filter.hasher(), &slice).unwrap();
        insert(&mut filter, &keys, 0..len, ONE);
        let hasher = *expected.hasher();
        let slice_rows = start..start + len;
        for hash in slice_rows.clone().filter_map(|row| single(&hasher, row)) {
            expected.insert_hash(hash);
        }
        prop_assert!(filter == expected);
        let present = slice_rows.filter(|&row| rows[row].is_some()).count();
        prop_assert_eq!(keys.present(), present);

        let keys = Keys::from_array(filter.hasher(), &column).unwrap();
        let found = contains(&filter, &keys, ONE);
        let mut bools = vec![true; rows.len()];
        contains_bools(&filter, &keys, &mut bools, ONE);
        for (row, &is_found) in bools.iter().enumerate() {
            let expected = single(&hasher, row)
                .map(|hash| filter.contains_hash(hash));
            let answer = found.is_valid(row).then(|| found.value(row));
            prop_assert_eq!(answer, expected);
            prop_assert_eq!(is_found, expected == Some(true));
        }
    }

    /// Numbers that fit two integer types are one key.
    #[test]
    fn equal_numbers_are_equal_keys(number in any::<u8>(), negative in any::<i8>()) {
        let hasher = KeyHasher::default();
        let expected = Value::Integer(number.into()).hash(&hasher);
        let columns: [ArrayRef; 6] = [
            Arc::new(UInt8Array::from(vec![number])),
            Arc::new(UInt16Array::from(vec![u16::from(number)])),
            Arc::new(UInt32Array::from(vec![u32::from(number)])),
            Arc::new(UInt64Array::from(vec![u64::from(number)])),
            Arc::new(Int16Array::from(vec![i16::from(number)])),
            Arc::new(Int64Array::from(vec![i64::from(number)])),
        ];
        for column in &columns {
            prop_assert_eq!(hashes(&hasher, column), [expected]);
        }
        let expected = hasher.hash(&i64::from(negative));
        let columns: [ArrayRef; 4] = [
            Arc::new(Int8Array::from(vec![negative])),
            Arc::new(Int16Array::from(vec![i16::from(negative)])),
            Arc::new(Int32Array::from(vec![i32::from(negative)])),
            Arc::new(Int64Array::from(vec![i64::from(negative)])),
        ];
        for column in &columns {
            prop_assert_eq!(hashes(&hasher, column), [expected]);
        }
    }
}

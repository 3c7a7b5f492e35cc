"""Which values are keys, and that equal keys are found in every form."""

import datetime
import decimal
import fractions
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tamis

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.fixture
def numbers() -> tamis.Filter:
    return tamis.build([1, 2, 100, -3], fpr=1e-6)


@pytest.fixture
def words() -> tamis.Filter:
    return tamis.build(["apple", "pear", "", "clé", "a\0b"], fpr=1e-6)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_all_widths(numbers, dtype):
    values = [1, 50, 100, 2] + ([-3] if dtype[0] == "i" else [])
    expected = [True, False, True, True, True][: len(values)]
    array = np.array(values, dtype)
    assert numbers.contains(array).tolist() == expected
    assert numbers.contains(array).dtype == np.bool_
    assert [value in numbers for value in array] == expected
    assert numbers.contains(list(array)).tolist() == expected
    for swapped in [array.astype(array.dtype.newbyteorder(order)) for order in "<>"]:
        assert numbers.contains(swapped).tolist() == expected
    assert numbers.contains(np.repeat(array, 2)[::2]).tolist() == expected
    assert numbers.contains(array[::-1]).tolist() == expected[::-1]
    column = pa.array(values, pa.from_numpy_dtype(np.dtype(dtype)))
    assert numbers.contains(column).to_pylist() == expected
    assert numbers.contains(column.dictionary_encode()).to_pylist() == expected
    assert numbers.contains(pd.Series(array)).tolist() == expected
    built = tamis.build(column, fpr=1e-6)
    assert all(value in built for value in values)


def test_integers_are_64_bits():
    f = tamis.build([2**64 - 1, 2**63, -(2**63)], fpr=1e-9)
    assert -1 in f  # the same 64 bits
    assert np.uint64(2**64 - 1) in f and np.int64(-1) in f
    for number in [2**64, -(2**63) - 1, 10**30]:
        with pytest.raises(OverflowError):
            number in f


def test_an_index_is_a_number(numbers):
    class Index:
        def __index__(self):
            return 100

    class Number(int):
        pass

    assert Index() in numbers and Number(2) in numbers and Number(7) not in numbers


def test_strings_and_bytes_of_all_forms(words):
    expected = [True, False, True, True]
    texts = ["apple", "plum", "clé", ""]
    data = [text.encode() for text in texts]
    assert words.contains(texts).tolist() == expected
    assert words.contains(data).tolist() == expected
    assert words.contains(map(bytearray, data)).tolist() == expected
    assert words.contains(map(memoryview, data)).tolist() == expected
    assert words.contains(tuple(texts)).tolist() == expected
    assert words.contains(dict.fromkeys(texts)).tolist() == expected
    assert words.contains(np.array(texts)).tolist() == expected
    assert words.contains(np.array(data)).tolist() == expected
    assert words.contains(np.array(texts, object)).tolist() == expected
    assert words.contains(np.array(texts, np.dtypes.StringDType())).tolist() == expected
    for string in [pa.string(), pa.large_string(), pa.string_view()]:
        column = pa.array(texts, string)
        assert words.contains(column).to_pylist() == expected
        sliced = pa.concat_arrays([column, column]).slice(2, 4)
        assert words.contains(sliced).to_pylist() == expected[2:] + expected[:2]
    for binary in [pa.binary(), pa.large_binary(), pa.binary_view()]:
        assert words.contains(pa.array(data, binary)).to_pylist() == expected
    assert words.contains(pa.array(texts).dictionary_encode()).to_pylist() == expected
    assert words.contains(pd.Series(texts)).tolist() == expected
    assert words.contains(pd.Series(texts, dtype=object)).tolist() == expected
    assert words.contains(pd.Series(texts, dtype="category")).tolist() == expected
    fixed = tamis.build(pa.array([b"abc", b"ab\0"], pa.binary(3)), fpr=1e-6)
    assert b"ab\0" in fixed and b"abc" in fixed and b"ab" not in fixed
    # numpy cannot tell padding from NULs at the end.
    padded = tamis.build(np.array([b"ab\0", b"abc"]), fpr=1e-6)
    assert b"ab" in padded and b"abc" in padded
    assert words.contains(np.array(["", ""])).all()


def test_nulls_are_skipped_and_stay_null(numbers):
    column = pa.array([1, None, 50])
    assert numbers.contains(column).to_pylist() == [True, None, False]
    chunked = pa.chunked_array([[1], [None, 50], []], pa.int64())
    answers = numbers.contains(chunked)
    assert isinstance(answers, pa.ChunkedArray)
    assert answers.to_pylist() == [True, None, False]
    frame = pd.Series([1, None, 50], dtype="Int64", index=[7, 8, 9], name="id")
    found = numbers.contains(frame)
    assert found.index.tolist() == [7, 8, 9] and found.name == "id"
    assert found[7] and found[8] is pd.NA and not found[9]
    assert numbers.contains([1, None, 50]).tolist() == [True, False, False]
    assert numbers.contains([None] * 3 + [1]).tolist() == [False] * 3 + [True]
    assert None not in numbers
    built = tamis.build(pa.array([None, "a", None, "b"]), fpr=0.01)
    assert len(built) == built.capacity == 2
    assert len(tamis.build(["a", None], 0.01)) == 1
    with pytest.raises(TypeError):
        numbers.add(None)
    # A column of nulls alone has keys of no type.
    words = tamis.build(["a"], 0.01)
    assert words.contains(pa.array([None], pa.int64())).to_pylist() == [None]


def test_empty_columns(numbers):
    assert numbers.contains([]).tolist() == []
    assert numbers.contains(np.array([], int)).shape == (0,)
    assert numbers.contains(pa.array([], pa.int8())).to_pylist() == []
    assert numbers.contains(pa.chunked_array([], pa.int8())).to_pylist() == []
    assert numbers.contains(pd.Series([], dtype="int8")).tolist() == []
    assert tamis.build(np.array([], "S3"), fpr=0.1).capacity == 0
    assert tamis.build([], fpr=0.1).key_type is None


def test_arrays_of_several_dimensions(numbers):
    square = np.array([[1, 50], [100, 7]])
    assert numbers.contains(square).tolist() == [[True, False], [True, False]]
    assert numbers.contains(square.T).tolist() == [[True, True], [False, False]]
    assert numbers.contains(np.asfortranarray(square)).tolist()[1] == [True, False]
    assert numbers.contains(np.array(100)).shape == ()
    objects = np.array([["a", "b"], ["c", None]], object)
    assert tamis.build(["c"], 1e-6).contains(objects).tolist() == [
        [False, False],
        [True, False],
    ]


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        np.float32(1),
        True,
        np.True_,
        1j,
        decimal.Decimal(1),
        fractions.Fraction(1),
        datetime.date(2020, 1, 1),
        np.datetime64("2020-01-01"),
        (1, 2),
        [1],
        {"a": 1},
        uuid.UUID(int=1),
        object(),
        Ellipsis,
    ],
    ids=repr,
)
def test_other_values_are_refused(numbers, words, value):
    for f in [numbers, words, tamis.Blocked(9, 0.1)]:
        with pytest.raises(tamis.KeyTypeError):
            value in f
        with pytest.raises(tamis.KeyTypeError):
            f.add(value)
        with pytest.raises(tamis.KeyTypeError):
            f.contains([value])
        if not isinstance(value, tuple | list | dict):
            with pytest.raises(TypeError):
                f.contains(value)
        with pytest.raises(tamis.KeyTypeError):
            f.update([value])
    with pytest.raises(tamis.KeyTypeError):
        tamis.build([value], 0.1)


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.5]),
        np.array([1.5], "float16"),
        np.array([True]),
        np.array([1j]),
        np.array(["2020-01-01"], "M8[s]"),
        np.array([(1, 2)], "i4,i4"),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([datetime.date(2020, 1, 1)]),
        pa.nulls(3),
        pd.Series([1.5]),
        pd.Series([True]),
    ],
    ids=str,
)
def test_other_columns_are_refused(numbers, column):
    with pytest.raises(tamis.KeyTypeError):
        numbers.contains(column)
    with pytest.raises(tamis.KeyTypeError):
        tamis.build(column, fpr=0.1)


def test_messages_name_the_type_and_the_way_out(numbers):
    with pytest.raises(
        tamis.KeyTypeError, match="float values are not keys.*cast to int64"
    ):
        1.5 in numbers
    with pytest.raises(tamis.KeyTypeError, match="float64 values are not keys"):
        numbers.contains(np.array([1.5]))
    with pytest.raises(TypeError, match="one key"):
        numbers.contains("apple")
    with pytest.raises(TypeError, match="compressed"):
        numbers.contains(np.ma.masked_array([1, 2], [True, False]))


def test_keys_of_another_type_are_errors(numbers, words):
    with pytest.raises(tamis.KeyTypeError, match="integers, not strings"):
        "1" in numbers
    with pytest.raises(tamis.KeyTypeError, match="strings or bytes, not integers"):
        1 in words
    for column in [np.array(["a"]), pa.array(["a"]), ["a"]]:
        with pytest.raises(tamis.KeyTypeError):
            numbers.contains(column)
        with pytest.raises(tamis.KeyTypeError):
            numbers.update(column)
    with pytest.raises(tamis.KeyTypeError):
        tamis.build([1, "a"], fpr=0.1)
    with pytest.raises(tamis.KeyTypeError):
        tamis.build(pa.array([1]), fpr=0.1).update(pa.array(["a"]))
    assert numbers.key_type == "integers"
    assert words.key_type == "strings or bytes"
    assert tamis.from_bytes(words.to_bytes()).key_type == "strings or bytes"
    with pytest.raises(tamis.KeyTypeError):
        1 in tamis.from_bytes(words.to_bytes())


def test_surrogates_are_refused(words):
    with pytest.raises(UnicodeEncodeError):
        "\ud800" in words
    with pytest.raises(UnicodeEncodeError):
        words.contains(["\ud800"])
    with pytest.raises(tamis.KeyTypeError):
        words.contains(np.array(["\ud800"]))


def test_errors_of_iterables_pass_through(numbers):
    def broken():
        yield 1
        raise RuntimeError("broken")

    for use in [numbers.contains, numbers.update, lambda keys: tamis.build(keys, 0.1)]:
        with pytest.raises(RuntimeError, match="broken"):
            use(broken())
    with pytest.raises(TypeError):
        numbers.contains(5)


def test_iterables_may_use_the_filter(numbers):
    numbers.update(i for i in range(1000) if i not in numbers)
    assert numbers.contains(range(1000)).all()
    assert numbers.contains(i for i in range(9) if i in numbers).all()

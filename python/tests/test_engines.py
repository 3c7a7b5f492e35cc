"""One line in every engine that runs functions over Arrow."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

WORDS = ["apple", "pear", None, "plum"]


@pytest.fixture(scope="module")
def fruit():
    return tamis.build(["apple", "pear"], fpr=1e-6)


def test_polars(fruit):
    frame = pl.DataFrame({"word": WORDS, "n": range(4)})
    found = pl.col("word").map_batches(fruit.contains, return_dtype=pl.Boolean)
    assert frame.filter(found)["n"].to_list() == [0, 1]
    assert frame.lazy().filter(found).collect()["n"].to_list() == [0, 1]
    assert frame.select(found.alias("in"))["in"].to_list() == [True, True, None, False]


def test_polars_series(fruit):
    numbers = tamis.build([1, 2, 100], fpr=1e-6)
    for dtype in [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt64]:
        series = pl.Series("id", [1, None, 50], dtype=dtype)
        found = numbers.contains(series)
        assert isinstance(found, pl.Series) and found.name == "id"
        assert found.to_list() == [True, None, False]
    for dtype in [pl.String, pl.Categorical, pl.Binary]:
        words = pl.Series(WORDS).cast(dtype)
        assert fruit.contains(words).to_list() == [True, True, None, False]
    assert numbers.contains(pl.Series([], dtype=pl.Int8)).to_list() == []
    assert fruit.contains(pl.Series([], dtype=pl.String)).to_list() == []
    for series in [pl.Series([1.5]), pl.Series([True]), pl.Series(["a"])]:
        with pytest.raises(tamis.KeyTypeError):
            numbers.contains(series)
        with pytest.raises(tamis.KeyTypeError):
            numbers.update(series)


def test_polars_and_the_store(tmp_path):
    with tamis.Store(tmp_path / "s", durability="none") as store:
        store.update({5: "five", 7: "seven"})
        found = store.get_many(pl.Series("id", [5, None, 8, 7]))
        assert isinstance(found, pl.Series) and found.name == "id"
        assert found.to_list() == [b"five", None, None, b"seven"]


def test_duckdb(fruit):
    import duckdb

    con = duckdb.connect()
    con.create_function(
        "in_fruit",
        lambda keys: fruit.contains(keys),
        ["VARCHAR"],
        "BOOLEAN",
        type="arrow",
    )
    con.execute(
        "create table t as select unnest(['apple', 'pear', null, 'plum']) as word"
    )
    assert con.sql("select word from t where in_fruit(word)").fetchall() == [
        ("apple",),
        ("pear",),
    ]
    assert con.sql("select in_fruit(word) from t where word is null").fetchall() == [
        (None,)
    ]
    numbers = tamis.build(np.arange(0, 1_000_000, 2), fpr=1e-4)
    con.create_function(
        "is_even",
        lambda keys: numbers.contains(keys),
        ["BIGINT"],
        "BOOLEAN",
        type="arrow",
    )
    count = con.sql(
        "select count(*) from range(1000000) t(i) where is_even(i)"
    ).fetchall()[0]
    assert 500_000 <= count[0] < 500_200


def test_datafusion(fruit):
    from datafusion import SessionContext, udf

    context = SessionContext()
    function = udf(fruit.contains, [pa.string()], pa.bool_(), "stable", "in_fruit")
    context.register_udf(function)
    batch = pa.record_batch({"word": pa.array(WORDS, pa.string())})
    context.register_record_batches("t", [[batch]])
    found = context.sql("select word from t where in_fruit(word)").to_pydict()
    assert found == {"word": ["apple", "pear"]}


def test_pandas(fruit):
    frame = pd.DataFrame({"word": ["apple", "plum", "pear"]}, index=[5, 6, 7])
    assert frame[fruit.contains(frame["word"])].index.tolist() == [5, 7]


def test_dask_equals_a_local_build():
    import dask.bag
    import dask.dataframe

    import tamis.dask

    numbers = pd.DataFrame({"id": np.arange(50_000) * 7})
    frame = dask.dataframe.from_pandas(numbers, npartitions=17)
    for kind in ["blocked", "bloom", "split"]:
        f = tamis.dask.build(frame["id"], fpr=0.001, kind=kind)
        assert f == tamis.build(numbers["id"], fpr=0.001, kind=kind)
    f = tamis.dask.build(frame["id"], fpr=0.001)
    local = tamis.build(numbers["id"], fpr=0.001)
    # The order of the keys decides which entries have an extra bit, and which
    # of two keys with one fingerprint is stored.
    assert (len(f), f.nbytes, f.metadata) == (len(local), local.nbytes, local.metadata)
    assert f.stats().expected_fpr == pytest.approx(local.stats().expected_fpr, rel=0.01)
    assert f.contains(numbers["id"]).all()
    found = tamis.dask.contains(frame["id"], f).compute()
    assert found.all() and len(found) == 50_000
    bag = dask.bag.from_sequence(["apple", "pear", "plum"], npartitions=2)
    assert "plum" in tamis.dask.build(bag, fpr=0.001)
    assert pickle.loads(pickle.dumps(f)) == f

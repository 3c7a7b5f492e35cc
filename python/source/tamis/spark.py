"""Filters in Spark: built by all workers, looked up as an Arrow function.

Needs PySpark 4.1 or newer and pyarrow, on the driver and on the workers.

    import tamis.spark

    customers = tamis.spark.build(small, "customer_id", fpr=0.001)
    big.filter(tamis.spark.contains("customer_id", customers))

    tamis.spark.prune_join(big, small, "customer_id")
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import tamis

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = ["build", "contains", "prune_join"]

# An Arrow binary value, which a partial filter is, has at most 2^31 - 1 bytes.
_MOST_BYTES = 2**31 - 1


def build(
    df: DataFrame,
    column: str,
    fpr: float | None = None,
    *,
    items: int | float | None = None,
    partials: int | None = None,
    **options: Any,
) -> tamis.Filter:
    """A filter of the keys in a column, on the driver.

    Counts the rows with a key if `items` is not given, which evaluates `df`
    twice. Every task inserts its rows into a filter of the final size; these
    are merged in a tree. `partials` bounds their number: by default twice the
    cores of the cluster, because each takes the memory of the result.
    `options` are those of `tamis.build`, such as `kind`.

    Whatever the partitioning, the Bloom kinds have the bytes of a local build. A
    `TinySet` has its keys, size and rate; some bytes depend on the order in
    which keys come. A balanced filter cannot be merged.
    """
    keys = df.select(df[column].alias("key"))
    _check_type(keys)
    if items is None:
        items = keys.where(keys["key"].isNotNull()).count()
    empty = tamis.build([], fpr, items=items, **options)
    if empty.kind == "balanced":
        raise tamis.UnsupportedError(
            "balanced filters cannot be merged: choose another kind"
        )
    if empty.nbytes > _MOST_BYTES:
        raise tamis.UnsupportedError(
            f"the filter has {empty.nbytes} bytes, but Spark passes at most "
            f"{_MOST_BYTES} in a value"
        )
    context = df.sparkSession.sparkContext
    if partials is None:
        partials = 2 * context.defaultParallelism
    if keys.rdd.getNumPartitions() > partials:
        keys = keys.coalesce(partials)
    # The workers need the settings alone, not the empty blocks.
    settings: dict[str, Any] = {"fpr": fpr, "items": items, **options}

    def insert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        part = tamis.build([], **settings)
        for batch in batches:
            part.update(batch.column(0))
        yield pa.record_batch({"filter": pa.array([part.to_bytes()], pa.binary())})

    parts = keys.mapInArrow(insert, "filter binary").rdd
    if parts.isEmpty():
        return empty
    filters = parts.map(lambda row: tamis.from_bytes(row[0]))
    return filters.treeReduce(_merged)


def _merged(ours: tamis.Filter, theirs: tamis.Filter) -> tamis.Filter:
    ours |= theirs
    return ours


def _check_type(keys: DataFrame) -> None:
    """Refuses columns without keys on the driver, not in a task."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    tamis.build(pa.array([], to_arrow_type(keys.schema[0].dataType)), 0.5)


def contains(
    column: Column | str, filter: tamis.Filter | str | os.PathLike[str]
) -> Column:
    """Whether the values of a column are probably in the filter, as a column.

    `filter` is broadcast to the workers once. A path is opened by each worker
    as a memory map instead, which the processes of a machine share; it must
    be on a file system that all of them see. Null where the value is null.
    """
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    if isinstance(filter, tamis.Filter):
        session = SparkSession.active()
        broadcast = session.sparkContext.broadcast(filter)

        def get() -> tamis.Filter:
            return broadcast.value
    else:
        path = os.fspath(filter)

        def get() -> tamis.Filter:
            return _opened(path)

    def look_up(keys: pa.Array) -> pa.Array:
        answers: pa.Array = get().contains(keys)
        return answers

    look_up.__annotations__ = {"keys": pa.Array, "return": pa.Array}
    # The stubs of PySpark do not export it.
    arrow_udf: Any = vars(F)["arrow_udf"]
    answers: Column = arrow_udf(look_up, "boolean")(
        F.col(column) if isinstance(column, str) else column
    )
    return answers


@cache
def _opened(path: str) -> tamis.Filter:
    return tamis.open(path)


def prune_join(
    big: DataFrame,
    small: DataFrame,
    on: str,
    how: str = "inner",
    fpr: float = 0.001,
    **options: Any,
) -> DataFrame:
    """`big.join(small, on, how)`, without shuffling the rows of `big` whose key
    is certainly not in `small`.

    Evaluates the keys of `small` at once; `how` is `"inner"`, `"left_semi"`
    or `"right"`, for which the result does not depend on the rows left out.
    """
    if how not in ("inner", "left_semi", "leftsemi", "semi", "right", "right_outer"):
        raise tamis.ArgumentError(
            f"invalid how: {how!r} keeps rows of the left side without a partner"
        )
    keys = build(small, on, fpr, **options)
    return big.where(contains(on, keys)).join(small, on, how)

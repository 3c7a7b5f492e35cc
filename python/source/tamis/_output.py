"""Answers for Arrow columns, in the library of the keys."""

from __future__ import annotations

from typing import Any

import numpy as np


def like(keys: Any, chunks: list[Any]) -> Any:
    """Chunks of answers, as an object of the library that `keys` is of."""
    library = type(keys).__module__.partition(".")[0]
    if library == "polars":
        import polars as pl

        name = keys.name
        if not chunks:
            return pl.Series(name, [], dtype=pl.Boolean)
        return pl.concat([pl.Series(chunk) for chunk in chunks]).alias(name)
    if library == "pandas":
        return _pandas(keys, chunks)
    try:
        import pyarrow as pa
    except ImportError:
        # The columns of another library: any of them reads this one.
        return chunks[0] if len(chunks) == 1 else chunks
    answers = [pa.array(chunk) for chunk in chunks]
    if len(answers) == 1 and not isinstance(keys, pa.ChunkedArray):
        return answers[0]
    return pa.chunked_array(answers, pa.bool_())


def values_like(keys: Any, values: list[bytes | None]) -> Any:
    """Values of keys: a column of the library that `keys` is of, or the list."""
    library = type(keys).__module__.partition(".")[0]
    if library == "polars":
        import polars as pl

        return pl.Series(keys.name, values, dtype=pl.Binary)
    if hasattr(keys, "__arrow_c_array__") or library == "pyarrow":
        import pyarrow as pa

        return pa.array(values, pa.binary())
    return values


def _pandas(keys: Any, chunks: list[Any]) -> Any:
    import pandas as pd
    import pyarrow as pa

    answers = pa.chunked_array([pa.array(chunk) for chunk in chunks], pa.bool_())
    found = answers.fill_null(False).to_numpy()
    if answers.null_count:
        nulls = np.asarray(answers.is_null().to_numpy())
        array = pd.arrays.BooleanArray(np.array(found), np.array(nulls))
        return pd.Series(array, index=keys.index, name=keys.name)
    return pd.Series(found, index=keys.index, name=keys.name)

"""Filters of Dask collections: built partition by partition, then merged.

import tamis.dask

seen = tamis.dask.build(frame["url"], fpr=0.001)
frame[~tamis.dask.contains(other["url"], seen)]
"""

from __future__ import annotations

from typing import Any

import tamis

__all__ = ["build", "contains"]


def build(
    series: Any,
    fpr: float | None = None,
    *,
    items: int | float | None = None,
    **options: Any,
) -> tamis.Filter:
    """A filter of the keys in a Dask series or bag.

    Counts them first if `items` is not given. `options` are those of
    `tamis.build`. The Bloom kinds have the bytes of a local build, a `TinySet`
    has its keys, size and rate.
    """
    from dask.delayed import delayed

    if items is None:
        items = int(series.count().compute())
    settings: dict[str, Any] = {"fpr": fpr, "items": items, **options}
    insert = delayed(_insert, pure=True)
    merge = delayed(_merge, pure=True)
    parts = [insert(settings, part) for part in series.to_delayed()]
    while len(parts) > 1:
        parts = [merge(parts[at : at + 8]) for at in range(0, len(parts), 8)]
    if not parts:
        return tamis.build([], **settings)
    result: tamis.Filter = parts[0].compute()
    return result


def contains(series: Any, filter: tamis.Filter) -> Any:
    """The answers for a Dask series, as one with the same partitions."""
    return series.map_partitions(filter.contains, meta=(series.name, "boolean"))


def _insert(settings: dict[str, Any], part: Any) -> tamis.Filter:
    filter = tamis.build([], **settings)
    filter.update(part)
    return filter


def _merge(parts: list[tamis.Filter]) -> tamis.Filter:
    first = parts[0].copy()
    for part in parts[1:]:
        first |= part
    return first

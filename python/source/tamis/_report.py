"""Measured properties of filters, and the comparison of designs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import SupportsIndex

from tamis import _tamis


@dataclass(frozen=True, slots=True)
class Stats:
    """Load, rates and reads per lookup, measured on the blocks of a filter.

    >>> import tamis
    >>> tamis.build(range(1000), fpr=0.01).stats().items
    1000
    """

    kind: str
    """Kind of filter."""
    items: int
    """Insertions counted, less removals."""
    least_items: int
    """Lower bound on the number of different keys."""
    estimated_items: float
    """Estimate of the number of different keys."""
    most_items: int | None
    """Upper bound on the number of different keys."""
    design_items: int
    """Keys the filter was sized for."""
    bytes: int
    """Bytes of the filter as a file."""
    bits_per_key: float | None
    """Bits of memory per key inserted; `None` without keys."""
    expected_fpr: float
    """False-positive rate now."""
    design_fpr: float
    """False-positive rate predicted for `design_items` keys."""
    reads_hit: float
    """Cache lines read by a lookup of a member, on average."""
    reads_miss: float
    """Cache lines read by a lookup of a non-member, on average."""
    saturated_blocks: int
    """Blocks so full that they answer "probably" to every key."""
    over_design: bool
    """More different keys than the filter was sized for."""

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{field.name}</th><td>{getattr(self, field.name)}</td></tr>"
            for field in fields(self)
        )
        return f"<table>{''.join(rows)}</table>"


@dataclass(frozen=True, slots=True)
class Design:
    """One kind of filter with its settings: a row of a `Plan`."""

    name: str
    kind: str
    levels: int | None
    bits_per_key: float
    bytes: int
    fpr: float
    probes: int
    reads_hit: float
    reads_miss: float
    reads: float
    """Cache lines per lookup, averaged over hits and misses."""
    removable: bool
    mergeable: bool


_COLUMNS = (
    "kind",
    "bits/key",
    "memory",
    "false positives",
    "reads hit",
    "reads miss",
    "reads",
    "merge",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The comparison of all kinds of filters for a task; see `plan`."""

    items: int
    designs: list[Design]
    recommended: Design
    reason: str
    """Why `recommended` is."""
    notes: list[str]
    """Comparison of every other design with the recommended one."""

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                design.name,
                f"{design.bits_per_key:.3f}",
                _size(design.bytes),
                f"{design.fpr:.3g}",
                f"{design.reads_hit:.2f}",
                f"{design.reads_miss:.4f}",
                f"{design.reads:.4f}",
                "yes" if design.mergeable else "no",
            )
            for design in self.designs
        ]

    def __str__(self) -> str:
        rows = [_COLUMNS, *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        lines = [f"{self.items:,} keys"]
        for row in rows:
            cells = (
                f"{cell:>{width}}"
                for cell, width in zip(row[1:], widths[1:], strict=True)
            )
            lines.append("  ".join([f"{row[0]:<{widths[0]}}", *cells]))
        lines.append(f"Recommended: {self.recommended.name}. {self.reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = []
        for design, row in zip(self.designs, self._rows(), strict=True):
            tag = "th" if design is self.recommended else "td"
            cells = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
            body.append(f"<tr>{cells}</tr>")
        return (
            f"<table><caption>{self.items:,} keys</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
            f"<p>Recommended: <b>{escape(self.recommended.name)}</b>. "
            f"{escape(self.reason)}</p>"
        )


def plan(
    items: SupportsIndex | float,
    fpr: float | None = None,
    *,
    bits_per_key: float | None = None,
    miss_share: float = 0.9,
    prefer: str = "space",
    block_bits: int = 512,
) -> Plan:
    """Compares all kinds of filters for a number of keys and a rate or memory.

    Builds no filter: all numbers are predictions. `miss_share` is the share of
    lookups for keys that are not in the set; `prefer="speed"` leaves out the
    kind whose single lookups are slower. In a notebook the result is a table.

    >>> import tamis
    >>> plan = tamis.plan(items=1e9, fpr=1e-3)
    >>> plan.recommended.kind
    'tinyset'
    >>> f"{plan.recommended.bits_per_key:.2f} bits per key"
    '12.82 bits per key'
    """
    found = _tamis._plan(items, fpr, bits_per_key, miss_share, prefer, block_bits)
    designs = [Design(**design) for design in found["designs"]]
    return Plan(
        items=found["items"],
        designs=designs,
        recommended=designs[found["recommended"]],
        reason=found["reason"],
        notes=found["notes"],
    )


def _size(size: int) -> str:
    value = float(size)
    for unit in ("B", "KB", "MB", "GB", "TB", "PB"):
        if value < 1000 or unit == "PB":
            break
        value /= 1000
    return f"{value:.4g} {unit}"

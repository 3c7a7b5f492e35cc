"""Set membership filters: is this key probably in the set, or certainly not?

>>> import tamis
>>> f = tamis.build(["apple", "pear"], fpr=0.001)
>>> "apple" in f
True
>>> "plum" in f
False
"""

from tamis._errors import (
    ArgumentError,
    BusyError,
    FormatError,
    KeyTypeError,
    MismatchError,
    ReadOnlyError,
    TamisError,
    UnsupportedError,
)
from tamis._report import Design, Plan, Stats, plan
from tamis._tamis import (
    Balanced,
    Blocked,
    Bloom,
    Filter,
    Split,
    Store,
    TinySet,
    build,
    from_bytes,
    open,
)

__all__ = [
    "ArgumentError",
    "Balanced",
    "Blocked",
    "Bloom",
    "BusyError",
    "Design",
    "Filter",
    "FormatError",
    "KeyTypeError",
    "MismatchError",
    "Plan",
    "ReadOnlyError",
    "Split",
    "Stats",
    "Store",
    "TamisError",
    "TinySet",
    "UnsupportedError",
    "build",
    "from_bytes",
    "open",
    "plan",
]

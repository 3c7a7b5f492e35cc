from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import (
    Any,
    Literal,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer as _SupportsBuffer

from tamis._report import Stats

Key: TypeAlias = str | bytes | bytearray | memoryview | SupportsIndex
_Value: TypeAlias = str | bytes | bytearray | memoryview
_T = TypeVar("_T")
Progress: TypeAlias = bool | Callable[[int, int | None], object] | None

class Filter:
    def __contains__(self, key: Key | None) -> bool: ...
    @overload
    def contains(
        self,
        keys: npt.NDArray[Any] | Iterable[Key | None],
        *,
        threads: int | None = 1,
    ) -> npt.NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: Any, *, threads: int | None = 1) -> Any: ...
    def add(self, key: Key) -> bool: ...
    def update(
        self,
        keys: Any,
        *,
        threads: int | None = 1,
        progress: Progress = None,
    ) -> None: ...
    def remove(self, key: Key) -> bool: ...
    def clear(self) -> None: ...
    def merge(self, other: Filter) -> None: ...
    def __or__(self, other: Filter) -> Self: ...
    def __ior__(self, other: Filter) -> Self: ...
    def halved(self) -> Self: ...
    def folded_to(self, fpr: float) -> Self: ...
    def doubled(self) -> Self: ...
    def copy(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def save(self, path: str | PathLike[str], *, overwrite: bool = True) -> None: ...
    def to_bytes(self) -> bytes: ...
    def __bytes__(self) -> bytes: ...
    def parts(self) -> list[Buffer]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def stats(self) -> Stats: ...
    def verify(self) -> None: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def set_metadata(self, name: str, value: str) -> None: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def key_type(self) -> str | None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def design_fpr(self) -> float: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def hash_name(self) -> HashName: ...
    @property
    def seed(self) -> int: ...
    @property
    def read_only(self) -> bool: ...

Kind: TypeAlias = Literal["bloom", "blocked", "split", "balanced", "tinyset"]
HashName: TypeAlias = Literal["xxh3", "siphash"]

class Bloom(Filter):
    def __new__(
        cls,
        items: SupportsIndex | float,
        fpr: float | None = None,
        *,
        bits_per_key: float | None = None,
        block_bits: int = 512,
        hash: HashName = "xxh3",
        seed: int | None = None,
        foldable: int = 0,
    ) -> Self: ...

class Blocked(Filter):
    def __new__(
        cls,
        items: SupportsIndex | float,
        fpr: float | None = None,
        *,
        bits_per_key: float | None = None,
        block_bits: int = 512,
        hash: HashName = "xxh3",
        seed: int | None = None,
        foldable: int = 0,
    ) -> Self: ...

class Split(Filter):
    def __new__(
        cls,
        items: SupportsIndex | float,
        fpr: float | None = None,
        *,
        bits_per_key: float | None = None,
        block_bits: int = 512,
        hash: HashName = "xxh3",
        seed: int | None = None,
        foldable: int = 0,
    ) -> Self: ...

class Balanced(Filter):
    def __new__(
        cls,
        items: SupportsIndex | float,
        fpr: float | None = None,
        *,
        bits_per_key: float | None = None,
        block_bits: int = 512,
        hash: HashName = "xxh3",
        seed: int | None = None,
        max_reads_miss: float | None = None,
    ) -> Self: ...

class TinySet(Filter):
    def __new__(
        cls,
        items: SupportsIndex | float,
        fpr: float | None = None,
        *,
        bits_per_key: float | None = None,
        block_bits: int = 512,
        hash: HashName = "xxh3",
        seed: int | None = None,
        foldable: int = 0,
        removable: bool = False,
        repeats: bool = False,
        levels: int = 1,
    ) -> Self: ...

def build(
    keys: Any,
    fpr: float | None = None,
    *,
    bits_per_key: float | None = None,
    items: SupportsIndex | float | None = None,
    kind: Kind | None = None,
    prefer: Literal["space", "speed"] = "space",
    block_bits: int = 512,
    hash: HashName = "xxh3",
    seed: int | None = None,
    foldable: int = 0,
    removable: bool = False,
    repeats: bool = False,
    levels: int = 1,
    max_reads_miss: float | None = None,
    threads: int | None = 1,
    progress: Progress = None,
) -> Filter: ...
def open(path: str | PathLike[str], *, mmap: bool = True) -> Filter: ...
def from_bytes(data: _SupportsBuffer) -> Filter: ...

class Store:
    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        ram: int = 268_435_456,
        absent_reads: float | None = None,
        durability: Literal["always", "none"] | float | None = None,
    ) -> Self: ...
    def __getitem__(self, key: Key) -> bytes: ...
    @overload
    def get(self, key: Key) -> bytes | None: ...
    @overload
    def get(self, key: Key, default: _T) -> bytes | _T: ...
    @overload
    def get_many(
        self, keys: npt.NDArray[Any] | list[Key] | list[Key | None]
    ) -> list[bytes | None]: ...
    @overload
    def get_many(self, keys: Any) -> Any: ...
    def __contains__(self, key: Key) -> bool: ...
    def __setitem__(self, key: Key, value: _Value) -> None: ...
    def __delitem__(self, key: Key) -> None: ...
    def discard(self, key: Key) -> None: ...
    def update(
        self, pairs: Mapping[Any, _Value] | Iterable[tuple[Key, _Value]]
    ) -> None: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def keys(self) -> Iterator[bytes]: ...
    def values(self) -> Iterator[bytes]: ...
    def items(self) -> Iterator[tuple[bytes, bytes]]: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

class Records: ...

class Buffer:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class PyArray: ...

class _Plan(TypedDict):
    items: int
    designs: list[dict[str, Any]]
    recommended: int
    reason: str
    notes: list[str]

def _plan(
    items: SupportsIndex | float,
    fpr: float | None,
    bits_per_key: float | None,
    miss_share: float,
    prefer: str,
    block_bits: int,
) -> _Plan: ...
def _from_parts(*parts: _SupportsBuffer) -> Filter: ...

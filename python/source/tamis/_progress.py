"""Progress of long insertions: a bar of tqdm, or a line on standard error."""

import sys
import time
from typing import Protocol


class _TqdmBar(Protocol):
    total: int | None

    def update(self, n: int) -> object: ...
    def close(self) -> None: ...


class Bar:
    """Shows the number of keys; called with it and the total or ``None``."""

    def __init__(self) -> None:
        self._done = 0
        self._shown = time.monotonic()
        self._bar: _TqdmBar | None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._bar = None
        else:
            self._bar = tqdm(unit=" keys", unit_scale=True)

    def __call__(self, done: int, total: int | None) -> None:
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._done)
        elif time.monotonic() - self._shown > 0.1:
            self._shown = time.monotonic()
            of = "" if total is None else f" of {total:,}"
            print(f"\r{done:,}{of} keys", end="", file=sys.stderr)
        self._done = done

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            print(f"\r{self._done:,} keys", file=sys.stderr)

"""Uses of the stubs that type checkers accept, and uses that they refuse.

Not run: mypy and pyright check it, and both refuse an ignore comment that
ignores nothing.
"""

import numpy as np
import numpy.typing as npt

import tamis


def accepted(words: list[str], numbers: npt.NDArray[np.int64]) -> None:
    f: tamis.Filter = tamis.build(words, fpr=0.001, threads=None)
    answers: npt.NDArray[np.bool_] = f.contains(numbers)
    more: npt.NDArray[np.bool_] = f.contains(["apple", None])
    t: tamis.TinySet = tamis.TinySet(items=1e8, fpr=0.001, removable=True)
    t |= t
    u: tamis.TinySet = t | t
    found: bool = "apple" in u and u.add(b"pear") and u.remove(7)
    raw: memoryview = memoryview(tamis.from_bytes(f.to_bytes()))
    text: str = tamis.plan(1e9, 1e-3).recommended.kind
    items: int = f.stats().items
    print(answers, more, found, raw, text, items)


def refused() -> None:
    tamis.build(["a"], fpr="0.1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tamis.build(["a"], 0.1, kind="cuckoo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tamis.Blocked(9, 0.1, removable=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tamis.Blocked(9, 0.1).add(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tamis.Blocked(9, 0.1).capacity = 3  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

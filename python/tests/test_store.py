"""The store, compared with a dict."""

import subprocess
import sys
import threading

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import tamis


def test_it_is_like_a_dict(tmp_path):
    with tamis.Store(tmp_path / "s") as store:
        store["apple"] = "red"
        store[b"pear"] = b"green"
        store[7] = memoryview(b"seven")
        assert store["apple"] == store[b"apple"] == b"red"
        assert store[7] == store[(7).to_bytes(8, "little")] == b"seven"
        assert "pear" in store and "plum" not in store
        assert store.get("plum") is None and store.get("plum", 3) == 3
        with pytest.raises(KeyError, match="plum"):
            store["plum"]
        with pytest.raises(KeyError):
            del store["plum"]
        store.discard("plum")
        del store["apple"]
        assert "apple" not in store
        assert (
            sorted(store)
            == sorted(store.keys())
            == [(7).to_bytes(8, "little"), b"pear"]
        )
        assert dict(store.items())[b"pear"] == b"green"
        assert sorted(store.values()) == [b"green", b"seven"]
        for key, value in [(1.5, "x"), ("a", 1), (None, "x"), ("a", None)]:
            with pytest.raises(TypeError):
                store[key] = value
        with pytest.raises(tamis.ArgumentError):
            store["k" * 70_000] = "too long"
        store.flush()
        with pytest.raises(tamis.BusyError):
            tamis.Store(tmp_path / "s")
    with pytest.raises(tamis.TamisError, match="closed"):
        store["pear"]
    store.close()
    assert tamis.Store(tmp_path / "s")["pear"] == b"green"


def test_settings(tmp_path):
    for name, durability in enumerate(["always", "none", 0.5, 3]):
        store = tamis.Store(
            tmp_path / str(name), durability=durability, absent_reads=0.001
        )
        store["a"] = "b"
        store.close()
        assert tamis.Store(tmp_path / str(name), ram=8 << 20)["a"] == b"b"
    for settings_ in [{"durability": "often"}, {"durability": -1}, {"ram": 1}]:
        with pytest.raises(tamis.ArgumentError):
            tamis.Store(tmp_path / "x", **settings_)
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        tamis.Store(tmp_path / "file")


def test_many_at_once(tmp_path):
    store = tamis.Store(tmp_path / "s", durability="none")
    numbers = np.arange(100_000)
    store.update((number, str(number)) for number in numbers)
    wanted = np.array([5, 99_999, 100_000])
    assert store.get_many(wanted) == [b"5", b"99999", None]
    assert store.get_many(wanted.tolist()) == [b"5", b"99999", None]
    column = store.get_many(pa.array([5, None, 100_000]))
    assert isinstance(column, pa.Array) and column.to_pylist() == [b"5", None, None]
    store.update({"a": "1", "b": "2"})
    assert store.get_many(["b", "c", "a"]) == [b"2", None, b"1"]
    records = store.items()
    store["late"] = "not in the snapshot"
    assert sum(1 for _ in records) == 100_002
    # An iterator that is not used up does not keep the store.
    next(iter(store))
    store.close()


def test_large_values_go_in_parts(tmp_path):
    """Half a gigabyte of values in few records takes a fraction of that."""
    process = subprocess.run(
        [sys.executable, "-c", LARGE_VALUES, tmp_path / "s"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(process.stdout) < 150_000


LARGE_VALUES = """
import re, sys, tamis
value = bytes(range(256)) * 4000
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
with tamis.Store(sys.argv[1], ram=32 << 20, durability="none") as store:
    before = peak()
    store.update((number, value) for number in range(500))
    print(peak() - before)
    assert store[7] == store[499] == value
"""


def test_threads(tmp_path):
    store = tamis.Store(tmp_path / "s", durability="none")
    errors = []

    def work(number):
        for i in range(2000):
            store[f"{number} {i}"] = str(i)
            if store[f"{number} {i // 2}"] != str(i // 2).encode():
                errors.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and sum(1 for _ in store) == 8000


WRITES = st.lists(
    st.tuples(st.binary(max_size=3), st.none() | st.binary(max_size=200)), max_size=60
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(histories=st.lists(WRITES, min_size=1, max_size=3))
def test_a_dict_answers_the_same(histories, tmp_path_factory):
    path = tmp_path_factory.mktemp("store")
    expected = {}
    for writes in histories:
        with tamis.Store(path) as store:
            for key, value in writes:
                if value is None:
                    store.discard(key)
                    expected.pop(key, None)
                else:
                    store[key] = value
                    expected[key] = value
            assert dict(store.items()) == expected
    with tamis.Store(path) as store:
        assert dict(store.items()) == expected
        assert store.get_many(list(expected)) == list(expected.values())

"""The classes: every method, every kind."""

import copy
import gc
import io
import pickle
import re
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import tamis

CLASSES = [tamis.Bloom, tamis.Blocked, tamis.Split, tamis.Balanced, tamis.TinySet]
KINDS = ["bloom", "blocked", "split", "balanced", "tinyset"]


@pytest.fixture(params=CLASSES)
def make(request: pytest.FixtureRequest) -> Callable[..., tamis.Filter]:
    return request.param


def test_keys_are_found(make):
    f = make(items=1000, fpr=0.001)
    assert len(f) == 0 and "key 1" not in f
    assert f.add("key 1") is True
    assert f.add("key 1") is False
    f.update(f"key {i}" for i in range(1000))
    assert all(f"key {i}" in f for i in range(1000))
    absent = sum(f"other {i}" in f for i in range(10_000))
    # The mean is 10; 50 has a probability below 1e-17.
    assert absent < 50
    assert f.kind == KINDS[CLASSES.index(make)]
    assert isinstance(f, tamis.Filter) and type(f) is make


def test_settings_are_those_passed(make):
    f = make(1e3, 0.01, block_bits=256, hash="siphash", seed=7)
    assert (f.capacity, f.hash_name, f.seed) == (1000, "siphash", 7)
    assert f.design_fpr <= 0.01
    assert f.nbytes == len(f.to_bytes())
    smaller = make(1000, bits_per_key=20, hash="xxh3")
    assert abs(smaller.nbytes - 2500) < 400
    assert (smaller.hash_name, smaller.seed) == ("xxh3", 0)
    # A random key for the keyed hash.
    assert make(9, 0.1, hash="siphash").seed != make(9, 0.1, hash="siphash").seed


def test_invalid_settings_are_errors(make):
    for keywords in [
        {},
        {"fpr": 0.1, "bits_per_key": 9},
        {"fpr": 0},
        {"fpr": 1.5},
        {"fpr": float("nan")},
        {"bits_per_key": 0.1},
        {"fpr": 0.1, "block_bits": 3},
        {"fpr": 0.1, "hash": "md5"},
        {"fpr": 0.1, "seed": 1 << 64},
    ]:
        with pytest.raises(tamis.ArgumentError):
            make(9, **keywords)
    for items in [-1, 0.5, float("inf"), float("nan"), 1 << 65]:
        with pytest.raises((tamis.ArgumentError, OverflowError)):
            make(items, 0.1)
    with pytest.raises(TypeError):
        make("many", 0.1)
    with pytest.raises(TypeError):
        make(9, 0.1, colour="red")
    with pytest.raises(MemoryError):
        make(1e18, 0.1)


def test_options_of_a_kind():
    with pytest.raises(tamis.ArgumentError, match="removable"):
        tamis.build(["a"], 0.1, kind="blocked", removable=True)
    with pytest.raises(tamis.ArgumentError, match="max_reads_miss"):
        tamis.build(["a"], 0.1, kind="blocked", max_reads_miss=1.1)
    with pytest.raises(tamis.ArgumentError, match="levels"):
        tamis.TinySet(9, 0.1, levels=3)
    with pytest.raises(tamis.ArgumentError, match="kind"):
        tamis.build(["a"], 0.1, kind="cuckoo")
    assert tamis.build(["a"], 0.1, removable=True).kind == "tinyset"
    assert tamis.build(["a"], 0.001, prefer="speed").kind == "blocked"
    assert tamis.build(["a"], 0.001, max_reads_miss=1.2).kind == "balanced"
    two = tamis.TinySet(1e6, 0.0001, levels=2)
    assert two.nbytes < tamis.TinySet(1e6, 0.0001).nbytes
    with pytest.raises(TypeError):
        tamis.Filter()


def test_remove():
    f = tamis.TinySet(items=100, fpr=0.001, removable=True)
    f.update(range(100))
    for i in range(50):
        assert f.remove(i) is True
    assert len(f) == 50
    assert all(i in f for i in range(50, 100))
    assert sum(i in f for i in range(50)) < 5
    assert f.remove(2**40) is False
    with pytest.raises(tamis.UnsupportedError):
        tamis.build(range(9), 0.01).remove(1)
    with pytest.raises(tamis.UnsupportedError):
        tamis.Blocked(9, 0.01).remove(1)


def test_merge(make):
    f, g = make(items=100, fpr=0.001), make(items=100, fpr=0.001)
    f.update(range(50))
    g.update(range(50, 100))
    if make is tamis.Balanced:
        with pytest.raises(tamis.UnsupportedError):
            f | g
        return
    both = f | g
    assert type(both) is make
    assert both.contains(range(100)).all() and len(both) == 100
    assert len(f) == 50 and len(g) == 50
    f |= g
    assert f == both
    f.merge(f)
    assert f.contains(range(100)).all()
    h = make(items=9, fpr=0.5)
    with pytest.raises(tamis.MismatchError):
        f.merge(h)
    with pytest.raises(tamis.MismatchError):
        other = make(items=100, fpr=0.001)
        other.update(["a"])
        f.merge(other)
    with pytest.raises(TypeError):
        f | {1}
    # A filter without keys has no type of keys.
    f.merge(make(items=100, fpr=0.001))
    empty = make(items=100, fpr=0.001)
    empty.merge(f)
    assert empty.key_type == "integers"


def test_copies_are_independent(make):
    f = make(items=100, fpr=0.001)
    f.update(range(50))
    for g in [f.copy(), copy.copy(f), copy.deepcopy(f)]:
        assert g == f and g is not f and type(g) is make
        g.add(1000)
        assert g != f and 1000 in g
    before = f.to_bytes()
    g = f.copy()
    f.add(2000)
    assert g.to_bytes() == before
    assert f != "apple" and not f == 1
    with pytest.raises(TypeError):
        hash(f)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(make, protocol):
    f = make(items=100_000, fpr=0.001)
    f.update(range(1000))
    f.set_metadata("note", "kept")
    g = pickle.loads(pickle.dumps(f, protocol))
    assert g == f and type(g) is make and g.metadata["note"] == "kept"
    g.verify()
    g.add(10**9)
    assert 10**9 in g and g != f


def test_pickles_out_of_band(make):
    f = make(items=100_000, fpr=0.001)
    f.update(range(1000))
    buffers = []
    data = pickle.dumps(f, 5, buffer_callback=buffers.append)
    assert len(data) < 300
    assert sum(len(b.raw()) for b in buffers) == f.nbytes
    parts = f.parts()
    # The same memory, not a copy of it.
    address = np.frombuffer(parts[1], np.uint8).ctypes.data
    assert address == np.frombuffer(f.parts()[1], np.uint8).ctypes.data
    g = pickle.loads(data, buffers=buffers)
    assert g == f
    # Parts keep their content; the filter moves on to a copy.
    before = bytes(parts[1])
    f.update(range(1000, 2000))
    assert bytes(parts[1]) == before
    assert g != f and g.contains(range(1000)).all()


def test_memoryview(make, tmp_path):
    f = make(items=1000, fpr=0.01)
    f.update(range(1000))
    view = memoryview(f)
    assert view.readonly and view.nbytes == f.nbytes
    assert bytes(view) == f.to_bytes() == bytes(f)
    before = bytes(view)
    f.add(10**6)
    assert bytes(view) == before
    with pytest.raises(TypeError):
        view[0] = 1
    out = io.BytesIO()
    out.writelines(f.parts())
    assert out.getvalue() == f.to_bytes()
    # A view of bytes is those bytes.
    data = np.frombuffer(f.to_bytes(), np.uint8)
    g = tamis.from_bytes(data)
    assert np.shares_memory(np.frombuffer(memoryview(g), np.uint8), data)
    del view, f
    gc.collect()
    assert bytes(memoryview(g)) == data.tobytes()


def test_bytes_of_a_view_stay_alive():
    data = bytearray(tamis.build(range(1000), fpr=0.01).to_bytes())
    f = tamis.from_bytes(data)
    with pytest.raises(BufferError):
        data.append(0)
    g = f.copy()
    del f
    gc.collect()
    assert 7 in g
    g.add(5000)
    del g
    gc.collect()
    data.append(0)
    with pytest.raises(tamis.FormatError, match="ends after"):
        tamis.from_bytes(data)


def test_damage_is_an_error():
    good = tamis.build(range(1000), fpr=0.01).to_bytes()
    for bad in [b"", b"apple", good[:-1], good + b"\0", good[:8] + b"\7" + good[9:]]:
        with pytest.raises(tamis.FormatError):
            tamis.from_bytes(bad)
    damaged = tamis.from_bytes(good[:300] + bytes([good[300] ^ 1]) + good[301:])
    with pytest.raises(tamis.FormatError, match="checksum"):
        damaged.verify()
    with pytest.raises(TypeError):
        tamis.from_bytes("text")
    with pytest.raises((TypeError, BufferError)):
        tamis.from_bytes(np.zeros((9, 9), np.uint8)[:, ::2])


def test_fold_and_grow(make):
    f = make(items=100_000, fpr=0.01)
    f.update(range(1000))
    if make is tamis.Balanced:
        for method in [f.halved, f.doubled, lambda: f.folded_to(0.1)]:
            with pytest.raises(tamis.UnsupportedError):
                method()
        return
    assert f.halved().nbytes < f.nbytes
    assert f.halved().contains(range(1000)).all()
    assert f.folded_to(0.01).contains(range(1000)).all()
    if make is tamis.TinySet:
        assert f.doubled().contains(range(1000)).all()
    else:
        with pytest.raises(tamis.UnsupportedError):
            f.doubled()


def test_stats_and_repr(make):
    f = make(items=1000, fpr=0.01)
    f.update(range(1000))
    stats = f.stats()
    assert isinstance(stats, tamis.Stats)
    assert stats.least_items <= 1000 <= stats.most_items
    assert 0.005 < stats.expected_fpr < 0.02
    assert stats.kind == f.kind and stats.bytes == f.nbytes
    assert re.fullmatch(
        rf"<tamis\.{make.__name__}: \d+ of 1000 keys, fpr .*, {f.nbytes} bytes>",
        repr(f),
    )
    assert "expected_fpr" in stats._repr_html_()
    f.verify()


def test_clear_and_metadata(make):
    f = make(items=1000, fpr=0.01)
    f.update(["apple"])
    f.set_metadata("note", "fruit")
    f.clear()
    assert len(f) == 0 and "apple" not in f
    assert f.metadata == {"key-format": "lines", "note": "fruit"}
    f.set_metadata("note", "")
    assert f.metadata == {"key-format": "lines"}
    with pytest.raises(tamis.ArgumentError):
        f.set_metadata("", "x")


def test_weak_use_leaves_no_reference_cycles():
    class Owner:
        pass

    owner = Owner()
    owner.filter = tamis.build(["a"], 0.1)
    alive = weakref.ref(owner)
    del owner
    assert alive() is None


def test_plan():
    plan = tamis.plan(items=1e9, fpr=1e-3)
    assert plan.recommended.kind == "tinyset"
    assert {design.kind for design in plan.designs} == set(KINDS)
    html = plan._repr_html_()
    assert html.count("<tr>") == len(plan.designs) + 1
    assert "Recommended" in repr(plan)
    assert (
        tamis.plan(1e6, bits_per_key=10, prefer="speed").recommended.kind != "tinyset"
    )
    with pytest.raises(tamis.ArgumentError):
        tamis.plan(9, 0.1, miss_share=2)
    with pytest.raises(tamis.ArgumentError):
        tamis.plan(9, 0.1, prefer="beauty")
    with pytest.raises(TypeError):
        tamis.plan()


def test_errors_have_one_base():
    for name in tamis.__all__:
        value = getattr(tamis, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, tamis.TamisError)
    with pytest.raises(TypeError):
        1.5 in tamis.build([1], 0.1)
    with pytest.raises(ValueError):
        tamis.build([1], 0)
    with pytest.raises(FileNotFoundError):
        tamis.open("no such file")

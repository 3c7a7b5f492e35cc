"""Random histories, compared with a Python set: no key is ever missed."""

import pickle
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import tamis

NUMBERS = st.integers(-(2**63), 2**63 - 1)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KINDS = ["bloom", "blocked", "split", "balanced", "tinyset"]


class Model(RuleBasedStateMachine):
    """A filter beside a `collections.Counter`-like list of its keys."""

    @initialize(
        kind=st.sampled_from(KINDS),
        is_text=st.booleans(),
        removable=st.booleans(),
        items=st.integers(0, 3000),
    )
    def create(self, kind, is_text, removable, items):
        self.removable = removable and kind == "tinyset"
        options = {"removable": True} if self.removable else {}
        self.make = lambda: tamis.build([], fpr=0.01, items=items, kind=kind, **options)
        self.filter = self.make()
        self.keys: list[int | str] = []
        self.is_text = is_text

    def _key(self, data):
        return data.draw(WORDS if self.is_text else NUMBERS)

    def _several(self, data):
        return data.draw(st.lists(WORDS if self.is_text else NUMBERS, max_size=200))

    @rule(data=st.data())
    def add(self, data):
        key = self._key(data)
        if key in self.keys:
            assert self.filter.add(key) is False
        else:
            self.filter.add(key)
        self.keys.append(key)

    @rule(data=st.data(), form=st.sampled_from(["list", "iterator", "numpy", "arrow"]))
    def update(self, data, form):
        keys = self._several(data)
        threads = data.draw(st.sampled_from([1, 2, None]))
        column: object = keys
        if form == "iterator":
            column = iter(keys)
        elif form == "arrow":
            column = pa.array(keys, pa.string() if self.is_text else pa.int64())
        elif form == "numpy" and not self.is_text:
            column = np.array(keys, np.int64)
        self.filter.update(column, threads=threads)
        self.keys += keys

    @precondition(lambda self: self.removable and self.keys)
    @rule(data=st.data())
    def remove(self, data):
        at = data.draw(st.integers(0, len(self.keys) - 1))
        assert self.filter.remove(self.keys.pop(at)) is True

    @rule(data=st.data())
    def merge(self, data):
        keys = self._several(data)
        other = self.make()
        other.update(keys)
        try:
            self.filter |= other
        except tamis.UnsupportedError:
            assert self.filter.kind == "balanced"
            return
        self.keys += keys

    @rule()
    def clear(self):
        self.filter.clear()
        self.keys = []

    @rule()
    def save_and_open(self):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "f.tamis"
            self.filter.save(path)
            opened = tamis.open(path)
            assert opened.contains(self.keys).all()
            self.filter = opened.copy()
            self.filter.verify()

    @rule()
    def serialise(self):
        data = pickle.dumps(self.filter)
        self.filter = pickle.loads(data)
        assert tamis.from_bytes(self.filter.to_bytes()) == self.filter

    @invariant()
    def nothing_is_missed(self):
        assert self.filter.contains(self.keys).all()
        assert all(key in self.filter for key in self.keys[-20:])
        if self.filter.kind != "balanced":
            assert len(self.filter) == len(self.keys)


Model.TestCase.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None, derandomize=True
)
TestModel = Model.TestCase


@settings(max_examples=100, deadline=None, derandomize=True)
@given(keys=st.lists(NUMBERS, max_size=300), probes=st.lists(NUMBERS, max_size=300))
def test_all_paths_agree(keys, probes):
    """Answers and bytes do not depend on the form of the keys."""
    f = tamis.build(keys, fpr=0.05)
    for column in [iter(keys), np.array(keys, np.int64), pa.array(keys, pa.int64())]:
        for threads in [1, 2]:
            assert tamis.build(column, fpr=0.05, threads=threads, items=len(keys)) == f
            column = keys
    answers = f.contains(probes).tolist()
    assert f.contains(np.array(probes, np.int64)).tolist() == answers
    assert f.contains(pa.array(probes, pa.int64())).to_pylist() == answers
    assert [probe in f for probe in probes] == answers
    assert tamis.from_bytes(f.to_bytes()).contains(probes).tolist() == answers


def test_the_rate_is_the_predicted_one():
    """10^6 absent keys: five standard deviations around the prediction."""
    rng = np.random.default_rng(2013)
    keys = rng.integers(0, 2**62, 200_000, dtype=np.uint64)
    absent = rng.integers(2**62, 2**63, 1_000_000, dtype=np.uint64)
    for kind in KINDS:
        f = tamis.build(keys, fpr=0.01, kind=kind)
        assert f.contains(keys).all()
        expected = f.stats().expected_fpr
        found = f.contains(absent, threads=2).mean()
        assert abs(found - expected) < 5 * (expected / 1e6) ** 0.5, kind
        assert expected < 0.0103

"""The package beside its peers, in one run: CPU time per key and ratios.

`cargo xtask bench python [--keys N] [--rounds N] [--only NAME] [--plots] [--spark]`.

Rounds are interleaved: each measures every contender once, so that a change of
the machine's speed changes all of them. A figure is the least of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tamis

FPR = 0.001


@dataclass
class Case:
    """A contender: what is measured, for how many keys."""

    group: str
    name: str
    work: Callable[[], object] | Callable[[], float]
    keys: int
    # `work` returns nanoseconds per key itself.
    reports: bool = False


@dataclass
class Goal:
    """An upper limit of the ratio of two contenders."""

    group: str
    ours: str
    peer: str
    most: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--plots", action="store_true", help="draw docs/img")
    parser.add_argument("--spark", action="store_true", help="join pruning alone")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    if options.plots:
        plot_rates()
        return
    if options.spark:
        import joins

        with tempfile.TemporaryDirectory() as place:
            joins.main(int(options.keys), options.rounds, Path(place))
        return
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for group in GROUPS:
            if options.only not in group.__name__:
                continue
            cases, goals = group(int(options.keys), Path(place))
            measure(cases, options.rounds, figures)
            report(cases, goals, figures)
        if options.only in "open":
            open_in_processes(Path(place))
        if options.only in "threads":
            two_threads(int(options.keys), options.rounds)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))


def measure(cases: list[Case], rounds: int, figures: dict[str, float]) -> None:
    """Fills `figures` with nanoseconds per key."""
    for _ in range(rounds):
        for case in cases:
            start = time.process_time_ns()
            result = case.work()
            spent = (time.process_time_ns() - start) / case.keys
            if case.reports:
                assert isinstance(result, float)
                spent = result
            name = f"{case.group}: {case.name}"
            figures[name] = min(figures.get(name, float("inf")), spent)


def report(cases: list[Case], goals: list[Goal], figures: dict[str, float]) -> None:
    print(f"\n{cases[0].group:<46}{'ns/key':>9}{'ratio':>9}{'goal':>9}", flush=True)
    for case in cases:
        spent = figures[f"{case.group}: {case.name}"]
        line = f"  {case.name:<44}{spent:>9.1f}"
        for goal in goals:
            if goal.ours == case.name:
                ratio = spent / figures[f"{goal.group}: {goal.peer}"]
                mark = "" if ratio <= goal.most else "  not reached"
                line += f"{ratio:>9.3f}{goal.most:>9.2f} of {goal.peer}{mark}"
        print(line, flush=True)


def numbers(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys, and probes of which every second is a key."""
    rng = np.random.default_rng(7)
    keys = rng.integers(0, 2**63, count, dtype=np.uint64)
    probes = rng.integers(2**63, 2**64, count, dtype=np.uint64)
    probes[::2] = keys[::2]
    return keys, probes


def rust(filter: tamis.Filter, keys: np.ndarray, place: Path, column: int) -> float:
    """Nanoseconds per key of the Rust library: lookup (0), insertion (1)."""
    filter.save(place / "rust.tamis")
    keys.tofile(place / "rust.keys")
    binary = os.environ["TAMIS_RUST"]
    words = [binary, place / "rust.tamis", place / "rust.keys"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(printed.stdout.split()[column])


def numpy_columns(count: int, place: Path) -> tuple[list[Case], list[Goal]]:
    keys, probes = numbers(count)
    cases, goals = [], []
    for kind in ["blocked", "tinyset"]:
        f = tamis.build(keys, FPR, kind=kind)
        look = "look up numpy uint64"
        cases += [
            Case(look, f"tamis {kind}", lambda f=f: f.contains(probes), count),
            Case(
                look,
                f"Rust {kind}",
                lambda f=f: rust(f, probes, place, 0),
                count,
                reports=True,
            ),
        ]
        goals.append(Goal(look, f"tamis {kind}", f"Rust {kind}", 1.3))
    return cases, goals


def numpy_builds(count: int, place: Path) -> tuple[list[Case], list[Goal]]:
    keys, _ = numbers(count)
    cases, goals = [], []
    make = "build from numpy uint64"
    for kind in ["blocked", "tinyset"]:
        empty = tamis.build([], FPR, kind=kind, items=count)

        def build(kind: str = kind) -> None:
            tamis.build(keys, FPR, kind=kind)

        cases += [
            Case(make, f"tamis {kind}", build, count),
            Case(
                make,
                f"Rust {kind}",
                lambda f=empty: rust(f, keys, place, 1),
                count,
                reports=True,
            ),
        ]
        goals.append(Goal(make, f"tamis {kind}", f"Rust {kind}", 1.3))
    return cases, goals


def words(count: int) -> tuple[list[str], list[str]]:
    """Keys such as URLs have, and probes of which every second is a key."""
    keys, probes = numbers(count)
    return (
        [f"https://example.org/{key:x}" for key in keys.tolist()],
        [f"https://example.org/{key:x}" for key in probes.tolist()],
    )


def lists_of_str(count: int, place: Path) -> tuple[list[Case], list[Goal]]:
    import fastbloom_rs

    keys, probes = words(count)
    group = "look up a list of str"
    cases, goals = [], []
    for kind in ["blocked", "tinyset"]:
        f = tamis.build(keys, FPR, kind=kind)
        cases.append(
            Case(group, f"tamis {kind}", lambda f=f: f.contains(probes), count)
        )
        goals.append(Goal(group, f"tamis {kind}", "fastbloom-rs", 0.35))
    peer = fastbloom_rs.FilterBuilder(count, FPR).build_bloom_filter()
    peer.add_str_batch(keys)
    cases.append(
        Case(group, "fastbloom-rs", lambda: peer.contains_str_batch(probes), count)
    )
    return cases, goals


def arrow_strings(count: int, place: Path) -> tuple[list[Case], list[Goal]]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc

    keys, probes = words(count)
    group = "look up Arrow strings"
    key_column, column = pa.array(keys), pa.array(probes)
    cases, goals = [], []
    for kind in ["blocked", "tinyset"]:
        f = tamis.build(key_column, FPR, kind=kind)
        ours = f"tamis {kind}"
        cases.append(Case(group, ours, lambda f=f: f.contains(column), count))
        goals.append(Goal(group, ours, "pyarrow is_in", 0.1))
        goals.append(Goal(group, ours, "polars is_in", 0.1))
    key_series, series = pl.Series(keys), pl.Series(probes)
    cases += [
        Case(group, "pyarrow is_in", lambda: pc.is_in(column, key_column), count),
        Case(group, "polars is_in", lambda: series.is_in(key_series.implode()), count),
    ]
    return cases, goals


def loops(count: int, place: Path) -> tuple[list[Case], list[Goal]]:
    import rbloom

    count = min(count, 10_000_000)
    keys, probes = words(count)
    group = "loop over `x in f`"
    peer = rbloom.Bloom(count, FPR)
    peer.update(keys)

    def loop(f: Any) -> None:
        for probe in probes:
            probe in f  # noqa: B015

    cases, goals = [], []
    for kind in ["blocked", "tinyset"]:
        f = tamis.build(keys, FPR, kind=kind)
        cases.append(Case(group, f"tamis {kind}", lambda f=f: loop(f), count))
        goals.append(Goal(group, f"tamis {kind}", "rbloom", 0.8))
    cases.append(Case(group, "rbloom", lambda: loop(peer), count))
    return cases, goals


GROUPS = [numpy_columns, numpy_builds, lists_of_str, arrow_strings, loops]


def open_in_processes(place: Path) -> None:
    """Opens 1 GB in 4 processes at once."""
    path = place / "large.tamis"
    f = tamis.Blocked(items=5e8, bits_per_key=16)
    f.update(np.arange(100_000))
    f.save(path)
    del f
    program = """
import re, sys, time
import numpy as np
import tamis
tamis.build([1], 0.1)
def memory():
    text = open("/proc/self/smaps_rollup").read()
    fields = dict(re.findall(r"(\\w+): +(\\d+)", text))
    private = int(fields["Private_Clean"]) + int(fields["Private_Dirty"])
    return private, int(fields["Rss"]), int(fields["Pss"])
sys.stdin.readline()
before, start = memory(), time.perf_counter()
f = tamis.open(sys.argv[1])
seconds = time.perf_counter() - start
opened = memory()
assert f.contains(np.arange(100_000)).all()
print(f"{seconds * 1e3:.2f}", *(b - a for a, b in zip(before, opened)))
sys.stdout.flush()
sys.stdin.readline()
used = memory()
print(*(b - a for a, b in zip(before, used)), flush=True)
sys.stdin.readline()
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    print(f"\nopen {path.stat().st_size / 1e9:.2f} GB in 4 processes at once")
    print(f"  {'process':<10}{'ms':>8}{'private KB':>12}{'RSS KB':>10}{'PSS KB':>10}")
    time.sleep(2)
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for i, process in enumerate(processes):
        assert process.stdout
        ms, private, rss, pss = process.stdout.readline().split()
        mark = "" if float(ms) < 5 else "  above 5 ms"
        print(f"  {i:<10}{ms:>8}{private:>12}{rss:>10}{pss:>10}{mark}")
    print("after 100,000 lookups:")
    for i, process in enumerate(processes):
        assert process.stdin and process.stdout
        process.stdin.write("\n")
        process.stdin.flush()
        private, rss, pss = process.stdout.readline().split()
        print(f"  {i:<10}{'':>8}{private:>12}{rss:>10}{pss:>10}")
    for process in processes:
        process.communicate("\n")


def two_threads(count: int, rounds: int) -> None:
    """Lookups of two threads, in one call and in two, over those of one."""
    keys, probes = numbers(count)
    f = tamis.build(keys, FPR)
    half = [probes[: count // 2], probes[count // 2 :]]

    def seconds(work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def two_calls() -> None:
        threads = [threading.Thread(target=f.contains, args=(part,)) for part in half]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    works = {
        "one thread": lambda: f.contains(probes),
        "threads=2": lambda: f.contains(probes, threads=2),
        "two Python threads": two_calls,
    }
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best[name], seconds(work))
    print("\nlookups per second of wall clock, over one thread (goal 1.8)")
    for name, spent in best.items():
        print(f"  {name:<22}{best['one thread'] / spent:>6.2f}")


def plot_rates() -> None:
    """Draws the measured against the requested rate of all kinds."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "tamis"
    rng = np.random.default_rng(2013)
    keys = rng.integers(0, 2**62, 200_000, dtype=np.uint64)
    absent = rng.integers(2**62, 2**63, 10_000_000, dtype=np.uint64)
    rates = [0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001]
    figure, axis = plt.subplots(figsize=(6.4, 4))
    axis.axhline(1, color="grey", linewidth=0.8)
    for kind, marker in zip(
        ["bloom", "blocked", "split", "balanced", "tinyset"], "osD^v", strict=True
    ):
        measured = []
        for rate in rates:
            f = tamis.build(keys, rate, kind=kind)
            measured.append(f.contains(absent, threads=None).mean() / rate)
        line = " ".join(f"{value:.3f}" for value in measured)
        print(f"{kind:<10}{line}", flush=True)
        axis.plot(rates, measured, marker=marker, label=kind, linewidth=1, markersize=4)
    axis.set_xscale("log")
    axis.set_xlabel("requested false-positive rate")
    axis.set_ylabel("measured / requested")
    axis.set_ylim(0.8, 1.2)
    axis.legend()
    place = Path(__file__).resolve().parents[2] / "docs/img/python-rates.svg"
    figure.savefig(place, metadata={"Date": None}, bbox_inches="tight")
    print(re.sub(r".*/docs", "docs", str(place)))


if __name__ == "__main__":
    main()

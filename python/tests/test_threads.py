"""Threads, signals and progress."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import tamis

KEYS = np.arange(2_000_000, dtype=np.uint64)


def run_python(program: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE
    )


def ticks_during(work) -> int:
    """Steps of another Python thread while `work` runs in this one."""
    steps, done = [0], threading.Event()

    def count():
        while not done.is_set():
            steps[0] += 1
            time.sleep(0.0005)

    interval = sys.getswitchinterval()
    # A thread that does not release the GIL keeps it for as long.
    sys.setswitchinterval(60)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = steps[0]
        work()
        return steps[0] - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()


def test_the_gil_is_released():
    f = tamis.build(KEYS, fpr=0.001)
    for work in [
        lambda: tamis.build(KEYS, fpr=0.001),
        lambda: tamis.build(KEYS, fpr=0.001, threads=2),
        lambda: [f.contains(KEYS) for _ in range(5)],
        lambda: [f.stats() for _ in range(5)],
        lambda: [f.verify() for _ in range(5)],
    ]:
        assert ticks_during(work) >= 3


def test_threads_share_a_filter():
    """Writers and readers at once: no key is missed after its insertion."""
    f = tamis.TinySet(items=400_000, fpr=0.001)
    errors = []

    def write(start):
        for at in range(start, start + 100_000, 5000):
            keys = np.arange(at, at + 5000)
            f.update(keys)
            if not f.contains(keys).all() or at not in f:
                errors.append(at)

    threads = [threading.Thread(target=write, args=(n * 100_000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(f) == 400_000 and f.contains(np.arange(400_000)).all()
    f.verify()


def test_single_lookups_wait_for_a_writer():
    """A lookup without the lock never sees a half-changed block."""
    f = tamis.TinySet(items=200_000, fpr=0.001)
    f.update(range(20_000))
    done = threading.Event()

    def write():
        for start in range(20_000, 200_000, 2000):
            f.update(np.arange(start, start + 2000))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        while not done.is_set():
            assert all(key in f for key in range(0, 20_000, 20))
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_merging_in_both_directions_does_not_deadlock():
    f, g = (tamis.Blocked(items=1000, fpr=0.01) for _ in range(2))

    def merge(a, b):
        for _ in range(300):
            a |= b

    threads = [threading.Thread(target=merge, args=pair) for pair in [(f, g), (g, f)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_the_number_of_threads_changes_no_bytes():
    one = tamis.build(KEYS[:300_000], fpr=0.001)
    for threads in [2, 3, 16, None]:
        assert tamis.build(KEYS[:300_000], fpr=0.001, threads=threads) == one
        found = one.contains(KEYS, threads=threads)
        assert (found == one.contains(KEYS)).all()
    for threads in [0, -1, "two"]:
        with pytest.raises((ValueError, OverflowError, TypeError)):
            one.contains(KEYS, threads=threads)


@pytest.mark.parametrize(
    "work",
    [
        "tamis.build((i for i in itertools.count()), fpr=0.01)",
        "tamis.build(itertools.count(), fpr=0.01, items=1000)",
        "[tamis.build(numpy.arange(10**7), fpr=0.0001) for _ in range(10**4)]",
        "f.update(itertools.count())",
        "f.contains(itertools.count())",
    ],
)
def test_an_interrupt_ends_long_work(work):
    process = run_python(f"""
        import itertools, numpy, tamis
        f = tamis.Blocked(items=1000, fpr=0.01)
        print("ready", flush=True)
        try:
            {work}
        except KeyboardInterrupt:
            f.add(1)
            print("interrupted", 1 in f, flush=True)
    """)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert process.stdout.read() == b"interrupted True\n"
    assert process.wait() == 0
    assert time.monotonic() - start < 10


def test_progress_is_reported():
    reports = []
    tamis.build(range(300_000), fpr=0.01, progress=lambda *pair: reports.append(pair))
    assert reports[-1] == (300_000, None)
    assert len(reports) >= 4 and reports == sorted(reports)
    reports.clear()
    f = tamis.build(KEYS, fpr=0.01, progress=lambda *pair: reports.append(pair))
    assert reports[-1] == (len(KEYS), len(KEYS))

    # A callable may use the filter, and its exceptions pass through.
    def callback(done, total):
        assert len(f) >= done
        if done > 100_000:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        f.update(range(1_000_000), progress=callback)


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_progress_bars(has_tqdm, capsys, monkeypatch):
    if not has_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    tamis.build(range(200_000), fpr=0.01, progress=True)
    shown = capsys.readouterr().err
    assert "200k keys" in shown if has_tqdm else "200,000 keys" in shown


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_filters_survive_a_fork():
    f = tamis.build(KEYS[:100_000], fpr=0.001, threads=2)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if f.contains(KEYS[:100_000], threads=2).all() else 1)
    assert os.waitpid(pid, 0)[1] == 0

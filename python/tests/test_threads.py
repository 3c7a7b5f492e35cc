"""Threads, signals and progress."""

import os
import pickle
import signal
import subprocess
import sys
import sysconfig
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


@pytest.mark.parametrize("kind", ["blocked", "balanced", "tinyset"])
def test_all_operations_at_once(kind):
    """Eight threads, every method: no key is missed, no copy is torn."""
    items, share = 80_000, 10_000
    options = {"removable": True} if kind == "tinyset" else {}
    f = tamis.build([], 0.001, items=items, kind=kind, **options)
    start = threading.Barrier(8)
    extra = tamis.build([], 0.001, items=items, kind=kind, **options)
    errors: list[BaseException] = []

    def work(number):
        keys = range(number * share, (number + 1) * share)
        start.wait()
        try:
            for at in range(0, share, 500):
                part = keys[at : at + 500]
                for key in part[:250]:
                    f.add(key)
                    assert key in f
                f.update(np.array(part[250:]))
                assert f.contains(np.array(part), threads=2).all()
                assert f.contains(part).all() and all(key in f for key in part)
                copy = pickle.loads(pickle.dumps(f, 5))
                copy.verify()
                assert copy.contains(part).all()
                view = memoryview(f.copy())
                assert tamis.from_bytes(view).contains(part).all()
                if options:
                    assert extra.add(number) in (True, False)
                    assert extra.remove(number)
                assert len(f) >= at and f.stats().items >= at and repr(f)
                f.set_metadata("note", str(at))
                assert f.metadata["key-format"] == "u64le"
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    f.verify()
    assert f.contains(np.arange(items)).all()


def test_one_thread_is_first_with_a_key():
    """`add` is True for one of several threads."""
    f = tamis.TinySet(items=20_000, fpr=1e-4)
    new: list[int] = []

    def work():
        new.append(sum(f.add(key) for key in range(20_000)))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The rest were there before by chance, at the rate of the filter.
    assert 19_960 <= sum(new) <= 20_000


def test_the_first_key_decides_for_all_writers():
    """The type of the keys is checked again when they are inserted."""
    f = tamis.Blocked(items=10, fpr=0.01)

    def numbers():
        f.add("apple")
        yield 1

    with pytest.raises(tamis.MismatchError):
        f.update(numbers())
    assert f.key_type == "strings or bytes" and "apple" in f
    assert f.metadata == {"key-format": "lines"}


def test_free_threads_stay_free():
    """Importing tamis does not turn the GIL on."""
    process = run_python("""
        import sys, tamis
        print(getattr(sys, "_is_gil_enabled", lambda: True)())
    """)
    is_free = sysconfig.get_config_var("Py_GIL_DISABLED")
    assert process.communicate()[0] == (b"False\n" if is_free else b"True\n")


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
    # Without the interrupt the work takes hours, or for ever.
    assert process.stdout.read() == b"interrupted True\n"
    assert process.wait() == 0


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

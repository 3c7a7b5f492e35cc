"""Files are those of the Rust library and of the command line."""

import os
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tamis
from conftest import ROOT

GOLDEN = ROOT / "crates/tamis/tests/golden"


def golden_key(stream: int, i: int) -> int:
    """The keys of the golden files, of `crates/tamis/tests/support`."""
    mask = 2**64 - 1
    z = (stream << 48 | i) * 0x9E37_79B9_7F4A_7C15 & mask
    z = (z ^ z >> 30) * 0xBF58_476D_1CE4_E5B9 & mask
    z = (z ^ z >> 27) * 0x94D0_49BB_1331_11EB & mask
    return z ^ z >> 31


@pytest.mark.parametrize(
    "path", sorted((GOLDEN / "v1").glob("*.tamis")), ids=lambda path: path.stem
)
def test_golden_files_open(path):
    f = tamis.open(path)
    f.verify()
    assert f.kind == path.stem.split("-")[0]
    assert f.to_bytes() == path.read_bytes() == bytes(memoryview(f))
    assert tamis.open(path, mmap=False) == f == tamis.from_bytes(path.read_bytes())
    with pytest.raises(tamis.ReadOnlyError):
        f.set_metadata("note", "x")
    copy = f.copy()
    copy.set_metadata("note", "changed")
    copy.set_metadata("note", f.metadata.get("note", ""))
    assert copy.to_bytes() == path.read_bytes()
    if path.stem.endswith(("-512", "-256")) and "removed" not in path.stem:
        keys = np.array([golden_key(1, i) for i in range(700)], np.uint64)
        assert f.contains(keys).all()
        assert all(int(key) in f for key in keys[:50])
        assert len(f) in ([700] if f.kind != "balanced" else range(680, 701))
        # The golden files have no type of keys; all else is equal.
        g = type(f)(
            700,
            bits_per_key=10,
            block_bits=256 if path.stem.endswith("256") else 512,
            hash=f.hash_name,
            seed=f.seed,
        )
        if f.kind != "balanced":
            g.update(keys)
            g.set_metadata("key-format", "")
            assert g.to_bytes() == path.read_bytes()
    if path.stem == "blocked-metadata":
        assert f.metadata["note"] == "clés du 1er mai\n"
        assert f.key_type == "bytes"


def test_compact_files_open():
    for path in (GOLDEN / "compact-v1").iterdir():
        if path.suffix == ".tamis":
            tamis.open(path).verify()


@pytest.mark.parametrize("kind", ["bloom", "blocked", "split", "balanced", "tinyset"])
@pytest.mark.parametrize("fpr", [0.05, 0.001])
def test_builds_equal_those_of_the_command_line(kind, fpr, tmp_path, tamis_command):
    lines = [f"key {i}" for i in range(20_000)]
    (tmp_path / "keys").write_text("\n".join(lines) + "\n")
    (tmp_path / "numbers").write_bytes(np.arange(20_000, dtype="<u8").tobytes())
    words = f"--kind {kind} --fpr {fpr} --force".split()
    tamis_command("build", tmp_path / "keys", "-o", tmp_path / "cli", *words)
    for threads in [1, 2]:
        tamis.build(lines, fpr, kind=kind, threads=threads).save(tmp_path / "py")
        assert (tmp_path / "py").read_bytes() == (tmp_path / "cli").read_bytes()
    tamis_command(
        "build", tmp_path / "numbers", "--key-format", "u64le",
        "-o", tmp_path / "cli", *words,
    )  # fmt: skip
    tamis.build(np.arange(20_000), fpr, kind=kind).save(tmp_path / "py")
    assert (tmp_path / "py").read_bytes() == (tmp_path / "cli").read_bytes()


def test_options_equal_those_of_the_command_line(tmp_path, tamis_command):
    lines = [f"key {i}" for i in range(5000)]
    (tmp_path / "keys").write_text("\n".join(lines) + "\n")
    for words, keywords in [
        ("--fpr 0.01", {"fpr": 0.01}),
        ("--fpr 0.1", {"fpr": 0.1}),
        ("--bits-per-key 12", {"bits_per_key": 12}),
        ("--fpr 0.001 --prefer speed", {"fpr": 0.001, "prefer": "speed"}),
        ("--fpr 0.001 --items 9000", {"fpr": 0.001, "items": 9000}),
        ("--fpr 0.001 --removable", {"fpr": 0.001, "removable": True}),
        ("--fpr 0.001 --repeats", {"fpr": 0.001, "repeats": True}),
        ("--fpr 1e-5 --levels 2", {"fpr": 1e-5, "levels": 2}),
        ("--fpr 0.01 --block-bytes 32", {"fpr": 0.01, "block_bits": 256}),
        (
            "--fpr 0.01 --hash siphash --seed 9",
            {"fpr": 0.01, "hash": "siphash", "seed": 9},
        ),
        (
            "--fpr 1e-4 --kind balanced --max-reads-miss 1.1",
            {"fpr": 1e-4, "max_reads_miss": 1.1},
        ),
    ]:
        output = tmp_path / "cli"
        tamis_command(
            "build", tmp_path / "keys", "-o", output, "--force", *words.split()
        )
        assert tamis.build(lines, **keywords).to_bytes() == output.read_bytes(), words


def test_the_command_line_reads_files_from_here(tmp_path, tamis_command):
    f = tamis.build(["apple", "pear"], fpr=1e-6)
    f.save(tmp_path / "f")
    found = tamis_command("query", tmp_path / "f", input=b"apple\nplum\npear\n")
    assert found.stdout == b"apple\npear\n"
    tamis_command("verify", tmp_path / "f")
    tamis_command("add", tmp_path / "f", "-k", "plum")
    assert "plum" in tamis.open(tmp_path / "f")
    plan = tamis_command("plan", "--items", "1e6", "--fpr", "0.001").stdout.decode()
    assert f"Recommended: {tamis.plan(1e6, 0.001).recommended.kind}" in plan


def test_saving_is_atomic_and_can_refuse(tmp_path):
    path = tmp_path / "f"
    f = tamis.build(range(1000), fpr=0.01)
    f.save(str(path))
    opened = tamis.open(path)
    g = tamis.build(range(2000), fpr=0.01)
    with pytest.raises(FileExistsError):
        g.save(path, overwrite=False)
    g.save(path)
    # The map is of the old file.
    assert opened == f and tamis.open(path) == g
    assert os.listdir(tmp_path) == ["f"]
    with pytest.raises(OSError):
        f.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        f.save(tmp_path / "none" / "f")
    secret = tamis.build(["a"], 0.1, hash="siphash")
    secret.save(tmp_path / "secret")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_opened_files_are_read_only(tmp_path):
    path = tmp_path / "f"
    tamis.build(range(1000), fpr=0.01, removable=True).save(path)
    f = tamis.open(path)
    assert f.read_only and "read-only" in repr(f)
    for change in [
        lambda: f.add(1),
        lambda: f.update([1]),
        lambda: f.update(np.array([1])),
        lambda: f.remove(1),
        lambda: f.clear(),
        lambda: f.merge(f),
        lambda: f.set_metadata("a", "b"),
    ]:
        with pytest.raises(tamis.ReadOnlyError, match="copy"):
            change()
    g = f.copy()
    g.add(10**6)
    assert not g.read_only and g != f
    with pytest.raises(tamis.FormatError):
        (tmp_path / "other").write_bytes(b"apples" * 100)
        tamis.open(tmp_path / "other")
    with pytest.raises(OSError):
        tamis.open(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_four_processes_share_one_map(tmp_path):
    """Opening takes no private memory and does not depend on the size."""
    path = tmp_path / "f"
    f = tamis.Blocked(items=50_000_000, bits_per_key=16)
    f.add(7)
    f.save(path)
    program = textwrap.dedent("""
        import re, sys, time
        import tamis
        tamis.build([1], 0.1)
        def private():
            text = open("/proc/self/smaps_rollup").read()
            fields = re.findall(r"Private_(?:Clean|Dirty): +(\\d+)", text)
            return sum(map(int, fields))
        before, start = private(), time.perf_counter()
        f = tamis.open(sys.argv[1])
        seconds = time.perf_counter() - start
        assert 7 in f
        print("opened", seconds, private() - before, flush=True)
        sys.stdin.read()
    """)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            word, seconds, private = process.stdout.readline().split()
            assert word == b"opened" and float(seconds) < 0.5
            # Kilobytes; the file has 100,000.
            assert int(private) < 2_000
    finally:
        for process in processes:
            process.communicate()

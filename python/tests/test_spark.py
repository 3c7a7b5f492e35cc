"""Spark in local-cluster mode: executors and Python workers are processes."""

import os
import re
import sys

import numpy as np
import pyarrow as pa
import pytest

from conftest import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = 60_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    import pyspark
    from pyspark.sql import SparkSession

    place = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_WORKER_DIR"] = str(place / "work")
    os.environ["SPARK_SCALA_VERSION"] = "2.13"
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("tamis")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.local.dir", str(place))
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


def table(spark, partitions):
    """Half of the keys are there twice, and half of the partitions are empty."""
    from pyspark.sql import functions as F

    return (
        spark.range(0, 2 * ROWS, 1, partitions)
        .where(f"id < {ROWS}")
        .select(
            (F.col("id") % (ROWS * 2 // 3) * 7).alias("number"),
            F.concat(F.lit("key "), F.col("id") % (ROWS * 2 // 3)).alias("word"),
        )
    )


@pytest.fixture(scope="module")
def rows(spark):
    return table(spark, 3)


@pytest.fixture(scope="module")
def numbers():
    return np.arange(ROWS) % (ROWS * 2 // 3) * 7


def test_partials_of_200_partitions_are_the_local_build(spark, numbers):
    import tamis.spark

    rows = table(spark, 200)
    assert rows.rdd.getNumPartitions() == 200
    f = tamis.spark.build(
        rows, "number", 0.001, items=ROWS, kind="blocked", partials=200
    )
    assert f.to_bytes() == tamis.build(numbers, 0.001, kind="blocked").to_bytes()
    f = tamis.spark.build(rows, "number", 0.001, items=ROWS)
    local = tamis.build(numbers, 0.001)
    # The order of the keys decides which entries have an extra bit, and which
    # of two keys with one fingerprint is stored.
    assert f.kind == local.kind == "tinyset"
    assert (len(f), f.nbytes, f.metadata) == (len(local), local.nbytes, local.metadata)
    assert f.stats().expected_fpr == pytest.approx(local.stats().expected_fpr, rel=0.01)
    assert f.contains(numbers).all()
    f.verify()


def test_strings_and_nulls(spark, rows):
    from pyspark.sql import functions as F

    import tamis.spark

    words = rows.withColumn("word", F.when(F.col("number") % 5 != 0, F.col("word")))
    f = tamis.spark.build(words, "word", 0.01, kind="bloom")
    local = [
        f"key {i}"
        for i in (np.arange(ROWS) % (ROWS * 2 // 3)).tolist()
        if i * 7 % 5 != 0
    ]
    assert f == tamis.build(local, 0.01, kind="bloom")
    found = words.select(tamis.spark.contains("word", f).alias("found"), "word")
    counts = {
        (row["found"], row["null"]): row["count"]
        for row in found.groupBy("found", F.col("word").isNull().alias("null"))
        .count()
        .collect()
    }
    assert counts == {(True, False): len(local), (None, True): ROWS - len(local)}
    with pytest.raises(tamis.KeyTypeError):
        tamis.spark.build(spark.range(3).selectExpr("id / 2 as half"), "half", 0.01)
    with pytest.raises(tamis.UnsupportedError):
        tamis.spark.build(rows, "number", 0.01, kind="balanced")


def test_a_saved_filter_is_opened_by_the_workers(spark, tmp_path):
    import tamis.spark

    f = tamis.build(np.arange(0, 10_000, 2), 1e-6)
    f.save(tmp_path / "even.tamis")
    frame = spark.range(0, 10_000, 1, 8)
    for filter in [f, tmp_path / "even.tamis", str(tmp_path / "even.tamis")]:
        found = frame.where(tamis.spark.contains(frame["id"], filter))
        assert [row["id"] for row in found.collect()] == list(range(0, 10_000, 2))


def test_prune_join_equals_the_join(spark, rows):
    from pyspark.sql import functions as F

    import tamis.spark

    small = spark.range(0, 700, 7).select(
        F.col("id").alias("number"), F.col("id").alias("other")
    )
    for how in ["inner", "left_semi", "right"]:
        pruned = tamis.spark.prune_join(rows, small, "number", how)
        expected = rows.join(small, "number", how)
        assert sorted(pruned.collect()) == sorted(expected.collect())
    with pytest.raises(tamis.ArgumentError):
        tamis.spark.prune_join(rows, small, "number", "left")


def test_a_killed_executor_changes_nothing(spark, numbers, tmp_path):
    """One task kills its executor, another its Python worker, once each."""
    import tamis.spark

    mark = str(tmp_path / "killed")

    def fail(batches):
        import signal

        from pyspark import TaskContext

        partition = TaskContext.get().partitionId()
        for batch in batches:
            yield batch
            for at, name in [(11, "worker"), (23, "executor")]:
                if partition == at and not os.path.exists(f"{mark}-{name}"):
                    open(f"{mark}-{name}", "x").close()
                    victim = os.getpid()
                    if name == "executor":
                        # The parent of the parent: daemon, then executor.
                        stat = open(f"/proc/{os.getppid()}/stat").read()
                        victim = int(stat.rpartition(")")[2].split()[1])
                    os.kill(victim, signal.SIGKILL)

    rows = table(spark, 60).select("number")
    faulty = rows.mapInArrow(fail, "number bigint")
    f = tamis.spark.build(
        faulty, "number", 0.001, kind="split", items=ROWS, partials=60
    )
    assert sorted(os.listdir(tmp_path)) == ["killed-executor", "killed-worker"]
    assert f == tamis.build(pa.array(numbers), 0.001, kind="split")


def test_the_tutorial_holds(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/python.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    # The executors have another working directory.
    program = program.replace("customers.tamis", str(tmp_path / "customers.tamis"))
    exec(program, {"spark": spark})

"""Join pruning on Spark: no filter, Spark's own runtime filter, and ours.

`cargo xtask bench python --spark [--keys ROWS] [--rounds N]`.

One selective query, a table of ROWS rows joined with one of 10^6 rows of which a
predicate keeps 10^4, both in Parquet files and joined by a shuffle: a table that
small would be broadcast by default, and no filter would be of use.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tamis
import tamis.spark

SMALL = 1_000_000
KEPT = 10_000
CLOCK = os.sysconf("SC_CLK_TCK")


def session(place: Path) -> Any:
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return (
        SparkSession.builder.master("local[2]")
        .appName("tamis")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
        .config("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
        .config("spark.local.dir", str(place))
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def cpu_seconds(root: int) -> float:
    """Of a process and its descendants, those that ended included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry)] = int(fields[1])
        ticks[int(entry)] = sum(map(int, fields[11:15]))
    total = 0
    for process in ticks:
        ancestor = process
        while ancestor not in (root, 0):
            ancestor = parents.get(ancestor, 0)
        if ancestor == root:
            total += ticks[process]
    return total / CLOCK


def main(rows: int, rounds: int, place: Path) -> None:
    from pyspark.sql import functions as F

    spark = session(place)
    key = F.pmod(F.xxhash64("id"), F.lit(rows)).alias("key")
    text = F.concat(F.lit("order "), F.sha1(F.col("id").cast("string")))
    big_rows = spark.range(0, rows, 1, 8).select(key, F.col("id"), text.alias("note"))
    big_rows.write.parquet(str(place / "big"))
    step = max(rows // SMALL, 1)
    spark.range(0, SMALL, 1, 2).select(
        (F.col("id") * step).alias("key"),
        (F.col("id") % (SMALL // KEPT)).alias("region"),
    ).write.parquet(str(place / "small"))

    def tables() -> tuple[Any, Any]:
        big = spark.read.parquet(str(place / "big"))
        small = spark.read.parquet(str(place / "small"))
        return big, small.where("region = 7")

    def answer(joined: Any, has_runtime_filter: bool) -> Any:
        result = joined.agg(F.count("*"), F.sum("id"), F.max("note"))
        plan = result._jdf.queryExecution().toString()
        assert ("might_contain" in plan) == has_runtime_filter, plan
        return result.collect()[0]

    runtime = "spark.sql.optimizer.runtime.bloomFilter."
    spark.conf.set(runtime + "applicationSideScanSizeThreshold", "1")

    def join(with_runtime_filter: bool) -> Any:
        spark.conf.set(runtime + "enabled", str(with_runtime_filter).lower())
        big, small = tables()
        return answer(big.join(small, "key"), with_runtime_filter)

    def pruned() -> Any:
        spark.conf.set(runtime + "enabled", "false")
        big, small = tables()
        return answer(tamis.spark.prune_join(big, small, "key"), False)

    saved = place / "keys.tamis"
    tamis.spark.build(tables()[1], "key", 0.001).save(saved)

    def opened() -> Any:
        spark.conf.set(runtime + "enabled", "false")
        big, small = tables()
        kept = big.where(tamis.spark.contains("key", saved))
        return answer(kept.join(small, "key"), False)

    works: dict[str, Callable[[], Any]] = {
        "no filter": lambda: join(False),
        "Spark's runtime filter": lambda: join(True),
        "tamis.spark.prune_join": pruned,
        "contains(saved filter)": opened,
    }
    # The first round compiles and starts the Python workers.
    expected = join(False)
    wall = dict.fromkeys(works, float("inf"))
    cpu = dict.fromkeys(works, float("inf"))
    for measured in range(rounds + 1):
        for name, work in works.items():
            start, before = time.perf_counter(), cpu_seconds(os.getpid())
            assert work() == expected, name
            if measured:
                spent = time.perf_counter() - start
                wall[name] = min(wall[name], spent)
                spent = cpu_seconds(os.getpid()) - before
                cpu[name] = min(cpu[name], spent)
    print(f"\njoin of {rows} with {KEPT} rows, {expected[0]} rows in the result")
    print(f"  {'':<26}{'seconds':>9}{'ratio':>8}{'CPU s':>9}{'ratio':>8}")
    for name in works:
        print(
            f"  {name:<26}{wall[name]:>9.2f}{wall[name] / wall['no filter']:>8.2f}"
            f"{cpu[name]:>9.2f}{cpu[name] / cpu['no filter']:>8.2f}"
        )
    spark.stop()

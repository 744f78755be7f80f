"""How many tuples each kind of operator can handle a second, measured once on a machine and kept in its cache.

Each operator runs over the same cached rows, beside a run that only reads them. Reading is common to all plans. The
rows are one partition, as those of a micro-batch of a session are unless there are very many.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import TYPE_CHECKING

from thalweg.charts import TupleRates
from thalweg.sealed import SavedStateError, seal, short_digest, unseal_json
from thalweg.spark.folder import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND, VERSION = "tuple rates", 2
ROWS = 200_000
JOINED_ROWS = 20_000  # on each side
FASTEST = 1e9  # tuples a second, of an operator that takes less time than the clock can tell
READ = "read"  # the run that only reads the rows


def tuple_rates(spark: SparkSession, rows: int = ROWS, joined_rows: int = JOINED_ROWS) -> TupleRates:
    """The rates that were measured on this machine before, or else those of a measurement now."""
    known = known_rates(spark)
    if known is not None:
        return known
    rates = measure_rates(spark, rows, joined_rows)
    folder, file = _cache(spark)
    with contextlib.suppress(OSError):  # a machine without a cache measures every time
        folder.write(file, seal(KIND, VERSION, json.dumps(rates.to_json()).encode()))
    return rates


def known_rates(spark: SparkSession) -> TupleRates | None:
    """The rates that were measured on this machine before; None if there are none, or their file is damaged."""
    folder, file = _cache(spark)
    with contextlib.suppress(SavedStateError, OSError, ValueError, TypeError, AttributeError):
        content = folder.read([file]).get(file)
        return None if content is None else TupleRates.from_json(unseal_json(KIND, VERSION, content))
    return None


def _cache(spark: SparkSession) -> tuple[StateFolder, str]:
    """The folder and the name of the file for this machine, with this version of Spark and as many tasks at once."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    machine = [platform.node(), platform.machine(), platform.python_version()]
    version = [spark.version, str(spark.sparkContext.defaultParallelism)]
    return StateFolder(f"{cache}/thalweg"), f"tuple-rates-{short_digest([*machine, *version])}"


def measure_rates(spark: SparkSession, rows: int = ROWS, joined_rows: int = JOINED_ROWS) -> TupleRates:
    """Measure every kind of operator: all at once, so that Spark compiles them side by side, then each alone."""
    import thalweg as tw

    cached = spark.range(0, rows, 1, 1).selectExpr("id", "id % 1000 AS a", "cast(id AS string) AS s").cache()
    keyed = cached.where(f"id < {joined_rows}").selectExpr("id AS k", "timestamp_seconds(0) AS time")
    odd = tw.predicate(lambda a: a % 2 == 1, on="a", takes="numpy", name="odd")
    sides = {"l": keyed, "r": keyed}
    try:
        frames = {
            READ: cached.select("id"),
            "equality": cached.where("a = 7").select("id"),
            "range": cached.where("a > 7").select("id"),
            "projection": cached.select("id", "a"),
            "aggregate": cached.groupBy("a").count(),
            "other": cached.where("s rlike '[1-4]5'").select("id"),
            "python": tw.where(cached, odd, sample=False).select("id"),
            "equi_join": keyed.join(keyed.alias("o"), "k").select("k"),
            "multi_join": tw.join(sides, "l.k = r.k", {"l": None, "r": None}, "time", select=["l.k"]),
        }
        with ThreadPoolExecutor(len(frames)) as threads:
            list(threads.map(_seconds, frames.values()))
        seconds = {kind: _seconds(frame) for kind, frame in frames.items()}
        seconds[READ] = min(seconds[READ], _seconds(frames[READ]))  # which is part of every difference
    finally:
        cached.unpersist()
    tuples = {"equi_join": 2 * joined_rows, "multi_join": 2 * joined_rows}
    kinds = [each.name for each in fields(TupleRates)]
    return TupleRates(**{kind: _rate(tuples.get(kind, rows), seconds[kind] - seconds[READ]) for kind in kinds})


def _seconds(frame: DataFrame) -> float:
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _rate(tuples: int, seconds: float) -> float:
    return min(tuples / max(seconds, 1e-9), FASTEST)

"""How many tuples each kind of operator can handle a second, measured once on a machine and kept in its cache.

Each operator runs over the same cached rows, beside a run that only reads them. Reading is common to all plans.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING

from thalweg.charts import TupleRates
from thalweg.sealed import SavedStateError, seal, short_digest, unseal_json
from thalweg.spark.folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

KIND, VERSION = "tuple rates", 1
ROWS = 400_000
JOINED_ROWS = 40_000  # on each side
FASTEST = 1e9  # tuples a second, of an operator that takes less time than the clock can tell


def tuple_rates(spark: SparkSession) -> TupleRates:
    """The rates that were measured on this machine before, or else those of a measurement now."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = StateFolder(f"{cache}/thalweg")
    file = f"tuple-rates-{short_digest([spark.version, str(spark.sparkContext.defaultParallelism)])}"
    content = folder.read([file]).get(file)
    if content is not None:
        with contextlib.suppress(SavedStateError, ValueError, TypeError, AttributeError):  # measured anew
            return TupleRates.from_json(unseal_json(KIND, VERSION, content))
    rates = measure_rates(spark)
    with contextlib.suppress(OSError):  # a machine without a cache measures every time
        folder.write(file, seal(KIND, VERSION, json.dumps(rates.to_json()).encode()))
    return rates


def measure_rates(spark: SparkSession, rows: int = ROWS, joined_rows: int = JOINED_ROWS) -> TupleRates:
    """Measure every kind of operator, in a second or two."""
    from pyspark.sql import functions as f

    import thalweg as tw

    cached = spark.range(0, rows, 1, 2).selectExpr("id", "id % 1000 AS a", "cast(id AS string) AS s").cache()
    keyed = spark.range(0, joined_rows, 1, 2).selectExpr("id AS k", "timestamp_seconds(0) AS time").cache()
    odd = tw.predicate(lambda a: a % 2 == 1, on="a", takes="numpy", name="odd")

    def multi_joined() -> DataFrame:
        sides = {"l": keyed, "r": keyed}
        return tw.join(sides, "l.k = r.k", {"l": None, "r": None}, "time", select=["l.k"])

    try:
        base = _seconds(lambda: cached.select(f.col("id")))
        base_joined = _seconds(lambda: keyed.select("k"))

        def rate(make: Callable[[], DataFrame]) -> float:
            return _rate(rows, _seconds(make) - base)

        return TupleRates(
            equality=rate(lambda: cached.where("a = 7").select("id")),
            range=rate(lambda: cached.where("a > 7").select("id")),
            projection=rate(lambda: cached.select("id", "a")),
            aggregate=rate(lambda: cached.groupBy("a").count()),
            other=rate(lambda: cached.where("s rlike '[1-4]5'").select("id")),
            python=rate(lambda: tw.where(cached, odd, sample=False).select("id")),
            equi_join=_rate(
                2 * joined_rows, _seconds(lambda: keyed.join(keyed.alias("o"), "k").select("k")) - base_joined
            ),
            multi_join=_rate(2 * joined_rows, _seconds(multi_joined) - base_joined),
        )
    finally:
        cached.unpersist()
        keyed.unpersist()


def _seconds(make: Callable[[], DataFrame]) -> float:
    """The seconds of the second run: the first run compiles."""
    spent = 0.0
    for _ in range(2):
        start = time.perf_counter()
        make().write.format("noop").mode("overwrite").save()
        spent = time.perf_counter() - start
    return spent


def _rate(tuples: int, seconds: float) -> float:
    return min(tuples / max(seconds, 1e-9), FASTEST)

"""chain: four streams on three different keys, so that rows go to several cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.streams import against_spark
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "chain"
ROWS, WINDOW, BATCHES = 50_000, 10, 10


def make_workload(rows: int, batches: int) -> JoinWorkload:
    """A row matches one row in the window of the next stream."""
    values = rows * WINDOW
    streams = {
        "A": StreamKeys({"k": values}, rows),
        "B": StreamKeys({"k": values, "l": values}, rows),
        "C": StreamKeys({"l": values, "m": values}, rows),
        "D": StreamKeys({"m": values}, rows),
    }
    return JoinWorkload(
        on=((("A", "k"), ("B", "k")), (("B", "l"), ("C", "l")), (("C", "m"), ("D", "m"))),
        window=WINDOW,
        batches=random_batches(streams, batches, FILL),
    )


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows."""
    return against_spark(spark, tick, NAME, make_workload, (rows, batches), 10)

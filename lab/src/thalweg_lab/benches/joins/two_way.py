"""two-way: two streams on one key, the join that most people have, a match in each window on average."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.streams import against_spark
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "two-way"
STREAMS = ("A", "B")
ROWS, WINDOW, BATCHES = 100_000, 10, 10
TARGET = 2.5


def make_workload(rows: int, batches: int, how: str = "inner") -> JoinWorkload:
    """A row matches one row in the window of the other stream."""
    streams = {name: StreamKeys({"k": rows * WINDOW}, rows) for name in STREAMS}
    on = (tuple((name, "k") for name in STREAMS),)
    return JoinWorkload(on=on, window=WINDOW, batches=random_batches(streams, batches, FILL), how=how)


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows, against Spark with its default state store."""
    return against_spark(spark, tick, NAME, make_workload, (rows, batches), TARGET)

"""cycle: three streams in a triangle; Spark joins two of them first, and tests the third equality after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.streams import against_spark
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "cycle"
ROWS, WINDOW, BATCHES = 50_000, 10, 10
MATCHES = 3  # in a window, of each equality alone


def make_workload(rows: int, batches: int) -> JoinWorkload:
    """Few of the pairs that match have a third row."""
    values = max(rows * WINDOW // MATCHES, 1)
    streams = {
        "A": StreamKeys({"x": values, "z": values}, rows),
        "B": StreamKeys({"x": values, "y": values}, rows),
        "C": StreamKeys({"y": values, "z": values}, rows),
    }
    return JoinWorkload(
        on=((("A", "x"), ("B", "x")), (("B", "y"), ("C", "y")), (("C", "z"), ("A", "z"))),
        window=WINDOW,
        batches=random_batches(streams, batches, FILL),
    )


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows."""
    return against_spark(spark, tick, NAME, make_workload, (rows, batches), 10)

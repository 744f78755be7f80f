"""cycle: three streams in a triangle; Spark joins two of them first, and tests the third equality after."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thalweg.benches.filters.race import THALWEG, Tick, race
from thalweg.benches.joins.streams import chained_join, files, run, thalweg_join
from thalweg.benches.joins.work import FILL, Keys, Workload, random_batches
from thalweg.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "cycle"
ROWS, WINDOW, BATCHES = 50_000, 10, 3
MATCHES = 3  # in a window, of each equality alone
SPARK = "Spark's chained joins"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows."""
    values = rows * WINDOW // MATCHES
    streams = {
        "A": Keys({"x": values, "z": values}, rows),
        "B": Keys({"x": values, "y": values}, rows),
        "C": Keys({"y": values, "z": values}, rows),
    }
    workload = Workload(
        on=((("A", "x"), ("B", "x")), (("B", "y"), ("C", "y")), (("C", "z"), ("A", "z"))),
        window=WINDOW,
        batches=random_batches(streams, batches, FILL),
    )
    with files(workload) as folder:
        contenders = {
            THALWEG: partial(run, spark, folder, workload, thalweg_join),
            SPARK: partial(run, spark, folder, workload, chained_join(workload.names)),
        }
        note = f"3 streams, {rows:,} rows a stream and batch, windows of {WINDOW} batches, {batches} batches counted"
        found = race(NAME, contenders, 1, tick, note)
    return [found.faster(SPARK, 4)]

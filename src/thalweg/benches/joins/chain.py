"""chain: four streams on three different keys, so that rows go to several cells."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thalweg.benches.filters.race import THALWEG, Tick, race
from thalweg.benches.joins.streams import chained_join, files, run, thalweg_join
from thalweg.benches.joins.work import FILL, Keys, Workload, random_batches
from thalweg.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "chain"
ROWS, WINDOW, BATCHES = 50_000, 10, 3
SPARK = "Spark's chained joins"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows."""
    values = rows * WINDOW
    streams = {
        "A": Keys({"k": values}, rows),
        "B": Keys({"k": values, "l": values}, rows),
        "C": Keys({"l": values, "m": values}, rows),
        "D": Keys({"m": values}, rows),
    }
    workload = Workload(
        on=((("A", "k"), ("B", "k")), (("B", "l"), ("C", "l")), (("C", "m"), ("D", "m"))),
        window=WINDOW,
        batches=random_batches(streams, batches, FILL),
    )
    with files(workload) as folder:
        contenders = {
            THALWEG: partial(run, spark, folder, workload, thalweg_join),
            SPARK: partial(run, spark, folder, workload, chained_join(workload.names)),
        }
        note = f"4 streams, {rows:,} rows a stream and batch, windows of {WINDOW} batches, {batches} batches counted"
        found = race(NAME, contenders, 1, tick, note)
    return [found.faster(SPARK, 4)]

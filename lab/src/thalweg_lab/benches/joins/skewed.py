"""skewed: four streams on one key, of which the largest stream's keys follow Zipf's law.

The keys of the other streams are uniform: if the same value were frequent in all four, results would be the fourth
power of its rows. The most frequent value has a fifth of the largest stream's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters.race import Tick, part_of
from thalweg_lab.benches.joins.streams import Streams, against_spark, files, run, thalweg_join
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "skewed"
LARGE, OTHERS = "A", ("B", "C", "D")
ROWS, WINDOW, BATCHES = 100_000, 10, 10  # rows of the largest stream
FEWER = 5  # times fewer rows in each of the other streams
EXPONENT = 1.2
CELLS, MOST = 8, 1.5  # cells, and rows of the fullest cell, times the mean
BALANCE_BATCHES = 25  # splitting shows after a window


def make_workload(rows: int, batches: int) -> JoinWorkload:
    """A row of the largest stream matches one row in the window of each other stream."""
    few = max(rows // FEWER, 1)
    streams = {LARGE: StreamKeys({"k": few * WINDOW}, rows, zipf=EXPONENT)}
    streams |= {name: StreamKeys({"k": few * WINDOW}, few) for name in OTHERS}
    on = (tuple((name, "k") for name in streams),)
    return JoinWorkload(on=on, window=WINDOW, batches=random_batches(streams, batches, FILL))


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, balance_batches: int = BALANCE_BATCHES
) -> list[Result]:
    """Throughput with full windows, and how evenly more cells share the rows."""
    results = against_spark(spark, part_of(tick, 0, 2), NAME, make_workload, (rows, batches), 8)
    about: dict[str, Any] = {}
    workload = make_workload(max(rows // FEWER, 1), balance_batches)
    with files(workload) as folder:
        run(spark, folder, workload, _in_cells, about)
    part_of(tick, 1, 2)(1, 1)
    note = f"{CELLS} cells, rows in windows after {balance_batches} batches; cells: {about['cell_rows']}"
    return [*results, at_most(NAME, "rows of the fullest cell, times the mean", about["heaviest"], MOST, note)]


def _in_cells(spark: SparkSession, frames: Streams, workload: JoinWorkload) -> DataFrame:
    return thalweg_join(spark, frames, workload, cells=CELLS)

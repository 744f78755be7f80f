"""The times of micro-batches of different sizes, and the costs of rows and parts that explain them best."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from thalweg.sizing import BATCH, PART, ROW, TASK
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WARM_UP, BATCHES = 3, 6  # micro-batches
ROWS = (50_000, 1_000_000)  # a micro-batch
HELD_OUT_ROWS = 500_000
FILES = 2  # a micro-batch: a task for each of two cores
FEW_TASKS, MANY_TASKS, JOBS = 2, 200, 3
ALLOWED_ERROR = 0.3

Stream = Callable[[int], "DataFrame"]  # a stream with so many rows in each micro-batch
Start = Callable[["SparkSession", Stream, int, int, str], "StreamingQuery"]  # rows, parts, and a folder


@dataclass(frozen=True)
class Setting:
    """The rows of a micro-batch and the parts of a query, and the seconds that a micro-batch took."""

    rows: int
    parts: int
    seconds: float


def measured(
    scenario: str, spark: SparkSession, tick: Tick, start: Start, parts: tuple[int, int], held_out: int
) -> list[Result]:
    """The costs of a kind of query, fitted to settings with few and many rows and parts, and checked with another."""
    settings = [(rows, part) for rows in ROWS for part in parts]
    batch_seconds(spark, start, *settings[0])  # lets the JVM and the workers warm up
    timed = []
    for number, (rows, part) in enumerate([*settings, (HELD_OUT_ROWS, held_out)]):
        timed.append(Setting(rows, part, batch_seconds(spark, start, rows, part)))
        tick(number + 1, len(settings) + 1)
    cores = spark.sparkContext.defaultParallelism
    batch, row, part_cost = fitted(timed[:-1], cores)
    checked = timed[-1]
    expected = batch + checked.rows * (row + checked.parts * part_cost) / cores
    note = f"{len(settings)} settings with {ROWS[0]:,} and {ROWS[1]:,} rows, median of {BATCHES} micro-batches each"
    task = task_seconds(spark)
    return [
        claim(scenario, BATCH, max(batch - cores * task, 0.0), "is shown", holds=True, note=f"seconds; {note}"),
        claim(scenario, TASK, task, "is shown", holds=True, note="seconds of the driver, of empty tasks"),
        claim(scenario, ROW, row, "is shown", holds=True, note="core-seconds"),
        claim(scenario, PART, part_cost, "is shown", holds=True, note="core-seconds of a row"),
        at_most(
            scenario,
            "error of the model, held out",
            abs(expected / checked.seconds - 1),
            ALLOWED_ERROR,
            f"{checked.rows:,} rows, {checked.parts} parts: {checked.seconds:.2f} s, by the model {expected:.2f} s",
        ),
    ]


def fitted(settings: Sequence[Setting], cores: int) -> tuple[float, float, float]:
    """Seconds of a micro-batch without rows, core-seconds of a row, and of a row for each part; none is negative.

    >>> settings = [Setting(100, 1, 2.0), Setting(200, 1, 3.0), Setting(100, 3, 4.0), Setting(200, 3, 7.0)]
    >>> [round(cost, 4) for cost in fitted(settings, cores=2)]
    [1.0, 0.0, 0.02]
    """
    rows = np.array([setting.rows for setting in settings], float)
    parts = np.array([setting.parts for setting in settings], float)
    seconds = np.array([setting.seconds for setting in settings])
    terms = np.column_stack([np.ones(rows.size), rows / cores, rows * parts / cores])
    terms /= seconds[:, None]  # small and large micro-batches count alike
    costs, used = np.zeros(3), [0, 1, 2]
    while used:
        found = np.linalg.lstsq(terms[:, used], np.ones(rows.size))[0]
        if found.min() >= 0:
            costs[used] = found
            break
        del used[int(found.argmin())]  # a term that explains nothing
    return float(costs[0]), float(costs[1]), float(costs[2])


def batch_seconds(spark: SparkSession, start: Start, rows: int, parts: int) -> float:
    """The median time of micro-batches, after some that are not counted."""
    with tempfile.TemporaryDirectory(prefix="thalweg-load-", ignore_cleanup_errors=True) as folder:
        query = start(spark, lambda number: stream_of(spark, folder, number), rows, parts, folder)
        query.awaitTermination()
        done = [progress for progress in query.recentProgress if progress.numInputRows]
        return median(progress.durationMs["triggerExecution"] for progress in done[WARM_UP:]) / 1000


def stream_of(spark: SparkSession, folder: str, rows: int) -> DataFrame:
    """A stream of files with so many rows a micro-batch, each a second of event time later than the one before."""
    path, batches = Path(folder, f"rows-{rows}"), WARM_UP + BATCHES
    if not path.exists():
        frame = spark.range(0, rows * batches, 1, FILES * batches)
        timed = frame.selectExpr("id AS value", f"timestamp_seconds(1700000000 + id div {rows}) AS timestamp")
        timed.write.parquet(str(path))
        for number, file in enumerate(sorted(path.glob("part-*"))):
            os.utime(file, (10**9 + number, 10**9 + number))  # the order in which the stream reads them
    reader = spark.readStream.schema("value long, timestamp timestamp").option("maxFilesPerTrigger", FILES)
    return reader.parquet(str(path))


def task_seconds(spark: SparkSession) -> float:
    """The time that each further task of a job takes, of tasks that do nothing."""
    times: dict[int, float] = {}
    for tasks in (FEW_TASKS, MANY_TASKS):
        taken = []
        for _ in range(JOBS + 1):
            begin = time.perf_counter()
            spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()
            taken.append(time.perf_counter() - begin)
        times[tasks] = median(taken[1:])
    return max(times[MANY_TASKS] - times[FEW_TASKS], 0.0) / (MANY_TASKS - FEW_TASKS)

"""growth: ten times the window, with as many matches; a new row should not take much longer.

Only batches with full windows are measured. While windows fill, they double their memory now and then, which costs a
long window as much a row as a short window, but not in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick, part_of
from thalweg_lab.benches.joins.cells import drive, prepared
from thalweg_lab.benches.joins.streams import files, run, thalweg_join
from thalweg_lab.benches.joins.work import JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "growth"
STREAMS = ("A", "B", "C", "D")
ROWS, WINDOW, GROWN, BATCHES, ROUNDS = 20_000, 5, 50, 20, 3
SPARK_ROWS, SPARK_BATCHES, SPARK_ROUNDS = 50_000, 5, 2
PARTS, SETTLING = 5, 4  # in which windows are filled; batches after that, until as many rows go as come
BOUND = 1.5


def measure(
    spark: SparkSession | None, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, rounds: int = ROUNDS
) -> list[Result]:
    """Full windows of either size in turn: in one cell, and in a streaming query if there is a Spark."""
    parts = 1 if spark is None else 2
    contenders = {window: partial(_in_cell, _workload(window, rows, batches)) for window in (WINDOW, GROWN)}
    seconds = _in_turns(contenders, rounds, part_of(tick, 0, parts))
    results = [_result("one cell", seconds, (rows, batches, rounds), "processor time")]
    if spark is not None:
        counts = SPARK_ROWS, SPARK_BATCHES, SPARK_ROUNDS
        contenders = {w: partial(_in_query, spark, _workload(w, *counts[:2])) for w in (WINDOW, GROWN)}
        contenders[WINDOW]()  # warms the machine up
        seconds = _in_turns(contenders, SPARK_ROUNDS, part_of(tick, 1, parts))
        results.append(_result("a query on Spark", seconds, counts, "state and planning included"))
    return results


def _workload(window: int, rows: int, batches: int) -> JoinWorkload:
    streams = {name: StreamKeys({"k": rows * window}, rows) for name in STREAMS}
    made = random_batches(streams, SETTLING + batches, [window // PARTS] * PARTS)
    return JoinWorkload(on=(tuple((name, "k") for name in STREAMS),), window=window, batches=made)


def _in_cell(workload: JoinWorkload) -> float:
    return drive(workload.query, prepared(workload)).measurement(PARTS + SETTLING).seconds


def _in_query(spark: SparkSession, workload: JoinWorkload) -> float:
    with files(workload) as folder:
        return run(spark, folder, workload, thalweg_join, skip=PARTS + SETTLING).seconds


def _in_turns(contenders: Mapping[int, Callable[[], float]], rounds: int, tick: Tick) -> dict[int, list[float]]:
    seconds: dict[int, list[float]] = {window: [] for window in contenders}
    turns = [window for _ in range(rounds) for window in contenders]
    for number, window in enumerate(turns):
        seconds[window].append(contenders[window]())
        tick(number + 1, len(turns))
    return seconds


def _result(where: str, seconds: Mapping[int, list[float]], counts: tuple[int, int, int], how: str) -> Result:
    rows, batches, rounds = counts
    small, large = (median(seconds[window]) / (batches * rows * len(STREAMS)) for window in (WINDOW, GROWN))
    note = (
        f"4 streams, {rows:,} rows a stream and batch, windows of {WINDOW} and {GROWN} batches; medians of {rounds} "
        f"rounds, {1e9 * small:.0f} and {1e9 * large:.0f} ns a row, {how}"
    )
    measure = f"{where}: time a new row with a window ten times as long, times"
    return at_most(NAME, measure, large / small, BOUND, note)

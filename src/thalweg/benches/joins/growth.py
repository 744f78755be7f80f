"""growth: ten times the window, with as many matches; a new row should not take much longer."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from thalweg.benches.filters.race import Tick
from thalweg.benches.joins.cells import drive, prepared
from thalweg.benches.joins.work import Keys, Workload, random_batches
from thalweg.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "growth"
STREAMS = ("A", "B", "C", "D")
ROWS, WINDOW, GROWN, BATCHES, ROUNDS = 20_000, 5, 50, 20, 3
PARTS = 5  # in which windows are filled


def measure(
    spark: SparkSession | None, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, rounds: int = ROUNDS
) -> list[Result]:
    """One cell with full windows of either size, in turn."""
    del spark  # what grows is the cell
    contenders = {}
    for window in (WINDOW, GROWN):
        streams = {name: Keys({"k": rows * window}, rows) for name in STREAMS}
        batch_list = random_batches(streams, batches, [window // PARTS] * PARTS)
        workload = Workload(on=(tuple((name, "k") for name in STREAMS),), window=window, batches=batch_list)
        contenders[window] = partial(drive, workload.query, prepared(workload))
    seconds: dict[int, list[float]] = {window: [] for window in contenders}
    turns = [window for _ in range(rounds) for window in contenders]
    for number, window in enumerate(turns):
        seconds[window].append(contenders[window]().run(PARTS).seconds)
        tick(number + 1, len(turns))
    small, large = (median(seconds[window]) / (batches * rows * len(STREAMS)) for window in (WINDOW, GROWN))
    note = (
        f"4 streams, {rows:,} rows a stream and batch, windows of {WINDOW} and {GROWN} batches; medians of {rounds} "
        f"rounds, {1e9 * small:.0f} and {1e9 * large:.0f} ns a row, processor time"
    )
    return [at_most(NAME, "time a new row with a window ten times as long, times", large / small, 1.5, note)]

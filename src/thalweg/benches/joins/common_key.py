"""common-key: four streams on one key, a match in each on average."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from thalweg.benches.filters.race import AGAIN, THALWEG, Tick, race
from thalweg.benches.joins.streams import SPARK, chained_join, files, run, thalweg_join
from thalweg.benches.joins.work import FILL, Keys, Workload, random_batches
from thalweg.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "common-key"
STREAMS = ("A", "B", "C", "D")
ROWS, WINDOW, BATCHES = 100_000, 10, 3  # rows a stream and batch; batches a window; batches that count


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows, and the bytes of state."""
    streams = {name: Keys({"k": rows * WINDOW}, rows) for name in STREAMS}
    workload = Workload(
        on=(tuple((name, "k") for name in STREAMS),),
        window=WINDOW,
        batches=random_batches(streams, batches, FILL),
    )
    about: dict[str, Any] = {}
    with files(workload) as folder:
        contenders = {
            THALWEG: partial(run, spark, folder, workload, thalweg_join, about),
            AGAIN: partial(run, spark, folder, workload, thalweg_join),
            SPARK: partial(run, spark, folder, workload, chained_join(STREAMS)),
        }
        note = f"4 streams, {rows:,} rows a stream and batch, windows of {WINDOW} batches, {batches} batches counted"
        found = race(NAME, contenders, 1, tick, note)
    in_windows = sum(one["rows_in_state"] * workload.row_bytes(name) for name, one in about["inputs"].items())
    state = at_most(
        NAME,
        "bytes of state for each byte of the windows' rows",
        about["state_bytes"] / in_windows,
        1.3,
        f"{about['state_bytes']:,} bytes for {in_windows:,}",
    )
    return [found.faster(SPARK, 8), state, found.control()]

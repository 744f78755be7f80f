"""common-key: four streams on one key, a match in each on average."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.streams import against_spark
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "common-key"
STREAMS = ("A", "B", "C", "D")
ROWS, WINDOW, BATCHES = 100_000, 10, 10  # rows a stream and batch; batches a window; batches that count


def make_workload(rows: int, batches: int) -> JoinWorkload:
    """A row matches one row in the window of each other stream."""
    streams = {name: StreamKeys({"k": rows * WINDOW}, rows) for name in STREAMS}
    return JoinWorkload(
        on=(tuple((name, "k") for name in STREAMS),), window=WINDOW, batches=random_batches(streams, batches, FILL)
    )


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows, and the bytes of state."""
    about: dict[str, Any] = {}
    results = against_spark(spark, tick, NAME, make_workload, (rows, batches), 20, about)
    row_bytes = make_workload(1, 0).row_bytes
    in_windows = sum(window["rows_in_state"] * row_bytes(name) for name, window in about["inputs"].items())
    state = at_most(
        NAME,
        "bytes of state for each byte of the windows' rows",
        about["state_bytes"] / in_windows,
        1.3,
        f"{about['state_bytes']:,} bytes for {in_windows:,}",
    )
    return [*results, state]

"""memory: a session whose cap is half of what its queries want, against the same session without a cap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.session.contenders import run_capped
from thalweg_lab.benches.session.work import STREAMS, TEN, Packets, files
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "memory"
ROWS, BATCHES = 100_000, 4  # rows a stream and micro-batch


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """What jobs hold at most, and whether results are the same."""
    with files(Packets({name: [rows] * batches for name in STREAMS})) as folder:
        free, records = run_capped(spark, folder, TEN, None)
        tick(1, 2)
        wanted = max(record.wanted_memory for record in records)
        cap = wanted // 2
        capped, records = run_capped(spark, folder, TEN, cap)
        tick(2, 2)
    held = max(record.held_memory for record in records)
    jobs = max(len(record.jobs) for record in records)
    note = (
        f"{len(TEN)} queries want {wanted:,} bytes of rows, the cap is {cap:,}: up to {jobs} jobs a micro-batch; "
        f"{free.seconds:.1f} s without a cap, {capped.seconds:.1f} s with it"
    )
    lost = 0 if (free.rows, free.checksum) == (capped.rows, capped.checksum) else 1
    return [
        at_most(NAME, "bytes held, as a share of the cap", held / cap, 1.1, note),
        at_most(NAME, "results that differ from those without a cap", lost, 0, f"{free.rows:,} result rows"),
    ]

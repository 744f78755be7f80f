"""faults: 10% errors, 1% hangs and an outage of ten seconds; nothing is lost, nothing is asked twice beyond retries."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from thalweg_lab.benches.waiting.service import running_service
from thalweg_lab.benches.waiting.workload import (
    PARTITIONS,
    SERVICES,
    kept_by,
    kept_locally,
    local_tests,
    predicates_of,
)
from thalweg_lab.results import Result, at_most, exactly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "faults"
ROWS = 20_000
RETRIES, TIMEOUT = 5, 1.0
OUTAGE = (2.0, 12.0)  # seconds after the first call


def measure(spark: SparkSession, tick: Callable[[int, int], None], *, rows: int = ROWS) -> list[Result]:
    """Rows that are neither in the result nor in quarantine, and calls beyond answers and failures."""
    import thalweg as tw

    tests = local_tests()
    right = set(kept_by("slow", kept_by("fast", kept_locally(rows, tests))))
    behaviours = {name: replace(each, errors=0.1, hangs=0.01, outage=OUTAGE) for name, each in SERVICES.items()}
    with running_service() as service, tempfile.TemporaryDirectory() as folder:
        service.set_up(**behaviours)
        predicates = predicates_of(service.port, tests, retries=RETRIES, timeout=TIMEOUT, cache="worker")
        kept = tw.where(
            spark.range(0, rows, 1, PARTITIONS),
            *predicates,
            on_error="quarantine",
            quarantine=folder,
            quarantine_columns=["id"],
        )
        found = [row["id"] for row in kept.collect()]
        quarantined = _quarantined(folder)
        counts = service.counts()
    tick(1, 1)
    unanswered = sum(
        counts[name]["calls"] - counts[name]["failures"] - counts[name]["rows"] for name in SERVICES
    )  # answers beyond one a row; below 0 where rows have none
    return [
        exactly(NAME, "rows lost", len(right - set(found) - quarantined), 0, f"{len(quarantined)} quarantined"),
        exactly(NAME, "rows that are wrong or there twice", len(found) - len(right & set(found)), 0),
        exactly(NAME, "most answers for a row", max(counts[name]["most_answers"] for name in SERVICES), 1),
        at_most(NAME, "most calls for a row", max(counts[name]["most_attempts"] for name in SERVICES), RETRIES + 1),
        at_most(NAME, "answers beyond one a row", unanswered, 0),
    ]


def _quarantined(folder: str) -> set[int]:
    from pyarrow import parquet

    return set(parquet.read_table(folder).column("id").to_pylist()) if any(_files(folder)) else set()


def _files(folder: str) -> list[str]:
    from pathlib import Path

    return [path.name for path in Path(folder).glob("*.parquet")]

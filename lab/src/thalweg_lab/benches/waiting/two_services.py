"""two-services: against a pandas UDF with as many threads in the written order, and calls against the best order's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from thalweg_lab.benches.waiting import thread_pool
from thalweg_lab.benches.waiting.service import running_service
from thalweg_lab.benches.waiting.workload import (
    CONCURRENCY,
    PARTITIONS,
    SERVICES,
    kept_by,
    kept_locally,
    local_tests,
    predicates_of,
)
from thalweg_lab.results import Result, at_least, at_most, exactly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "two-services"
ROWS = 100_000
FEW_ROWS = 4_000  # for the thread pool, whose time is in proportion to its rows


def measure(
    spark: SparkSession, tick: Callable[[int, int], None], *, rows: int = ROWS, few: int = FEW_ROWS
) -> list[Result]:
    """Rows a second of both, and the calls of `tw.where`."""
    import thalweg as tw

    tests = local_tests()
    reached = kept_locally(rows, tests)
    kept = kept_by("fast", reached)
    best_calls, right = len(reached) + len(kept), kept_by("slow", kept)
    note = f"{rows:,} rows, {PARTITIONS} workers with {CONCURRENCY} calls each; the thread pool has {few:,} rows"
    with running_service() as service:
        service.set_up(**SERVICES)
        frame = spark.range(0, rows, 1, PARTITIONS)
        spark.range(0, 100, 1, PARTITIONS).mapInArrow(lambda batches: batches, "id long").count()  # workers start
        before = time.perf_counter()
        found = [row["id"] for row in tw.where(frame, *predicates_of(service.port, tests)).collect()]
        seconds, counts = time.perf_counter() - before, service.counts()
        tick(1, 2)
        service.set_up(**SERVICES)
        before = time.perf_counter()
        plain = thread_pool.where(spark.range(0, few, 1, PARTITIONS), service.port, tests, CONCURRENCY).collect()
        plain_seconds = time.perf_counter() - before
        tick(2, 2)
    calls = sum(counts[name]["calls"] for name in SERVICES)
    are_right = sorted(found) == right and sorted(row["id"] for row in plain) == [row for row in right if row < few]
    speed = rows / seconds * plain_seconds / few
    return [
        at_least(NAME, "rows a second, against a pandas UDF with threads", speed, 10, note),
        at_most(NAME, "calls, against the best order's", calls / best_calls, 1.03, f"{calls:,} of {best_calls:,}"),
        exactly(NAME, "rows", "right" if are_right else "wrong", "right", f"{seconds:.1f} s"),
    ]

"""rate: two workers never ask a service more often than its rate, which is far below what they could."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from thalweg_lab.benches.waiting.service import running_service
from thalweg_lab.benches.waiting.workload import FAST, PARTITIONS, SERVICES, local_tests, predicates_of
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "rate"
ROWS = 20_000
RATE = 200.0  # calls a second, of each service; two workers could make 1280 of the fast


def measure(spark: SparkSession, tick: Callable[[int, int], None], *, rows: int = ROWS) -> list[Result]:
    """The most calls that came within any second."""
    import thalweg as tw

    tests = local_tests()
    with running_service() as service:
        service.set_up(**SERVICES)
        tw.where(spark.range(0, rows, 1, PARTITIONS), *predicates_of(service.port, tests, rate=RATE)).count()
        counts = service.counts()
    tick(1, 1)
    note = f"{RATE:g} calls a second of each service for {PARTITIONS} workers; {FAST.seconds:g} s a call"
    most = max(counts[name]["most_in_a_second"] for name in SERVICES)
    return [
        at_most(NAME, "most calls in any second, against the rate", most / RATE, 1, note),
        at_least(NAME, "most calls in any second, against the rate", most / RATE, 0.8, "the rate is used"),
    ]

"""tokens: the order minimises the tokens that answers cost, though the dear service is the faster one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from thalweg_lab.benches.waiting.service import running_service
from thalweg_lab.benches.waiting.workload import (
    FAST,
    PARTITIONS,
    SERVICES,
    SLOW,
    kept_by,
    kept_locally,
    local_tests,
    predicates_of,
)
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "tokens"
ROWS = 100_000


def measure(spark: SparkSession, tick: Callable[[int, int], None], *, rows: int = ROWS) -> list[Result]:
    """Tokens, against the tokens of the best order."""
    import thalweg as tw

    tests = local_tests()
    reached = kept_locally(rows, tests)
    best = min(
        len(reached) * first.tokens + len(kept_by(name, reached)) * second.tokens
        for name, first, second in (("fast", FAST, SLOW), ("slow", SLOW, FAST))
    )
    with running_service() as service:
        service.set_up(**SERVICES)
        tw.where(spark.range(0, rows, 1, PARTITIONS), *predicates_of(service.port, tests, tells=True)).count()
        tokens = service.counts()["tokens"]
    tick(1, 1)
    return [at_most(NAME, "tokens, against the best order's", tokens / best, 1.03, f"{tokens:,} of {best:,}")]

"""Measures what a micro-batch costs, for filters, joins and sessions, and how well a simple model tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "load"
SUMMARY = "What rows, predicates, streams, queries and tasks cost, for `thalweg size`"
SCENARIOS = ("filters", "join", "session")


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    settings = {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    return run_scenarios(__name__, (scenario,) if scenario else SCENARIOS, progress, settings)

"""Measures rates, latency and lag of filters, joins and sessions, and the costs of the model of `thalweg size`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "load"
SUMMARY = "The highest rates, latency and lag, and what rows, predicates, streams, queries and tasks cost"
SCENARIOS = ("filters", "join", "session", "cores", "filters-rate", "join-rate", "session-rate")
SETTINGS: dict[str, Any] = {
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    return run_scenarios(__name__, (scenario,) if scenario else SCENARIOS, progress, SETTINGS)

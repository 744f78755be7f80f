"""Benchmarks of `tw.Session`, one scenario a file: throughput, latency and what choosing plans costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "session"
SUMMARY = "tw.Session against Spark's streaming queries, a program that shares by hand, fixed plans and a clairvoyant"
SCENARIOS = ("ten", "hundred", "bursty", "latency", "overhead", "memory")


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    settings = {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
    }
    return run_scenarios(__name__, (scenario,) if scenario else SCENARIOS, progress, settings)

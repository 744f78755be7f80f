"""Benchmarks of `tw.where` on Spark, one scenario a file: against plain Spark, other policies and the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "filters"
SUMMARY = "tw.where against plain Spark, other policies, the best fixed order and orders that know each change"
SCENARIOS = (
    "python-costly",
    "python-costly-page",
    "python-correlated",
    "python-proxy",
    "python-drift",
    "native-worst",
    "native-stream-drift",
    "lookups",
    "repeated",
    "no-harm",
)


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    return run_scenarios(__name__, (scenario,) if scenario else SCENARIOS, progress)

"""Benchmarks of `tw.where(route_by=...)` on Spark, one scenario a file: against one adaptive order for all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "routing"
SUMMARY = (
    "an order for each class of rows against one order: with skew, without, among decoys, in Spark, in a star join"
)
SCENARIOS = ("skew", "no-skew", "decoys", "native", "star")


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    return run_scenarios(__name__, (scenario,) if scenario else SCENARIOS, progress)

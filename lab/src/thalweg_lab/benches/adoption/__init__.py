"""Benchmarks of programs as people have them, after `tw.adapt` or `tw.enable` alone: UDFs, SQL text, TPC-H."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab import tpch
from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "adoption"
SUMMARY = "tw.adapt on conditions as people write them, against tw.where with predicates made by hand and plain Spark"
TPCH_QUERIES = "tpch-queries"
SCENARIOS = ("udfs-costly", "text-native", "enabled-example", "small-calls", TPCH_QUERIES)


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    chosen = (scenario,) if scenario else SCENARIOS
    if TPCH_QUERIES in chosen:
        tpch.check_installed()  # before the other scenarios run for minutes
    return run_scenarios(__name__, chosen, progress)

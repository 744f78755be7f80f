"""Benchmarks of `tw.join`, one scenario a file: against Spark's chained joins, fixed orders and a clairvoyant.

The scenario kills runs only if it is asked for, as a hundred kills take most of an hour. The scenario peers needs
Apache Flink, and is left out where `FLINK_PYTHON` names no interpreter.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "joins"
FLINK_PYTHON = "THALWEG_FLINK_PYTHON"  # the environment variable that names an interpreter with apache-flink
SUMMARY = (
    "tw.join against Spark's own chained stream-stream joins, the best fixed orders and orders that know each change"
)
SCENARIOS = (
    "common-key",
    "chain",
    "cycle",
    "amplifying",
    "two-way",
    "two-way-outer",
    "small",
    "skewed",
    "drift",
    "drift-hub-first",
    "growth",
    "ablation",
    "skew",
    "overload",
    "micro-batch",
    "kills",
    "peers",
)


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    # A core each for two cells; the time zone is that of the files.
    settings = {
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
    }
    left_out = {"kills"} if FLINK_PYTHON in os.environ else {"kills", "peers"}
    every = tuple(name for name in SCENARIOS if name not in left_out)
    return run_scenarios(__name__, (scenario,) if scenario else every, progress, settings)

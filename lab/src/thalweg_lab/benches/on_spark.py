"""Runs the scenarios of a benchmark on Spark: modules of a package, each with a function `measure(spark, tick)`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

DEFAULTS = {"spark.driver.memory": "4g"}
STEPS = 100  # of progress in a scenario


def run_scenarios(
    package: str, scenarios: tuple[str, ...], progress: Progress, settings: Mapping[str, Any] = DEFAULTS
) -> list[Result]:
    """Measure scenarios of a package, one after the other, in one session with these settings."""
    from thalweg.spark.start import spark_session

    progress(0, STEPS * len(scenarios), "starts Spark")
    spark = spark_session(f"thalweg-bench-{package.rpartition('.')[2]}", **settings)
    results: list[Result] = []
    for number, name in enumerate(scenarios):

        def tick(done: int, total: int, number: int = number, name: str = name) -> None:
            progress(STEPS * number + STEPS * done // total, STEPS * len(scenarios), name)

        tick(0, 1)
        measure = import_module(f"{package}.{name.replace('-', '_')}").measure
        results += measure(spark, tick)
    progress(STEPS * len(scenarios), STEPS * len(scenarios))
    return results

"""Benchmarks of `tw.where` on Spark, one scenario a file: against plain Spark, other policies and the optimum."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thalweg.results import Result

if TYPE_CHECKING:
    from thalweg.benches import Progress

NAME = "filters"
SUMMARY = "tw.where against plain Spark, other policies, the best fixed order and one that knows each change"
SCENARIOS = (
    "python-costly",
    "python-correlated",
    "python-proxy",
    "python-drift",
    "native-worst",
    "native-stream-drift",
    "lookups",
    "no-harm",
)

STEPS = 100  # of progress that a scenario counts for


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all."""
    from thalweg.spark.session import local_session

    chosen = [scenario] if scenario else list(SCENARIOS)
    progress(0, STEPS * len(chosen), "starts Spark")
    conf: dict[str, Any] = {"spark.driver.memory": "4g"}
    spark = local_session("thalweg-bench-filters", **conf)
    results: list[Result] = []
    for number, name in enumerate(chosen):

        def tick(done: int, total: int, number: int = number, name: str = name) -> None:
            progress(STEPS * number + STEPS * done // total, STEPS * len(chosen), name)

        tick(0, 1)
        measure = import_module(f"{__name__}.{name.replace('-', '_')}").measure
        results += measure(spark, tick)
    progress(STEPS * len(chosen), STEPS * len(chosen))
    return results

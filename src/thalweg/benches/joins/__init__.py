"""Benchmarks of `tw.join`, one scenario a file: against Spark's chained joins, fixed orders and a clairvoyant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thalweg.results import Result

if TYPE_CHECKING:
    from thalweg.benches import Progress

NAME = "joins"
SUMMARY = (
    "tw.join against Spark's own chained stream-stream joins, the best fixed orders and one that knows each change"
)
SCENARIOS = ("common-key", "chain", "cycle", "amplifying", "drift", "growth", "ablation")

CELLS_ONLY = ("drift", "growth", "ablation")  # need no Spark
STEPS = 100  # of progress that a scenario counts for


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all."""
    from thalweg.spark.session import local_session

    chosen = [scenario] if scenario else list(SCENARIOS)
    needs_spark = any(name not in CELLS_ONLY for name in chosen)
    progress(0, STEPS * len(chosen), "starts Spark" if needs_spark else "")
    # A core each for two cells; the time zone is that of the files.
    conf: dict[str, Any] = {
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
    }
    spark = local_session("thalweg-bench-joins", **conf) if needs_spark else None
    results: list[Result] = []
    for number, name in enumerate(chosen):

        def tick(done: int, total: int, number: int = number, name: str = name) -> None:
            progress(STEPS * number + STEPS * done // total, STEPS * len(chosen), name)

        tick(0, 1)
        measure = import_module(f"{__name__}.{name.replace('-', '_')}").measure
        results += measure(spark, tick)
    progress(STEPS * len(chosen), STEPS * len(chosen))
    return results

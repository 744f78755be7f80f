"""enabled-example: an example of the repository in plain Spark, as it is and after `tw.enable`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "enabled-example"
ROWS, ROUNDS, TRIES = 1_000_000, 5, 3  # of half a second each: a slow moment of the machine is longer
EXAMPLE = Path(__file__).parents[5] / "examples" / "plain_spark.py"

PLAIN = "plain Spark"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """The program's own function, with its session enabled and without."""
    import thalweg as tw

    example = load_example()

    def enabled(_frame: DataFrame) -> DataFrame:
        tw.enable(spark)
        try:
            return example.screen(spark, rows)  # type: ignore[no-any-return]
        finally:
            tw.disable(spark)

    contenders = {THALWEG: enabled, AGAIN: enabled, PLAIN: lambda _frame: example.screen(spark, rows)}
    note = f"{rows:,} rows, examples/{EXAMPLE.name}"
    found = compete(NAME, spark.range(1), contenders, rounds, tick, note, tries=TRIES)
    return [found.slower(PLAIN, 1.1), found.control()]


def load_example() -> ModuleType:
    """The example as a module, whose functions go to workers by value: workers cannot import it."""
    from pyspark import cloudpickle

    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{EXAMPLE} is not there: run the benchmark in the repository")
    module = importlib.util.module_from_spec(spec)
    sys.modules[EXAMPLE.stem] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module

"""filters-rate: the highest rate that `filters` sustains, and latency and lag at 50, 80 and 95% of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.filters import EFFORT, FILTERS
from thalweg_lab.benches.load.loaded_query import Setting
from thalweg_lab.benches.load.rate import measured_rate
from thalweg_lab.benches.load.sweep import Effort
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = Setting(8)


def measure(spark: SparkSession, tick: Tick, *, effort: Effort = EFFORT) -> list[Result]:
    """The highest rate, and what rows take at shares of it."""
    return measured_rate(spark, FILTERS, SETTING, effort, tick)

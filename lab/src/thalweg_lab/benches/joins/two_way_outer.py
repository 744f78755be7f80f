"""two-way-outer: the streams of two-way, in a left outer join."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.streams import against_spark
from thalweg_lab.benches.joins.two_way import BATCHES, ROWS, TARGET, make_workload
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "two-way-outer"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Throughput with full windows, against Spark with its default state store."""
    make = partial(make_workload, how="left")
    return against_spark(spark, tick, NAME, make, (rows, batches), TARGET)

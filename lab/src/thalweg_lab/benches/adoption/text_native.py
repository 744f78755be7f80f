"""text-native: the conditions of native-worst as one SQL text, in the worst order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.native_worst import COLUMNS, WRITTEN
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "text-native"
ROWS, ROUNDS = 20_000_000, 5

BY_HAND, PLAIN = "tw.where with conditions by hand", "plain Spark"
VIEW = "adoption_rows"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """`tw.adapt(spark.sql(...))`, with the sample in its time, against the same by hand, and against plain Spark."""
    import thalweg as tw

    frame = spark.range(0, rows, 1, 2).selectExpr(*COLUMNS)
    frame.createOrReplaceTempView(VIEW)
    text = f"SELECT * FROM {VIEW} WHERE {' AND '.join(WRITTEN)}"  # noqa: S608 - of constants

    def adapted(_frame: DataFrame) -> DataFrame:
        return tw.adapt(spark.sql(text))

    contenders = {
        THALWEG: adapted,
        AGAIN: adapted,
        BY_HAND: lambda frame: tw.where(frame, *WRITTEN),
        PLAIN: lambda _frame: spark.sql(text),
    }
    found = compete(NAME, frame, contenders, rounds, tick, f"{rows:,} rows, {text}")
    return [found.faster(PLAIN, 4), found.faster(BY_HAND, 0.95), found.control()]

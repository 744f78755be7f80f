"""Filters and joins that Spark analyses at once keep the rows that they keep one by one."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from thalweg.spark.filters.steps import KeyJoin, Step, _applied, _applied_at_once, apply_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_steps_at_once_are_the_steps_one_by_one(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    frame = spark.range(100).selectExpr("id", "if(id % 10 = 0, NULL, id % 7) AS k", "cast(id % 5 AS string) AS s")
    numbers = f.broadcast(spark.createDataFrame([(1,), (2,), (3,), (4,)], "number long"))
    texts = f.broadcast(spark.createDataFrame([("1",), ("2",)], "text string"))
    steps: list[Step] = [
        f.col("id") > 10,
        KeyJoin(numbers, f.col("k") == f.col("number"), "left_semi"),
        f.col("k") < 4,
        KeyJoin(texts, f.col("s") == f.col("text"), "left_anti"),
    ]
    at_once, one_by_one = apply_steps(frame, steps), reduce(_applied, steps, frame)
    assert at_once.columns == one_by_one.columns == frame.columns
    expected = sorted(one_by_one.collect())
    assert sorted(at_once.collect()) == sorted(_applied_at_once(frame, steps).collect()) == expected != []


def test_no_step_leaves_the_dataframe_as_it_is(spark: SparkSession) -> None:
    frame = spark.range(3)
    assert apply_steps(frame, []) is frame

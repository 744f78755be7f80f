from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg.spark.analysis.catalyst import Catalyst, facts_of
from thalweg.spark.analysis.harmless import Node

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def condition_of(text: str) -> Column:
    from pyspark.sql import functions as f

    return f.expr(text)


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(3000).selectExpr(
        "id",
        "cast(id as int) as i",
        "cast(id as string) as s",
        "cast(id as double) as d",
        "named_struct('x', id) as nested",
        "timestamp_seconds(id) as at",
    )


@pytest.mark.parametrize(
    ("condition", "safe", "cheap"),
    [
        ("id > 5", True, True),
        ("i > 5 and d < 3.5 or s is null", True, True),
        ("id in (1, 2, 3)", True, True),
        ("id between 1 and 3", True, True),
        ("id % 3 = 0", True, True),
        ("nested.x > 3", True, True),
        ("at > timestamp'2020-01-01'", True, True),
        ("s = 'x'", True, True),
        ("s rlike '^1'", True, False),
        ("s like '%1'", True, False),
        ("upper(s) = 'X' and length(s) > 3", True, False),
        ("s rlike s", False, False),  # a pattern that may be malformed in some row
        ("s > 5", False, False),  # a text that may be no number
        ("cast(s as int) > 5", False, False),
        ("1 / id > 5", False, False),
        ("id % i = 0", False, False),
        ("id + 1 > 5", False, False),  # may overflow
        ("cast(raise_error('no') as boolean)", False, False),
    ],
)
def test_what_can_raise_and_what_is_cheap_is_known(
    frame: DataFrame,
    condition: str,
    safe: bool,  # noqa: FBT001
    cheap: bool,  # noqa: FBT001
) -> None:
    (facts,) = facts_of(frame, [condition_of(condition)])
    assert (facts.safe, facts.cheap) == (safe, cheap)
    assert facts.deterministic


def test_constants_are_cheap_and_folded(frame: DataFrame) -> None:
    conditions = [
        "at >= current_date() - 7",
        "id > 1 + 1",
        "i % cast('3' as int) = 0",
        "s = date_format(now(), 'yyyy')",
    ]
    facts = facts_of(frame, [condition_of(condition) for condition in conditions])
    assert [(fact.safe, fact.cheap) for fact in facts] == [(True, True)] * len(conditions)


def test_a_divisor_that_depends_on_the_day_is_not_folded(frame: DataFrame) -> None:
    conditions = ["id / (day(current_date()) - 16) > 1", "id / (hour(cast('10:00' as timestamp)) - 11) > 1"]
    facts = facts_of(frame, [condition_of(condition) for condition in conditions])
    assert [fact.safe for fact in facts] == [False, False]


def test_a_constant_that_raises_is_no_error_of_the_analysis(frame: DataFrame) -> None:
    (facts,) = facts_of(frame, [condition_of("i / 'abc' > 1")])
    assert not facts.safe


def test_columns_are_taken_from_the_tree(frame: DataFrame) -> None:
    conditions = ["nested.x > 3 and id < 5 and nested.x < 9", "1 < 2", "s = 'x'"]
    facts = facts_of(frame, [condition_of(condition) for condition in conditions])
    assert [fact.columns for fact in facts] == [("nested", "id"), (), ("s",)]


def test_conditions_on_dropped_columns_and_metadata(frame: DataFrame, tmp_path: Path) -> None:
    (facts,) = facts_of(frame.drop("i"), [frame.i > 1])
    assert (facts.safe, facts.columns) == (True, None)
    frame.limit(3).write.parquet(str(tmp_path / "rows"))
    stored = frame.sparkSession.read.parquet(str(tmp_path / "rows"))
    facts_of_both = facts_of(stored, [condition_of("_metadata.file_size > 3"), condition_of("id > 1")])
    assert [(fact.safe, fact.columns) for fact in facts_of_both] == [(True, None), (True, ("id",))]


def test_columns_whose_names_differ_in_case(spark: SparkSession) -> None:
    # Makes the session the active one of this thread, whose settings frame["k"] follows.
    numbers = spark.createDataFrame([(0,), (1,), (2,)], "id long")
    frame = numbers.select(numbers.id.alias("k"), (numbers.id * 2).alias("K"), numbers.id.alias("other"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        conditions = [condition_of("k > 1"), condition_of("K > 1 and other > 1")]
        assert [fact.columns for fact in facts_of(frame, conditions)] == [("k",), ("K", "other")]
        by_identity = [frame["k"] > 1, frame["other"] > 1]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [fact.columns for fact in facts_of(frame, by_identity)] == [None, ("other",)]


def test_a_column_that_occurs_twice_has_no_name(spark: SparkSession) -> None:
    numbers = spark.range(3)
    joined = numbers.alias("a").join(numbers.alias("b"), "id", "cross").select("a.id", "b.id")
    (facts,) = facts_of(joined, [condition_of("a.id > 1")])
    assert (facts.safe, facts.columns) == (True, None)


def test_a_long_disjunction(frame: DataFrame) -> None:
    (facts,) = facts_of(frame, [condition_of(" or ".join(f"id = {number}" for number in range(300)))])
    assert facts.columns == ("id",)


def test_a_version_of_spark_without_the_optimizers_rules() -> None:
    class Missing:
        def __getattr__(self, name: str) -> Missing:
            return self

    class Root:
        def apply(self, number: int) -> Root:
            return self

        def getClass(self) -> Root:  # noqa: N802 - as Java names it
            return self

        def getSimpleName(self) -> str:  # noqa: N802 - as above
            return "Cast"

    node = Node("Cast", {}, (), 0)
    assert Catalyst(Missing(), Root()).fold(node) is None


def test_what_is_random_is_known(frame: DataFrame) -> None:
    from pyspark.sql import functions as f

    python = f.udf(lambda x: x > 3, "boolean")("id")  # Spark runs it where it likes
    conditions = [condition_of("id > 3"), condition_of("rand() < 0.5"), python, condition_of("id > 3 and i > 4")]
    facts = facts_of(frame, conditions)
    assert [fact.deterministic for fact in facts] == [True, False, False, True]
    assert [fact.cheap for fact in facts] == [True, False, False, True]
    assert facts_of(frame, []) == []

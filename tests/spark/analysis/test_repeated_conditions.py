"""A condition that was analysed before is analysed again if anything has changed that its analysis depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw
from thalweg.spark.analysis import repeated_conditions
from thalweg.spark.analysis.catalyst import analyse

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROWS = 100


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS).selectExpr("id AS a", "id * 7 % 13 AS b", "cast(id AS string) AS s", "id / 3 AS d")


@pytest.fixture
def databases(spark: SparkSession) -> Iterator[list[str]]:
    """Two databases, each with a function of the same name, which keeps other rows."""
    names = ["early_rows", "late_rows"]
    for name, end in zip(names, (10, 20), strict=True):
        spark.sql(f"CREATE DATABASE {name}")
        spark.sql(f"CREATE FUNCTION {name}.is_kept(x BIGINT) RETURNS BOOLEAN RETURN x < {end}")
    yield names
    spark.sql("USE default")
    for name in names:
        spark.sql(f"DROP DATABASE {name} CASCADE")


def is_found_again(frame: DataFrame, make: Any) -> bool:  # noqa: ANN401 - a function that makes a Column
    """Whether the second of two calls takes over the analysis of the first."""
    analyse(frame, [make()])
    known = dict(repeated_conditions._conditions_on(frame))  # noqa: SLF001 - nothing else tells
    analyse(frame, [make()])
    return repeated_conditions._conditions_on(frame) == known and bool(known)  # noqa: SLF001 - as above


def test_conditions_that_depend_on_session_and_frame_alone_are_found_again(
    spark: SparkSession, frame: DataFrame
) -> None:
    from pyspark.sql import functions as f

    spark.udf.register("is_early", lambda a: a < 10, "boolean")
    is_even = f.udf(lambda a: a % 2 == 0, "boolean")
    conditions: list[Any] = [
        lambda: f.expr("a > 5 AND length(s) < 3 AND d < current_timestamp()::double"),
        lambda: f.expr("is_early(a) AND exists(array(a, b), x -> x > 3)"),
        lambda: (frame.a > 5) & is_even("b") & f.col("s").like("1%"),
    ]
    assert all(is_found_again(frame, condition) for condition in conditions)


def test_conditions_that_depend_on_more_are_analysed_in_every_call(
    spark: SparkSession, frame: DataFrame, databases: list[str]
) -> None:
    from pyspark.sql import functions as f

    spark.sql("DECLARE OR REPLACE VARIABLE least INT DEFAULT 3")
    try:
        texts = [
            "rand() < 0.5",
            "a > (SELECT 3)",
            "a > least",
            f"{databases[0]}.is_kept(a)",
            "IDENTIFIER('length')(s) > 1",
        ]
        found = [text for text in texts if is_found_again(frame, lambda text=text: f.expr(text))]
    finally:
        spark.sql("DROP TEMPORARY VARIABLE least")
    assert not found
    joined = frame.join(frame.select("a"), "a")
    assert not is_found_again(joined, lambda: f.expr("a > 3"))


def test_another_value_of_a_variable_is_seen(spark: SparkSession, frame: DataFrame) -> None:
    spark.sql("DECLARE OR REPLACE VARIABLE least INT")
    try:
        for least in (10, 30, 10):
            spark.sql(f"SET VARIABLE least = {least}")
            assert tw.where(frame, "a >= least AND b >= 0").count() == ROWS - least
    finally:
        spark.sql("DROP TEMPORARY VARIABLE least")


def test_another_view_in_a_subquery_is_seen(spark: SparkSession, frame: DataFrame) -> None:
    for rows in (10, 30, 10):
        spark.range(rows).createOrReplaceTempView("allowed")
        assert tw.where(frame, "a IN (SELECT id FROM allowed) AND b >= 0").count() == rows


def test_a_function_of_another_database_is_seen(spark: SparkSession, frame: DataFrame, databases: list[str]) -> None:
    for name, rows in [*zip(databases, (10, 20), strict=True), (databases[0], 10)]:
        spark.sql(f"USE {name}")
        assert tw.where(frame, "is_kept(a) AND b >= 0").count() == rows


def test_a_function_of_the_session_in_place_of_one_of_spark_is_seen(spark: SparkSession) -> None:
    session, text = spark.newSession(), "abs(a) < 10 AND b >= 0"
    session.conf.set("spark.sql.functionResolution.sessionOrder", "first")
    frame = session.range(ROWS).selectExpr("id AS a", "id AS b")
    assert tw.where(frame, text).count() == tw.where(frame, text).count() == 10
    session.udf.register("abs", lambda a: a // 2, "bigint")
    assert tw.where(frame, text).count() == frame.where(text).count() == 20


def test_a_function_that_is_gone_is_missed(spark: SparkSession, frame: DataFrame) -> None:
    from pyspark.errors import AnalysisException

    spark.udf.register("is_gone", lambda a: a < 10, "boolean")
    assert tw.where(frame, "is_gone(a) AND b >= 0").count() == tw.where(frame, "is_gone(a) AND b >= 0").count() == 10
    spark.sql("DROP TEMPORARY FUNCTION is_gone")
    with pytest.raises(AnalysisException):
        tw.where(frame, "is_gone(a) AND b >= 0")


def test_constants_of_other_types_are_told_apart(frame: DataFrame) -> None:
    from pyspark.sql import functions as f

    def is_whole(value: float) -> Column:
        return (f.typeof(f.lit(value)) == "int") & (f.col("b") >= 0)

    assert [tw.where(frame, is_whole(value)).count() for value in (1, 1.0, 1)] == [ROWS, 0, ROWS]


def test_the_same_operands_in_another_order_are_told_apart(frame: DataFrame) -> None:
    for text in ("a > 5 AND length(s) < 3", "length(s) < 3 AND a > 5", "a > 5 AND length(s) < 3"):
        (found,) = tw.explain(tw.where(frame, text)).to_dict()["wheres"]
        assert found["as_written"] == text.split(" AND ")


def test_a_column_that_spark_finds_ambiguous_is_refused_after_one_that_it_takes(frame: DataFrame) -> None:
    from pyspark.errors import AnalysisException

    left, right = frame.select("a", "b"), frame.select("a", "s")
    joined = left.join(right, left.a == right.a)
    assert tw.where(joined, (left.a < 10) & (left.b >= 0)).count() == 10
    with pytest.raises(AnalysisException):
        joined.where((right.a < 10) & (left.b >= 0))
    with pytest.raises(AnalysisException):
        tw.where(joined, (right.a < 10) & (left.b >= 0)).count()


def test_few_conditions_are_remembered_of_a_frame(frame: DataFrame) -> None:
    for least in range(repeated_conditions.MOST_CONDITIONS + 3):
        tw.where(frame, f"a >= {least} AND b >= 0")
    assert len(repeated_conditions._conditions_on(frame)) == repeated_conditions.MOST_CONDITIONS  # noqa: SLF001


def test_each_session_has_functions_of_its_own(spark: SparkSession) -> None:
    sessions = [spark, spark.newSession()]
    for session, end in zip(sessions, (10, 20), strict=True):
        session.udf.register("is_first", lambda a, end=end: a < end, "boolean")
    for _ in range(2):
        for session, end in zip(sessions, (10, 20), strict=True):
            rows = session.range(ROWS).selectExpr("id AS a", "id AS b")
            assert tw.where(rows, "is_first(a) AND b >= 0").count() == end

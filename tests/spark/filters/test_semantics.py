"""What predicates mean: three-valued logic, Spark's values and types, whatever a batch holds besides."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def test_a_condition_is_null_where_sql_is(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(row, a, b) for row, (a, b) in enumerate((a, b) for a in (True, False, None) for b in (True, False, None))],
        "id long, a boolean, b boolean",
    )
    first = tw.predicate(lambda a: a, on="a", takes="rows", name="a")
    second = tw.predicate(lambda b: b, on="b", takes="rows", name="b")
    for ours, theirs in (
        (~tw.condition(first), "NOT a"),
        (tw.condition(first, second), "a AND b"),
        (~tw.condition(first, second), "NOT (a AND b)"),
        (tw.condition(second, first).isNull(), "(a AND b) IS NULL"),
    ):
        assert ids(frame.where(ours)) == ids(frame.where(theirs))
    failing = tw.predicate(lambda a: 1 // a > 0, on="a", takes="rows", name="a")  # False is zero, None no number
    assert ids(frame.where(~tw.condition(failing, on_error="drop"))) == []


def test_a_pattern_is_what_rlike_takes(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(0, "a.b"), (1, "axb"), (2, "a\\b"), (3, "1 'x'")], "id long, `a s` string")
    for pattern in (r"a\.b", r"a\\b", r"\d '", "'x'$"):
        expected = ids(frame.where(frame["a s"].rlike(pattern)))
        for escaped in ("true", "false"):
            spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
            try:
                assert ids(tw.where(frame, tw.regex("a s", pattern))) == expected
            finally:
                spark.conf.unset("spark.sql.parser.escapedStringLiterals")


@pytest.mark.parametrize("takes", ["numpy", "pandas"])
def test_large_integers_do_not_depend_on_their_neighbours(spark: SparkSession, takes: Any) -> None:  # noqa: ANN401
    large = 2**53 + 1
    frame = spark.createDataFrame(
        [(0, large, True), (1, None, True), (2, large - 1, None), (3, large, False)], "id long, x long, y boolean"
    ).coalesce(1)
    equal = tw.predicate(lambda x, y: (x == large) & (y == True), on=["x", "y"], takes=takes, name="equal")  # noqa: E712
    assert ids(tw.where(frame, equal)) == [0]
    negated = tw.predicate(lambda y: ~y, on="y", takes=takes, name="negated")
    assert ids(tw.where(frame.where("y is not null"), negated)) == [3]


def test_a_row_function_gets_what_a_udf_gets(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    sql = (
        "SELECT named_struct('x', 1, 'at', timestamp'2024-05-01 23:30:00', 'm', map('k', named_struct('y', 2))) AS s,"
        " map('a', array(1, 2)) AS m, array(named_struct('z', 'q')) AS l, timestamp'2024-05-01 23:30:00' AS ts,"
        " timestamp_ntz'2024-05-01 23:30:00' AS ntz, date'2024-05-01' AS d, cast(1.50 AS decimal(9, 2)) AS c,"
        " cast('ab' AS binary) AS b, interval '1' day AS i, cast(NULL AS struct<q: int>) AS nothing"
    )
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql(sql)
        told = f.udf(lambda *values: repr(values), "string")
        expected = frame.select(told(*frame.columns)).first()[0]  # type: ignore[index]
        same = tw.predicate(lambda *values: repr(values) == expected, on=frame.columns, takes="rows", name="same")
        assert tw.where(frame, same).count() == 1
        instant = frame.select(f.unix_timestamp("ts")).first()[0]  # type: ignore[index]
        local = dt.datetime.fromtimestamp(instant)  # noqa: DTZ006 - naive and local is the point
        hour = tw.predicate(lambda ts: ts.hour == local.hour, on="ts", takes="rows", name="hour")
        assert tw.where(frame, hour).count() == 1
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_accumulators_count_all_partitions(spark: SparkSession) -> None:
    counter = spark.sparkContext.accumulator(0)

    def counted(id: int) -> bool:  # noqa: A002 - the column's name
        counter.add(1)
        return id >= 0

    assert tw.where(spark.range(1000, numPartitions=10), tw.predicate(counted, takes="rows")).count() == 1000
    assert counter.value == 1000


def test_collated_strings_are_refused_everywhere(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 0 AS id, 'A' COLLATE UTF8_LCASE AS s")
    wanted = tw.lookup(pa.table({"s": ["a"]}), on="s")
    for predicate in (wanted, tw.not_(wanted)):
        with pytest.raises(TypeError, match="compared byte by byte: look up a column such as collate"):
            tw.where(frame, predicate)


def test_conditions_on_what_is_not_in_the_frame(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(10).selectExpr("id", "id % 3 AS k", "cast(id AS string) AS s")
    odd = tw.predicate(lambda id: id % 2 == 1, takes="numpy", name="odd")  # noqa: A006
    dropped = frame.drop("k", "s")
    for condition in (frame.k > 1, frame.s.cast("int") > 3):
        expected = ids(dropped.where(condition).where("id % 2 = 1"))
        assert ids(tw.where(dropped, condition, odd)) == expected
    frame.write.parquet(f"{tmp_path}/files")
    files = spark.read.parquet(f"{tmp_path}/files")
    assert tw.where(files, "_metadata.file_size > 0", odd).count() == 5


def test_columns_that_differ_by_case(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.createDataFrame([(0, 1, "5"), (1, 2, "x")], "id long, k long, K string")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    odd = tw.predicate(lambda id: id % 2 == 0, takes="numpy", name="even")  # noqa: A006
    assert ids(tw.where(frame, "cast(id AS string) > ''", odd).select("id")) == [0]


@pytest.mark.parametrize(
    "column", ["named_struct('m', map('a', id))", "array(map('a', id))", "parse_json('{\"a\": 1}')"]
)
def test_frames_of_what_cannot_be_hashed(spark: SparkSession, column: str) -> None:
    frame = spark.range(3).selectExpr(f"{column} AS only")
    assert tw.where(frame, "cast(cast(only AS string) AS string) IS NOT NULL", "1 / 1 > 0").count() == 3


def test_a_division_by_a_text_is_no_crash(spark: SparkSession) -> None:
    frame = spark.range(3).withColumnRenamed("id", "k")
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|DIVIDE"):
        tw.where(frame, "k / 'abc' > 1").count()


def test_rejected_rows_never_raise(spark: SparkSession) -> None:
    smallest = -(2**63)
    frame = spark.createDataFrame([(0, smallest, 0), (1, 4, 1)], "id long, m long, k long")
    assert ids(tw.where(frame, "m div -1 < 0", "k > 0")) == [1]
    assert ids(tw.where(frame, "k > 0 OR k / cast(0.4D AS int) > 1", "k > 0")) == [1]
    assert ids(tw.where(frame, "k / cast(0.4D AS int) > 1", "k > 5")) == []


def test_an_error_that_waits_names_the_row(spark: SparkSession) -> None:
    frame = spark.range(10).selectExpr("id", "id % 5 AS a", "cast(id AS string) AS s")
    fails = tw.predicate(lambda id: 1 / (id - 3), takes="rows", name="fails", pinned=True)  # noqa: A006
    behind = tw.predicate(lambda id: id >= 0, takes="numpy", name="behind")  # noqa: A006
    lookup = tw.lookup(pa.table({"a": [1, 2, 3]}), on="a")
    with pytest.raises(Exception, match=r"'fails' failed with ZeroDivisionError: .* on the row \{'id': 3\}"):
        tw.where(frame.where("id = 3"), fails, "length(s) > 0").count()
    with pytest.raises(Exception, match=r"'fails' failed with ZeroDivisionError: .* on the row \{'id': 3"):
        tw.where(frame.where("id = 3"), fails, lookup, behind).count()


def test_sixty_four_predicates_are_too_many(spark: SparkSession) -> None:
    conditions = [f"id > {-number}" for number in range(1, 65)]
    assert tw.where(spark.range(3), *conditions[:63]).count() == 3
    with pytest.raises(ValueError, match=r"up to 63 predicates, not 64: put some of them together"):
        tw.where(spark.range(3), *conditions)

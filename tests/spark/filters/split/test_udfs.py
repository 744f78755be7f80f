"""Python UDFs in conditions run in the fused pass, with the values and the outcomes that Spark has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.spark.filters.worker.nested_series import can_convert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TYPES = (
    "SELECT id, if(id = 1, NULL, id) AS n, id % 2 = 0 AS t, if(id = 1, NULL, id % 2 = 0) AS tn, cast(id AS float) AS r,"
    " named_struct('x', 1, 'at', timestamp'2024-05-01 23:30:00', 'm', map('k', named_struct('y', 2))) AS s,"
    " map('a', array(1, 2)) AS m, array(named_struct('z', 'q')) AS l, timestamp'2024-05-01 23:30:00' AS ts,"
    " timestamp_ntz'2024-05-01 23:30:00' AS ntz, date'2024-05-01' AS d, cast(1.50 AS decimal(9, 2)) AS c,"
    " cast('ab' AS binary) AS b, interval '1' day AS i, cast(NULL AS struct<q: int>) AS nothing, 'text' AS w"
    " FROM range(0, 3, 1, 1)"
)
FLAT = ["id", "n", "t", "tn", "r", "ts", "ntz", "d", "c", "b", "w"]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(20).selectExpr("id", "id % 5 AS a", "cast(id AS string) AS s", "nullif(id, 3) AS n").coalesce(1)


def spark_functions() -> Any:  # noqa: ANN401 - a module, of whose functions of UDFs the types are too narrow
    from pyspark.sql import functions

    return functions


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def explained(frame: DataFrame) -> dict[str, Any]:
    (description,) = tw.explain(frame).to_dict()["wheres"]
    return dict(description)


def udfs() -> dict[str, Callable[..., Column]]:
    """A UDF of every kind, each true for even numbers."""
    f = spark_functions()

    def by_series(x: pd.Series) -> pd.Series:
        return x % 2 == 0

    def by_several_series(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for x in batches:
            yield x % 2 == 0

    def by_array(x: pa.Array) -> pa.Array:
        return pa.array([number is not None and number % 2 == 0 for number in x.to_pylist()])

    def by_arrays(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for x in batches:
            yield by_array(x)

    return {
        "pickled": f.udf(lambda x: None if x is None else x % 2 == 0, "boolean", useArrow=False),
        "Arrow rows": f.udf(lambda x: None if x is None else x % 2 == 0, "boolean", useArrow=True),
        "pandas": f.pandas_udf(by_series, "boolean"),
        "pandas iterator": f.pandas_udf(by_several_series, "boolean"),
        "Arrow": f.arrow_udf(by_array, "boolean"),
        "Arrow iterator": f.arrow_udf(by_arrays, "boolean"),
    }


def test_udfs_of_every_kind_run_in_the_fused_pass(frame: DataFrame) -> None:
    f = spark_functions()

    for kind, even in udfs().items():
        for condition in (even("n") & (frame.a > 1), ~even(frame.n) | even(f.length("s")) & f.expr("s RLIKE '1'")):
            kept = tw.where(frame, condition)
            assert ids(kept) == ids(frame.where(condition)), kind
            assert "Python" in {line["runs_in"] for line in explained(kept)["predicates"]}, kind


@pytest.mark.thorough
def test_comparisons_with_constants(spark: SparkSession, frame: DataFrame) -> None:
    f = spark_functions()

    halved = f.udf(lambda x: None if x is None else float("nan") if x == 4 else x / 2, "double")
    spark.udf.register("third", lambda x: x // 3, "int")
    word = f.udf(lambda x: "even" if x % 2 == 0 else "odd", "string", useArrow=True)
    conditions: list[Any] = [
        halved("n") > 3.5,
        (f.lit(0.5) >= halved("n")) & (word("id") == "odd"),
        halved("n").eqNullSafe(None),
        halved("n").isNotNull() & (halved("n") != 1.5),
        "third(id) > 2.5D AND NOT third(a) = 1",
        "third(id) <=> 3L OR third(id) IS NULL",
        (word("id") < "f") & ~(halved("n") < 2),
        halved("n").isin(0.5, 1, float("nan")) & ~word("id").isin("odd", "even?"),
        "third(id) IN (1, 2.5D, NULL) OR third(a) NOT IN (0)",
    ]
    for condition in conditions:
        kept = tw.where(frame, condition)
        assert ids(kept) == ids(frame.where(condition)), str(condition)
        assert {line["runs_in"] for line in explained(kept)["predicates"]} == {"Python"}, str(condition)
    assert explained(tw.where(frame, "third(id) > 1 AND third(a) = 1"))["as_written"] == [
        "third(id) > 1",
        "third(a) = 1",
    ]


@pytest.mark.thorough
def test_dates_are_compared(frame: DataFrame) -> None:
    f = spark_functions()

    def by_series(x: pd.Series) -> pd.Series:
        return pd.Series([day(number) for number in x])

    def by_times(x: pd.Series) -> pd.Series:
        return pd.to_datetime("2024-05-01") + pd.to_timedelta(x, unit="h") * 13

    def day(x: float | None) -> date | None:
        return None if x is None or pd.isna(x) else date(2024, 5, 1) + timedelta(days=int(x))

    def moment(x: int | None) -> datetime | None:
        return None if x is None else datetime(2024, 5, 1, 23, 30) + timedelta(hours=x)  # noqa: DTZ001 - as UDFs return

    functions = {
        "pickled": f.udf(day, "date", useArrow=False),
        "Arrow rows": f.udf(day, "date", useArrow=True),
        "times, pickled": f.udf(moment, "date", useArrow=False),
        "times, Arrow rows": f.udf(moment, "date", useArrow=True),
        "pandas": f.pandas_udf(by_series, "date"),
        "times, pandas": f.pandas_udf(by_times, "date"),
    }
    for kind, dated in functions.items():
        for condition in (
            dated("n") > date(2024, 5, 9),
            dated("n").isin(date(2024, 5, 2), date(2024, 5, 9), None) | dated("n").isNull(),
            f.lit("2024-05-07") >= dated("n"),
            ~dated("n").eqNullSafe(f.lit(date(2024, 5, 4))),
        ):
            kept = tw.where(frame, condition)
            assert ids(kept) == ids(frame.where(condition)), kind
            assert {line["runs_in"] for line in explained(kept)["predicates"]} == {"Python"}, kind
    wrong = f.udf(lambda x: str(x), "date", useArrow=False)("n") > date(2024, 5, 9)  # noqa: PLW0108 - a function of ours
    for filtered in (frame.where(wrong), tw.where(frame, wrong)):
        with pytest.raises(Exception, match="toordinal"):
            filtered.count()


@pytest.mark.parametrize("uses_arrow", [False, True])
def test_values_are_those_that_spark_hands_to_a_udf(spark: SparkSession, uses_arrow: bool) -> None:  # noqa: FBT001
    f = spark_functions()

    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql(TYPES)
        told = f.udf(lambda *values: crc32(repr(values).encode()), "long", useArrow=uses_arrow)
        for row in frame.select("id", told(*frame.columns).alias("seen")).collect():
            kept = tw.where(frame, told(*frame.columns) == row["seen"])
            assert ids(kept) == [row["id"]]
            assert explained(kept)["predicates"][0]["runs_in"] == "Python"
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_series_are_those_that_spark_hands_to_a_pandas_udf(spark: SparkSession) -> None:
    f = spark_functions()

    def told(*columns: pd.Series) -> pd.Series:
        kinds = [str(column.dtype) for column in columns]
        return pd.Series(
            [repr((kinds, *(repr(column.iloc[row]) for column in columns))) for row in range(len(columns[0]))]
        )

    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql(TYPES)
        seen = f.pandas_udf(told, "string")
        for row in frame.select("id", seen(*FLAT).alias("seen")).collect():
            kept = tw.where(frame, seen(*FLAT) == row["seen"])
            assert ids(kept) == [row["id"]]
            assert explained(kept)["predicates"][0]["runs_in"] == "Python"
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


NESTED = [
    "named_struct('x', nullif(a, 1), 't', nullif(a = 0, a = 3), 'at', timestamp_seconds(id), 'l', array(a, NULL))",
    "if(a = 4, NULL, named_struct('x', id, 'in', named_struct('y', nullif(id, 5), 'd', DATE'2024-01-01')))",
    "if(id % 5 = 0, NULL, array(id, nullif(a, 2)))",
    "array(named_struct('z', s, 'at', timestamp_seconds(id)), NULL)",
    "if(id % 3 = 0, NULL, map(s, array(id)))",
    "map('k', named_struct('y', nullif(id, 4), 'ntz', timestamp_ntz'2024-05-01 23:30:00'))",
    "array(cast(id AS decimal(9, 2)), NULL)",
    "array(array(a), NULL, array())",
    "make_dt_interval(0, 0, 0, id)",
]


@pytest.mark.thorough
def test_nested_columns_are_those_that_spark_hands_to_a_pandas_udf(spark: SparkSession) -> None:
    f = spark_functions()

    def told(column: pd.Series) -> pd.Series:
        x: Any = column
        is_frame = isinstance(x, pd.DataFrame)
        values = [x.iloc[row].to_dict() if is_frame else x.iloc[row] for row in range(len(x))]
        return pd.Series([f"{type(x)} {x.dtypes} {value!r}" for value in values])

    def told_by_iterator(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for x in batches:
            yield told(x)

    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        columns = [f"{text} AS c{number}" for number, text in enumerate(NESTED)]
        frame = spark.range(0, 40, 1, 1).selectExpr("id", "id % 5 AS a", "cast(id AS string) AS s")
        frame = frame.selectExpr("id", *columns).localCheckpoint()
        for function in (told, told_by_iterator):
            seen = f.pandas_udf(function, "string")
            for name in frame.columns[1:]:
                plain = frame.select("id", seen(name).alias("seen")).collect()
                for row in (plain[4], plain[30]):
                    kept = tw.where(frame, seen(name) == row["seen"])
                    assert ids(kept) == sorted(other["id"] for other in plain if other["seen"] == row["seen"])
                    assert explained(kept)["predicates"][0]["runs_in"] == ("Python" if can_convert() else "Spark")
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_pandas_udfs_of_nested_columns_are_ordered_among_others(spark: SparkSession) -> None:
    f = spark_functions()

    def is_odd(x: pd.DataFrame) -> pd.Series:
        return (x["n"] % 2 == 1) & ~pd.Series(range(len(x))).isna()

    def is_long(x: pd.Series, least: pd.Series) -> pd.Series:
        return pd.Series([value is not None and len(value) > low for value, low in zip(x, least, strict=True)])

    def has_key(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        for maps, keys in batches:
            yield pd.Series([value is not None and key in value for value, key in zip(maps, keys, strict=True)])

    frame = spark.range(0, 500, 1, 2).selectExpr(
        "named_struct('n', nullif(id, 7)) AS x",
        "if(id % 3 = 0, NULL, sequence(0, id % 6)) AS l",
        "id % 4 AS least",
        "id",
        "cast(id % 9 AS string) AS s",
        "if(id % 11 = 0, NULL, map(cast(id % 5 AS string), id)) AS m",
    )
    odd, long = f.pandas_udf(is_odd, "boolean"), f.pandas_udf(is_long, "boolean")
    key = f.pandas_udf(has_key, "boolean")
    condition = odd("x") & long("l", "least") & (frame.id > 20) & ~key("m", "s")
    kept = tw.where(frame, condition)
    assert ids(kept) == ids(frame.where(condition)) != []
    in_python = [line["runs_in"] for line in explained(kept)["predicates"]].count("Python")
    assert in_python == (3 if can_convert() else 0)  # PySpark 4.1 has no function that makes these columns


@pytest.mark.thorough
def test_arguments_are_columns_or_expressions_that_cannot_raise(frame: DataFrame) -> None:
    f = spark_functions()

    longer = f.udf(lambda x, least=1: x is not None and least is not None and x > least, "boolean")
    nested = frame.select("id", "s", "n", f.struct("a", "id").alias("pair"), frame.a.alias("odd name"))
    for condition in (
        longer(f.length(f.upper("s")), least=f.lit(1)),
        longer(nested.pair.id) & longer(nested["odd name"]),
        longer("odd name", least=nested.n),
    ):
        kept = tw.where(nested, condition)
        assert ids(kept) == ids(nested.where(condition))
        assert {line["runs_in"] for line in explained(kept)["predicates"]} == {"Python"}
    twice = frame.alias("x").join(frame.alias("y"), f.expr("x.id = y.id"))
    kept = tw.where(twice, longer(f.col("y.n")))
    assert kept.count() == twice.where(longer(f.col("y.n"))).count()
    assert explained(kept)["predicates"][0]["runs_in"] == "Python"
    dropped = frame.drop("n")
    kept = tw.where(dropped, longer(frame.n))
    assert ids(kept) == ids(dropped.where(longer(frame.n)))
    assert "reads a column that is not in the DataFrame" in str(tw.explain(kept))


@pytest.mark.thorough
def test_arguments_with_the_same_text_are_told_apart(frame: DataFrame) -> None:
    f = spark_functions()
    less = f.udf(lambda x, y: x is not None and y is not None and x < y, "boolean")
    left, right = frame.select("id", "n"), frame.select((frame.id + 1).alias("key"), (frame.n + 5).alias("n"))
    joined = left.join(right, left.id == right.key)
    unlike = f.udf(lambda x, y: type(x) is not type(y), "boolean")
    named = joined.withColumnRenamed("key", "true")
    for frame_of_both, condition in (
        (joined, less(left.n, right.n) & less(left.n + 1, right.n + 1)),
        (joined, unlike(f.lit(0.5), f.expr("0.5"))),
        (named, unlike(f.col("true"), f.lit(True))),  # noqa: FBT003 - a constant
    ):
        kept = tw.where(frame_of_both, condition)
        assert "Python" in {line["runs_in"] for line in explained(kept)["predicates"]}
        assert rows(kept) == rows(frame_of_both.where(condition)) != []


def test_functions_that_differ_in_the_values_around_them_are_told_apart(frame: DataFrame) -> None:
    f = spark_functions()

    def above(limit: int) -> Callable[..., Column]:
        return f.udf(lambda x: x > limit, "boolean")  # type: ignore[no-any-return]

    written = frame.where(above(3)("id") & above(1)("a") & ~above(2)("a") & above(5)("id").isNotNull())
    adapted = tw.adapt(written)
    assert len(explained(adapted)["predicates"]) == 4
    assert ids(adapted) == ids(written) == ids(frame.where("id > 3 AND a = 2"))


@pytest.mark.thorough
def test_a_udf_that_stays_in_spark_says_why(spark: SparkSession, frame: DataFrame) -> None:
    f = spark_functions()

    known = spark.sparkContext.broadcast({1, 2})
    even = f.udf(lambda x: x % 2 == 0, "boolean")
    listed = f.udf(lambda x: [x], "array<long>")
    cases = {
        "its argument CAST(s AS INT) may raise": even(frame.s.cast("int")),
        "its argument CAST(<lambda>(id) AS INT) is a UDF itself": even(even("id").cast("int")),
        "it uses a broadcast variable": f.udf(lambda x: x in known.value, "boolean")("a"),
        "for more than a comparison with a constant": f.coalesce(even("id"), f.lit(False)),  # noqa: FBT003
        "compared with a value that is no plain constant": f.udf(lambda x: x, "long")("id") == frame.a,
        "used for more than a comparison": f.udf(lambda x: x / 2, "double")("id").cast("int").cast("double") == 1.0,
        "Java writes": f.udf(str, "string", useArrow=False)("n") == "0.5",
        "it takes no column": f.udf(lambda: True, "boolean")(),
        "for more than a comparison": listed("id")[0] > 3,
    }
    for reason, condition in cases.items():
        kept = tw.where(frame, condition, "id >= 0")
        assert ids(kept) == ids(frame.where(condition))
        assert any("stays in Spark" in note and reason in note for note in explained(kept)["notes"]), reason


def test_errors_are_for_rows_that_nothing_else_rejects(frame: DataFrame) -> None:
    f = spark_functions()

    inverse = f.udf(lambda x: 1 / x > 0, "boolean")
    assert ids(tw.where(frame, inverse("a") & (frame.a > 0))) == ids(frame.where("a > 0"))
    with pytest.raises(Exception, match=r"ZeroDivisionError: .* \(line \d+ of test_udfs.py\) on the row \{'a': 0\}"):
        tw.where(frame, inverse("a") & (frame.id >= 0)).count()
    assert ids(tw.where(frame, inverse("a"), on_error="drop")) == ids(frame.where("a > 0"))


def test_values_that_do_not_fit_are_errors_as_in_spark(frame: DataFrame) -> None:
    f = spark_functions()
    for too_large in (
        f.udf(lambda x: 300 if x == 7 else x, "tinyint", useArrow=True)("id"),
        f.pandas_udf(lambda x: x.where(x != 7, 300), "tinyint")("id"),
    ):
        with pytest.raises(Exception, match=r"not in range|too large"):
            frame.where(too_large >= 3).count()
        with pytest.raises(Exception, match=r"(not in range|too large).* on the row \{'id': 7\}"):
            tw.where(frame, too_large >= 3).count()


def test_values_that_cannot_be_pickled_are_errors_as_in_spark(frame: DataFrame) -> None:
    f = spark_functions()
    for function in (lambda s: re.search("7", s), lambda s: (s for _ in range(2)), lambda s: np.array([s == "7"])):
        udf = f.udf(function, "boolean", useArrow=False)
        with pytest.raises(Exception, match=r"pickle|ClassDict"):
            frame.where(udf("s")).count()
        with pytest.raises(Exception, match=r"Spark cannot (pickle|read) .* on the row \{'s': '7'\}"):
            tw.where(frame, udf("s") & (frame.id == 7)).count()


def test_a_udf_that_is_not_deterministic_keeps_its_place(frame: DataFrame) -> None:
    f = spark_functions()

    even = f.udf(lambda x: x % 2 == 0, "boolean")
    noisy = f.udf(lambda x: x >= 0, "boolean").asNondeterministic()
    kept = tw.where(frame, even("id") & noisy("id") & (frame.a > 1))
    assert [line["name"] for line in explained(kept)["predicates"]][1:] == ["<lambda>(id) (2)", "a > 1"]
    assert ids(kept) == ids(frame.where("id % 2 = 0 AND a > 1"))


def test_conditions_that_raise_nothing_come_ahead_of_a_udf_that_stays_in_spark(frame: DataFrame) -> None:
    f = spark_functions()
    even = f.udf(lambda x: x % 2 == 0, "boolean", useArrow=False)
    large = f.udf(lambda x: x > 1, "boolean", useArrow=False)
    stays = large(even("id").cast("int") + 1)
    condition = even("id") & (f.col("a") > -5) & stays & (f.col("id") > 3) & (10 / (f.col("id") + 1) < 9)
    kept = tw.where(frame, condition)
    assert ids(kept) == ids(frame.where(condition))
    cheap_first, cheap_second, in_python, *behind = explained(kept)["order"]
    assert [cheap_first, cheap_second, in_python] == ["a > -5", "id > 3", "<lambda>(id)"]
    assert [" < 9" in name for name in behind] == [False, True]  # it may raise

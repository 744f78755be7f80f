"""The cost of a call of `tw.where`, in calls of the JVM, each of which takes a tenth of a millisecond or more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

GARBAGE = "m\n"  # how commands begin by which py4j lets objects of the JVM go, at any time
TEXT = "a > 5 AND b < 9 AND length(s) < 3 AND d < 20"


@tw.predicate
def is_even(a: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(a, 1), 0)


@tw.predicate
def is_short(s: pa.Array) -> pa.Array:
    return pc.less(pc.utf8_length(s), 3)


def short(s: pd.Series) -> pd.Series:
    return s.str.len() < 3


@pytest.fixture
def udfs() -> Callable[[], Any]:
    """A condition of UDFs, made anew with each call."""
    from pyspark.sql import functions

    f: Any = functions
    is_even_row, is_small_row = f.udf(lambda a: a % 2 == 0, "boolean"), f.udf(lambda b: b < 9, "boolean")
    is_short_series = f.pandas_udf(short, "boolean")
    return lambda: is_even_row("a") & is_small_row("b") & is_short_series("s")


def column() -> Column:
    from pyspark.sql import functions as f

    return (f.col("a") > 5) & (f.col("b") < 9) & (f.length("s") < 3) & (f.col("d") < 20)


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(100).selectExpr("id AS a", "id * 7 % 13 AS b", "cast(id AS string) AS s", "id / 3 AS d")


@contextmanager
def counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The commands that py4j sends to the JVM within."""
    context: Any = spark.sparkContext
    client = context._gateway._gateway_client  # noqa: SLF001 - py4j has no public way to count
    send, commands = client.send_command, list[str]()

    def send_command(command: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as py4j has it
        if not command.startswith(GARBAGE):
            commands.append(command)
        return send(command, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(client, "send_command", send_command)
        yield commands


# Measured with PySpark 4.3: 12, 12, 6, 11 and 14 commands; other versions make their UDFs with some more.
@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda _udfs: [TEXT], 14),
        (lambda _udfs: [column()], 14),
        (lambda _udfs: [is_even, is_short], 10),
        (lambda udfs: [udfs()], 16),
        (lambda udfs: [TEXT, udfs(), is_short], 19),
    ],
    ids=["text", "Column", "predicates", "UDFs", "mixed"],
)
def test_a_repeated_call_asks_the_jvm_little(
    spark: SparkSession,
    frame: DataFrame,
    udfs: Callable[[], Any],
    make: Callable[[Any], list[Any]],
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = tw.where(frame, *make(udfs)).count()
    tw.where(frame, *make(udfs))  # it looks up classes of the JVM, once a program
    predicates = make(udfs)
    with counted(spark, monkeypatch) as commands:
        kept = tw.where(frame, *predicates)
    assert len(commands) <= most, "\n".join(commands)
    assert kept.count() == expected


# Measured with PySpark 4.3: 30, 57 and 52 commands.
@pytest.mark.parametrize(
    ("make", "most"),
    [(lambda _udfs: [TEXT], 33), (lambda udfs: [udfs()], 62), (lambda udfs: [TEXT, udfs(), is_short], 57)],
    ids=["text", "UDFs", "mixed"],
)
def test_a_first_call_asks_the_jvm_little(
    spark: SparkSession,
    frame: DataFrame,
    udfs: Callable[[], Any],
    make: Callable[[Any], list[Any]],
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tw.where(frame, *make(udfs))  # it looks up classes of the JVM, once a program
    fresh, predicates = frame.select("*"), make(udfs)
    with counted(spark, monkeypatch) as commands:
        kept = tw.where(fresh, *predicates)
    assert len(commands) <= most, "\n".join(commands)
    assert kept.count() == tw.where(frame, *make(udfs)).count()


def test_after_the_first_udf_pyspark_looks_up_no_class_for_another(
    spark: SparkSession, frame: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as f

    tw.where(frame, f.udf(lambda a: a > 5, "boolean")("a")).count()
    with counted(spark, monkeypatch) as commands:
        is_small = f.udf(lambda a: a < 9, "boolean")("a")
    assert [command for command in commands if command.startswith("r\nu")] == []
    assert frame.where(is_small).count() == 9


@pytest.mark.parametrize(
    ("make", "analyses"),
    [(lambda _: [TEXT], 1), (lambda _: [is_even], 0), (lambda udfs: [TEXT, udfs(), is_short], 1)],
    ids=["text", "predicate", "mixed"],
)
def test_a_first_call_analyses_conditions_that_raise_nothing_once(
    spark: SparkSession,
    frame: DataFrame,
    udfs: Callable[[], Any],
    make: Callable[[Any], list[Any]],
    analyses: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predicates = make(udfs)
    with counted(spark, monkeypatch) as commands:
        kept = tw.where(frame, *predicates)
    assert sum(command.split("\n")[2:3] == ["filter"] for command in commands) == analyses, "\n".join(commands)
    assert kept.count() == tw.where(frame, *make(udfs), sample=False).count() == tw.where(frame, *make(udfs)).count()
    assert kept.where("b > 3").join(frame, "a").count() == tw.where(frame, *make(udfs), "b > 3").count()


def test_columns_that_spark_adds_for_a_condition_are_found_in_a_first_call(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows"))
    assert tw.where(rows, "_metadata.file_size > 0 AND a > 5", is_even).count() == 47
    dropped = rows.drop("b")
    assert tw.where(dropped, (rows.b < 9) & (rows.a > 5)).count() == rows.where("b < 9 AND a > 5").count()
    assert tw.where(rows, "a > (SELECT 5) AND b < 9").count() == rows.where("b < 9 AND a > 5").count()


@pytest.mark.parametrize("on_error", ["raise", "drop"])
def test_the_filter_of_a_repeated_call_is_made_without_another_analysis(
    spark: SparkSession,
    frame: DataFrame,
    on_error: Any,  # noqa: ANN401 - a literal
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "a > 5 AND 10 / b < 9 AND length(s) < 3 AND b > 0"
    plain = frame.where("a > 5 AND b > 0 AND length(s) < 3").where("10 / b < 9")  # as written it raises
    expected = sorted(plain.collect())
    for call in range(3):
        with counted(spark, monkeypatch) as commands:
            kept = tw.where(frame, text, on_error=on_error)
        analyses = sum(command.split("\n")[2:3] == ["filter"] for command in commands)
        assert call == 0 or analyses == 0, "\n".join(commands)
        assert sorted(kept.collect()) == expected
        (explained,) = tw.explain(kept).to_dict()["wheres"]
        assert explained["as_written"] == text.split(" AND ")
        assert kept.join(frame, "a").where(kept.b > 1).count() == plain.where("b > 1").count()


def test_the_filter_of_a_repeated_call_with_python_is_made_without_another_analysis(
    spark: SparkSession, frame: DataFrame, udfs: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sorted(frame.where(TEXT).where("a % 2 = 0").collect())
    for call in range(3):
        predicates = [TEXT, udfs(), is_short]
        with counted(spark, monkeypatch) as commands:
            kept = tw.where(frame, *predicates)
        analyses = sum(command.split("\n")[2:3] == ["filter"] for command in commands)
        assert call == 0 or analyses == 0, "\n".join(commands)
        assert sorted(kept.collect()) == expected
        (explained,) = tw.explain(kept).to_dict()["wheres"]
        assert len(explained["as_written"]) == 8
        assert sorted(tw.where(kept, *predicates).collect()) == expected  # two filters of one kind in a plan
        assert sorted(kept.join(kept.select("a", "b"), ["a", "b"]).collect()) == expected


def test_other_python_predicates_beside_the_same_text_take_their_own_columns(frame: DataFrame) -> None:
    columns, kept = ("a", "b", "a"), []
    for name in columns:
        is_small = tw.predicate(lambda values: pc.less(values, 5), on=name, name="small")
        kept.append(tw.where(frame, "length(s) < 9", is_small).count())
    assert kept == [frame.where(f"{name} < 5").count() for name in columns]


def test_the_same_text_with_another_function_is_analysed_anew(spark: SparkSession, frame: DataFrame) -> None:
    for limit in (10, 20, 10):
        spark.udf.register("is_below", lambda a, limit=limit: a < limit, "boolean")
        assert tw.where(frame, "is_below(a) AND b >= 0").count() == limit


def test_the_same_call_of_another_function_is_analysed_anew(frame: DataFrame) -> None:
    from pyspark.sql import functions as f

    for limit in (10, 20, 10):
        is_below = f.udf(lambda a, limit=limit: a < limit, "boolean")
        assert tw.where(frame, is_below("a") & (f.col("b") >= 0)).count() == limit


def test_the_same_condition_with_other_settings_is_analysed_anew(spark: SparkSession, frame: DataFrame) -> None:
    from pyspark.errors import ArithmeticException

    raising = "10 / (a - 50) > 0 AND b >= 0"
    try:
        for ansi in ("false", "true", "false"):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            kept = tw.where(frame, raising)
            if ansi == "true":
                with pytest.raises(ArithmeticException):
                    kept.count()
            else:
                assert kept.count() == frame.where(raising).count()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_condition_of_another_frame_with_the_same_columns_is_found_by_its_own(frame: DataFrame) -> None:
    derived = frame.select("*")
    assert tw.where(derived, (derived.a > 5) & (derived.b < 9)).count() == tw.where(frame, "a > 5 AND b < 9").count()
    assert tw.where(frame, (frame.a > 5) & (frame.b < 9)).count() == frame.where("a > 5 AND b < 9").count()


def test_a_repeated_call_sees_the_functions_of_its_own_time(spark: SparkSession, frame: DataFrame) -> None:
    limit, counts = {"b": 3}, []
    is_below = tw.predicate(lambda b: pc.less(b, limit["b"]), on="b", name="below")
    for end in (3, 7, 5):
        limit["b"] = end
        spark.udf.register("is_early", lambda a, end=end: a < 10 * end, "boolean")
        allowed = spark.sparkContext.broadcast(set(range(end)))
        is_allowed = tw.predicate(lambda a, allowed=allowed: a % 10 in allowed.value, on="a", takes="rows")
        counts.append(tw.where(frame, "a > 5 AND is_early(a)", is_below, is_allowed).count())
    assert counts == [
        frame.where(f"a > 5 AND a < {10 * end} AND b < {end} AND a % 10 < {end}").count() for end in (3, 7, 5)
    ]

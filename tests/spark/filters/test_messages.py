"""Wrong input gets an error that says what to write instead, before any job starts."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.sealed import seal, unseal
from thalweg.spark import first_rows
from thalweg.spark.folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

rare = tw.predicate(lambda a: a < 5, on="a", takes="numpy", name="rare")


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(10).selectExpr("id", "id % 5 AS a", "cast(id AS string) AS s", "'x' AS body")


def udf_object() -> Any:  # noqa: ANN401
    from pyspark.sql import functions as f

    return f.udf(lambda a: a > 1, "boolean")


def cycle() -> list[Any]:
    first = tw.predicate(lambda a: a > 0, on="a", name="first", after="second")
    return [first, tw.predicate(lambda a: a > 1, on="a", name="second", after="first")]


CASES: tuple[tuple[Callable[[Any], object], type[Exception], str], ...] = (
    (tw.enable, TypeError, r"tw\.enable takes a Spark session, tw\.enable\(spark\), not DataFrame"),
    (tw.disable, TypeError, r"tw\.disable takes a Spark session"),
    (lambda df: tw.where(df, lambda *a: a), TypeError, r"does not say which values it takes: write tw\.predicate\("),
    (lambda df: tw.where(df, partial(pow, 2)), TypeError, r"partial does not say which .*: write tw\.predicate\("),
    (lambda _: rare > 0.5, TypeError, "is a predicate, which is true or false: write the comparison into its function"),
    (lambda _: tw.predicate("a > 3"), TypeError, r"tw\.where takes Columns and conditions as text as they are"),  # type: ignore[call-overload]
    (lambda df: tw.where(df.drop("a"), udf_object()), ValueError, r"no column 'a', .*: write <lambda>\('column'\)"),
    (lambda _: tw.predicate(udf_object(), on="a"), TypeError, r"write the_udf\('column'\), which tw\.where takes"),
    (lambda df: tw.where(df.toPandas(), "a > 1"), TypeError, r"a pandas DataFrame: write spark\.createDataFrame\(df\)"),
    (lambda _: tw.lookup([1, 2], on="a"), TypeError, r"not a list: write pa\.table\("),
    (
        lambda _: tw.lookup("keys.csv", on="a"),
        ValueError,
        r"names Parquet files; read keys\.csv first: .*spark\.read\.csv",
    ),
    (lambda _: tw.any_of([rare, "a > 1"]), TypeError, r"one after the other: tw\.any_of\(a, b\)"),
    (lambda df: tw.where(df, [rare, "a > 1"]), TypeError, r"not in a list: tw\.where\(df, \*list\)"),
    (lambda _: tw.expr("a > 1", pined=True), TypeError, "no parameter 'pined'; did you mean 'pinned'"),
    (lambda df: df.a | rare, TypeError, r"as in predicate & column or predicate \| column$"),
    (lambda df: df.a & rare, TypeError, "is no Column: write it to the left of the Column, as in predicate & column"),
    (lambda df: tw.where(df, bool(rare)), TypeError, "a predicate, neither true nor false"),
    (
        lambda _: tw.regex("s", re.compile("x")),  # type: ignore[arg-type]
        TypeError,
        r"Java's patterns: write tw\.regex\(column, compiled\.pattern",
    ),
    (
        lambda df: tw.where(df, tw.regex("s", "(?P<x>a)")),
        ValueError,
        "is no pattern in Java's syntax, which Spark uses",
    ),
    (lambda df: tw.where(df, *cycle()), ValueError, "wait for one another in a circle, 'first' after 'second' after"),
    (lambda df: tw.where(df, rare, route_by=df.a), TypeError, "route_by is 'auto', a column's name"),
    (lambda _: tw.predicate(lambda a: a, on="a", cost="3"), ValueError, "cost= is a number above 0, such as cost=3"),  # type: ignore[call-overload]
    (lambda _: tw.predicate(lambda *a: a), TypeError, "cannot be told from its parameters: write on='column'"),
    (lambda df: tw.where(df, rare, sample=0.1), TypeError, "sample is True, False or None, not 0.1"),  # type: ignore[arg-type]
    (lambda df: rare(df.id), TypeError, r"knows its columns, on=\['a'\]: write tw\.where\(df, rare\)"),
    (lambda df: tw.where(df, rare, state=5), TypeError, "state is the path or URL of a folder, not 5"),  # type: ignore[arg-type]
    (lambda df: tw.where(df, rare, quarantine_columns=["bdy"]), ValueError, "quarantine_columns needs a column 'bdy'"),
    (lambda _: tw.condition(rare, on_error="quarantine"), ValueError, "go together"),  # type: ignore[arg-type]
)


@pytest.mark.parametrize(("wrong", "kind", "message"), CASES, ids=[message[:40] for _, _, message in CASES])
def test_wrong_input(frame: DataFrame, wrong: Any, kind: type[Exception], message: str) -> None:  # noqa: ANN401
    with pytest.raises(kind, match=message):
        wrong(frame)


def test_an_ambiguous_column_is_not_suggested_to_itself(frame: DataFrame) -> None:
    twice = frame.select("a", frame.id.alias("a"))
    with pytest.raises(ValueError, match="several that Spark does not tell apart: rename one of them"):
        tw.where(twice, rare)


def test_a_name_with_a_dot_is_told_how_to_write(spark: SparkSession) -> None:
    dotted = spark.range(3).withColumnRenamed("id", "id.orig")
    with pytest.raises(ValueError, match=r"needs a column 'id\.orig'; .*write '`id\.orig`'"):
        tw.where(dotted, tw.predicate(lambda x: x > 1, on="id.orig", takes="numpy", name="p"))
    quoted = tw.predicate(lambda x: x > 1, on="`id.orig`", takes="numpy", name="p")
    assert tw.where(dotted, quoted).count() == 1


def test_one_quarantine_column_may_be_a_text(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    fails = tw.predicate(lambda a: a < 1 / 0, on="a", takes="rows", name="fails")
    tw.where(frame, fails, on_error="quarantine", quarantine=tmp_path / "q", quarantine_columns="body").count()
    assert set(spark.read.parquet(f"{tmp_path}/q").columns) == {"a", "body", "predicate", "reason"}


def test_a_pandas_table_can_be_looked_up(frame: DataFrame) -> None:
    assert tw.where(frame, tw.lookup(pd.DataFrame({"a": [1, 2]}), on="a")).count() == 4


def test_predicates_compose(frame: DataFrame) -> None:
    assert tw.where(frame, ~rare).count() == 0
    assert tw.where(frame, rare | "id > 3").count() == 10
    assert tw.where(frame, rare & (frame.id > 3) & ~(rare & "id > 7")).count() == 4


def test_columns_come_from_the_parameters(frame: DataFrame) -> None:
    @tw.predicate
    def large(a: pa.Array) -> Any:  # noqa: ANN401
        import pyarrow.compute as pc

        return pc.greater(a, 3)

    assert large.on == ("a",)
    assert tw.where(frame, large).count() == 2


def test_functions_and_udfs_take_the_columns_that_their_parameters_name(frame: DataFrame) -> None:
    def large(a: int) -> bool:
        return a > 3

    assert tw.where(frame, large).count() == 2
    assert tw.where(frame, tw.any_of(large, udf_object()), tw.not_(large)).count() == 4
    assert tw.where(frame, udf_object()).count() == 6


@pytest.mark.parametrize("content", ["file", "folder", "odd", "cut short", "newer"])
def test_a_state_folder_that_cannot_be_used_is_a_cold_start(
    frame: DataFrame, tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_rows, "SAMPLE_SECONDS", 600.0)  # on a busy machine, a sample may take long
    state = tmp_path / "state"
    if content == "file":
        state.write_text("in the way")
    else:
        conditions = "s rlike '1'", "s rlike '[0-9]'"
        tw.where(frame, rare, *conditions, state=state, sample=True).count()
        files = list(state.glob("*.learned"))
        assert files
        for file in files:
            sealed = file.read_bytes()
            file.unlink()
            kind, version = sealed.partition(b"\n")[0].decode().removeprefix("thalweg ").rsplit(" ", 1)
            if content == "folder":
                file.mkdir()
            elif content == "odd":
                file.write_bytes(seal(kind, int(version), b'{"at": "never", "order": 7}', b"odd", b""))
            elif content == "cut short":
                file.write_bytes(sealed[:-1])
            elif content == "newer":
                file.write_bytes(seal(kind, int(version) + 1, *unseal(kind, int(version), sealed)))
    kept = tw.where(frame, rare, "s rlike '1'", "s rlike '[0-9]'", state=state, sample=True)
    assert kept.count() == frame.where("a < 5 AND s rlike '1'").count()
    if content != "folder":
        notes = str(tw.explain(kept).to_dict()["wheres"][0]["notes"])
        assert ("is not saved" if content == "file" else "is not used") in notes


def test_a_state_folder_that_is_read_only_costs_the_saving(
    frame: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(StateFolder, "write", refuse)  # of the driver; whoever may do everything has no such folder
    kept = tw.where(frame, "s rlike '1'", "s rlike '[0-9]'", state=tmp_path, sample=True)
    assert kept.count() == frame.where("s rlike '1'").count()
    assert "what was learnt is not saved: read-only" in str(tw.explain(kept))

"""Conditions as people write them give the rows that plain Spark gives, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.spark.filters.split.conditions import Tree, trees_of
from tests.spark.programs.random_conditions import (
    ROWS,
    SCHEMA,
    VALUES,
    column_of,
    differences,
    ids_or_error,
    made_udfs,
    repeats_an_error,
    text_of,
)

import thalweg as tw
from thalweg.spark.filters.choose import choose
from thalweg.spark.filters.lower import lower
from thalweg.spark.filters.query import FilterOptions, ask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TREES = trees_of(tuple(VALUES), 7)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    for name, udf in made_udfs().items():
        spark.udf.register(name, udf)
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1)


def check(frame: DataFrame, tree: Tree, *, as_text: bool) -> None:
    assume(tree != "NULL" and not repeats_an_error(tree))  # Spark refuses NULL alone
    assert differences(tree, frame, text_of(tree) if as_text else column_of(tree, made_udfs())) == []


@settings(max_examples=3)
@given(TREES, st.booleans())
def test_rows_and_errors_are_sparks(frame: DataFrame, tree: Tree, as_text: bool) -> None:  # noqa: FBT001
    check(frame, tree, as_text=as_text)


@pytest.mark.thorough
@settings(max_examples=12)
@given(TREES, st.booleans())
def test_rows_and_errors_are_sparks_of_some_conditions(frame: DataFrame, tree: Tree, as_text: bool) -> None:  # noqa: FBT001
    check(frame, tree, as_text=as_text)


@pytest.mark.long
@settings(max_examples=60)
@given(TREES, st.booleans())
def test_rows_and_errors_are_sparks_of_many_conditions(frame: DataFrame, tree: Tree, as_text: bool) -> None:  # noqa: FBT001
    check(frame, tree, as_text=as_text)


def names(frame: DataFrame) -> list[str]:
    (explained,) = tw.explain(frame).to_dict()["wheres"]
    return list(explained["as_written"])


def test_names_are_the_sql_text_of_the_parts(frame: DataFrame) -> None:
    from pyspark.sql import functions as f

    text = "a AND NOT (k > 1 OR s RLIKE '1') AND (s LIKE 'x%' OR length(s) > 2 AND b)"
    assert names(tw.where(frame, text)) == [
        "a",
        "NOT (k > 1)",
        "NOT (s RLIKE '1')",
        "s LIKE 'x%' OR (length(s) > 2 AND b)",
    ]
    column = (frame.k > 1) & (f.col("s").rlike("1") | ~frame.a) & f.expr("b AND k = 3")
    assert names(tw.where(frame, column, "a")) == ["k > 1", "RLIKE(s, '1') OR NOT (a)", "b", "k = 3", "a"]


def test_a_disjunction_worth_an_order_is_one(frame: DataFrame) -> None:
    kept = tw.where(frame, "s RLIKE '1' OR length(s) > 2", "k = 1 OR a", "10 / k > 4 OR b", sample=True)
    (explained,) = tw.explain(kept).to_dict()["wheres"]
    assert explained["as_written"] == ["s RLIKE '1' OR length(s) > 2", "k = 1 OR a", "10 / k > 4 OR b"]


def test_parts_that_are_not_deterministic_keep_their_place(frame: DataFrame) -> None:
    kept = tw.where(frame, "s RLIKE '1' AND rand() < 2 AND k > 1 AND (a OR rand() < 3)")
    (explained,) = tw.explain(kept).to_dict()["wheres"]
    assert explained["order"] == ["s RLIKE '1'", "rand() < 2", "k > 1", "a OR rand() < 3"]


def test_parts_of_a_stream_know_columns_by_name(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    odd = f.udf(lambda number: number is not None and number % 2 == 1, "boolean")
    stream = spark.readStream.format("rate").load().selectExpr("value AS k", "cast(value AS string) AS s")
    condition = ~((f.col("k") <= 0) | f.expr("s RLIKE '7' OR k >= 40")) & odd("k") & odd(f.length("s"))
    query = ask(stream, [condition], FilterOptions(), may_join=True)
    assert list(query.names[:3]) == ["NOT (k <= 0)", "NOT (s RLIKE '7')", "NOT (k >= 40)"]
    assert "in a stream its arguments have to be columns or constants, not length(s)" in query.notes[0]
    batch = spark.range(50).selectExpr("id AS k", "cast(id AS string) AS s")  # as a micro-batch has columns of its own
    kept = lower(query, choose(query, None), batch)
    assert kept.count() == batch.where(condition).count() > 0


def test_a_condition_in_expr_stays_whole(frame: DataFrame) -> None:
    assert names(tw.where(frame, tw.expr("a AND b"), "a AND b")) == ["a AND b", "a", "b"]


def test_a_condition_that_spark_simplifies_stays_whole(frame: DataFrame) -> None:
    for text in ("10 / k > 4 AND NOT (10 / k > 4)", "share(k) >= 2 AND (a OR NOT share(k) >= 2) AND NOT share(k) >= 2"):
        assert names(tw.where(frame, text)) == [text]
        expected, found = ids_or_error(frame.where(text)), ids_or_error(tw.where(frame, text))
        assert str(found)[:30] == str(expected)[:30]


RAISING = ("10 / k > 4", "share(k) >= 2")
LEFT_OUT = [  # conditions of which Spark leaves out a part that raises, in a filter
    "{x} OR ({raising} AND NULL)",
    "({raising} OR {x}) AND {x}",
    *(
        pytest.param(written, marks=pytest.mark.thorough)
        for written in (
            "{x} OR NOT ({raising} OR NULL)",
            "NOT ({x} AND ({raising} OR NULL))",
            "{x} OR ({raising} AND k IN (NULL))",
            "{x} OR ({raising} AND CASE WHEN TRUE THEN NULL ELSE b END)",
            "{x} OR ({raising} AND cast(k AS bigint) > 3000000000)",
            "({x} AND b) OR ({raising} AND b)",
            "{x} AND ({raising} OR k IS NULL OR k IS NOT NULL)",
        )
    ),
]


@pytest.mark.parametrize("written", LEFT_OUT)
def test_a_part_that_spark_leaves_out_raises_nothing(frame: DataFrame, written: str) -> None:
    differing = []
    for raising in RAISING:
        for other in ("a", "odd(k)"):
            text = written.format(x=other, raising=raising)
            plain = ids_or_error(frame.where(text))
            found = [ids_or_error(tw.where(frame, text)), ids_or_error(tw.adapt(frame.where(text)))]
            differing += [(text, each) for each in found if isinstance(plain, list) and each != plain]
    assert differing == []


@pytest.mark.parametrize(
    "text", ["share(k) = NULL", "a AND share(k) IN (NULL)", "a AND share(k) > 3000000000", "10 / k > 4 AND 10 / k <= 4"]
)
def test_a_comparison_that_spark_knows_the_value_of_raises_nothing(frame: DataFrame, text: str) -> None:
    assert ids_or_error(frame.where(text)) == ids_or_error(tw.where(frame, text)) == []


def test_the_name_of_a_column_that_stays_whole_is_its_sql_text(frame: DataFrame) -> None:
    from pyspark.sql import functions as f

    share = f.udf(lambda k: 10 // k, "int")
    kept = tw.where(frame, (share("k") >= 2) & (share("k") >= 2))
    assert names(kept) == ["<lambda>(k) >= 2 AND <lambda>(k) >= 2"]
    assert "stays in Spark as a whole: a part that may raise an error occurs twice" in str(tw.explain(kept))


def test_null_and_texts_are_truth_values_as_in_spark(frame: DataFrame) -> None:
    for text in ("NULL OR odd(k)", "NULL AND a", "'true' AND a", "a AND NOT ('false' OR b)", "odd(k) OR 'yes'"):
        assert ids_or_error(tw.where(frame, text)) == ids_or_error(frame.where(text)), text


def test_a_condition_that_another_predicate_waits_for_stays_whole(frame: DataFrame) -> None:
    last = tw.predicate(lambda s: s is not None, on="s", takes="rows", name="last", after="a AND b")
    (explained,) = tw.explain(tw.where(frame, last, "a AND b", "k > 1 AND b")).to_dict()["wheres"]
    assert explained["as_written"] == ["last", "a AND b", "k > 1", "b"]
    assert explained["order"][-1] == "last"


def test_conditions_inside_other_predicates_are_split(frame: DataFrame) -> None:
    short = tw.predicate(lambda s: s is not None and len(s) == 1, on="s", takes="rows", name="short")
    kept = tw.where(frame, tw.any_of(short, "a AND s RLIKE '7'"), short & "a AND b")
    assert names(kept) == ["short or a AND s RLIKE '7'", "short", "a", "b"]
    expected = frame.where("(length(s) = 1 OR a AND s RLIKE '7') AND length(s) = 1 AND a AND b")
    assert ids_or_error(kept) == ids_or_error(expected)
    odd = made_udfs()["odd"]
    assert names(tw.where(frame, ~(short | odd("k")), short | (frame.k > 1) & odd("k"))) == [
        "not (short or <lambda>(k))",
        "short or k > 1 AND <lambda>(k)",
    ]


def test_too_many_parts_stay_together(frame: DataFrame) -> None:
    kept = tw.where(frame, " AND ".join(f"id > {-number}" for number in range(1, 70)))
    assert len(names(kept)) == 1
    assert "69 parts, and up to 63 can be ordered" in str(tw.explain(kept))
    assert kept.count() == 40


def test_a_condition_that_spark_refuses_is_refused_as_spark_does(frame: DataFrame) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="missing"):
        tw.where(frame, "a AND missing > 1")
    with pytest.raises(AnalysisException):
        tw.where(frame, "a AND (b")

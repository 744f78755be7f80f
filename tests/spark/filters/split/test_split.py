"""Conditions as people write them give the rows that plain Spark gives, and its errors."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.filters.split.conditions import Tree, trees_of

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARTS = (
    "a",
    "b",
    "k > 1",
    "s RLIKE '[13]'",
    "length(s) > 1",
    "k BETWEEN 1 AND 3",
    "a IS NULL",
    "10 / k > 4",  # raises where k is 0
    "cast(s AS int) > 5",  # raises where s is a word
    "rand() >= 0",
    "odd(k)",
    "half(k) > 0.6",
    "share(k) >= 2",  # raises where k is 0
    "word(s) <> '1'",
)
TREES = trees_of(PARTS, 7)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    truths = (True, False, None)
    rows = [(a, b) for a in truths for b in truths]
    words = ["1", "13", "x", None, "77"]
    register_udfs(spark)
    return spark.createDataFrame(
        [(row, *rows[row % 9], row % 4 or None if row < 20 else row % 5, words[row % 5]) for row in range(40)],
        "id long, a boolean, b boolean, k int, s string",
    ).coalesce(1)


def register_udfs(spark: SparkSession) -> None:
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, DoubleType, IntegerType, StringType

    f: Any = functions
    spark.udf.register("odd", f.udf(lambda k: None if k is None else k % 2 == 1, BooleanType(), useArrow=False))
    spark.udf.register("half", f.pandas_udf(half, DoubleType()))
    spark.udf.register("share", f.udf(lambda k: None if k is None else 10 // k, IntegerType(), useArrow=True))
    spark.udf.register("word", f.arrow_udf(word, StringType()))


def half(k: pd.Series) -> pd.Series:
    return k / 2


def word(s: pa.Array) -> pa.Array:
    return s


def text_of(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    connective, operands = tree
    texts = [f"({text_of(operand)})" for operand in operands]
    return f"NOT {texts[0]}" if connective == "not" else f" {connective} ".join(texts)


def column_of(tree: Tree) -> Column:
    from pyspark.sql import functions as f

    if isinstance(tree, str):
        return f.expr(tree)
    connective, operands = tree
    columns = [column_of(operand) for operand in operands]
    return (
        ~columns[0] if connective == "not" else reduce({"and": operator.and_, "or": operator.or_}[connective], columns)
    )


def ids_or_error(frame: DataFrame) -> list[int] | str:
    from pyspark.errors import PySparkException

    try:
        return sorted(row["id"] for row in frame.collect())
    except PySparkException as error:
        return str(error.getCondition())


@settings(max_examples=6)
@given(TREES, st.booleans())
def test_rows_and_errors_are_sparks(frame: DataFrame, tree: Tree, as_text: bool) -> None:  # noqa: FBT001
    condition = text_of(tree) if as_text else column_of(tree)
    expected = ids_or_error(frame.where(condition))
    found = ids_or_error(tw.where(frame, condition)), ids_or_error(tw.adapt(frame.where(condition)))
    # Spark evaluates a part on rows that another part rejects, and may raise its error; these raise none here.
    assert isinstance(expected, str) or found == (expected, expected)


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


def test_a_condition_in_expr_stays_whole(frame: DataFrame) -> None:
    assert names(tw.where(frame, tw.expr("a AND b"), "a AND b")) == ["a AND b", "a", "b"]


def test_a_condition_that_spark_simplifies_stays_whole(frame: DataFrame) -> None:
    for text in ("10 / k > 4 AND NOT (10 / k > 4)", "share(k) >= 2 AND (a OR NOT share(k) >= 2) AND NOT share(k) >= 2"):
        assert names(tw.where(frame, text)) == [text]
        expected, found = ids_or_error(frame.where(text)), ids_or_error(tw.where(frame, text))
        assert found == expected


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

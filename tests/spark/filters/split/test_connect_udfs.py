from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.spark.filters.predicates.compound import NotPredicate
from thalweg.spark.filters.predicates.udf import UdfPredicate
from thalweg.spark.filters.split.connect_udfs import connect_udf_predicate
from thalweg.spark.filters.split.names import client_sql
from thalweg.spark.filters.split.taken_over import StaysInSparkError
from thalweg.spark.filters.worker.udfs import Comparison, Convention


class Frame:
    """A Connect frame without its server: two columns, the number of its plan, and no settings."""

    def __init__(self) -> None:
        from pyspark.sql.types import LongType, StringType, StructType

        self.schema = StructType().add("a", LongType()).add("b", StringType())
        self._plan = self.sparkSession = self.conf = self.catalog = self
        self._plan_id = 7

    def get(self, _setting: str) -> str:
        return "false"

    def getFunction(self, name: str) -> Any:  # noqa: ANN401, N802 - as Spark's catalog has it
        own = "org.apache.spark.sql.catalyst.expressions.Other"
        return SimpleNamespace(className="a.Lambda" if name == "score" else own)


@pytest.fixture
def frame() -> Any:  # noqa: ANN401 - stands for a DataFrame
    return Frame()


def expression_of(column: Any) -> Any:  # noqa: ANN401
    return column._expr  # noqa: SLF001 - no public way


def call_of(function: Callable[..., Any], kind: int, returns: str, *arguments: Any) -> Any:  # noqa: ANN401
    """The Column of a UDF, as PySpark makes it once a session is there."""
    from pyspark.sql.connect.column import Column
    from pyspark.sql.connect.expressions import CommonInlineUserDefinedFunction, PythonUDF

    udf = PythonUDF(returns, kind, function, "3.11")
    expressions = list(map(expression_of, arguments))
    return Column(CommonInlineUserDefinedFunction("f", udf, deterministic=True, arguments=expressions))


def is_odd(number: int) -> bool:
    return number % 2 == 1


def test_calls_and_comparisons(frame: Any) -> None:  # noqa: ANN401
    from pyspark.sql.connect.functions import col, lit

    score = call_of(is_odd, 200, "double", col("a"))
    cases: list[tuple[Any, Comparison | None]] = [
        (call_of(is_odd, 100, "boolean", col("A")), None),
        (score > 0.5, Comparison(">", 0.5, pa.float64())),
        (lit(1) > score, Comparison("<", 1, pa.float64())),
        (score.isNull(), Comparison("<=>", None, pa.float64())),
        (call_of(is_odd, 101, "int", col("a")) >= 2**40, Comparison(">=", 2**40, pa.int64())),
    ]
    for condition, comparison in cases:
        found = connect_udf_predicate("f", condition, frame)
        assert isinstance(found, UdfPredicate)
        assert found.arguments == ("a",)
        assert found.call.function is is_odd
        assert found.call.comparison == comparison
    negated = connect_udf_predicate("f", score != 0.5, frame)
    assert isinstance(negated, NotPredicate)
    assert isinstance(negated.negated, UdfPredicate)
    assert negated.negated.call.convention is Convention.PANDAS


def test_conditions_that_stay(frame: Any) -> None:  # noqa: ANN401
    from pyspark.sql.connect.functions import col, lower

    cases: dict[str, Any] = {
        "arguments have to be columns or constants": call_of(is_odd, 100, "boolean", lower(col("b"))),
        "used for more than a comparison": call_of(is_odd, 100, "long", col("a")) + 1 > 2,
        "no plain constant": call_of(is_odd, 100, "long", col("a")) == col("a"),
        "of another type": call_of(is_odd, 100, "string", col("a")) == 1,
        "values that are not compared here": call_of(is_odd, 100, "array<int>", col("a")),
        "called in another way": call_of(is_odd, 202, "boolean", col("a")),
    }
    for reason, condition in cases.items():
        with pytest.raises(StaysInSparkError, match=reason):
            connect_udf_predicate("f", condition, frame)
    assert connect_udf_predicate("f", col("a") > 1, frame) is None
    assert connect_udf_predicate("f", "length(b) > 1 AND theirs(a)", frame) is None
    with pytest.raises(StaysInSparkError, match="the function score is known to the server alone"):
        connect_udf_predicate("f", "score(a) > 1", frame)


def test_a_column_before_a_predicate_says_what_to_write() -> None:
    from pyspark.sql.connect.functions import col

    with pytest.raises(TypeError, match="is no Column: write it to the left of the Column, as in predicate & column"):
        col("a") & tw.predicate(is_odd, on="a", takes="rows")


def test_names() -> None:
    from pyspark.sql.connect.functions import col, length

    assert client_sql(expression_of((col("a") + 1) * 2 < length(col("b")))) == "((a + 1) * 2) < length(b)"
    assert client_sql(expression_of(col("a").isNotNull())) == "a IS NOT NULL"
    assert client_sql(expression_of(col("p.first name") == 1)) == "p.`first name` = 1"
    assert client_sql(expression_of(col("`a.b`") == 1)) == "`a.b` = 1"
    assert client_sql(expression_of(col("a").like("x%") | ~col("b").isin("y", None))) == (
        "(a LIKE 'x%') OR NOT (b IN ('y', NULL))"
    )

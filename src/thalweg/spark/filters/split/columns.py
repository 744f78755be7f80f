"""Takes a condition apart at its outermost AND, OR or NOT, as a user writes it: SQL text, or a Column.

A Column is an expression that Spark has not analysed yet: its operands are Columns as good as those that were joined.
Where a version of Spark keeps other objects behind a Column, the Column stays whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.catalyst import column_of_expression
from thalweg.spark.filters.split.logic import Connective
from thalweg.spark.filters.split.text import take_text_apart
from thalweg.spark.jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import Column

CONNECTIVES: dict[str, Connective] = {"and": "and", "or": "or", "!": "not", "not": "not"}


def take_apart(condition: str | Column) -> tuple[Connective, list[str | Column]] | None:
    """The outermost connective of a condition and its operands; None if it has none."""
    if isinstance(condition, str):
        found = take_text_apart(condition)
        return None if found is None else (found[0], list(found[1]))
    return _of_classic(condition) if hasattr(condition, "_jc") else _of_connect(condition)


def _of_classic(column: Any) -> tuple[Connective, list[str | Column]] | None:  # noqa: ANN401 - a classic Column
    from py4j.protocol import Py4JError
    from pyspark.sql.classic.column import Column

    try:
        node = column._jc.node()  # noqa: SLF001 - no public way
        kind = node.getClass().getSimpleName()
        if kind == "SqlExpression":
            return take_apart(node.expression())
        if kind == "ExpressionColumnNode":  # of an expression that Spark has analysed
            return _of_expression(node.expression())
        connective = CONNECTIVES.get(node.functionName()) if kind == "UnresolvedFunction" else None
        if connective is None:
            return None
        java_column = java_class(_jvm(), "org.apache.spark.sql.Column")
        arguments = node.arguments()
        operands = [Column(java_column(arguments.apply(place))) for place in range(arguments.size())]
    except (Py4JError, TypeError):
        return None
    return connective, list(operands)


def _of_expression(expression: Any) -> tuple[Connective, list[str | Column]] | None:  # noqa: ANN401 - of Catalyst
    connective = {"And": "and", "Or": "or", "Not": "not"}.get(expression.getClass().getSimpleName())
    if connective is None:
        return None
    operands = expression.children()
    jvm = _jvm()
    columns = [column_of_expression(jvm, operands.apply(place)) for place in range(operands.size())]
    return CONNECTIVES[connective], list(columns)


def _of_connect(column: Any) -> tuple[Connective, list[str | Column]] | None:  # noqa: ANN401 - a Column of Connect
    from pyspark.sql.connect import expressions as client
    from pyspark.sql.connect.column import Column

    expression = getattr(column, "_expr", None)
    if isinstance(expression, client.SQLExpression):
        return take_apart(expression._expr)  # noqa: SLF001 - no public way
    if not isinstance(expression, client.UnresolvedFunction):
        return None
    connective = CONNECTIVES.get(expression._name)  # noqa: SLF001 - as above
    if connective is None:
        return None
    return connective, [Column(argument) for argument in expression._args]  # noqa: SLF001 - as above


def _jvm() -> Any:  # noqa: ANN401 - py4j's view of the JVM
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - there is one, as there is a Column
    return context._jvm  # noqa: SLF001 - no public way

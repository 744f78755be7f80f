"""Filters that are made without an analysis by Spark, of parts that Spark has analysed before.

Spark's analysis takes longer than all else of a call. The conditions of a call are analysed once, to know facts about
them; the filter is made of the very same expressions, where they stand in it as they were analysed. Of an equal filter
before, all parts are known; only the tag of the run, or the function of the Python stage, is another in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

from thalweg.spark.analysis.catalyst import stands_on
from thalweg.spark.frames import Answers, plan_of, schema_of
from thalweg.spark.jvm import CATALYST, java_class, java_method, java_value, python_function
from thalweg.spark.operators import analysed_expression, expression_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from thalweg.spark.analysis.catalyst import CatalystAnalysis

Conditions = Callable[[], "Sequence[Column] | None"]  # what a filter tests in Spark; None if it is more than a filter


class FunctionOfColumns(Protocol):
    """A function that Spark is to call with iterators of Arrow batches of columns."""

    columns: tuple[str, ...]

    @property
    def return_type(self) -> DataType:
        """The type of the results in Spark."""

    def runner(self) -> Any:  # noqa: ANN401 - a callable with a name
        """The function itself, made for a call of `tw.where`."""


def refiltered(
    analysis: CatalystAnalysis,
    frame: Any,  # noqa: ANN401 - a classic DataFrame
    question: Hashable,
    tag: str,
    conditions: Conditions,
    lowered: Callable[[], DataFrame],
) -> DataFrame:
    """The DataFrame that `lowered` makes of analysed conditions: a filter of conditions, with a tag behind them.

    What such a filter tests is remembered with the analysis, for the next filter of the same kind.
    """
    from py4j.protocol import Py4JError

    made: list[DataFrame] = []

    def condition() -> Any:  # noqa: ANN401 - an expression of the JVM
        columns = conditions()
        analysed = _conjunction(frame, columns) if columns else None
        if analysed is not None:
            return analysed
        made.append(lowered())
        found = _condition_below(made[0], frame)
        return found.left() if found is not None and found.nodeName() == "And" else None

    jvm = frame.sparkSession._jvm  # noqa: SLF001 - no public way
    try:
        found = analysis.answers.once(("filter", question), condition)
        if made or found is None:
            return made[0] if made else lowered()
        text = java_method(jvm, "org.apache.spark.unsafe.types.UTF8String", "fromString")(tag)
        kind = java_method(jvm, "org.apache.spark.sql.types.DataTypes", "StringType")  # a constant
        literal = java_class(jvm, f"{CATALYST}.expressions.Literal")(text, kind)
        is_tagged = java_class(jvm, f"{CATALYST}.expressions.IsNotNull")(literal)
        return _filtered(frame, java_class(jvm, f"{CATALYST}.expressions.And")(found, is_tagged))
    except (Py4JError, TypeError):
        return made[0] if made else lowered()


def refiltered_in_python(
    answers: Answers,
    frame: Any,  # noqa: ANN401 - a classic DataFrame
    question: Hashable,
    function: FunctionOfColumns,
    conditions: Conditions,
    lowered: Callable[[], DataFrame],
) -> DataFrame:
    """The same where a Python function of columns follows the conditions, which is another in every call."""
    from py4j.protocol import Py4JError

    made: list[DataFrame] = []

    def remembered() -> _FilterWithUdf | None:
        columns = conditions()
        found = None if columns is None else _FilterWithUdf.analysed(frame, columns, function)
        if found is not None:
            return found
        made.append(lowered())
        return _FilterWithUdf.of(_condition_below(made[0], frame))

    spark = frame.sparkSession
    jvm, context = spark._jvm, spark.sparkContext  # noqa: SLF001 - no public way
    try:
        found = answers.once(("filter with UDF", question), remembered)
        if made or found is None:
            return made[0] if made else lowered()
        runner = function.runner()
        last = java_class(jvm, f"{CATALYST}.expressions.PythonUDF")(
            runner.name,
            python_function(context, runner, function.return_type),
            found.return_type,
            found.arguments,
            found.calling_convention,
            found.deterministic,
            java_method(jvm, f"{CATALYST}.expressions.NamedExpression", "newExprId")(),
        )
        first = found.conditions
        return _filtered(frame, last if first is None else java_class(jvm, f"{CATALYST}.expressions.And")(first, last))
    except (Py4JError, TypeError):
        return made[0] if made else lowered()


@dataclass(frozen=True)
class _FilterWithUdf:
    """The parts of an analysed filter that ends with a Python UDF; all are objects of the JVM."""

    conditions: Any  # before the UDF; None if there are none
    arguments: Any  # of the UDF
    return_type: Any  # of the UDF
    calling_convention: int  # of the UDF: PySpark's number for how Spark calls it
    deterministic: bool

    @classmethod
    def analysed(
        cls,
        frame: Any,  # noqa: ANN401 - a classic DataFrame
        columns: Sequence[Column],
        function: FunctionOfColumns,
    ) -> _FilterWithUdf | None:
        """The parts of a filter of these conditions and a function of columns; None if Spark has to analyse them."""
        from pyspark.util import PythonEvalType

        arguments = _attributes(frame, function.columns)
        conditions = _conjunction(frame, columns) if columns else None
        if arguments is None or (columns and conditions is None):
            return None
        kind = function.return_type.json()
        return_type = java_value(frame.sparkSession._jvm, "org.apache.spark.sql.types.DataType", "fromJson", kind)  # noqa: SLF001
        return cls(conditions, arguments, return_type, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF, deterministic=True)

    @classmethod
    def of(cls, condition: Any) -> _FilterWithUdf | None:  # noqa: ANN401 - an expression of the JVM
        """The parts of a condition; None if it has others."""
        if condition is None:
            return None
        first, last = (condition.left(), condition.right()) if condition.nodeName() == "And" else (None, condition)
        if last.nodeName() != "PythonUDF":
            return None
        return cls(first, last.children(), last.dataType(), last.evalType(), last.udfDeterministic())


def _filtered(frame: Any, condition: Any) -> DataFrame:  # noqa: ANN401 - a classic DataFrame, an expression of the JVM
    """A DataFrame behind a filter whose condition is analysed already."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    spark, jvm = frame.sparkSession, frame.sparkSession._jvm  # noqa: SLF001 - no public way
    plan = java_class(jvm, f"{CATALYST}.plans.logical.Filter")(condition, plan_of(frame))
    plan.setAnalyzed()
    rows = java_method(jvm, "org.apache.spark.sql.classic.Dataset", "ofRows")(spark._jsparkSession, plan)  # noqa: SLF001
    return ClassicFrame(rows, spark)


def _conjunction(frame: Any, columns: Sequence[Column]) -> Any:  # noqa: ANN401 - a classic DataFrame, an object of the JVM
    """The conjunction of conditions on a DataFrame's own columns, if Spark has analysed all of them; else None."""
    spark = frame.sparkSession
    make_and = java_class(spark._jvm, f"{CATALYST}.expressions.And")  # noqa: SLF001 - no public way
    conjunction = reduce(make_and, [expression_of(spark, column) for column in columns])
    is_known = all(analysed_expression(column) is not None for column in columns)
    return conjunction if is_known or stands_on(frame, conjunction) else None


def _attributes(frame: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - a classic DataFrame, a sequence of the JVM
    """The columns with these names; None where a name is not that of one column alone, to the letter."""
    jvm, fields = frame.sparkSession._jvm, [name.lower() for name in schema_of(frame).names]  # noqa: SLF001 - no public way
    if any(fields.count(name.lower()) != 1 or name not in schema_of(frame).names for name in names):
        return None
    output, attributes = plan_of(frame).output(), java_class(jvm, "java.util.ArrayList")()
    for name in names:
        attributes.add(output.apply(fields.index(name.lower())))
    return java_method(jvm, "org.apache.spark.api.python.PythonUtils", "toSeq")(attributes)


def _condition_below(made: Any, frame: Any) -> Any:  # noqa: ANN401 - DataFrames, an expression of the JVM
    """The condition of a filter on a DataFrame; None where Spark has changed more than the filter."""
    from py4j.protocol import Py4JError

    plan = made._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way
    try:
        return plan.condition() if plan.nodeName() == "Filter" and plan.child().fastEquals(plan_of(frame)) else None
    except Py4JError:
        return None

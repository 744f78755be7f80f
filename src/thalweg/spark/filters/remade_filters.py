"""Filters that are made again without an analysis by Spark, of the analysed parts of an equal filter before.

Spark's analysis takes longer than all else of a call. The parts are the same expressions on the same columns; only the
tag of the run, or the function of the Python stage, is another in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg.spark.frames import Answers, once_a_frame
from thalweg.spark.jvm import CATALYST, java_class, java_method, python_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.analysis.catalyst import CatalystAnalysis


def refiltered(
    analysis: CatalystAnalysis,
    frame: Any,  # noqa: ANN401 - a classic DataFrame
    question: Hashable,
    tag: str,
    lowered: Callable[[], DataFrame],
) -> DataFrame:
    """The DataFrame that `lowered` makes of analysed conditions: a filter of conditions, with a tag behind them.

    The conditions of such a filter are remembered with the analysis: the next filter of the same kind is made of them
    without another analysis by Spark, which takes longer than all else of a call.
    """
    from py4j.protocol import Py4JError

    made: list[DataFrame] = []

    def condition() -> Any:  # noqa: ANN401 - an expression of the JVM
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
    make_function: Callable[[], Any],
    lowered: Callable[[], DataFrame],
) -> DataFrame:
    """The same where a Python UDF follows the conditions: another function takes its place with the same arguments."""
    from py4j.protocol import Py4JError

    made: list[DataFrame] = []

    def remembered() -> _FilterWithUdf | None:
        made.append(lowered())
        return _FilterWithUdf.of(_condition_below(made[0], frame))

    spark = frame.sparkSession
    jvm, context = spark._jvm, spark.sparkContext  # noqa: SLF001 - no public way
    try:
        found = answers.once(("filter with UDF", question), remembered)
        if made or found is None:
            return made[0] if made else lowered()
        function = make_function()
        last = java_class(jvm, f"{CATALYST}.expressions.PythonUDF")(
            function.name,
            python_function(context, function, function.return_type),
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
    plan = java_class(jvm, f"{CATALYST}.plans.logical.Filter")(condition, _plan(frame))
    plan.setAnalyzed()
    rows = java_method(jvm, "org.apache.spark.sql.classic.Dataset", "ofRows")(spark._jsparkSession, plan)  # noqa: SLF001
    return ClassicFrame(rows, spark)


def _condition_below(made: Any, frame: Any) -> Any:  # noqa: ANN401 - DataFrames, an expression of the JVM
    """The condition of a filter on a DataFrame; None where Spark has changed more than the filter."""
    from py4j.protocol import Py4JError

    plan = made._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way
    try:
        return plan.condition() if plan.nodeName() == "Filter" and plan.child().fastEquals(_plan(frame)) else None
    except Py4JError:
        return None


@once_a_frame
def _plan(frame: Any) -> Any:  # noqa: ANN401 - a classic DataFrame, a logical plan of the JVM
    return frame._jdf.logicalPlan()  # noqa: SLF001 - no public way

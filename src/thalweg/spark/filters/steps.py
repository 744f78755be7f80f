"""Filters and joins with tables of keys, one after the other, which Spark analyses all at once.

`DataFrame.join` and `DataFrame.where` analyse the whole plan anew, so that eight lookups take eight times as long as
a single lookup. The plan is put together here from Catalyst's own nodes; where a version of Spark has other nodes, and
with Spark Connect, which analyses a plan when it is needed, the steps are taken one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from thalweg.spark.jvm import CATALYST, java_class, java_method, java_value

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class KeyJoin:
    """A semi-join or anti-join with a table of keys."""

    keys: DataFrame
    condition: Column
    how: str  # as `DataFrame.join` has it


Step: TypeAlias = "Column | KeyJoin"  # a Column is the condition of a filter


def apply_steps(frame: DataFrame, steps: Sequence[Step]) -> DataFrame:
    """The rows of a DataFrame that all steps keep, which take place in this order."""
    from py4j.protocol import Py4JError

    if len(steps) > 1 and hasattr(frame, "_jdf"):
        try:
            return _applied_at_once(frame, steps)
        except (Py4JError, TypeError):  # a version of Spark with other nodes
            pass
    return reduce(_applied, steps, frame)


def _applied(frame: DataFrame, step: Step) -> DataFrame:
    return frame.join(step.keys, step.condition, step.how) if isinstance(step, KeyJoin) else frame.where(step)


def _applied_at_once(frame: Any, steps: Sequence[Step]) -> DataFrame:  # noqa: ANN401 - a classic DataFrame
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    spark = frame.sparkSession
    session, jvm = spark._jsparkSession, spark._jvm  # noqa: SLF001 - no public way
    logical = f"{CATALYST}.plans.logical"
    plan = frame._jdf.logicalPlan()  # noqa: SLF001 - as above
    for step in steps:
        condition: Any = step.condition if isinstance(step, KeyJoin) else step
        expression = session.expression(condition._jc)  # noqa: SLF001 - as above
        if isinstance(step, KeyJoin):
            keys: Any = step.keys
            plan = java_class(jvm, f"{logical}.Join")(
                plan,
                keys._jdf.logicalPlan(),  # noqa: SLF001 - as above
                java_method(jvm, f"{CATALYST}.plans.JoinType", "apply")(step.how),
                java_class(jvm, "scala.Some")(expression),
                java_value(jvm, f"{logical}.JoinHint", "NONE"),
            )
        else:
            plan = java_class(jvm, f"{logical}.Filter")(expression, plan)
    return ClassicFrame(java_method(jvm, "org.apache.spark.sql.classic.Dataset", "ofRows")(session, plan), spark)

"""The conditions on candidates, divided: cells test those that Arrow evaluates exactly as Spark does, Spark the others.

Spark analyses all of them when the join is defined, so that types that do not fit are refused before anything runs. It
tests a condition on the results of cells: on all combinations for which the equalities, the windows and the conditions
in cells hold. These do not depend on the order of probing, so neither do the errors of a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from thalweg.joinorder.text import Attribute
from thalweg.spark.analysis.catalyst import facts_of
from thalweg.spark.joins.inputs import JoinInput, first_sentence
from thalweg.spark.joins.kinds import NotExactError, SparkRules
from thalweg.spark.joins.residuals import CandidateTest
from thalweg.spark.joins.text import ResultColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIDDEN = "__thalweg_candidate_"  # the beginning of the names of columns that only conditions read
CLOCK_FUNCTIONS = {"now", "current_timestamp", "current_date", "localtimestamp", "curdate", "current_time"}
ZONES_WITHOUT_SUMMER_TIME = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00", "UTC+00:00", "Etc/GMT"}


@dataclass(frozen=True)
class ResultFilter:
    """A condition that Spark tests on the results of cells."""

    text: str  # as the user knows it
    sql: str  # on hidden columns of the result
    columns: tuple[ResultColumn, ...]  # the hidden columns


class ResidualConditions(NamedTuple):
    """The conditions on candidates."""

    in_cells: tuple[CandidateTest, ...]
    in_spark: tuple[ResultFilter, ...]


def divide_residuals(
    residuals: Sequence[tuple[str, tuple[Attribute, ...]]], inputs: Sequence[JoinInput], spark: SparkSession
) -> ResidualConditions:
    """The conditions for cells and for Spark; refuses conditions that are neither."""
    rules, in_cells, in_spark = rules_of(spark), list[CandidateTest](), list[ResultFilter]()
    numbers: dict[Attribute, int] = {}
    by_name = {each.name: each for each in inputs}
    for text, attributes in residuals:
        for attribute in attributes:
            numbers.setdefault(attribute, len(numbers))
        result_filter = _result_filter(text, attributes, numbers)
        _check(result_filter, by_name, spark)
        test = CandidateTest(
            text, attributes, tuple(_arrow_type(by_name[each.stream], each.name) for each in attributes), rules
        )
        try:
            test.check()
        except NotExactError:
            in_spark.append(result_filter)
        else:
            in_cells.append(test)
    return ResidualConditions(tuple(in_cells), tuple(in_spark))


def rules_of(spark: SparkSession) -> SparkRules:
    """The settings of a session that the meaning of expressions depends on."""
    return SparkRules(
        is_ansi=str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true",
        is_utc=spark.conf.get("spark.sql.session.timeZone") in ZONES_WITHOUT_SUMMER_TIME,
    )


def _arrow_type(source: JoinInput, column: str) -> pa.DataType:
    """The type of a column for Arrow; none for text with a collation, which Arrow does not know."""
    return pa.null() if "collate" in source.types[column].simpleString() else source.arrow_types[column]


def _result_filter(text: str, attributes: Sequence[Attribute], numbers: Mapping[Attribute, int]) -> ResultFilter:
    """A condition with hidden columns in place of its attributes."""
    import sqlglot
    from sqlglot import expressions as e

    from thalweg.sql.dialect import VerbatimSpark, render

    tree = sqlglot.parse_one(text, dialect=VerbatimSpark)
    for call in tree.find_all(e.Func):
        name = (call.name if isinstance(call, e.Anonymous) else call.sql_name()).lower()
        if name in CLOCK_FUNCTIONS:
            raise ValueError(
                f"{text!r} asks for the present time, so that its answer depends on when a micro-batch runs; compare "
                f"event times, or filter the result of tw.join with .where(...)"
            )
    for column in list(tree.find_all(e.Column)):
        number = numbers[Attribute(column.table, column.name)]
        column.replace(e.column(f"{HIDDEN}{number}"))
    columns = tuple((each.stream, each.name, f"{HIDDEN}{numbers[each]}") for each in attributes)
    return ResultFilter(text, render(tree), columns)


def _check(result_filter: ResultFilter, inputs: Mapping[str, JoinInput], spark: SparkSession) -> None:
    """Let Spark analyse a condition over no rows."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    fields = [StructField(alias, inputs[name].types[column]) for name, column, alias in result_filter.columns]
    try:
        (facts,) = facts_of(spark.createDataFrame([], StructType(fields)), [f.expr(result_filter.sql)])
    except AnalysisException as error:
        message = first_sentence(error)
        for name, column, alias in result_filter.columns:
            message = message.replace(f'"{alias}"', str(Attribute(name, column)))
        raise ValueError(f"Spark refuses {result_filter.text!r} in on=: {message}") from None
    if not facts.deterministic:
        raise ValueError(
            f"{result_filter.text!r} has another answer each time; filter the result of tw.join with .where(...)"
        )

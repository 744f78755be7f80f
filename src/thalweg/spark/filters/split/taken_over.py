"""Which Python UDFs are taken over from a condition, and the predicates that they become; for all kinds of sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.spark.filters.predicates.udf import UdfPredicate
from thalweg.spark.filters.worker.nested_series import can_convert
from thalweg.spark.filters.worker.udfs import Comparison, Convention, UdfCall
from thalweg.spark.frames import Answers

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

# The types of values that a UDF may return, from narrow to wide where Spark compares values in the wider type.
NUMBERS = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}
RETURNS = NUMBERS | {"boolean": pa.bool_(), "string": pa.string(), "date": pa.date32()}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
PLAIN = {*NUMBERS, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"}  # that pandas has values for
CONSTANTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": lambda text: text == "true",
    "string": str,
    "date": date.fromisoformat,
}
MORE_THAN_COMPARED = "its value is used for more than a comparison with a constant"
MOST_CONSTANTS = 100  # that a value is compared with, one after the other
DAY_TIME_INTERVALS = ("interval day", "interval hour", "interval minute", "interval second")
TIME_ZONE = "spark.sql.session.timeZone"
SAFELY = "spark.sql.execution.pandas.convertToArrowArraySafely"
OTHER_VALUES = {  # settings with which Spark hands a UDF other values
    "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled": {Convention.ARROW_ROWS},
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype": {Convention.PANDAS, Convention.PANDAS_ITERATOR},
}


class StaysInSparkError(Exception):
    """A condition with a UDF is not taken over; the message says why."""


@dataclass(frozen=True)
class Argument:
    """An argument of a UDF: a column of the DataFrame, or an expression that Spark computes."""

    name: str
    kind: Any  # the type, as JSON has it
    keyword: str | None = None  # if it is passed by name
    column: Column | None = None  # of an expression


@dataclass(frozen=True)
class FoundUdf:
    """A call of a UDF as a session knows it."""

    function: Callable[..., Any]
    digest: str  # of the function with the values around it
    convention: Convention
    deterministic: bool
    returns: str  # the type of its values
    arguments: Sequence[Argument]
    came_pickled: bool = False  # whether the function was read from what PySpark had pickled

    def predicate(
        self, name: str, comparison: Comparison | None, spark: SparkSession, settings: Answers | None = None
    ) -> UdfPredicate:
        """The predicate that the call becomes, with the comparison of its values.

        `settings` remembers the session's settings, as long as they are the same.
        """
        settings = settings or Answers()
        self._check(spark, settings)
        return UdfPredicate(
            name=name,
            deterministic=self.deterministic,
            function_digest=self.digest,
            call=UdfCall(
                function=self.function,
                convention=self.convention,
                keywords=tuple(argument.keyword for argument in self.arguments),
                returns=RETURNS[self.returns],
                safely=_is_set(spark, SAFELY, settings),
                comparison=comparison,
                time_zone=str(spark.conf.get(TIME_ZONE)) if self._has_nested else "",
            ),
            arguments=tuple(argument.name for argument in self.arguments),
            expressions={argument.name: argument.column for argument in self.arguments if argument.column is not None},
            came_pickled=self.came_pickled,
        )

    @property
    def _has_nested(self) -> bool:
        """Whether PySpark's own function converts arguments to pandas."""
        return self.convention.is_of_pandas and not all(_is_plain(argument.kind) for argument in self.arguments)

    def _check(self, spark: SparkSession, settings: Answers) -> None:
        if self.returns not in RETURNS:
            raise StaysInSparkError("it returns values that are not compared here")
        if self.returns == "string" and self.convention is Convention.ROWS:
            raise StaysInSparkError("Java writes the values that it returns as text, which Python writes differently")
        if not self.arguments:
            raise StaysInSparkError("it takes no column")
        for argument in self.arguments:
            if not _is_known(argument.kind):
                raise StaysInSparkError(f"its argument {argument.name} has a type that only Spark hands to it")
        if self._has_nested and not can_convert():
            raise StaysInSparkError("this version of PySpark converts structs, maps and arrays in another place")
        for setting, conventions in OTHER_VALUES.items():
            if self.convention in conventions and _is_set(spark, setting, settings):
                raise StaysInSparkError(f"{setting} is set")


def _is_set(spark: SparkSession, setting: str, settings: Answers) -> bool:
    """Whether a setting of a session is true; a version of Spark that does not know it has it false."""
    from pyspark.errors import PySparkException

    def asked() -> bool:
        try:
            return spark.conf.get(setting) == "true"  # asked with a default, Spark would answer that and not its own
        except PySparkException:
            return False

    return settings.once(("setting", setting), asked)


def _is_plain(kind: Any) -> bool:  # noqa: ANN401 - a type as JSON has it
    """Whether pandas has values for a type."""
    return isinstance(kind, str) and (kind in PLAIN or kind.startswith("decimal"))


def _is_known(kind: Any) -> bool:  # noqa: ANN401 - as above
    """Whether values of a type are converted here as Spark converts them."""
    if not isinstance(kind, dict):
        return _is_plain(kind) or str(kind).startswith(DAY_TIME_INTERVALS)
    inner = [kind.get("elementType"), kind.get("keyType"), kind.get("valueType")]
    inner += [field["type"] for field in kind.get("fields", ())]
    return kind["type"] in {"array", "map", "struct"} and all(_is_known(each) for each in inner if each is not None)

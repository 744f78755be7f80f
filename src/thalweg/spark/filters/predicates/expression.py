"""Predicates that Spark evaluates: conditions in Spark SQL, Columns, and regular expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg.keywords import checks_keywords
from thalweg.spark.analysis.catalyst import Facts
from thalweg.spark.filters.conditions import SparkCondition
from thalweg.spark.filters.predicates.base import OPTIONS, Analysis, Predicate, checked_options, is_column
from thalweg.spark.jvm import java_class
from thalweg.spark.operators import expression

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class RegexSearch:
    """Whether a pattern is found in a column: a condition that is told apart by its content, whatever its name."""

    column: str
    pattern: str

    def __call__(self, frame: DataFrame) -> Column:
        """The condition as a Column."""
        from pyspark.sql import functions as f

        _check_pattern(frame, self)
        return f.col(self.column).rlike(self.pattern)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpressionPredicate(Predicate):
    """A condition that Spark evaluates: text in Spark SQL, a Column, or a search by a regular expression."""

    condition: str | Column | RegexSearch
    whole: bool = True  # False for a condition that `tw.where` may split at its ANDs and ORs
    facts: Facts | None = None  # if Spark has analysed the condition
    ready: Column | None = None  # the condition as a Column, if it is made already

    @property
    def details(self) -> tuple[object, ...]:  # noqa: D102 - as the base has it
        return (self.condition,)

    def column(self, frame: DataFrame) -> Column:
        """The condition as a Column."""
        if self.ready is not None:
            return self.ready
        if isinstance(self.condition, str):
            return expression(self.condition)
        if isinstance(self.condition, RegexSearch):
            return self.condition(frame)
        return self.condition

    def in_spark(self, analysis: Analysis) -> SparkCondition:  # noqa: D102
        return analysis.condition(self)


@checks_keywords("tw.expr", *OPTIONS)
def expr(condition: str | Column, *, name: str | None = None, **options: Any) -> ExpressionPredicate:  # noqa: ANN401
    """A condition in Spark SQL, or a Column, evaluated by Spark itself, as a whole.

    `tw.where` splits Columns and texts at their ANDs and ORs, but a condition in `tw.expr` stays together.

    >>> expr("amount > 100").name
    'amount > 100'
    """
    if not isinstance(condition, str) and not is_column(condition):
        raise TypeError(f"tw.expr takes a condition such as 'amount > 100', or a Column, not {condition!r}")
    if isinstance(condition, str) and not condition.strip():
        raise ValueError("tw.expr takes a condition such as 'amount > 100', not an empty text")
    shown = str(condition).removeprefix("Column<'").removesuffix("'>")
    return ExpressionPredicate(name=name or shown, condition=condition, **checked_options(options))


@checks_keywords("tw.regex", *OPTIONS)
def regex(column: str, pattern: str, *, name: str | None = None, **options: Any) -> ExpressionPredicate:  # noqa: ANN401
    r"""Whether a pattern, in Java's syntax, is found in a text column; evaluated by Spark itself.

    >>> regex("url", r"/login\b").name
    'url rlike /login\\b'
    >>> regex("url", "a", name="known").signature == regex("url", "b", name="known").signature
    False
    """
    if not column or type(column) is not str:
        raise TypeError(f"tw.regex takes a column's name first, tw.regex('url', pattern), not {column!r}")
    if isinstance(pattern, re.Pattern):
        raise TypeError(
            "Spark searches with Java's patterns: write tw.regex(column, compiled.pattern), and see that it fits"
        )
    if not isinstance(pattern, str):
        raise TypeError(f"tw.regex takes a pattern as text, not {pattern!r}")
    search = RegexSearch(column, pattern)
    return ExpressionPredicate(name=name or f"{column} rlike {pattern}", condition=search, **checked_options(options))


def _check_pattern(frame: DataFrame, search: RegexSearch) -> None:
    """Refuse a pattern that Java does not take; Connect learns it from Spark."""
    if not hasattr(frame, "_jdf"):
        return
    from pyspark.errors import IllegalArgumentException

    try:
        java_class(frame.sparkSession._jvm, "java.util.regex.Pattern").compile(search.pattern)  # noqa: SLF001
    except IllegalArgumentException as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"column {search.column!r}: {search.pattern!r} is no pattern in Java's syntax, which Spark uses: {reason}"
        ) from None

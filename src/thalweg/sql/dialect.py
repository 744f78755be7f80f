"""Spark SQL as sqlglot reads and writes it here: an expression keeps its meaning under Spark.

sqlglot translates functions between dialects, and its round trip from Spark to Spark changes some of them:
`percentile_cont` becomes `percentile_approx`, `to_char(a, '99')` becomes a cast. Here functions stay as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import expressions as e
from sqlglot.dialects.spark import Spark
from sqlglot.expressions import Expr

# Functions whose arguments may be separated by words instead of commas: sqlglot has to know them to parse them.
_FUNCTIONS_WITH_WORDS = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST")
# Functions that may take a unit, such as DAY, as the first of three arguments.
_FUNCTIONS_OF_UNITS = (
    "DATEADD",
    "DATEDIFF",
    "DATE_ADD",
    "DATE_DIFF",
    "TIMEDIFF",
    "TIMESTAMPADD",
    "TIMESTAMPDIFF",
)
_ARGUMENTS_WITH_UNIT = 3


def _build_function_of_unit(name: str) -> Callable[[list[Any]], Expr]:
    def build(arguments: list[Any]) -> Expr:
        if len(arguments) == _ARGUMENTS_WITH_UNIT and isinstance(arguments[0], e.Column):
            arguments = [e.var(arguments[0].name.upper()), *arguments[1:]]
        return e.Anonymous(this=name, expressions=arguments)

    return build


class VerbatimSpark(Spark):
    """Spark's dialect, in which every function has the name and the arguments that the user wrote."""

    class Tokenizer(Spark.Tokenizer):
        """Reads 'it''s' as Spark 4 does: a quote that is written twice is a quote."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - sqlglot declares it so

    class Parser(Spark.Parser):  # type: ignore[valid-type,misc] # sqlglot assigns it
        """Knows operators, CASE, and the functions that are written with words between their arguments."""

        FUNCTIONS = {name: _build_function_of_unit(name) for name in _FUNCTIONS_OF_UNITS}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _FUNCTIONS_WITH_WORDS
        }
        NO_PAREN_FUNCTION_PARSERS = {"CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}  # noqa: RUF012
        ARRAY_CONSTRUCTORS: ClassVar[
            dict[str, type[Expr]]
        ] = {}  # array(1, 2)[0] is an element of an array, not the array(0)
        ADD_JOIN_ON_TRUE = False


def render(expression: Expr) -> str:
    """The text of an expression for Spark: every identifier in backticks, names of functions in lower case.

    >>> from sqlglot import parse_one
    >>> render(parse_one("SUM(a.x)/* all */+ 1L", dialect=VerbatimSpark))
    'sum(`a`.`x`) + CAST(1 AS BIGINT)'
    """
    return expression.sql(dialect=VerbatimSpark, identify=True, comments=False, normalize_functions="lower")


def readable(expression: Expr) -> str:
    """The text of an expression as a name for a column or for a message: with backticks only where they are needed.

    >>> from sqlglot import parse_one
    >>> readable(parse_one("SUM(a.x)/* all */+ 1", dialect=VerbatimSpark))
    'sum(a.x) + 1'
    """
    return expression.sql(dialect=VerbatimSpark, comments=False, normalize_functions="lower")


def put_interval_sums_in_parentheses(tree: Expr) -> None:
    """Put `INTERVAL 1 day 2 hours`, which sqlglot reads as a sum, in parentheses: `time` minus it stays the same."""
    for addition in list(tree.find_all(e.Add)):
        is_sum_of_intervals = isinstance(addition.this, e.Interval) and isinstance(addition.expression, e.Interval)
        if is_sum_of_intervals and addition.parent is not None and not isinstance(addition.parent, e.Paren):
            addition.replace(e.Paren(this=addition.copy()))

"""Columns made of Columns, with one call of the JVM each.

PySpark's own operators note for error messages which line of the program they stand in: a dozen calls of the JVM for
each `&`. The Columns here are Thalweg's own, and no line of the user's program tells more about them. With Spark
Connect there is no JVM to call, and PySpark's operators are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Any

from thalweg.spark.jvm import active_jvm, java_method

if TYPE_CHECKING:
    from pyspark.sql import Column

FUNCTIONS = "org.apache.spark.sql.functions"


def expression(text: str) -> Column:
    """An expression in Spark SQL."""
    return _made("expr", text)


def column_named(name: str) -> Column:
    """A column by its name, as Spark reads it."""
    return _made("col", name)


def literal(value: int | str) -> Column:
    """A constant."""
    return _made("lit", value)


def analysed_column(jvm: Any, expression: Any) -> Column:  # noqa: ANN401 - objects of the JVM
    """A Column of an expression that Catalyst has analysed, which knows its columns by identity.

    It is made in the JVM when it is first used: a filter of such Columns alone needs their expressions only.
    """
    from py4j.java_gateway import JavaPackage

    make = java_method(jvm, "org.apache.spark.sql.classic.ExpressionUtils", "column")
    if isinstance(make, JavaPackage):  # there is no such class
        raise TypeError("this version of Spark has no Columns of expressions")
    return _analysed_class()(make, expression)  # type: ignore[no-any-return]


def plain_column(column: Any) -> Column:  # noqa: ANN401 - a classic Column
    """The same Column, of which only the JVM has the expression."""
    return _classic(column._jc)  # noqa: SLF001 - no public way


def analysed_expression(column: Column) -> Any:  # noqa: ANN401 - an object of the JVM
    """The expression of a Column that `analysed_column` made; None of another Column."""
    return vars(column).get("analysed")


def expression_of(session: Any, column: Any) -> Any:  # noqa: ANN401 - a classic session and Column, an object of the JVM
    """Catalyst's expression of a Column; Spark reads a text in it."""
    known = analysed_expression(column)
    return session._jsparkSession.expression(column._jc) if known is None else known  # noqa: SLF001 - no public way


@lru_cache(1)
def _analysed_class() -> Any:  # noqa: ANN401 - a class, which can be defined where PySpark is there
    from pyspark.sql.classic.column import Column as ClassicColumn

    class AnalysedColumn(ClassicColumn):
        """A classic Column that is made of its expression when PySpark first asks for it."""

        def __init__(self, make: Any, expression: Any) -> None:  # noqa: ANN401 - a method and an object of the JVM
            self.make = make
            self.analysed = expression

        @cached_property
        def _jc(self) -> Any:  # noqa: ANN401 - as above
            return self.make(self.analysed)

    return AnalysedColumn


def always() -> Column:
    """The condition that is true of every row."""
    return _made("lit", True)  # noqa: FBT003 - a constant


def never() -> Column:
    """The condition that is true of no row."""
    return _made("lit", False)  # noqa: FBT003 - a constant


def both(left: Column, right: Column) -> Column:
    """The conjunction of two conditions."""
    return _method(left, "and", right) if _is_classic(left) else left & right


def either(left: Column, right: Column) -> Column:
    """The disjunction of two conditions."""
    return _method(left, "or", right) if _is_classic(left) else left | right


def negation(condition: Column) -> Column:
    """True where a condition is false."""
    return _function("not", condition) if _is_classic(condition) else ~condition


def all_of(conditions: Sequence[Column]) -> Column:
    """The conjunction of conditions, in this order."""
    return reduce(both, conditions)


def equal(left: Column, right: Any) -> Column:  # noqa: ANN401 - a Column or a constant
    """Whether two values are equal."""
    return _method(left, "equalTo", right) if _is_classic(left) else left == right


def is_null(value: Column) -> Column:
    """Whether a value is NULL."""
    return _method(value, "isNull") if _is_classic(value) else value.isNull()


def is_not_null(value: Column) -> Column:
    """Whether a value is not NULL."""
    return _method(value, "isNotNull") if _is_classic(value) else value.isNotNull()


def named(value: Column, name: str) -> Column:
    """A value under a name."""
    return _method(value, "alias", name) if _is_classic(value) else value.alias(name)


def cast(value: Column, kind: str) -> Column:
    """A value as another type."""
    return _method(value, "cast", kind) if _is_classic(value) else value.cast(kind)


def if_null(value: Column, otherwise: Column) -> Column:
    """A value, or another value where it is NULL."""
    return _function("nvl", value, otherwise)


def when(condition: Column, value: Column, otherwise: Column) -> Column:
    """A value where a condition is true, and another value elsewhere."""
    chosen = _function("when", condition, value)
    return _method(chosen, "otherwise", otherwise) if _is_classic(chosen) else chosen.otherwise(otherwise)


def product_or_null(left: Column, right: Column) -> Column:
    """The product of two values, or NULL where computing it raises an error."""
    return _function("try_multiply", left, right)


def _is_classic(value: Column) -> bool:
    return hasattr(value, "_jc")


def _made(function: str, value: Any) -> Column:  # noqa: ANN401 - as the function takes it
    """A Column that a function of PySpark makes of a plain value."""
    from pyspark.sql import functions
    from pyspark.sql.utils import is_remote

    if is_remote():
        made: Column = getattr(functions, function)(value)
        return made
    return _classic(java_method(active_jvm(), FUNCTIONS, function)(value))


def _function(name: str, *values: Column) -> Column:
    """A function of Columns."""
    from pyspark.sql import functions

    if not _is_classic(values[0]):
        made: Column = getattr(functions, name)(*values)
        return made
    return _classic(java_method(active_jvm(), FUNCTIONS, name)(*map(_in_java, values)))


def _method(value: Any, name: str, *arguments: Any) -> Column:  # noqa: ANN401 - a classic Column, and Columns or constants
    return _classic(getattr(value._jc, name)(*map(_in_java, arguments)))  # noqa: SLF001 - no public way


def _in_java(value: Any) -> Any:  # noqa: ANN401 - a classic Column or a constant
    return value._jc if hasattr(value, "_jc") else value  # noqa: SLF001 - as above


def _classic(java_column: Any) -> Column:  # noqa: ANN401 - a Column of the JVM
    from pyspark.sql.classic.column import Column

    return Column(java_column)

"""Recognises Python UDFs in a Column of Spark Connect, where the client has the function itself.

Fewer than in a classic session are taken over: arguments are columns and constants, as the client cannot tell which
expressions may raise. A UDF that was registered by name is known to the server alone, and stays there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from thalweg.spark.analysis.connect import calls_udf
from thalweg.spark.filters.predicates.base import Predicate
from thalweg.spark.filters.predicates.compound import not_
from thalweg.spark.filters.split.taken_over import (
    MORE_THAN_COMPARED,
    MOST_CONSTANTS,
    NUMBERS,
    RETURNS,
    TURNED,
    Argument,
    FoundUdf,
    StaysInSparkError,
)
from thalweg.spark.filters.split.text import MOST_TEXTS
from thalweg.spark.filters.worker.udfs import Comparison, Convention
from thalweg.spark.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPARISONS = {"==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "in": "IN"}
NAMES = {"bool": "boolean", "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


def connect_udf_predicate(name: str, column: Any, frame: DataFrame) -> Predicate | None:  # noqa: ANN401 - a Column
    """The predicate of a condition with a UDF; None for a condition without."""
    if isinstance(column, str):
        for called in _unknown_functions(column):
            if _is_registered(frame.sparkSession, called):
                raise StaysInSparkError(f"with Spark Connect the function {called} is known to the server alone")
        return None
    expression = column._expr  # noqa: SLF001 - no public way
    if not calls_udf(expression):
        return None
    negated = False
    while _function_name(expression) in {"not", "!", "!=", "isNotNull"}:
        negated = not negated
        expression = _negated(expression)
    call, comparison = _compared(expression)
    try:
        convention = Convention(call._function._eval_type)  # noqa: SLF001 - as above
    except ValueError:
        raise StaysInSparkError("it is a UDF of a kind that is called in another way") from None
    udf = FoundUdf(
        function=call._function._func,  # noqa: SLF001 - as above
        digest=str(id(call._function._func)),  # noqa: SLF001 - as above
        convention=convention,
        deterministic=call._deterministic,  # noqa: SLF001 - as above
        returns=_returned(call),
        arguments=[_argument(argument, frame) for argument in call._arguments],  # noqa: SLF001 - as above
    )
    found = udf.predicate(name, comparison, frame.sparkSession)
    return not_(found, name=name) if negated else found


@lru_cache(MOST_TEXTS)
def _unknown_functions(text: str) -> tuple[str, ...]:
    """The functions in a condition that are none of Spark's own, as far as sqlglot knows these.

    >>> _unknown_functions("length(s) > 3 AND score(s) > 0.5")
    ('score',)
    """
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return ()
    return tuple(dict.fromkeys(str(node.this) for node in tree.find_all(exp.Anonymous)))


def _is_registered(spark: SparkSession, function: str) -> bool:
    """Whether a function is a user's, and not one of Spark's own."""
    from pyspark.errors import PySparkException

    try:
        kind = spark.catalog.getFunction(function).className
    except PySparkException:
        return False
    return not kind.startswith("org.apache.spark.sql.catalyst")


def _function_name(expression: Any) -> str | None:  # noqa: ANN401 - as above
    from pyspark.sql.connect.expressions import UnresolvedFunction

    return expression._name if isinstance(expression, UnresolvedFunction) else None  # noqa: SLF001 - as above


def _negated(expression: Any) -> Any:  # noqa: ANN401 - as above
    """The expression whose negation an expression is."""
    from pyspark.sql.connect.expressions import UnresolvedFunction

    name, operands = expression._name, expression._args  # noqa: SLF001 - as above
    if name in {"not", "!"}:
        return operands[0]
    return UnresolvedFunction("==" if name == "!=" else "isNull", operands)


def _compared(expression: Any) -> tuple[Any, Comparison | None]:  # noqa: ANN401 - as above
    """The call of a UDF in a condition, and the comparison of its values with a constant."""
    from pyspark.sql.connect.expressions import CommonInlineUserDefinedFunction, LiteralExpression

    if isinstance(expression, CommonInlineUserDefinedFunction):
        return expression, None
    name = _function_name(expression)
    operands = list(expression.children)
    sign = COMPARISONS.get(str(name), str(name))
    if name in COMPARISONS and name != "in" and isinstance(operands[1], CommonInlineUserDefinedFunction):
        operands, sign = operands[::-1], TURNED.get(sign, sign)
    is_call = isinstance(operands[0], CommonInlineUserDefinedFunction)
    if not (name in COMPARISONS or name == "isNull") or not is_call or len(operands) > MOST_CONSTANTS:
        raise StaysInSparkError(MORE_THAN_COMPARED)
    call, returned = operands[0], _returned(operands[0])
    if name == "isNull":
        return call, Comparison("<=>", None, RETURNS[returned])
    if not all(isinstance(operand, LiteralExpression) for operand in operands[1:]):
        raise StaysInSparkError("its value is compared with a value that is no plain constant")
    values = tuple(operand._value for operand in operands[1:])  # noqa: SLF001 - as above
    kinds = {returned, *(operand._dataType.typeName() for operand in operands[1:] if operand._value is not None)}  # noqa: SLF001
    if kinds != {returned} and not kinds <= NUMBERS.keys():
        raise StaysInSparkError("its value is compared with a value of another type")
    kind = returned if kinds == {returned} else max(kinds, key=list(NUMBERS).index)
    return call, Comparison(sign, values if sign == "IN" else values[0], RETURNS[kind])


def _returned(call: Any) -> str:  # noqa: ANN401 - as above
    """The type of a UDF's values."""
    kind = call._function._output_type  # noqa: SLF001 - as above
    name = str(getattr(kind, "data_type_string", None) or kind.typeName()).lower()
    name = NAMES.get(name, name)
    if name not in RETURNS:
        raise StaysInSparkError("it returns values that are not compared here")
    return name


def _argument(expression: Any, frame: DataFrame) -> Argument:  # noqa: ANN401 - as above
    from pyspark.sql.connect import expressions as client
    from pyspark.sql.connect.column import Column

    keyword = None
    if isinstance(expression, client.NamedArgumentExpression):
        keyword, expression = expression._key, expression._value  # noqa: SLF001 - as above
    if isinstance(expression, client.LiteralExpression):
        kind = expression._dataType  # noqa: SLF001 - as above
        # A name of its own: neither of a column, nor of the same constant of another type.
        return Argument(f"({expression} AS {kind.simpleString()})", kind.jsonValue(), keyword, Column(expression))
    if isinstance(expression, client.ColumnReference):
        name = expression._unparsed_identifier  # noqa: SLF001 - as above
        plan: Any = frame
        is_own = expression._plan_id in {None, plan._plan._plan_id}  # noqa: SLF001 - as above
        fields = [field for field in frame.schema.fields if field.name.lower() == name.strip("`").lower()]
        if is_own and len(fields) == 1:
            return Argument(quoted(fields[0].name), fields[0].dataType.jsonValue(), keyword)
    raise StaysInSparkError(f"with Spark Connect its arguments have to be columns or constants, not {expression}")

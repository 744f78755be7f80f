"""Facts about a condition that can be told through Spark Connect, where Catalyst's tree stays at the server.

The client's own expression, or its SQL text as sqlglot reads it, proves the simple tests that data sources evaluate
themselves: a column compared with a constant of its kind, IN, BETWEEN, IS NULL, and AND, OR and NOT of such tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlglot
from pyspark.errors import AnalysisException
from sqlglot import expressions as exp

from thalweg.spark.operators import all_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from sqlglot.expressions import Expr

NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double"}
MOST_DIGITS = 18  # of a number: with the digits of any column below, it fits in a decimal that holds both
DECIMAL = re.compile(r"decimal\((\d+),\d+\)")
NUMBER = re.compile(r"-?\d+\.?\d*")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
# Functions whose value is not a function of the row.
RANDOM = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|randstr|uniform|monotonically_increasing_id|spark_partition_id|"
    r"input_file_(name|block_start|block_length)|(try_)?reflect|java_method)`?(\s|/\*.*?\*/|--[^\n]*\n)*\(",
    re.IGNORECASE | re.DOTALL,
)
COMPARISONS: dict[str, type[Expr]] = {
    "<": exp.LT,
    "<=": exp.LTE,
    "<=>": exp.NullSafeEQ,
    "==": exp.EQ,
    ">": exp.GT,
    ">=": exp.GTE,
}
CONNECTIVES: dict[str, type[Expr]] = {"and": exp.And, "or": exp.Or}


def may_be_random(condition: Column) -> bool:
    """Whether a condition calls a function whose value differs from call to call, or a UDF, which may."""
    client: Any = condition  # a Connect column, of which the public types say nothing
    return RANDOM.search(str(condition)) is not None or calls_udf(client._expr)  # noqa: SLF001 - no public way


def calls_udf(expression: Any) -> bool:  # noqa: ANN401 - an expression of the client
    """Whether an expression of the client calls a Python UDF that is not known by name only."""
    from pyspark.sql.connect.expressions import CommonInlineUserDefinedFunction

    waiting = [expression]
    while waiting:
        found = waiting.pop()
        if isinstance(found, CommonInlineUserDefinedFunction):
            return True
        waiting.extend(found.children)
    return False


def types_of_conditions(frame: DataFrame, conditions: Sequence[Column]) -> list[str | None]:
    """The type of each condition; None for a condition that reads a column which the DataFrame no longer has.

    Spark looks for such a column below the filter, and nowhere else. It refuses conditions that it cannot analyse.
    """
    filtered = frame.where(all_of(conditions))
    try:
        return [field.dataType.typeName() for field in filtered.select(*conditions).schema.fields]
    except AnalysisException:
        filtered.schema  # noqa: B018 - it raises if the conditions themselves are refused
    found: list[str | None] = []
    for condition in conditions:
        try:
            found.append(frame.select(condition).schema.fields[0].dataType.typeName())
        except AnalysisException:
            found.append(None)
    return found


def is_simple_test(frame: DataFrame, condition: Column) -> bool:
    """Whether a condition is a simple test of columns, which cannot raise and takes nanoseconds."""
    types: dict[str, str] = {}
    for field in frame.schema.fields:
        name = field.name.lower()
        types[name] = "ambiguous" if name in types else field.dataType.simpleString()
    client: Any = (condition, frame)  # a Connect column and frame, of which the public types say nothing
    tree = _as_sql(client[0]._expr, client[1]._plan._plan_id)  # noqa: SLF001 - no public way
    return tree is not None and is_simple_tree(tree, types)


def is_simple_tree(tree: Expr, types: Mapping[str, str]) -> bool:
    """Whether a parsed condition is a simple test of columns with these types, whose names are in lower case.

    >>> is_simple_tree(sqlglot.parse_one("a > 5 AND b IN ('x')", dialect="spark"), {"a": "int", "b": "string"})
    True
    >>> is_simple_tree(sqlglot.parse_one("b > 5", dialect="spark"), {"b": "string"})  # a text may be no number
    False
    """
    if isinstance(tree, exp.Paren | exp.Not):
        return is_simple_tree(tree.this, types)
    if isinstance(tree, exp.And | exp.Or):
        return is_simple_tree(tree.this, types) and is_simple_tree(tree.expression, types)
    if isinstance(tree, exp.Column):
        return _type_of(tree, types) == "boolean"
    if isinstance(tree, exp.Is):
        return _type_of(tree.this, types) is not None and isinstance(tree.expression, exp.Null)
    if isinstance(tree, exp.Between):
        operands = [tree.this, tree.args["low"], tree.args["high"]]
    elif isinstance(tree, exp.In) and tree.expressions:
        operands = [tree.this, *tree.expressions]
    elif isinstance(tree, (*COMPARISONS.values(), exp.NEQ)):
        operands = (
            [tree.expression, tree.this] if isinstance(tree.expression, exp.Column) else [tree.this, tree.expression]
        )
    else:
        return False
    column = _type_of(operands[0], types)
    return column is not None and all(_is_of_kind(column, operand) for operand in operands[1:])


def _as_sql(expression: Any, plan_id: int | None) -> Expr | None:  # noqa: ANN401, PLR0911 - a case for each class
    """A client's expression as a parsed condition; None if it is more than a simple test."""
    from pyspark.sql.connect import expressions as client

    if isinstance(expression, client.SQLExpression):
        if '"' in expression._expr:  # noqa: SLF001 - a text or a name, as the session's settings say
            return None
        try:
            return sqlglot.parse_one(expression._expr, dialect="spark")  # noqa: SLF001 - no public way
        except sqlglot.errors.SqlglotError:
            return None
    if isinstance(expression, client.ColumnReference):
        is_of_frame = expression._plan_id in {None, plan_id}  # noqa: SLF001 - no public way
        return exp.column(expression._unparsed_identifier, quoted=True) if is_of_frame else None  # noqa: SLF001 - as above
    if isinstance(expression, client.LiteralExpression):
        return _literal(expression._value, expression._dataType.simpleString())  # noqa: SLF001 - no public way
    if not isinstance(expression, client.UnresolvedFunction):
        return None
    arguments = [_as_sql(argument, plan_id) for argument in expression._args]  # noqa: SLF001 - no public way
    operands = [argument for argument in arguments if argument is not None]
    if len(operands) < len(arguments):
        return None
    return _call(expression._name, operands)  # noqa: SLF001 - no public way


def _call(name: str, operands: list[Expr]) -> Expr | None:
    if not operands:  # such as current_timestamp()
        return None
    first, *others = operands
    if name in COMPARISONS or name in CONNECTIVES:
        return (COMPARISONS | CONNECTIVES)[name](this=first, expression=others[0])
    if name == "not":
        return exp.Not(this=first)
    if name in {"isNull", "isNotNull"}:
        return exp.Is(this=first, expression=exp.Null())
    return exp.In(this=first, expressions=others) if name == "in" else None


def _literal(value: Any, kind: str) -> Expr | None:  # noqa: ANN401 - a constant of any type
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if kind in NUMBERS or DECIMAL.fullmatch(kind):
        return exp.Literal.number(str(value))
    if kind == "string" and value is not None:
        return exp.Literal.string(value)
    if kind in {"date", "timestamp"} and value is not None:  # valid, as it was a date in Python: any date stands for it
        return exp.cast(exp.Literal.string("2000-01-01"), kind)
    return None


def _type_of(tree: Expr, types: Mapping[str, str]) -> str | None:
    is_name = isinstance(tree, exp.Column) and len(tree.parts) == 1
    return types.get(tree.name.lower()) if is_name else None


def _is_of_kind(column: str, operand: Expr) -> bool:
    """Whether comparing a column of a type with a constant cannot raise."""
    decimal = DECIMAL.fullmatch(column)
    if column in NUMBERS or (decimal and int(decimal[1]) <= MOST_DIGITS):
        text = operand.this.name if isinstance(operand, exp.Neg) else operand.name
        is_number = isinstance(operand, exp.Neg) or (isinstance(operand, exp.Literal) and not operand.is_string)
        return is_number and NUMBER.fullmatch(text) is not None and sum(map(str.isdigit, text)) <= MOST_DIGITS
    if column == "boolean":
        return isinstance(operand, exp.Boolean)
    target = operand.to.this.name if isinstance(operand, exp.Cast) else "TEXT"
    text_node = operand.this if isinstance(operand, exp.Cast) else operand
    if not (isinstance(text_node, exp.Literal) and text_node.is_string):
        return False
    if column == "string":
        return target == "TEXT"
    # A text is cast to the column's type; a date with a time of day would make a timestamp of a column of dates.
    if column == "date":
        return target in {"TEXT", "DATE"} and _is_time(DAY, text_node.name)
    return column == "timestamp" and target in {"TEXT", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"} and _is_time(MOMENT, text_node.name)  # noqa: E501 # fmt: skip


def _is_time(form: re.Pattern[str], text: str) -> bool:
    if not form.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True

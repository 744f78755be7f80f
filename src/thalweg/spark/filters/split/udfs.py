"""Recognises Python UDFs in a condition that Catalyst has analysed, so that they can run with the other predicates.

Taken over are `f(...)` and comparisons of it with a constant, where the arguments are columns or expressions that
cannot raise. For any other condition with a UDF there is a reason why it stays in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.spark.filters.catalyst import AnalysedCondition, CatalystAnalysis, columns_in, runs_python
from thalweg.spark.filters.conditions import quoted
from thalweg.spark.filters.harmless import Node
from thalweg.spark.filters.harmless.values import Unproven
from thalweg.spark.filters.predicates.base import Predicate
from thalweg.spark.filters.predicates.compound import not_
from thalweg.spark.filters.predicates.udf import UdfPredicate
from thalweg.spark.filters.split.names import sql_name
from thalweg.spark.filters.worker.udfs import Comparison, Convention, UdfCall

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

# The types of values that a UDF may return, from narrow to wide where Spark compares one as another.
NUMBERS = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}
RETURNS = NUMBERS | {"boolean": pa.bool_(), "string": pa.string()}
COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
PLAIN = {*NUMBERS, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"}  # that pandas has values for
CONSTANTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "boolean": lambda text: text == "true",
    "string": str,
}
SAFELY = "spark.sql.execution.pandas.convertToArrowArraySafely"
OTHER_VALUES = {  # settings with which Spark hands a UDF other values
    "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled": {Convention.ARROW_ROWS},
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype": {Convention.PANDAS, Convention.PANDAS_ITERATOR},
}


class StaysInSparkError(Exception):
    """A condition with a UDF is not taken over; the message says why."""


def udf_predicate(name: str, condition: AnalysedCondition, spark: SparkSession) -> Predicate | None:
    """The predicate of a condition with a UDF; None for a condition without."""
    if condition.tree is None or condition.analysis is None or not runs_python(condition.tree):
        return None
    tree, negated = condition.tree, False
    while tree.kind in {"Not", "IsNotNull"}:
        negated = not negated
        tree = tree.children[0] if tree.kind == "Not" else replace(tree, kind="IsNull")
    call, comparison = _compared(tree, condition.analysis)
    arguments = [_Argument.of(child, condition.analysis) for child in call.children]
    function, convention = _function(call, condition.analysis)
    _check(call, convention, arguments, spark)
    found = UdfPredicate(
        name=name,
        deterministic=bool(call.fields["udfDeterministic"]),
        call=UdfCall(
            function=function,
            convention=convention,
            keywords=tuple(argument.keyword for argument in arguments),
            returns=RETURNS[call.fields["dataType"]],
            safely=is_set(spark, SAFELY),
            comparison=comparison,
        ),
        arguments=tuple(argument.name for argument in arguments),
        expressions={argument.name: argument.column for argument in arguments if argument.column is not None},
    )
    return not_(found, name=name) if negated else found


class _Argument:
    """An argument of a UDF: a column of the DataFrame, or an expression that Spark computes."""

    def __init__(self, name: str, kind: Any, keyword: str | None, column: Column | None) -> None:  # noqa: ANN401 - JSON
        self.name, self.kind, self.keyword, self.column = name, kind, keyword, column

    @classmethod
    def of(cls, node: Node, analysis: CatalystAnalysis) -> _Argument:
        keyword = None
        if node.kind == "NamedArgumentExpression":
            keyword, (node,) = node.fields["key"], node.children
        if columns_in(node, analysis.names) is None:
            raise StaysInSparkError("it reads a column that is not in the DataFrame, or not by its name")
        if node.kind == "AttributeReference":
            return cls(quoted(analysis.names[node.fields["exprId"]["id"]]), node.fields["dataType"], keyword, None)
        text = sql_name(analysis.catalyst.property_of(node, "sql") or node.kind)
        if runs_python(node):
            raise StaysInSparkError(f"its argument {text} is a UDF itself")
        try:
            kind = analysis.prover.value(node).type
        except (Unproven, RecursionError):
            raise StaysInSparkError(f"its argument {text} may raise an error") from None
        column = analysis.catalyst.column(node)
        if column is None or analysis.catalyst.property_of(node, "deterministic") != "True":
            raise StaysInSparkError(f"its argument {text} is not deterministic")
        return cls(text, kind, keyword, column)


def _compared(tree: Node, analysis: CatalystAnalysis) -> tuple[Node, Comparison | None]:
    """The call of a UDF in a condition, and the comparison of its values."""
    if tree.kind == "PythonUDF":
        return tree, None
    if tree.kind == "IsNull" and tree.children[0].kind == "PythonUDF":
        (call,) = tree.children
        return call, Comparison("<=>", None, RETURNS.get(call.fields["dataType"], pa.null()))
    if tree.kind not in COMPARISONS:
        raise StaysInSparkError("its value is used for more than a comparison with a constant")
    operator, sides = COMPARISONS[tree.kind], list(tree.children)
    if runs_python(sides[1]):
        operator, sides = TURNED.get(operator, operator), sides[::-1]
    call, kind = sides[0], sides[0].fields.get("dataType")
    while call.kind == "Cast" and call.fields["dataType"] in NUMBERS:
        (call,) = call.children
    returned = call.fields.get("dataType")
    names = list(NUMBERS)
    is_wider = kind in NUMBERS and returned in NUMBERS and names.index(kind) >= names.index(returned)
    if call.kind != "PythonUDF" or not (kind == returned or is_wider):
        raise StaysInSparkError("its value is used for more than a comparison with a constant")
    constant = None if runs_python(sides[1]) else analysis.catalyst.fold(sides[1])
    if constant is None or constant.kind != "Literal" or kind not in RETURNS:
        raise StaysInSparkError("its value is compared with a value that is no plain constant")
    text = constant.fields["value"]
    return call, Comparison(operator, None if text is None else CONSTANTS[kind](text), RETURNS[kind])


def _function(call: Node, analysis: CatalystAnalysis) -> tuple[Callable[..., Any], Convention]:
    """The function behind a call. This program pickled it itself when it made the UDF."""
    from py4j.protocol import Py4JError
    from pyspark.cloudpickle import loads

    try:
        convention = Convention(call.fields["evalType"])
    except ValueError:
        raise StaysInSparkError("it is a UDF of a kind that is called in another way") from None
    try:
        stored = analysis.catalyst.expression(call).func()
        uses_broadcast, pickled = not stored.broadcastVars().isEmpty(), bytes(stored.command().unsafeArray())
    except (Py4JError, TypeError, AttributeError) as error:
        raise StaysInSparkError(f"this version of Spark keeps its function elsewhere ({error})") from None
    if uses_broadcast:
        raise StaysInSparkError("it uses a broadcast variable, or is larger than 1 MB")
    try:
        function, _ = loads(pickled)
    except Exception as error:  # noqa: BLE001 - any error of the user's imports
        raise StaysInSparkError(f"its function cannot be loaded here ({type(error).__name__}: {error})") from None
    return function, convention


def _check(call: Node, convention: Convention, arguments: list[_Argument], spark: SparkSession) -> None:
    if call.fields["dataType"] not in RETURNS:
        raise StaysInSparkError("it returns values that are not compared here")
    if not arguments:
        raise StaysInSparkError("it takes no column")
    for argument in arguments:
        is_decimal = isinstance(argument.kind, str) and argument.kind.startswith("decimal")
        is_plain = is_decimal or (isinstance(argument.kind, str) and argument.kind in PLAIN)
        if not is_plain if convention.is_of_pandas else _is_unknown(argument.kind):
            raise StaysInSparkError(f"its argument {argument.name} has a type that only Spark hands to it")
    for setting, conventions in OTHER_VALUES.items():
        if convention in conventions and is_set(spark, setting):
            raise StaysInSparkError(f"{setting} is set")


def is_set(spark: SparkSession, setting: str) -> bool:
    """Whether a setting of a session is true; a version of Spark that does not know it has it false."""
    return spark.conf.get(setting, "false") == "true"


def _is_unknown(kind: Any) -> bool:  # noqa: ANN401 - a type as JSON has it
    """Whether a type has values that are not converted here as Spark does."""
    if isinstance(kind, dict):
        inner = [kind.get("elementType"), kind.get("keyType"), kind.get("valueType")]
        inner += [each["type"] for each in kind.get("fields", ())]
        return kind["type"] not in {"array", "map", "struct"} or any(map(_is_unknown, filter(None, inner)))
    return not (kind in PLAIN or str(kind).startswith(("decimal", "interval day", "interval hour", "interval minute")))

"""Recognises Python UDFs in a condition that Catalyst has analysed, so that they can run with the other predicates.

Taken over are `f(...)` and comparisons of it with constants, where the arguments are columns or expressions that
cannot raise. For any other condition with a UDF there is a reason why it stays in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.sealed import short_digest
from thalweg.spark.analysis.catalyst import AnalysedCondition, CatalystAnalysis
from thalweg.spark.analysis.harmless import Node
from thalweg.spark.analysis.harmless.values import Unproven
from thalweg.spark.analysis.trees import numbers_in, runs_python
from thalweg.spark.filters.predicates.base import Predicate
from thalweg.spark.filters.predicates.compound import not_
from thalweg.spark.filters.split.taken_over import (
    CONSTANTS,
    MORE_THAN_COMPARED,
    MOST_CONSTANTS,
    NUMBERS,
    RETURNS,
    TURNED,
    Argument,
    FoundUdf,
    StaysInSparkError,
)
from thalweg.spark.filters.worker.udfs import Comparison, Convention
from thalweg.spark.identifiers import quoted
from thalweg.spark.jvm import keep_names_of_udfs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "IN",
}


def udf_predicate(
    name: str, condition: AnalysedCondition, spark: SparkSession, *, by_name: bool = False
) -> Predicate | None:
    """The predicate of a condition with a UDF; None for a condition without.

    `by_name` is for a stream, whose micro-batches have columns of their own: Spark cannot compute arguments of theirs
    that know columns by identity.
    """
    if not runs_python(condition.tree):
        return None
    question = ("udf", condition.tree.number, name, by_name)
    found = condition.analysis.answers.once(question, lambda: _found(name, condition, spark, by_name=by_name))
    if isinstance(found, StaysInSparkError):
        raise found
    return found


def _found(
    name: str, condition: AnalysedCondition, spark: SparkSession, *, by_name: bool
) -> Predicate | StaysInSparkError:
    try:
        return _taken_over(name, condition, spark, by_name=by_name)
    except StaysInSparkError as error:
        return error


def _taken_over(name: str, condition: AnalysedCondition, spark: SparkSession, *, by_name: bool) -> Predicate:
    tree, negated = condition.tree, False
    while tree.kind in {"Not", "IsNotNull"}:
        negated = not negated
        tree = tree.children[0] if tree.kind == "Not" else replace(tree, kind="IsNull")
    call, comparison = _compared(tree, condition.analysis)
    arguments = [_argument(child, condition.analysis, by_name=by_name) for child in call.children]
    function, digest, convention = _function(call, condition.analysis)
    deterministic, returns = call.fields["udfDeterministic"], call.fields["dataType"]
    udf = FoundUdf(function, digest, convention, deterministic, returns, arguments, came_pickled=True)
    found = udf.predicate(name, comparison, spark, condition.analysis.answers)  # an analysis is of one set of settings
    return not_(found, name=name) if negated else found


def _argument(node: Node, analysis: CatalystAnalysis, *, by_name: bool) -> Argument:
    """An argument of a call; nothing that may raise or change, as it may be computed for more rows than Spark would."""
    keyword = None
    if node.kind == "NamedArgumentExpression":
        keyword, (node,) = node.fields["key"], node.children
    if not analysis.numbers.issuperset(numbers_in(node)):
        raise StaysInSparkError("it reads a column that is not in the DataFrame")
    if node.kind == "AttributeReference" and node.fields["exprId"]["id"] in analysis.names:
        return Argument(quoted(analysis.names[node.fields["exprId"]["id"]]), node.fields["dataType"], keyword)
    text = analysis.catalyst.property_of(node, "sql") or node.kind
    if runs_python(node):
        raise StaysInSparkError(f"its argument {text} is a UDF itself")
    if by_name and numbers_in(node):
        raise StaysInSparkError(f"in a stream its arguments have to be columns or constants, not {text}")
    try:
        kind = analysis.prover.value(node).type
    except (Unproven, RecursionError):
        raise StaysInSparkError(f"its argument {text} may raise an error") from None
    column = analysis.catalyst.column(node)
    if column is None or analysis.catalyst.property_of(node, "deterministic") != "True":
        raise StaysInSparkError(f"its argument {text} is not deterministic")
    # A name of its own: neither of a column, nor of the same expression of a column with the same name.
    unnamed = [f"#{number}" for number in numbers_in(node) if number not in analysis.names]
    return Argument(f"({text}){''.join(unnamed)}", kind, keyword, column)


def _compared(tree: Node, analysis: CatalystAnalysis) -> tuple[Node, Comparison | None]:
    """The call of a UDF in a condition, and the comparison of its values."""
    if tree.kind == "PythonUDF":
        return tree, None
    if tree.kind == "IsNull" and tree.children[0].kind == "PythonUDF":
        (call,) = tree.children
        return call, Comparison("<=>", None, RETURNS.get(call.fields["dataType"], pa.null()))
    if tree.kind not in COMPARISONS:
        raise StaysInSparkError(MORE_THAN_COMPARED)
    operator, sides = COMPARISONS[tree.kind], list(tree.children)
    if operator != "IN" and runs_python(sides[1]):
        operator, sides = TURNED.get(operator, operator), sides[::-1]
    call, kind = sides[0], str(sides[0].fields.get("dataType"))
    while call.kind == "Cast" and _is_wider(call.fields["dataType"], call.children[0].fields.get("dataType")):
        (call,) = call.children
    if call.kind != "PythonUDF" or len(sides) > MOST_CONSTANTS:
        raise StaysInSparkError(MORE_THAN_COMPARED)
    constants = tuple(_constant(side, kind, analysis) for side in sides[1:])
    return call, Comparison(operator, constants if operator == "IN" else constants[0], RETURNS[kind])


def _constant(node: Node, kind: str, analysis: CatalystAnalysis) -> Any:  # noqa: ANN401 - a constant
    """The value of a constant of a type; None for NULL."""
    constant = None if runs_python(node) else analysis.catalyst.fold(node)
    if constant is None or constant.kind != "Literal" or kind not in RETURNS:
        raise StaysInSparkError("its value is compared with a value that is no plain constant")
    text = constant.fields["value"]
    try:
        return None if text is None else CONSTANTS[kind](text)
    except ValueError:
        raise StaysInSparkError(f"Python has no {kind} {text}") from None


def _is_wider(kind: Any, than: Any) -> bool:  # noqa: ANN401 - types as JSON has them
    """Whether a type of numbers holds all values of another, or what Spark makes of them; a type holds its own."""
    names = list(NUMBERS)
    return kind == than or (kind in names and than in names and names.index(kind) > names.index(than))


def _function(call: Node, analysis: CatalystAnalysis) -> tuple[Callable[..., Any], str, Convention]:
    """The function behind a call, and a digest of it. This program pickled it itself when it made the UDF."""
    from py4j.protocol import Py4JError
    from pyspark.cloudpickle import loads

    keep_names_of_udfs(analysis.catalyst.jvm)  # for the UDFs that the program makes after this
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
    return function, short_digest([pickled.hex()]), convention

"""What Spark refuses of a query, such as a function that it does not know: told where it stands in the query's text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from thalweg.spark.error_log import errors_not_logged
from thalweg.sql.errors import QueryError
from thalweg.sql.query import ContinuousQuery, Expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.predicates.function import FunctionPredicate

HINT = "Spark refuses this expression; write it as Spark SQL takes it"
UNKNOWN_FUNCTION = "UNRESOLVED_ROUTINE"  # Spark's name of the error


def check_calls(query: ContinuousQuery, predicates: Mapping[str, FunctionPredicate]) -> None:
    """Refuse a call of a Python predicate with more or fewer columns than it takes."""
    for selection in query.selections:
        call = selection.call
        if call is not None and len(call.columns) != (count := len(predicates[call.predicate].on)):
            noun = "column" if count == 1 else "columns"
            message = f"the Python predicate {call.predicate} takes {count} {noun}, not {len(call.columns)}"
            hint = f"write {call.predicate}({', '.join(predicates[call.predicate].on)}), with columns of the query"
            raise QueryError(message, query.text, selection.expression.position, hint)


@contextmanager
def told_by_position(
    query: ContinuousQuery, sources: Mapping[str, DataFrame], predicates: Collection[str] = ()
) -> Iterator[None]:
    """Turn an error of Spark's analysis into a `QueryError`, if one expression alone is refused."""
    from pyspark.errors import AnalysisException

    try:
        with errors_not_logged():
            yield
    except AnalysisException as error:
        for expression, is_condition in _expressions(query):
            refusal = _refusal(expression, query, sources, is_condition=is_condition)
            if refusal is not None:
                hint = _unknown_function(predicates) if error.getCondition() == UNKNOWN_FUNCTION else HINT
                raise QueryError(refusal, query.text, expression.position, hint) from error
        raise


def _unknown_function(predicates: Collection[str]) -> str:
    known = f"one of the session's predicates {', '.join(predicates)}, or " if predicates else ""
    return f"write {known}a function of Spark; session.predicate(name, predicate) adds a Python predicate"


def _expressions(query: ContinuousQuery) -> Iterator[tuple[Expression, bool]]:
    """The expressions that Spark analyses, and whether each is a condition."""
    yield from ((selection.expression, True) for selection in query.selections if selection.call is None)
    yield from ((side, False) for equality in query.equi_joins for side in (equality.left, equality.right))
    yield from ((residual, True) for residual in query.residuals)
    yield from ((key, False) for key in query.group_by)
    yield from ((output.expression, False) for output in query.outputs)
    if query.having is not None:
        yield query.having, False


def _refusal(
    expression: Expression, query: ContinuousQuery, sources: Mapping[str, DataFrame], *, is_condition: bool
) -> str | None:
    """Why Spark refuses an expression over the inputs of a query, in a line; None if it does not."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    inputs = [sources[each.source].alias(each.alias) for each in query.inputs]
    rows = reduce(lambda left, right: left.crossJoin(right), inputs)
    try:
        with errors_not_logged():
            _ = rows.where(f.expr(expression.sql)) if is_condition else rows.select(f.expr(expression.sql))
    except AnalysisException as error:
        line = str(error).partition("\n")[0]
        return re.sub(r"\.? SQLSTATE: .*", "", re.sub(r"^\[\S+\] ", "", line))
    return None

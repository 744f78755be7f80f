"""The conjunction of WHERE and ON, taken apart: conditions on one input, equi-joins, and other conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import expressions as e
from sqlglot.expressions import Expr

from thalweg.sql.dialect import render
from thalweg.sql.functions import function_name, is_aggregate
from thalweg.sql.inputs import Scope
from thalweg.sql.query import EquiJoin, Expression, PredicateCall, Selection

_RANGES = (e.LT, e.LTE, e.GT, e.GTE)


@dataclass(frozen=True)
class Conditions:
    """The parts of a conjunction, each in the order in which it is written."""

    selections: tuple[Selection, ...]
    equi_joins: tuple[EquiJoin, ...]
    residuals: tuple[Expression, ...]


def read_conditions(select: e.Select, scope: Scope, predicates: Collection[str]) -> Conditions:
    """The conditions of a query's ON and WHERE clauses."""
    joins = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on")]
    where = [select.args["where"].this] if select.args.get("where") else []
    conjuncts = [conjunct for condition in (*joins, *where) for conjunct in split_conjunction(condition)]
    names = {predicate.lower(): predicate for predicate in predicates}
    _check_calls(select, conjuncts, names, scope)
    selections, equi_joins, residuals = [], list(scope.using_joins), []
    for conjunct in conjuncts:
        for node in conjunct.walk():
            if is_aggregate(node):
                message = f"{function_name(node)} is an aggregate, and WHERE and ON select single rows"
                raise scope.text.error(message, node, "write the condition after HAVING")
        tree = scope.resolve(conjunct)
        expression = scope.expression(tree)
        if len(expression.inputs) == 1:
            selections.append(_selection(tree, expression, names, scope))
        elif (equi_join := _equi_join(tree, scope)) is not None:
            equi_joins.append(equi_join)
        else:
            residuals.append(expression)
    _check_connected(equi_joins, scope)
    return Conditions(tuple(selections), tuple(equi_joins), tuple(residuals))


def split_conjunction(condition: Expr) -> Iterator[Expr]:
    """The conditions that are joined by AND, as written, without the parentheses around them.

    >>> from sqlglot import parse_one
    >>> [conjunct.sql() for conjunct in split_conjunction(parse_one("a AND (b AND (c OR d))"))]
    ['a', 'b', 'c OR d']
    """
    waiting = [condition]
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, e.Paren):
            waiting.append(tree.this)
        elif isinstance(tree, e.And):
            waiting += [tree.expression, tree.this]
        else:
            yield tree


def is_literal(tree: Expr) -> bool:
    """Whether an expression is a constant that is not NULL, such as 5, -5, 'x', 5L or DATE '2020-01-01'."""
    if isinstance(tree, e.Cast | e.Neg | e.Paren):
        return is_literal(tree.this)
    return isinstance(tree, e.Literal | e.Boolean | e.RawString)


def _selection(tree: Expr, expression: Expression, names: Mapping[str, str], scope: Scope) -> Selection:
    (alias,) = expression.inputs
    shared_sql = render(tree.transform(_without_alias))
    call, negated = _call(tree)
    predicate = names.get(function_name(call))
    if predicate is None:
        return Selection(alias, expression, shared_sql, _kind(tree))
    arguments = call.expressions
    if not all(isinstance(argument, e.Column) for argument in arguments):
        message = f"the Python predicate {predicate} takes columns, and no other expressions"
        raise scope.text.error(message, call, "compute the argument in the stream: frame.withColumn(...)")
    columns = tuple(argument.name for argument in arguments)
    return Selection(alias, expression, shared_sql, "python", PredicateCall(predicate, columns, negated))


def _kind(tree: Expr) -> Literal["equality", "range", "other"]:
    if isinstance(tree, (e.EQ, *_RANGES)):
        is_plain = (_is_column(tree.this) and is_literal(tree.expression)) or (
            is_literal(tree.this) and _is_column(tree.expression)
        )
        if is_plain:
            return "equality" if isinstance(tree, e.EQ) else "range"
    if isinstance(tree, e.In) and _is_column(tree.this) and tree.expressions:
        return "equality" if all(map(is_literal, tree.expressions)) else "other"
    if isinstance(tree, e.Between) and _is_column(tree.this):
        return "range" if is_literal(tree.args["low"]) and is_literal(tree.args["high"]) else "other"
    return "other"


def _is_column(tree: Expr) -> bool:
    """Whether an expression is a column, or a field of a column."""
    return isinstance(tree, e.Column) or (isinstance(tree, e.Dot) and _is_column(tree.this))


def _without_alias(node: Expr) -> Expr:
    return e.Column(this=node.this.copy()) if isinstance(node, e.Column) else node


def _call(conjunct: Expr) -> tuple[Expr, bool]:
    """The call that a condition may be, and whether it is negated."""
    negated = isinstance(conjunct, e.Not)
    call = conjunct.this if negated else conjunct
    while isinstance(call, e.Paren):
        call = call.this
    return call, negated


def _check_calls(select: e.Select, conjuncts: Sequence[Expr], names: Mapping[str, str], scope: Scope) -> None:
    """Refuse Python predicates anywhere but as a condition of their own, on columns of one input."""
    calls = [_call(conjunct)[0] for conjunct in conjuncts]
    for node in select.find_all(e.Anonymous):
        predicate = names.get(function_name(node))
        if predicate is None:
            continue
        if not any(node is call for call in calls):
            message = f"the Python predicate {predicate} is no condition of its own here"
            hint = f"write it between ANDs of WHERE: ... AND {predicate}(a.x), or AND NOT {predicate}(a.x)"
            raise scope.text.error(message, node, hint)
        if len(scope.expression(scope.resolve(node)).inputs) != 1:
            message = f"the Python predicate {predicate} takes columns of one input"
            raise scope.text.error(message, node, f"write {predicate}(a.x, a.y), with columns of one input")


def _equi_join(tree: Expr, scope: Scope) -> EquiJoin | None:
    if not isinstance(tree, e.EQ):
        return None
    left, right = scope.expression(tree.this), scope.expression(tree.expression)
    if len(left.inputs) == len(right.inputs) == 1 and left.inputs != right.inputs:
        return EquiJoin(left, right)
    return None


def _check_connected(equi_joins: Sequence[EquiJoin], scope: Scope) -> None:
    """Refuse an input that no chain of equi-joins connects with the first."""
    connected = {scope.sources[0].alias}
    edges = [join.left.inputs | join.right.inputs for join in equi_joins]
    for _ in scope.sources:
        connected.update(*(edge for edge in edges if edge & connected))
    for source in scope.sources:
        if source.alias not in connected:
            message = f"no equality joins {source.alias} with {', '.join(sorted(connected))}"
            hint = f"add an equality to WHERE or ON, such as {scope.sources[0].alias}.k = {source.alias}.k"
            raise scope.text.error(message, source.table, hint)

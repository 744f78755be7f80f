"""Queries that differ only in their outputs: their rows are joined, or grouped, once, and each takes its own columns.

The *core* of a query is all that is computed before its outputs: its inputs with their conditions, its join as a plan
orders it, its window, and the keys of its groups. Names that queries give their inputs do not matter where each source
is read once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from thalweg.charts.plan import Aggregate, Join, MultiJoin, PlanNode, QueryPlan, Scan
from thalweg.spark.session.program import ProgramQuery
from thalweg.sql.query import Expression, Output
from thalweg.sql.rename import with_columns_renamed


@dataclass(frozen=True)
class TakenColumns:
    """What a query takes of the outputs of its core: the rows in which all of `keeps` are true, and some columns."""

    keeps: tuple[int, ...]  # places among the outputs
    columns: tuple[tuple[int, str], ...]  # place and name


@dataclass(frozen=True)
class CommonQuery:
    """Queries with one core as one query, which puts out what any of them does, and what each query takes of it."""

    query: ProgramQuery
    taken: tuple[TakenColumns, ...]


def core(query: ProgramQuery, plan: QueryPlan) -> Hashable | None:
    """The same for two queries that one computation serves, if both run by these plans; None for a query by itself.

    The rows of DISTINCT depend on the outputs. Several aggregates of distinct values make Spark copy every row once
    for each of them. Plain queries have a pass of their own.
    """
    if query.is_plain or query.query.is_distinct or _has_distinct_aggregate(query):
        return None
    names = _common_names(query)
    inputs = frozenset(
        (
            names[each.alias],
            each.source,
            frozenset(condition.column for condition in query.keeps[each.alias]),
            tuple((selection.shared_sql, selection.call) for selection in query.own[each.alias]),
        )
        for each in query.query.inputs
    )
    keys = frozenset(_renamed(key.sql, names) for key in query.query.group_by)
    return (inputs, query.query.window, query.query.is_aggregated, keys, _join_of(plan.root, names))


def common_query(queries: Sequence[ProgramQuery]) -> CommonQuery:
    """Some queries with one core as a query, in the names of the first of them."""
    first = queries[0]
    own_names = {common: alias for alias, common in _common_names(first).items()}
    columns: dict[str, dict[str, None]] = {each.alias: {} for each in first.query.inputs}
    outputs: dict[str, Output] = {}
    taken = []
    for query in queries:
        names = {alias: own_names[common] for alias, common in _common_names(query).items()}
        for each in query.query.inputs:
            columns[names[each.alias]].update(dict.fromkeys(each.columns))
        own = [_output(output.expression, names, is_aggregate=output.is_aggregate) for output in query.query.outputs]
        having = [] if query.query.having is None else [_output(query.query.having, names, is_aggregate=True)]
        for output in (*own, *having):
            outputs.setdefault(output.expression.sql, output)
        places = {sql: place for place, sql in enumerate(outputs)}
        taken.append(
            TakenColumns(
                tuple(places[output.expression.sql] for output in having),
                tuple(
                    (places[output.expression.sql], written.name)
                    for output, written in zip(own, query.query.outputs, strict=True)
                ),
            )
        )
    inputs = tuple(replace(each, columns=tuple(columns[each.alias])) for each in first.query.inputs)
    together = replace(first.query, inputs=inputs, outputs=tuple(outputs.values()), having=None)
    return CommonQuery(replace(first, query=together), tuple(taken))


def computed_together(queries: Iterable[tuple[str, ProgramQuery, QueryPlan]]) -> dict[str, list[str]]:
    """For each named query, the others that one computation serves with it, if all run by these plans."""
    by_core: dict[Hashable, list[str]] = {}
    cores = {name: core(query, plan) for name, query, plan in queries}
    for name, found in cores.items():
        by_core.setdefault(found, []).append(name)
    return {
        name: [] if found is None else [other for other in by_core[found] if other != name]
        for name, found in cores.items()
    }


def _has_distinct_aggregate(query: ProgramQuery) -> bool:
    """Whether an output or HAVING may be an aggregate of distinct values, such as count(DISTINCT x)."""
    having = () if query.query.having is None else (query.query.having,)
    expressions = (*(output.expression for output in query.query.outputs), *having)
    return any(re.search(r"\bdistinct\b", expression.sql, re.IGNORECASE) for expression in expressions)


def _common_names(query: ProgramQuery) -> dict[str, str]:
    """For each alias a name that does not depend on it: that of its source, if the query reads each source once."""
    sources = {each.alias: each.source for each in query.query.inputs}
    return sources if len(set(sources.values())) == len(sources) else {alias: alias for alias in sources}


def _join_of(node: PlanNode, names: Mapping[str, str]) -> Hashable:
    """The joins of a plan, as they are lowered; which side of a join is written first makes no difference."""
    if isinstance(node, Aggregate):
        return _join_of(node.child, names)
    if not isinstance(node, Join | MultiJoin):
        while not isinstance(node, Scan):
            (node,) = node.children
        return names[node.alias]
    return (
        isinstance(node, Join),
        frozenset(_join_of(child, names) for child in node.children),
        frozenset(
            frozenset((_renamed(equality.left.sql, names), _renamed(equality.right.sql, names)))
            for equality in node.equi_joins
        ),
        frozenset(_renamed(residual.sql, names) for residual in node.residuals),
    )


def _output(expression: Expression, names: Mapping[str, str], *, is_aggregate: bool) -> Output:
    sql = _renamed(expression.sql, names)
    return Output(sql, replace(expression, sql=sql), is_aggregate)


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    """An expression with other names for its inputs."""
    changed = tuple((alias, name) for alias, name in names.items() if alias != name)
    return _parsed_and_renamed(sql, changed) if changed else sql


@lru_cache(maxsize=4096)  # the same expressions come in each micro-batch
def _parsed_and_renamed(sql: str, names: tuple[tuple[str, str], ...]) -> str:
    return with_columns_renamed(sql, {(alias,): name for alias, name in names})

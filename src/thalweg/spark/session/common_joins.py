"""Queries that differ only in their outputs: their rows are joined, or grouped, once, and each takes its own columns.

The *core* of a query is all that is computed before its outputs: its inputs with their conditions, its join as a plan
orders it, its window, and the keys of its groups. Names that queries give their inputs do not matter where each source
is read once. Queries with a common join whose groups have other keys are computed together as well, by GROUPING SETS.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from thalweg.charts.plan import Aggregate, Join, MultiJoin, PlanNode, QueryPlan, Scan
from thalweg.spark.session.groupings import Groupings, counts_little
from thalweg.spark.session.program import ProgramQuery
from thalweg.sql.query import Expression, Output
from thalweg.sql.rename import with_columns_renamed

MOST_GROUPINGS = 8  # in one pass: each row of the join is copied for each, and counted for the outputs of all
MOST_KEYS = 3  # of a grouping that shares its join: Spark tells groupings apart by a bit for each key


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
    groupings: Groupings | None = None  # of the same rows by several keys


def core(query: ProgramQuery, plan: QueryPlan, *, with_keys: bool = True) -> Hashable | None:
    """The same for two queries that one computation serves, if both run by these plans; None for a query by itself.

    Without the keys of groups, it is the same for queries with a common join that are grouped.

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
    keys = _keys(query, names) if with_keys else None
    return (inputs, query.query.window, query.query.is_aggregated, keys, _join_of(plan.root, names))


def common_query(queries: Sequence[ProgramQuery]) -> CommonQuery:
    """Some queries that are computed together as a query, in the names of the first of them."""
    first = queries[0]
    own_names = {common: alias for alias, common in _common_names(first).items()}
    columns: dict[str, dict[str, None]] = {each.alias: {} for each in first.query.inputs}
    renamed = []
    for query in queries:
        names = {alias: own_names[common] for alias, common in _common_names(query).items()}
        renamed.append(names)
        for each in query.query.inputs:
            columns[names[each.alias]].update(dict.fromkeys(each.columns))
    groupings = _groupings(queries, renamed, columns)
    outputs: dict[str, Output] = {}
    taken = []
    for query, names in zip(queries, renamed, strict=True):
        own = [_output(output.expression, names, is_aggregate=output.is_aggregate) for output in query.query.outputs]
        keeps = [] if query.query.having is None else [_output(query.query.having, names, is_aggregate=True)]
        if groupings is not None:
            keys = _keys(query, names)
            own = [groupings.output(output, keys) for output in own]
            keeps = [groupings.membership(keys), *(groupings.output(output, keys) for output in keeps)]
        for output in (*own, *keeps):
            outputs.setdefault(output.expression.sql, output)
        places = {sql: place for place, sql in enumerate(outputs)}
        taken.append(
            TakenColumns(
                tuple(places[output.expression.sql] for output in keeps),
                tuple(
                    (places[output.expression.sql], written.name)
                    for output, written in zip(own, query.query.outputs, strict=True)
                ),
            )
        )
    inputs = tuple(replace(each, columns=tuple(columns[each.alias])) for each in first.query.inputs)
    together = replace(first.query, inputs=inputs, outputs=tuple(outputs.values()), having=None)
    return CommonQuery(replace(first, query=together), tuple(taken), groupings)


def _keys(query: ProgramQuery, names: Mapping[str, str]) -> frozenset[str]:
    return frozenset(_renamed(key.sql, names) for key in query.query.group_by)


def _groupings(
    queries: Sequence[ProgramQuery], renamed: Sequence[Mapping[str, str]], columns: Mapping[str, Mapping[str, None]]
) -> Groupings | None:
    """The groupings of queries with several keys; None if all have the same keys."""
    found = dict.fromkeys(_keys(query, names) for query, names in zip(queries, renamed, strict=True))
    if len(found) == 1:
        return None
    read = tuple((alias, name) for alias, names in columns.items() for name in names)
    return Groupings(tuple(found), tuple(sorted(frozenset[str]().union(*found))), read)


def served_together(queries: Sequence[tuple[ProgramQuery, QueryPlan]]) -> list[list[int]]:
    """The numbers of queries that run by these plans, in groups that are computed together; the first comes first."""
    by_core: dict[Hashable, list[int]] = {}
    for number, (query, plan) in enumerate(queries):
        found = core(query, plan)
        by_core.setdefault((number,) if found is None else found, []).append(number)
    together: dict[Hashable, list[list[int]]] = {}
    for numbers in by_core.values():
        common_join = core(*queries[numbers[0]], with_keys=False)
        if common_join is None or not all(_may_share_its_join(queries[number][0]) for number in numbers):
            common_join = (numbers[0],)
        together.setdefault(common_join, []).append(numbers)
    passes = [
        groups[start : start + MOST_GROUPINGS]
        for groups in together.values()
        for start in range(0, len(groups), MOST_GROUPINGS)
    ]
    return sorted(sorted(number for numbers in groups for number in numbers) for groups in passes)


def _may_share_its_join(query: ProgramQuery) -> bool:
    """Whether groups by other keys may be made of the same joined rows.

    Without a join there is little to share. Aggregates that hold many values would hold them for every grouping.
    """
    outputs = [output.expression for output in query.query.outputs]
    having = [] if query.query.having is None else [query.query.having]
    return (
        query.query.is_aggregated
        and not query.query.is_distinct
        and len(query.query.inputs) > 1
        and len(query.query.group_by) <= MOST_KEYS
        and all(counts_little(expression.sql) for expression in (*outputs, *having))
    )


def computed_together(queries: Sequence[tuple[str, ProgramQuery, QueryPlan]]) -> dict[str, list[str]]:
    """For each named query, the others that one computation serves with it, if all run by these plans."""
    names = [name for name, _, _ in queries]
    found: dict[str, list[str]] = {}
    for numbers in served_together([(query, plan) for _, query, plan in queries]):
        for number in numbers:
            found[names[number]] = [names[other] for other in numbers if other != number]
    return found


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

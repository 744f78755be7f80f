"""The queries of a program as branches of one Spark job: each branch writes the results of its queries to files.

Queries that choose rows of one stream by shared conditions alone, over the same window, are one branch, whatever their
number: the rows go to a worker once, and an expression that several of them put out is evaluated once. So are queries
with a common join, or with common groups (`common_joins.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thalweg.spark.identifiers import backticked
from thalweg.spark.session.common_joins import common_query, served_together
from thalweg.spark.session.lower import QUOTED_ROUND, Catalog, QueryLowering, Rounds, holds, input_rows
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.sources import tasks_at_once
from thalweg.spark.session.views import RowViews
from thalweg.spark.session.worker.result_files import WRITTEN, QueryFile, ResultFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.charts.plan import QueryPlan


@dataclass(frozen=True)
class Ending:
    """Rounds of a query that end in this micro-batch, and the plan that computes them."""

    query: ProgramQuery
    rounds: Rounds
    plan: QueryPlan


@dataclass(frozen=True)
class BranchText:
    """The text of a branch: the numbers of rounds and some columns; and the files that it becomes."""

    sql: str
    columns: tuple[str, ...]  # expressions
    files: tuple[QueryFile, ...]


def branches_of(endings: Sequence[Ending]) -> list[tuple[Ending, ...]]:
    """The branches of a job: plain queries with the same input together, and queries with a common join.

    Only queries with the same rounds are together. Every other query is alone.
    """
    plain: dict[Hashable, list[int]] = {}
    by_rounds: dict[Rounds, list[int]] = {}
    for number, ending in enumerate(endings):
        query = ending.query.query
        if ending.query.is_plain:
            key = (query.inputs[0].alias, query.inputs[0].source, query.window, ending.rounds)
            plain.setdefault(key, []).append(number)
        else:
            by_rounds.setdefault(ending.rounds, []).append(number)
    found = list(plain.values())
    for numbers in by_rounds.values():
        groups = served_together([(endings[number].query, endings[number].plan) for number in numbers])
        found += [[numbers[place] for place in group] for group in groups]
    return [tuple(endings[number] for number in branch) for branch in sorted(found)]


def written_files(
    branches: Sequence[Sequence[Ending]], views: RowViews, catalog: Catalog, folder: str, *, in_one_task: bool
) -> DataFrame:
    """A DataFrame that writes the results of all branches when it runs; its rows are the files.

    The rows of all branches come in one stream, each with its branch's number, and a column for each branch, which is
    NULL in the rows of the others: a worker's task takes longer to start than to write the results of a small
    micro-batch.
    """
    texts: list[str] = []
    files: list[QueryFile] = []
    for number, branch in enumerate(branches):
        if branch[0].query.is_plain:
            text = _plain(number, branch, views, catalog)
        else:
            text = _common(number, branch, views, catalog, in_one_task=in_one_task)
        values = ", ".join(f"'{place}', {column}" for place, column in enumerate(text.columns))
        own = ["NULL"] * len(branches)
        own[number] = f"named_struct({values})"
        named = ", ".join(f"{column} AS `{place}`" for place, column in enumerate(own))
        texts.append(f"SELECT {QUOTED_ROUND}, {number} AS branch, {named} FROM {text.sql}")
        files += text.files
    tasks = tasks_at_once(views.spark)
    if in_one_task:
        weights = [len(branch[0].query.query.inputs) for branch in branches]
        groups = [[texts[number] for number in group] for group in in_groups(weights, tasks)]
        texts = [f"SELECT /*+ COALESCE(1) */ * FROM ({' UNION ALL '.join(group)})" for group in groups]
    together = views.spark.sql(" UNION ALL ".join(texts))
    if not in_one_task:
        together = together.coalesce(tasks)
    return together.mapInArrow(ResultFiles(folder, tuple(files)), WRITTEN)


def in_groups(weights: Sequence[int], groups: int) -> list[list[int]]:
    """The numbers of some weights in groups of about the same weight, none of them empty: the heaviest come first.

    >>> in_groups([1, 3, 1, 2, 1], 2)
    [[1, 2], [3, 0, 4]]
    >>> in_groups([1], 2)
    [[0]]
    """
    found: list[list[int]] = [[] for _ in range(min(groups, len(weights)))]
    for number in sorted(range(len(weights)), key=lambda number: -weights[number]):
        min(found, key=lambda group: sum(weights[each] for each in group)).append(number)
    return found


def _common(
    number: int, branch: Sequence[Ending], views: RowViews, catalog: Catalog, *, in_one_task: bool
) -> BranchText:
    common = common_query([ending.query for ending in branch])
    lowering = QueryLowering(common.query, views, catalog, branch[0].rounds, in_one_task=in_one_task)
    columns = tuple(f"`{place}`" for place in range(len(common.query.query.outputs)))
    files = tuple(
        _query_file(number, ending.query, taken.keeps, taken.columns)
        for ending, taken in zip(branch, common.taken, strict=True)
    )
    return BranchText(f"({lowering.results(branch[0].plan.root, common.groupings)})", columns, files)


def _plain(number: int, branch: Sequence[Ending], views: RowViews, catalog: Catalog) -> BranchText:
    read = branch[0].query.query.inputs[0]
    read_columns = dict.fromkeys(name for ending in branch for name in ending.query.query.inputs[0].columns)
    conjunctions = dict.fromkeys(ending.query.conjunctions[read.alias] for ending in branch)
    conditions = list(dict.fromkeys(column for conjunction in conjunctions for column in conjunction.columns))
    rows = input_rows(
        views.rows[read.source],
        catalog.streams[read.source],
        replace(read, columns=tuple(read_columns)),
        branch[0].query.query.window,
        branch[0].rounds,
        " OR ".join(f"({holds(conjunction)})" for conjunction in conjunctions),
        conditions,
    )
    expressions = dict.fromkeys(output.expression.sql for ending in branch for output in ending.query.query.outputs)
    harmless = {f"{backticked(read.alias)}.{backticked(name)}" for name in read_columns}
    outputs = [sql if sql in harmless else _guarded(sql, branch) for sql in expressions]
    columns = [*map(backticked, conditions), *outputs]
    places = {name: place for place, name in enumerate([*conditions, *expressions])}
    files = [
        _query_file(
            number,
            ending.query,
            tuple(places[column] for column in ending.query.conjunctions[read.alias].columns),
            tuple((places[output.expression.sql], output.name) for output in ending.query.query.outputs),
        )
        for ending in branch
    ]
    return BranchText(f"({rows}) AS {backticked(read.alias)}", tuple(columns), tuple(files))


def _guarded(sql: str, branch: Sequence[Ending]) -> str:
    """An output that is evaluated for the rows of the queries that put it out: for other rows it might raise."""
    kept_by = []
    for ending in branch:
        query = ending.query
        if any(output.expression.sql == sql for output in query.query.outputs):
            conjunction = query.conjunctions[query.query.inputs[0].alias]
            if not conjunction.columns:
                return sql
            kept_by.append(f"({holds(conjunction)})")
    return sql if len(kept_by) == len(branch) == 1 else f"CASE WHEN {' OR '.join(kept_by)} THEN {sql} END"


def query_file(branch: int, query: ProgramQuery) -> QueryFile:
    """What a query takes of its own outputs: all of them, where HAVING is true."""
    outputs = query.query.outputs
    keeps = () if query.query.having is None else (len(outputs),)
    return _query_file(branch, query, keeps, tuple(enumerate(output.name for output in outputs)))


def _query_file(
    branch: int, query: ProgramQuery, keeps: tuple[int, ...], columns: tuple[tuple[int, str], ...]
) -> QueryFile:
    window = query.query.window
    return QueryFile(
        token=query.token,
        branch=branch,
        keeps=keeps,
        columns=columns,
        length=window.length,
        slide=window.slide,
        tells_rounds=query.has_result_of_no_rows,
    )

"""The queries of a program as branches of one Spark job: each branch writes the results of its queries to files.

Queries that choose rows of one stream by shared conditions alone, over the same window, are one branch, whatever their
number: the rows go to a worker once, and an expression that several of them put out is evaluated once. If they put out
columns alone, Spark has nothing to compute: workers read the files of rows that wait, each for a part of the queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from thalweg.spark.arrow_types import arrow_type
from thalweg.spark.filters.conditions import backticked
from thalweg.spark.session.lower import HAVING, QUOTED_ROUND, Catalog, QueryLowering, Rounds, holds, input_rows
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.sources import SharedStream, tasks_at_once
from thalweg.spark.session.views import RowViews
from thalweg.spark.session.worker.chosen_rows import ChosenQuery, ChosenRows
from thalweg.spark.session.worker.result_files import CHOSEN, WRITTEN, QueryFile, ResultFiles
from thalweg.sql.rounds import bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.charts.plan import QueryPlan

Item = TypeVar("Item")


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
    """The branches of a job: plain queries with the same input and rounds together, every other query alone."""
    together: dict[object, list[Ending]] = {}
    for number, ending in enumerate(endings):
        query = ending.query.query
        key: object = number
        if ending.query.is_plain:
            key = (query.inputs[0].alias, query.inputs[0].source, query.window, ending.rounds)
        together.setdefault(key, []).append(ending)
    return [tuple(branch) for branch in together.values()]


def written_files(
    endings: Sequence[Ending], views: RowViews, catalog: Catalog, folder: str, *, in_one_task: bool
) -> DataFrame | None:
    """A DataFrame that writes the results of all endings when it runs; its rows are the files. None if no row waits.

    The rows of all branches come in one stream, each with its branch's number, and a column for each branch, which is
    NULL in the rows of the others: a worker's task takes longer to start than to write the results of a small
    micro-batch. A row without any tells a task to choose stored rows.
    """
    branches = branches_of([ending for ending in endings if ending.query.chosen_columns is None])
    texts: list[str] = []
    files: list[QueryFile] = []
    for number, branch in enumerate(branches):
        if branch[0].query.is_plain:
            text = _plain(number, branch, views, catalog)
        else:
            text = _alone(number, branch[0], views, catalog, in_one_task=in_one_task)
        values = ", ".join(f"'{place}', {column}" for place, column in enumerate(text.columns))
        own = ["NULL"] * len(branches)
        own[number] = f"named_struct({values})"
        texts.append(f"SELECT {QUOTED_ROUND}, {number} AS branch{_named(own)} FROM {text.sql}")
        files += text.files
    tasks = tasks_at_once(views.spark)
    chosen = chosen_rows(endings, views, catalog, tasks, by_query=in_one_task)
    nothing = _named(["NULL"] * len(branches))
    texts += [f"SELECT {place}L AS {QUOTED_ROUND}, {CHOSEN} AS branch{nothing}" for place in range(len(chosen))]
    if not texts:
        return None
    if in_one_task:
        weights = [*(len(branch[0].query.query.inputs) for branch in branches), *(1 for _ in chosen)]
        groups = [[texts[number] for number in group] for group in in_groups(weights, tasks)]
        texts = [f"SELECT /*+ COALESCE(1) */ * FROM ({' UNION ALL '.join(group)})" for group in groups]
    together = views.spark.sql(" UNION ALL ".join(texts))
    if not in_one_task:
        together = together.coalesce(tasks)
    return together.mapInArrow(ResultFiles(folder, tuple(files), tuple(chosen)), WRITTEN)


def _named(columns: Sequence[str]) -> str:
    """Columns that follow others, each under its number."""
    return "".join(f", {column} AS `{place}`" for place, column in enumerate(columns))


def chosen_rows(
    endings: Sequence[Ending], views: RowViews, catalog: Catalog, tasks: int, *, by_query: bool
) -> list[ChosenRows]:
    """What tasks choose from stored rows: each has a part of the queries, or of the files if there are many rows."""
    found: list[ChosenRows] = []
    for branch in branches_of([ending for ending in endings if ending.query.chosen_columns is not None]):
        (read,), window, rounds = branch[0].query.streams, branch[0].query.query.window, branch[0].rounds
        stream = catalog.streams[read.source]
        types = {
            stream.stored_name(name): arrow_type(stream.frame.schema[name].dataType)
            for name in dict.fromkeys(name for ending in branch for name, _ in ending.query.chosen_columns or ())
        }
        queries = sorted(
            (_chosen_query(ending.query, stream) for ending in branch), key=lambda query: query.conditions
        )  # so that a task has all queries with the same conditions
        files = tuple(views.files_of(read.source, after=bounds(rounds[0], window)[0]))
        parts = [(files, part) for part in _parts(queries, tasks)]
        if not by_query:
            parts = [(part, queries) for part in _parts(files, tasks)]
        found += [
            ChosenRows(own_files, types, rounds, window.length, window.slide, tuple(own_queries))
            for own_files, own_queries in parts
            if own_files
        ]
    return found


def _chosen_query(query: ProgramQuery, stream: SharedStream) -> ChosenQuery:
    (conjunction,) = query.conjunctions.values()
    columns = tuple((stream.stored_name(column), name) for column, name in query.chosen_columns or ())
    return ChosenQuery(query.token, tuple(sorted(conjunction.columns)), columns)


def _parts(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Items that follow each other in parts of about the same size, none of them empty."""
    count = min(count, len(items))
    return [items[len(items) * part // count : len(items) * (part + 1) // count] for part in range(count)]


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


def _alone(number: int, ending: Ending, views: RowViews, catalog: Catalog, *, in_one_task: bool) -> BranchText:
    lowering = QueryLowering(ending.query, views, catalog, ending.rounds, in_one_task=in_one_task)
    query = ending.query.query
    columns = [f"`{place}`" for place in range(len(query.outputs))]
    if query.having is not None:
        columns.append(HAVING)
    return BranchText(f"({lowering.results(ending.plan.root)})", tuple(columns), (query_file(number, ending.query),))


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
    columns = [*map(backticked, conditions), *(_guarded(sql, branch) for sql in expressions)]
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
    """What a query that is lowered alone takes of its branch: all outputs, where HAVING is true."""
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

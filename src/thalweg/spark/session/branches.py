"""The queries of a program as branches of one Spark job: each branch writes the results of its queries to files.

Queries that choose rows of one stream by shared conditions alone, over the same window, are one branch, whatever their
number: the rows go to a worker once, and an expression that several of them put out is evaluated once.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from thalweg.spark.filters.conditions import backticked
from thalweg.spark.session.lower import ROUND, Catalog, QueryLowering, Rounds, input_rows
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.rows import holds
from thalweg.spark.session.sources import tasks_at_once
from thalweg.spark.session.worker.result_files import WRITTEN, QueryFile, ResultFiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from thalweg.charts.plan import QueryPlan

BRANCH = "thalweg:branch"  # the number of the branch that a row is of
Wanted = tuple[list[str], list[tuple[str, str]]]  # conditions that must hold; columns and the names they get


@dataclass(frozen=True)
class Ending:
    """Rounds of a query that end in this micro-batch, and the plan that computes them."""

    query: ProgramQuery
    rounds: Rounds
    plan: QueryPlan


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


def written_files(branches: Sequence[Sequence[Ending]], rows: DataFrame, catalog: Catalog, folder: str) -> DataFrame:
    """A DataFrame that writes the results of all branches when it runs; its rows are the files.

    The rows of all branches come in one stream, each with its branch's number, and the columns of the other branches
    are NULL: a worker's task takes longer to start than to write the results of a small micro-batch.
    """
    frames, files = [], []
    order = [ROUND, BRANCH]
    for number, branch in enumerate(branches):
        frame, own_files = (_plain if branch[0].query.is_plain else _alone)(number, branch, rows, catalog)
        places = {name: len(order) + place for place, name in enumerate(frame.columns[2:])}
        order += frame.columns[2:]
        frames.append(frame)
        files += [_query_file(number, ending, places, *wanted) for ending, wanted in own_files]
    together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
    ordered = together.select(*map(backticked, order)).coalesce(tasks_at_once(rows.sparkSession))
    return ordered.mapInArrow(ResultFiles(folder, tuple(files)), WRITTEN)


def _alone(
    number: int, branch: Sequence[Ending], rows: DataFrame, catalog: Catalog
) -> tuple[DataFrame, list[tuple[Ending, Wanted]]]:
    from pyspark.sql import functions as f

    (ending,) = branch
    frame = QueryLowering(ending.query, rows, catalog, ending.rounds).results(ending.plan.root)
    names = [output.name for output in ending.query.query.outputs]
    own = [f"{number}:{place}" for place in range(len(names))]
    columns = [f.col(backticked(name)).alias(hidden) for name, hidden in zip(names, own, strict=True)]
    numbered = frame.select(backticked(ROUND), f.lit(number).alias(BRANCH), *columns)
    return numbered, [(ending, ([], list(zip(own, names, strict=True))))]


def _plain(
    number: int, branch: Sequence[Ending], rows: DataFrame, catalog: Catalog
) -> tuple[DataFrame, list[tuple[Ending, Wanted]]]:
    from pyspark.sql import functions as f

    read = branch[0].query.query.inputs[0]
    columns = dict.fromkeys(name for ending in branch for name in ending.query.query.inputs[0].columns)
    conjunctions = [ending.query.conjunctions[read.alias] for ending in branch]
    conditions = dict.fromkeys(column for conjunction in conjunctions for column in conjunction.columns)
    frame = input_rows(
        rows,
        catalog.streams[read.source],
        replace(read, columns=tuple(columns)),
        branch[0].query.query.window,
        branch[0].rounds,
        reduce(operator.or_, [holds(conjunction) for conjunction in dict.fromkeys(conjunctions)]),
        tuple(conditions),
    )
    expressions = dict.fromkeys(output.expression.sql for ending in branch for output in ending.query.query.outputs)
    hidden = {name: f"{number}:{place}" for place, name in enumerate([*conditions, *expressions])}
    chosen = frame.select(
        backticked(ROUND),
        f.lit(number).alias(BRANCH),
        *(f.col(backticked(column)).alias(hidden[column]) for column in conditions),
        *(_guarded(sql, branch).alias(hidden[sql]) for sql in expressions),
    )
    wanted = [
        (
            [hidden[column] for column in ending.query.conjunctions[read.alias].columns],
            [(hidden[output.expression.sql], output.name) for output in ending.query.query.outputs],
        )
        for ending in branch
    ]
    return chosen, list(zip(branch, wanted, strict=True))


def _guarded(sql: str, branch: Sequence[Ending]) -> Column:
    """An output that is evaluated for the rows of the queries that put it out: for other rows it might raise."""
    from pyspark.sql import functions as f

    kept_by = []
    for ending in branch:
        query = ending.query
        if any(output.expression.sql == sql for output in query.query.outputs):
            columns = query.conjunctions[query.query.inputs[0].alias].columns
            if not columns:
                return f.expr(sql)
            kept_by.append(reduce(operator.and_, [f.col(backticked(column)) for column in columns]))
    return f.expr(sql) if len(kept_by) == len(branch) == 1 else f.when(reduce(operator.or_, kept_by), f.expr(sql))


def _query_file(
    branch: int, ending: Ending, places: Mapping[str, int], keeps: list[str], columns: list[tuple[str, str]]
) -> QueryFile:
    window = ending.query.query.window
    return QueryFile(
        token=ending.query.token,
        branch=branch,
        keeps=tuple(places[name] for name in keeps),
        columns=tuple((places[hidden], name) for hidden, name in columns),
        length=window.length,
        slide=window.slide,
    )


def files_by_query(written: Mapping[str, list[object]]) -> dict[str, list[tuple[str, int]]]:
    """The files of each query, with their rows."""
    found: dict[str, list[tuple[str, int]]] = {}
    for token, file, rows in zip(written["query"], written["file"], written["rows"], strict=True):
        found.setdefault(str(token), []).append((str(file), int(rows)))  # type: ignore[call-overload]
    return found

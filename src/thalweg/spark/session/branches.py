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

from thalweg.spark.session.lower import ROUND, Catalog, QueryLowering, Rounds, input_rows
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.rows import holds
from thalweg.spark.session.sources import backticked
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
    """A DataFrame that writes the results of all branches when it runs; its rows are the files."""
    frames = [_branch(branch, rows, catalog, folder) for branch in branches]
    return reduce(lambda left, right: left.unionAll(right), frames)


def _branch(branch: Sequence[Ending], rows: DataFrame, catalog: Catalog, folder: str) -> DataFrame:
    if branch[0].query.is_plain:
        return _plain(branch, rows, catalog, folder)
    (ending,) = branch
    frame = QueryLowering(ending.query, rows, catalog, ending.rounds).results(ending.plan.root)
    outputs = tuple(enumerate((output.name for output in ending.query.query.outputs), start=1))
    return frame.mapInArrow(ResultFiles(folder, (_file(ending, (), outputs),)), WRITTEN)


def _plain(branch: Sequence[Ending], rows: DataFrame, catalog: Catalog, folder: str) -> DataFrame:
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
    place = {name: number for number, name in enumerate([*conditions, *expressions], start=1)}
    files = tuple(
        _file(
            ending,
            tuple(place[column] for column in ending.query.conjunctions[read.alias].columns),
            tuple((place[output.expression.sql], output.name) for output in ending.query.query.outputs),
        )
        for ending in branch
    )
    chosen = frame.select(
        backticked(ROUND),
        *map(backticked, conditions),
        *(f.expr(sql).alias(f"output {number}") for number, sql in enumerate(expressions)),
    )
    return chosen.mapInArrow(ResultFiles(folder, files), WRITTEN)


def _file(ending: Ending, keeps: tuple[int, ...], columns: tuple[tuple[int, str], ...]) -> QueryFile:
    window = ending.query.query.window
    return QueryFile(ending.query.token, keeps, columns, window.length, window.slide)


def files_by_query(written: Mapping[str, list[object]]) -> dict[str, list[tuple[str, int]]]:
    """The files of each query, with their rows."""
    found: dict[str, list[tuple[str, int]]] = {}
    for token, file, rows in zip(written["query"], written["file"], written["rows"], strict=True):
        found.setdefault(str(token), []).append((str(file), int(rows)))  # type: ignore[call-overload]
    return found

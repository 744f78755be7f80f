"""Results of queries that choose rows and columns of one stream: the driver reads them from files of rows that wait.

Spark has nothing to compute for such a query: the columns of conditions tell which rows it keeps. A job of Spark takes
longer to start than the driver takes to write the results of a hundred queries. Rounds, conditions and columns that
several queries choose are worked out once for all of them. Micro-batches of very many rows are left to Spark.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans, Integers
from thalweg.spark.arrow_types import arrow_type
from thalweg.spark.session.branches import Ending, branches_of
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.sources import SharedStream
from thalweg.spark.session.views import RowViews
from thalweg.spark.session.worker.result_files import MICROSECONDS, ROUND_COLUMNS, result_file
from thalweg.spark.session.worker.take_in import TIME
from thalweg.sql.rounds import bounds

ROWS_AT_ONCE = 100_000  # that a thread holds in memory
THREADS = min(os.cpu_count() or 1, 4)  # that write at the same time: all wait for Python now and then


class WrittenFile(NamedTuple):
    """A file of results of a query."""

    token: str
    path: str
    rows: int
    seconds: float  # that it took


@dataclass(frozen=True)
class ChosenQuery:
    """A query whose results are the rows in which all of some conditions are true."""

    token: str
    conditions: tuple[str, ...]  # columns of files
    columns: tuple[tuple[str, str], ...]  # of files, and their names in results


@dataclass(frozen=True)
class ChosenRows:
    """The rows of some rounds in files of one stream, and queries over one window that choose among them."""

    files: tuple[str, ...]
    types: Mapping[str, pa.DataType]  # of columns: those of files that were written by another version of the program
    rounds: tuple[int, ...]
    length: int  # of the window, in microseconds
    slide: int
    queries: tuple[ChosenQuery, ...]

    def write(self, folder: str) -> list[WrittenFile]:
        """Write a file for each query that has results; queries share the time to read rows evenly."""
        files = {query.token: result_file(folder, query.token) for query in self.queries}
        began = time.perf_counter()
        for token, table in self.tables():
            files[token].add(table)
        shared = (time.perf_counter() - began) / len(files)
        written = []
        for token, file in files.items():
            began = time.perf_counter()
            file.close()
            written.append(WrittenFile(token, file.path, file.rows, shared + time.perf_counter() - began))
        return [file for file in written if file.rows]

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Results with the bounds of their round, and the token of their query, some rows at a time."""
        for stored in self._stored():
            rows, numbers = rows_of_rounds(stored.column(TIME).to_numpy(), self.length, self.slide, self.rounds)
            is_true = {
                name: stored.column(name).fill_null(False).to_numpy()[rows]  # noqa: FBT003 - a value
                for name in {name for query in self.queries for name in query.conditions}
            }
            chosen: dict[tuple[str, ...], _Chosen] = {}  # by conditions
            for query in self.queries:
                if query.conditions not in chosen:
                    places = _all_true([is_true[name] for name in query.conditions], len(rows))
                    ends = numbers[places] * self.slide
                    chosen[query.conditions] = _Chosen(stored, rows[places], _times(ends - self.length), _times(ends))
                yield query.token, chosen[query.conditions].table(query)

    def _stored(self) -> Iterator[pa.Table]:
        """The rows of all files, with the columns that queries need, some rows at a time."""
        import pyarrow.parquet as pq

        columns = {name: self.types[name] for query in self.queries for name, _ in query.columns}
        conditions = {name: pa.bool_() for query in self.queries for name in query.conditions}
        wanted = {TIME: pa.int64(), **columns, **conditions}
        held: list[pa.Table] = []
        for path in self.files:
            file = pq.ParquetFile(path)
            there = [name for name in wanted if name in file.schema_arrow.names]
            for group in range(file.num_row_groups):
                held.append(_with_types(file.read_row_group(group, columns=there, use_threads=False), wanted))
                if sum(table.num_rows for table in held) >= ROWS_AT_ONCE:
                    yield pa.concat_tables(held).combine_chunks()
                    held = []
        if held:
            yield pa.concat_tables(held).combine_chunks()


class _Chosen:
    """The rows that queries with the same conditions choose; each column is taken once."""

    def __init__(self, stored: pa.Table, rows: Integers, starts: pa.Array, ends: pa.Array) -> None:
        self._stored = stored
        self._rows = pa.array(rows)
        self._bounds = (starts, ends)
        self._columns: dict[str, pa.ChunkedArray] = {}

    def table(self, query: ChosenQuery) -> pa.Table:
        for name, _ in query.columns:
            if name not in self._columns:
                self._columns[name] = self._stored.column(name).take(self._rows)
        columns = [*self._bounds, *(self._columns[name] for name, _ in query.columns)]
        return pa.table(columns, names=[*ROUND_COLUMNS, *(name for _, name in query.columns)])


def rows_of_rounds(times: Integers, length: int, slide: int, rounds: Sequence[int]) -> tuple[Integers, Integers]:
    """The places of the rows that are in some rounds, once for each of their rounds, and the numbers of these rounds.

    >>> rows, numbers = rows_of_rounds(np.array([1, 20, 21, 50]), length=20, slide=10, rounds=[2, 3])
    >>> rows.tolist(), numbers.tolist()
    ([0, 1, 1, 2], [2, 2, 3, 3])
    """
    first = -(-times // slide)
    copies = -(-(times + length) // slide) - first
    rows = np.repeat(np.arange(len(times)), copies)
    copy = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
    numbers = first[rows] + copy
    is_chosen = np.isin(numbers, rounds)
    return rows[is_chosen], numbers[is_chosen]


def _all_true(answers: Sequence[Booleans], count: int) -> Integers:
    """The places where all answers are true."""
    return np.flatnonzero(np.logical_and.reduce(answers)) if answers else np.arange(count)


def _times(microseconds: Integers) -> pa.Array:
    return pa.array(microseconds).view(MICROSECONDS)


def _with_types(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The columns of a table under these names and of these types, whatever their time zone; NULL if it has none."""
    columns = []
    for name, kind in types.items():
        if name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, kind))
        elif table.column(name).type == kind or pa.types.is_timestamp(kind):
            columns.append(table.column(name))
        else:
            columns.append(table.column(name).cast(kind))
    return pa.table(columns, names=list(types))


def chosen_rows(endings: Sequence[Ending], views: RowViews, catalog: Catalog) -> list[ChosenRows]:
    """What to choose for endings of queries that have `chosen_columns`: a part for each thread."""
    found: list[ChosenRows] = []
    for branch in branches_of(endings):
        (read,), window, rounds = branch[0].query.streams, branch[0].query.query.window, branch[0].rounds
        files = tuple(views.files_of(read.source, after=bounds(rounds[0], window)[0]))
        stream = catalog.streams[read.source]
        types = {
            stream.stored_name(name): arrow_type(stream.frame.schema[name].dataType)
            for name in {name for ending in branch for name, _ in ending.query.chosen_columns or ()}
        }
        queries = [_chosen_query(ending.query, stream) for ending in branch]
        queries.sort(key=lambda query: query.conditions)  # so that few threads have the same conditions
        count = min(THREADS, len(queries)) if files else 0
        for part in range(count):
            own = queries[len(queries) * part // count : len(queries) * (part + 1) // count]
            found.append(ChosenRows(files, types, rounds, window.length, window.slide, tuple(own)))
    return found


def _chosen_query(query: ProgramQuery, stream: SharedStream) -> ChosenQuery:
    (conjunction,) = query.conjunctions.values()
    columns = tuple((stream.stored_name(column), name) for column, name in query.chosen_columns or ())
    return ChosenQuery(query.token, tuple(sorted(conjunction.columns)), columns)

"""Results of queries that choose rows and columns of one stream, in a worker: read from the files in which rows wait.

Such rows need not pass through Spark, which would evaluate again what the columns of conditions tell already. Rounds,
conditions and columns that several queries choose are worked out once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans, Integers
from thalweg.spark.session.worker.take_in import TIME

ROUND_COLUMNS = ("round_start", "round_end")
MICROSECONDS = pa.timestamp("us", tz="UTC")
ROWS_AT_ONCE = 100_000  # that are in memory


@dataclass(frozen=True)
class ChosenQuery:
    """A query whose results are the rows in which all of some conditions are true."""

    token: str
    conditions: tuple[str, ...]  # columns of files
    columns: tuple[tuple[str, str], ...]  # of files, and their names in results


@dataclass(frozen=True)
class ChosenRows:
    """The rows of some rounds in files of one stream, and the queries over one window that choose among them."""

    files: tuple[str, ...]
    types: Mapping[str, pa.DataType]  # of the columns that are put out: a file may lack a column, or have it narrower
    rounds: tuple[int, ...]
    length: int  # of the window, in microseconds
    slide: int
    queries: tuple[ChosenQuery, ...]

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

        conditions = {name: pa.bool_() for query in self.queries for name in query.conditions}
        wanted = {TIME: pa.int64(), **self.types, **conditions}
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
    """The columns of a table under these names: NULL if it has none, and of these types, whatever their time zone."""
    columns = []
    for name, kind in types.items():
        if name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, kind))
        elif table.column(name).type == kind or pa.types.is_timestamp(kind):
            columns.append(table.column(name))
        else:
            columns.append(table.column(name).cast(kind))
    return pa.table(columns, names=list(types))

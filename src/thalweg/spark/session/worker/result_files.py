"""Writes the result rows of several queries to files of their own, in a worker, while they come.

A file counts only once the driver has been told of it: what a task wrote that failed or ran twice is never looked at.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

ROUND_COLUMNS = ("round_start", "round_end")
MICROSECONDS = pa.timestamp("us", tz="UTC")
WRITTEN = "query string, file string, rows bigint, rounds array<bigint>"  # what the driver is told


@dataclass(frozen=True)
class QueryFile:
    """What a query takes of the rows of its branch: where all of `keeps` are true, the columns under these names."""

    token: str
    branch: int
    keeps: tuple[int, ...]  # places of boolean columns in the branch's struct
    columns: tuple[tuple[int, str], ...]  # place in the branch's struct, and name
    length: int  # of the window, in microseconds
    slide: int
    tells_rounds: bool = False  # whether the driver has to know which rounds have rows, kept or not


@dataclass(frozen=True)
class ResultFiles:
    """Writes files into a folder. Rows are the numbers of their round and branch, and a struct for each branch."""

    folder: str
    queries: tuple[QueryFile, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows, and tell which files were written."""
        import pyarrow.parquet as pq

        writers: dict[str, Any] = {}
        names: dict[str, str] = {}
        rows: dict[str, int] = {}
        rounds: dict[str, set[int]] = {}
        try:
            for numbers, branch, query in self._branches(batches):
                token = query.token
                if query.tells_rounds:
                    rounds.setdefault(token, set()).update(pc.unique(numbers).to_pylist())
                table = _taken(numbers, branch, query)
                if not table.num_rows:
                    continue
                if token not in writers:
                    names[token] = f"{token}-{uuid.uuid4().hex}.parquet"
                    writers[token] = pq.ParquetWriter(f"{self.folder}/{names[token]}", table.schema, compression="zstd")
                writers[token].write_table(table)
                rows[token] = rows.get(token, 0) + table.num_rows
        finally:
            for writer in writers.values():
                writer.close()
        tokens = list(dict.fromkeys([*names, *rounds]))
        yield pa.RecordBatch.from_pydict(
            {
                "query": pa.array(tokens, pa.string()),
                "file": pa.array([names.get(token) for token in tokens], pa.string()),
                "rows": pa.array([rows.get(token, 0) for token in tokens], pa.int64()),
                "rounds": pa.array([sorted(rounds.get(token, ())) for token in tokens], pa.list_(pa.int64())),
            }
        )

    def _branches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Array, list[pa.Array], QueryFile]]:
        """Each query with the rows of its branch, batch by batch: the numbers of rounds, and the branch's columns."""
        for batch in batches:
            branches = pc.unique(batch.column(1)).to_pylist()
            for branch in branches:
                own = batch.select([0, 2 + branch])
                if len(branches) > 1:
                    own = own.filter(pc.equal(batch.column(1), branch))
                columns = own.column(1).flatten()
                yield from ((own.column(0), columns, query) for query in self.queries if query.branch == branch)


def _taken(numbers: pa.Array, columns: list[pa.Array], query: QueryFile) -> pa.Table:
    """A query's result rows in a batch, with the bounds of their round."""
    ends = pc.multiply(numbers, query.slide)
    bounds = [pc.subtract(ends, query.length).cast(MICROSECONDS), ends.cast(MICROSECONDS)]
    names = [*ROUND_COLUMNS, *(name for _, name in query.columns)]
    table = pa.table([*bounds, *(columns[place] for place, _ in query.columns)], names=names)
    if not query.keeps:
        return table
    mask = columns[query.keeps[0]]
    for place in query.keeps[1:]:
        mask = pc.and_(mask, columns[place])
    return table.filter(mask)


def of_no_rows(outputs: pa.Table, numbers: Iterable[int], query: QueryFile) -> pa.Table:
    """The result of no rows, which is one row, for each of some rounds."""
    listed = list(numbers)
    places = pa.array([0] * len(listed), pa.int64())
    columns = [column.combine_chunks().take(places) for column in outputs.columns]
    return _taken(pa.array(listed, pa.int64()), columns, query)

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
WRITTEN = "query string, file string, rows bigint"  # what the driver is told


@dataclass(frozen=True)
class QueryFile:
    """What a query takes of the rows of its branch: where all of `keeps` are true, the columns under these names."""

    token: str
    branch: int
    keeps: tuple[int, ...]  # places of boolean columns
    columns: tuple[tuple[int, str], ...]  # place and name
    length: int  # of the window, in microseconds
    slide: int


@dataclass(frozen=True)
class ResultFiles:
    """Writes files into a folder; rows begin with the numbers of their round and of their branch."""

    folder: str
    queries: tuple[QueryFile, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows, and tell which files were written."""
        import pyarrow.parquet as pq

        writers: dict[str, Any] = {}
        names: dict[str, str] = {}
        rows: dict[str, int] = {}
        try:
            for batch, query in self._batches(batches):
                table = _taken(batch, query)
                if not table.num_rows:
                    continue
                if query.token not in writers:
                    names[query.token] = f"{query.token}-{uuid.uuid4().hex}.parquet"
                    file = f"{self.folder}/{names[query.token]}"
                    writers[query.token] = pq.ParquetWriter(file, table.schema, compression="zstd")
                writers[query.token].write_table(table)
                rows[query.token] = rows.get(query.token, 0) + table.num_rows
        finally:
            for writer in writers.values():
                writer.close()
        yield pa.RecordBatch.from_pydict(
            {
                "query": pa.array(list(writers), pa.string()),
                "file": pa.array([names[token] for token in writers], pa.string()),
                "rows": pa.array([rows[token] for token in writers], pa.int64()),
            }
        )

    def _batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, QueryFile]]:
        """Each query with the rows of its branch, batch by batch."""
        for batch in batches:
            numbers = pc.unique(batch.column(1)).to_pylist()
            for number in numbers:
                own = batch if len(numbers) == 1 else batch.filter(pc.equal(batch.column(1), number))
                yield from ((own, query) for query in self.queries if query.branch == number)


def _taken(batch: pa.RecordBatch, query: QueryFile) -> pa.Table:
    """A query's result rows in a batch, with the bounds of their round."""
    if query.keeps:
        mask = batch.column(query.keeps[0])
        for place in query.keeps[1:]:
            mask = pc.and_(mask, batch.column(place))
        batch = batch.filter(mask)
    ends = pc.multiply(batch.column(0), query.slide)
    starts = pc.subtract(ends, query.length)
    columns = [starts.cast(MICROSECONDS), ends.cast(MICROSECONDS), *(batch.column(place) for place, _ in query.columns)]
    return pa.table(columns, names=[*ROUND_COLUMNS, *(name for _, name in query.columns)])

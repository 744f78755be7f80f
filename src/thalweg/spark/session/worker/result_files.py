"""Writes the result rows of several queries to files of their own, in a worker, while they come.

A file counts only once the driver has been told of it: what a task wrote that failed or ran twice is never looked at.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.session.worker.grouped_file import GroupedFile

ROUND_COLUMNS = ("round_start", "round_end")
MICROSECONDS = pa.timestamp("us", tz="UTC")
ROWS_A_GROUP = 20_000  # of a file: a worker holds up to as many rows of each query
# What the driver is told: a line for each query whose branch had rows.
WRITTEN = "query string, file string, results map<bigint, bigint>, rounds array<bigint>, seconds double"


RESULTS = pa.map_(pa.int64(), pa.int64())  # result rows, by the number of their round


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
        """Write all rows, and tell which files were written, and how long each query took.

        The time until a batch comes is the time in which Spark computes it. Queries whose rows come in the same batch
        share it.
        """
        written: dict[str, _Written] = {}
        try:
            began = time.perf_counter()
            for batch in batches:
                parts = list(self._parts(batch))
                waited, began = time.perf_counter() - began, time.perf_counter()
                for numbers, columns, query in parts:
                    if query.token not in written:
                        written[query.token] = _Written(query, result_file(self.folder, query.token))
                    own = written[query.token]
                    own.add(numbers, columns)
                    now = time.perf_counter()
                    own.seconds += waited / len(parts) + now - began
                    began = now
        finally:
            for each in written.values():
                began = time.perf_counter()
                each.file.close()
                each.seconds += time.perf_counter() - began
        yield pa.RecordBatch.from_pydict(
            {
                "query": pa.array(written, pa.string()),
                "file": pa.array(
                    [each.file.path if each.file.rows else None for each in written.values()], pa.string()
                ),
                "results": pa.array([list(each.results.items()) for each in written.values()], RESULTS),
                "rounds": pa.array([sorted(each.rounds) for each in written.values()], pa.list_(pa.int64())),
                "seconds": pa.array([each.seconds for each in written.values()], pa.float64()),
            }
        )

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, list[pa.Array], QueryFile]]:
        """Each query with the rows of its branch in a batch: the numbers of rounds, and the branch's columns."""
        branches = pc.unique(batch.column(1)).to_pylist()
        for branch in branches:
            own = batch.select([0, 2 + branch])
            if len(branches) > 1:
                own = own.filter(pc.equal(batch.column(1), branch))
            columns = own.column(1).flatten()
            yield from ((own.column(0), columns, query) for query in self.queries if query.branch == branch)


@dataclass
class _Written:
    """What was written of a query's results."""

    query: QueryFile
    file: GroupedFile
    rounds: set[int] = field(default_factory=set)  # that have rows, kept or not
    results: Counter[int] = field(default_factory=Counter)  # rows, by the number of their round
    seconds: float = 0.0

    def add(self, numbers: pa.Array, columns: list[pa.Array]) -> None:
        if self.query.tells_rounds:
            self.rounds.update(pc.unique(numbers).to_pylist())
        taken = _taken(numbers, columns, self.query)
        for counted in pc.value_counts(taken.column(1).cast(pa.int64())).to_pylist() if taken.num_rows else ():
            self.results[counted["values"] // self.query.slide] += counted["counts"]
        self.file.add(taken)


def result_file(folder: str, token: str) -> GroupedFile:
    """A file for results of a query, under a name of its own."""
    return GroupedFile(f"{folder}/{token}-{uuid.uuid4().hex}.parquet", "zstd", ROWS_A_GROUP)


def _taken(numbers: pa.Array, columns: list[pa.Array], query: QueryFile) -> pa.Table:
    """A query's result rows in a batch, with the bounds of their round."""
    names = [name for _, name in query.columns]
    table = pa.table([numbers, *(columns[place] for place, _ in query.columns)], names=["round", *names])
    if query.keeps:
        mask = columns[query.keeps[0]]
        for place in query.keeps[1:]:
            mask = pc.and_(mask, columns[place])
        table = table.filter(mask)
    ends = pc.multiply(table.column(0), query.slide)
    bounds = [pc.subtract(ends, query.length).cast(MICROSECONDS), ends.cast(MICROSECONDS)]
    return pa.table([*bounds, *table.columns[1:]], names=[*ROUND_COLUMNS, *names])


def of_no_rows(outputs: pa.Table, numbers: Iterable[int], query: QueryFile) -> pa.Table:
    """The result of no rows, which is one row, for each of some rounds."""
    listed = list(numbers)
    places = pa.array([0] * len(listed), pa.int64())
    columns = [column.combine_chunks().take(places) for column in outputs.columns]
    return _taken(pa.array(listed, pa.int64()), columns, query)

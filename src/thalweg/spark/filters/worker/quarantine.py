"""Keeps the rows on which predicates failed, with the reason, as Parquet files that a worker writes.

A task's file appears when the task is done, and has the same name whenever the same task runs again: nothing is lost,
and nothing is there twice, however often a task is retried, a micro-batch is repeated after a restart, or an action is
run on the same DataFrame.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from thalweg.spark.folder import StateFolder


@dataclass(frozen=True)
class QuarantineSpec:
    """Where failed rows go, and the names of the columns that say why."""

    folder: str
    run: str  # the key of a batch query
    signature: str  # of the predicates and the input, by content: a restarted stream has the same
    predicate_column: str
    reason_column: str


class Quarantine:
    """The file of one task."""

    def __init__(self, spec: QuarantineSpec) -> None:
        self._spec = spec
        self._tables: list[pa.Table] = []

    def add(self, rows: Mapping[str, pa.Array], failures: Sequence[tuple[str, str]]) -> None:
        """Take rows in, with the predicate that failed on each and its reason."""
        columns = dict(rows) | {
            self._spec.predicate_column: pa.array([predicate for predicate, _ in failures], pa.string()),
            self._spec.reason_column: pa.array([reason for _, reason in failures], pa.string()),
        }
        self._tables.append(pa.table(columns))

    def commit(self) -> None:
        """Write the file, if there is anything to write."""
        if self._tables:
            from pyarrow import parquet

            file = io.BytesIO()
            parquet.write_table(pa.concat_tables(self._tables), file)
            StateFolder(self._spec.folder).write(f"{self._task_name()}.parquet", file.getvalue())

    def _task_name(self) -> str:
        """The name of a task, which is the same whenever it runs again."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            return f"{self._spec.run}-driver"
        batch = context.getLocalProperty("streaming.sql.batchId")
        if batch is None:
            return f"{self._spec.run}-{context.partitionId():05d}"
        query = context.getLocalProperty("sql.streaming.queryId")
        return f"{query}-{self._spec.signature}-batch-{batch}-{context.partitionId():05d}"

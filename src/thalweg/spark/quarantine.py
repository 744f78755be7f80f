"""Keeps the rows on which predicates failed, with the reason, as Parquet files that a worker writes.

A task's file appears when the task is done, and a task that runs again writes the same file again: nothing is lost, and
nothing there twice, however often a task is retried or a micro-batch repeated.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import pyarrow as pa

from thalweg.spark.state import StateFolder


class Quarantine:
    """The file of one task."""

    def __init__(self, folder: str, key: str) -> None:
        self.folder = StateFolder(folder)
        self.name = f"{key}-{_task_name()}.parquet"
        self._tables: list[pa.Table] = []

    def add(self, rows: Mapping[str, pa.Array], failures: Sequence[tuple[str, str]]) -> None:
        """Take rows in, with the predicate that failed on each and its reason."""
        columns = dict(rows) | {
            "predicate": pa.array([predicate for predicate, _ in failures]),
            "reason": pa.array([reason for _, reason in failures]),
        }
        self._tables.append(pa.table(columns))

    def commit(self) -> None:
        """Write the file, if there is anything to write."""
        if self._tables:
            from pyarrow import parquet

            file = io.BytesIO()
            parquet.write_table(pa.concat_tables(self._tables), file)
            self.folder.write(self.name, file.getvalue())


def _task_name() -> str:
    """What a task is called whenever it runs again: its micro-batch or stage, and its partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return "driver"
    batch = context.getLocalProperty("streaming.sql.batchId")
    return f"{f'batch-{batch}' if batch else f'stage-{context.stageId()}'}-{context.partitionId():05d}"

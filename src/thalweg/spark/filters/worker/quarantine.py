"""Keeps the rows on which predicates failed, with the reason, as Parquet files that a worker writes.

A task's file appears when the task is done, and a task that runs again writes the same file again: nothing is lost, and
nothing there twice, however often a task is retried or a micro-batch repeated.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.spark.folder import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def folder_of(frame: DataFrame, place: str, columns: Sequence[str]) -> str:
    """The folder of a quarantine, given as a path, or as the name of a table, which is made if it is not there.

    Workers write files into the table's folder: `spark.catalog.refreshTable` shows them to a session that has read it.
    """
    if any(mark in place for mark in "/\\:") or place.startswith("."):
        return place
    spark = frame.sparkSession
    if not spark.catalog.tableExists(place):
        schema = frame.select(*columns).schema.add("predicate", "string").add("reason", "string")
        spark.catalog.createTable(place, source="parquet", schema=schema)
    about = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE FORMATTED {place}").collect()}
    if about.get("Provider", "").lower() != "parquet":
        raise ValueError(f"the quarantine's table {place!r} is {about.get('Provider')}: make it USING parquet")
    location: str = about["Location"]
    return location

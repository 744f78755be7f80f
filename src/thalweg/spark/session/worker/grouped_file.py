"""Parquet files whose rows come in many small batches, and are written in groups of many rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass
class GroupedFile:
    """A Parquet file, made when there is a first row."""

    path: str
    compression: str
    group: int  # rows that are written at once, and held in memory until then
    rows: int = 0
    _writer: Any = None
    _held: list[pa.Table] = field(default_factory=list)  # rows to be written
    _held_rows: int = 0

    def add(self, table: pa.Table) -> None:
        """Take some rows."""
        if not table.num_rows:
            return
        self.rows += table.num_rows
        self._held_rows += table.num_rows
        self._held.append(table)
        if self._held_rows >= self.group:
            self._write()

    def close(self) -> None:
        """Write the last rows."""
        if self._held:
            self._write()
        if self._writer is not None:
            self._writer.close()

    def _write(self) -> None:
        import pyarrow.parquet as pq

        table = pa.concat_tables(self._held)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, table.schema, compression=self.compression)
        self._writer.write_table(table)
        self._held, self._held_rows = [], 0

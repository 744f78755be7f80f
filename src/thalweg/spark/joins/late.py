"""Keeps late rows as Parquet files, in a folder for each stream.

The file of a cell and a micro-batch has the same name whenever it is written again, so that no row is there twice.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from thalweg.spark.folder import StateFolder
from thalweg.spark.joins.layout import as_shown

COUNT = "count"  # late rows, and do not keep them


@dataclass(frozen=True)
class LateRows:
    """Where late rows are kept, and the types that the user knows their columns by."""

    folder: str
    types: Mapping[str, Mapping[str, pa.DataType]]  # of each column, by stream

    def save(self, late: Mapping[str, pa.RecordBatch], file_name: str) -> None:
        """Write the late rows of some streams."""
        from pyarrow import parquet

        for stream, rows in late.items():
            columns = [as_shown(rows[name], self.types[stream][name]) for name in rows.schema.names]
            file = io.BytesIO()
            parquet.write_table(pa.table(columns, names=rows.schema.names), file)
            StateFolder(f"{self.folder}/{stream}").write(f"{file_name}.parquet", file.getvalue())


def check_late(late: str | os.PathLike[str]) -> str | None:
    """The folder of late rows; None if they are only counted. A single word is hardly a folder.

    >>> check_late("count"), check_late("/data/late")
    (None, '/data/late')
    """
    text = os.fspath(late)
    if text == COUNT:
        return None
    if isinstance(late, str) and not any(mark in late for mark in "/\\:."):
        raise ValueError(f"late is {COUNT!r}, or a folder for late rows; for a folder of that name write './{late}'")
    return text

"""Keeps late rows as Parquet files, in a folder for each stream.

The file of a cell and a micro-batch has the same name whenever it is written again, so that no row is there twice.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa

from thalweg.mjoin.query import JoinQuery
from thalweg.spark.folder import StateFolder

TIME = pa.timestamp("us", "UTC")


def save_late_rows(folder: str, query: JoinQuery, late: Mapping[str, pa.RecordBatch], file_name: str) -> None:
    """Write the late rows of some streams."""
    from pyarrow import parquet

    for stream, rows in late.items():
        time = query.input(stream).time
        table = pa.Table.from_batches([rows])
        if time is not None:
            place = table.schema.get_field_index(time)
            table = table.set_column(place, time, table.column(place).cast(TIME))
        file = io.BytesIO()
        parquet.write_table(table, file)
        StateFolder(f"{folder}/{stream}").write(f"{file_name}.parquet", file.getvalue())

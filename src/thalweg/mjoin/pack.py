"""Rows as bytes, so that Spark moves few large values instead of many rows.

The bytes are one record batch in Arrow's stream format. They live within one query: one task writes them, the next
reads them. Rows that are kept longer are sealed (`thalweg.mjoin.segments`).
"""

from __future__ import annotations

import pyarrow as pa


def pack(batch: pa.RecordBatch) -> bytes:
    """A record batch as bytes.

    >>> unpack(pack(pa.record_batch({"a": [1, None]}))).to_pydict()
    {'a': [1, None]}
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(data: bytes) -> pa.RecordBatch:
    """The record batch that `pack` was given; its columns lie in these bytes, nothing is copied."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()

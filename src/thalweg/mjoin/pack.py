"""Rows as bytes, so that Spark moves few large values instead of many rows.

The bytes are one record batch in Arrow's stream format. They live within one query: written by one task, read by the
next; what is kept longer has a format of its own.
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
    """What `pack` made bytes of; its columns lie in these bytes, nothing is copied."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()

"""Rows as bytes, so that Spark moves few large values instead of many rows.

The bytes are one record batch in Arrow's stream format. They live within one query: written by one task, read by the
next; what is kept longer has a format of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

# Results are cut into pieces of so many bytes, roughly: enough to forget the cost of a message, and far from the 2 GB
# that an Arrow column of bytes can hold.
PIECE_BYTES = 8 << 20


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


def pieces(batch: pa.RecordBatch, piece_bytes: int = PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """A batch cut into pieces of about so many bytes; none where it is empty.

    >>> [piece.num_rows for piece in pieces(pa.record_batch({"a": range(5)}), 16)]
    [2, 2, 1]
    """
    if batch.num_rows:
        rows = max(batch.num_rows * piece_bytes // max(batch.nbytes, 1), 1)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

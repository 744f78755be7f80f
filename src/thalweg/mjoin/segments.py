"""Segments of state as bytes: Arrow IPC behind a magic, the version of the format and a digest of the input.

What cannot be read for sure is refused: state that is misread would give wrong results, silently.
"""

from __future__ import annotations

import pyarrow as pa

from thalweg.mjoin.query import DIGEST, JoinQuery

MAGIC = b"thalweg join"
VERSION = 1
HEADER = len(MAGIC) + 2 + 2 + DIGEST  # the version and the number of the input take two each


class StateError(ValueError):
    """State that does not suit the query, or is no state at all."""


def pack(query: JoinQuery, name: str, rows: pa.RecordBatch) -> bytes:
    """Rows of an input as bytes."""
    sink = pa.BufferOutputStream()
    sink.write(MAGIC)
    sink.write(VERSION.to_bytes(2, "big"))
    sink.write(query.names.index(name).to_bytes(2, "big"))
    sink.write(query.digests[name])
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpack(query: JoinQuery, data: bytes) -> tuple[str, pa.RecordBatch]:
    """The name of an input, and rows of it."""
    if data[: len(MAGIC)] != MAGIC or len(data) < HEADER:
        raise StateError("this is no state of a join; start the query with a new checkpoint")
    numbers = data[len(MAGIC) :]
    version, number = int.from_bytes(numbers[:2], "big"), int.from_bytes(numbers[2:4], "big")
    if version != VERSION:
        raise StateError(
            f"the state has format {version}, and this version of Thalweg reads {VERSION}; run the version that wrote "
            f"it, or start the query with a new checkpoint"
        )
    if number >= len(query.inputs) or data[HEADER - DIGEST : HEADER] != query.digests[query.names[number]]:
        raise StateError(
            "the state was written by another query: an input's name, columns, types, keys, time or window differ; "
            "restore them, or start the query with a new checkpoint"
        )
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)[HEADER:]) as reader:
            return query.names[number], reader.read_next_batch()
    except (pa.ArrowInvalid, StopIteration, OSError) as error:
        raise StateError(f"the state is damaged ({error}); restore the checkpoint, or start with a new one") from error

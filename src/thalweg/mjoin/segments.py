"""Segments of a cell's state as bytes: rows of one input, sealed with the input's name and a digest of its meaning.

A segment that cannot be read for sure is refused: state that is misread would give wrong results, silently.
"""

from __future__ import annotations

import pyarrow as pa

from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.query import JoinQuery
from thalweg.sealed import SavedStateError, refusing_odd_values, seal, unseal

KIND = "segment of a join"
VERSION = 2  # 1 had a framing of its own
NEW_CHECKPOINT = "start the query with a new checkpoint"


def pack_segment(query: JoinQuery, name: str, rows: pa.RecordBatch) -> bytes:
    """Rows of an input as bytes."""
    return seal(KIND, VERSION, name.encode(), query.digests[name].encode(), pack(rows))


def unpack_segment(query: JoinQuery, data: bytes) -> tuple[str, pa.RecordBatch]:
    """The name of an input and its rows that `pack_segment` was given, or a `SavedStateError` that says why not."""
    with refusing_odd_values(KIND, NEW_CHECKPOINT):
        name_text, digest, rows = unseal(KIND, VERSION, data, NEW_CHECKPOINT)
        name = name_text.decode()
    if name not in query.names or digest != query.digests[name].encode():
        raise SavedStateError(
            "the state was written by another query: an input's name, columns, types, keys, time or window differ; "
            f"restore them, or {NEW_CHECKPOINT}"
        )
    with refusing_odd_values(KIND, NEW_CHECKPOINT):
        batch = unpack(rows)
        batch.validate(full=True)  # columns that point outside their bytes would crash the process
    return name, batch

"""Segments of a cell's state as bytes: rows of one input, sealed with the input's name, its window and its meaning.

A segment that cannot be read for sure is refused: state that is misread would give wrong results, silently. A query may
need fewer columns than the state has, shorter windows, and longer windows whose rows are all there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from thalweg.mjoin.marks import mark, marks_of, unmarked
from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.query import JoinQuery, TimeWindow
from thalweg.sealed import SavedStateError, refusing_odd_values, seal, unseal

KIND = "segment of a join"
VERSION = 3  # 1 had a framing of its own; 2 had a digest of columns and window
NEW_CHECKPOINT = "start the query with a new checkpoint"


def pack_segment(query: JoinQuery, name: str, rows: pa.RecordBatch) -> bytes:
    """Rows of an input as bytes."""
    window = str(query.input(name).window)
    return seal(KIND, VERSION, name.encode(), query.digests[name].encode(), window.encode(), pack(rows))


def unpack_segment(query: JoinQuery, data: bytes, *, may_be_longer: bool = False) -> tuple[str, pa.RecordBatch]:
    """The name of an input and its rows that `pack_segment` was given, or a `SavedStateError` that says why not.

    The windows of the query may be longer than those of the state only if `check_left` has said so.
    """
    with refusing_odd_values(KIND, NEW_CHECKPOINT):
        name_text, digest, window_text, packed = unseal(KIND, VERSION, data, NEW_CHECKPOINT)
        name, window = name_text.decode(), window_text.decode()
    if name not in query.names or digest != query.digests[name].encode():
        raise SavedStateError(
            f"the state was written by another query: an input's name, keys or time differ; restore them, or "
            f"{NEW_CHECKPOINT}"
        )
    _check_window(query, name, window, may_be_longer=may_be_longer)
    with refusing_odd_values(KIND, NEW_CHECKPOINT):
        batch = unpack(packed)
        batch.validate(full=True)  # columns that point outside their bytes would crash the process
    return name, _needed_columns(query, name, batch)


def check_left(query: JoinQuery, left: Mapping[str, int], watermark: int) -> None:
    """Refuse windows that need rows which have left: `left` are the latest times of such rows, by input."""
    for source in query.inputs:
        latest = left.get(source.name)
        if latest is not None and isinstance(source.window, TimeWindow):
            missing = latest + source.window.microseconds - watermark
            if missing > 0:
                raise SavedStateError(
                    f"the window of {source.name} would be {source.window}, and rows that it needs have left the "
                    f"window of before: the longest window that the state has all rows of is "
                    f"{source.window.microseconds - missing} microseconds; restore it, or {NEW_CHECKPOINT}"
                )


def _check_window(query: JoinQuery, name: str, before: str, *, may_be_longer: bool) -> None:
    """Refuse a window that may need rows which are no longer there."""
    window = query.input(name).window
    is_taken_over = str(window) == before
    if query.may_change_windows and isinstance(window, TimeWindow) and TimeWindow.is_text(before):
        is_taken_over = may_be_longer or window.is_within(before)
    if not is_taken_over:
        raise SavedStateError(
            f"the state was written by another query: the window of {name} was {before}, and would be {window}; "
            f"restore it, or {NEW_CHECKPOINT}"
        )


def _needed_columns(query: JoinQuery, name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that the query needs, of rows that may have more."""
    stored, schema = unmarked(rows), query.input(name).schema
    if stored.schema == schema:
        return rows
    lacking = [field.name for field in schema if field not in list(stored.schema)]
    if lacking:
        raise SavedStateError(
            f"the state was written by another query: rows of {name} have no {', '.join(lacking)} of this type; "
            f"restore select= and the types of columns, or {NEW_CHECKPOINT}"
        )
    return mark(stored.select(schema.names), marks_of(rows))

"""Which rows of a table are gone in its new version, and which have come: rows count as often as they are there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Integers


def difference(before: pa.RecordBatch, after: pa.RecordBatch) -> tuple[Integers, Integers]:
    """The places of rows that are gone, and the places of rows that have come.

    >>> before, after = pa.record_batch({"a": [1, 2, 2, 3]}), pa.record_batch({"a": [2, 4, 1, 1]})
    >>> gone, come = difference(before, after)
    >>> before.take(pa.array(gone)).to_pydict(), after.take(pa.array(come)).to_pydict()
    ({'a': [2, 3]}, {'a': [4, 1]})
    """
    codes = _row_codes(pa.Table.from_batches([before, after], before.schema))
    old, new = codes[: before.num_rows], codes[before.num_rows :]
    size = int(codes.max(initial=-1)) + 1
    kept = np.minimum(np.bincount(old, minlength=size), np.bincount(new, minlength=size))
    return np.flatnonzero(_occurrences(old) >= kept[old]), np.flatnonzero(_occurrences(new) >= kept[new])


def _row_codes(rows: pa.Table) -> Integers:
    """A number for each row, the same for rows that are equal and no others."""
    codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        is_nested = pa.types.is_nested(column.type)  # Arrow numbers no such values
        values = pa.array(map(repr, column.to_pylist())) if is_nested else column.combine_chunks()
        numbers = values.dictionary_encode("encode").indices.to_numpy().astype(np.int64)
        codes = np.unique(codes * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)[1]
    return codes


def _occurrences(codes: Integers) -> Integers:
    """For each code, how often it occurs before.

    >>> _occurrences(np.array([5, 3, 5, 5, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    occurrences = np.empty(codes.size, np.int64)
    occurrences[order] = np.arange(codes.size) - np.searchsorted(ordered, ordered)
    return occurrences

"""Sends the rows of a batch to their cells.

A row's place along a class of equal attributes comes from a hash of its attribute, made where the rows come from: equal
keys have equal hashes whichever input they are in (Spark's `xxhash64`, to which -0.0 equals 0.0 and all NaN are equal).
Rows with a NULL among their keys, or without a time, match nothing: they go nowhere and are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.mjoin.shares import Shares
from thalweg.ordering.types import Integers


def without_null(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """The rows that have a value in each of these columns.

    >>> without_null(pa.record_batch({"a": [1, None, 3], "b": [None, 5, 6]}), ["a", "b"]).to_pydict()
    {'a': [3], 'b': [6]}
    """
    present = None
    for name in columns:
        if batch.column(name).null_count:
            valid = batch.column(name).is_valid()
            present = valid if present is None else pc.and_(present, valid)
    return batch if present is None else batch.filter(present)


def first_cells(hashes: Mapping[int, Integers], shares: Shares, rows: int) -> Integers:
    """For each row the first of its cells, from the hashes of its attributes, given by the number of their class.

    >>> grid = Shares((2, 3), {"A": frozenset([0]), "B": frozenset([0, 1])})
    >>> first_cells({0: np.array([0, -1, 2])}, grid, 3).tolist()
    [0, 3, 0]
    """
    cells = np.zeros(rows, np.int64)
    for place, hashed in hashes.items():
        cells += hashed % shares.sizes[place] * shares.strides[place]
    return cells


def by_cell(batch: pa.RecordBatch, cells: Integers, count: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each cell that has any, in their order.

    >>> [(cell, part.to_pydict()) for cell, part in by_cell(pa.record_batch({"a": [7, 8, 9]}), np.array([1, 0, 1]), 2)]
    [(0, {'a': [8]}), (1, {'a': [7, 9]})]
    """
    small = cells.astype(np.uint16)  # which NumPy sorts digit by digit
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(small, minlength=count))
    sorted_batch = batch.take(pa.array(order))
    start = 0
    for cell, end in enumerate(ends.tolist()):
        if end > start:
            yield cell, sorted_batch.slice(start, end - start)
        start = end

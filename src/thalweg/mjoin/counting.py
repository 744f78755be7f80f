"""Windows by count: when later rows of the same key push a row out.

A row is in the window at T while fewer than k rows with its key have a time after its own and not after T. So its
deadline is the time of the k-th row after it, once there is such a row; rows of the same time share it, so that it does
not depend on the order of arrival. Deadlines are final if rows come in the order of time, which is why rows wait until
the watermark has passed them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.mjoin.index import ProbeKeys
from thalweg.mjoin.keys import codes
from thalweg.mjoin.query import CountWindow
from thalweg.mjoin.window import BEGINNING, FOREVER, Window
from thalweg.ordering.types import Integers


def count_deadlines(window: Window, new: pa.RecordBatch | None = None) -> Integers:
    """The deadlines of new rows; the deadlines of the window's rows with their keys are set.

    Without new rows, the deadlines of all rows of the window are set.
    """
    rows, (keys, times) = np.arange(window.start, window.end), np.empty((2, 0), np.int64)
    if not isinstance(window.input.window, CountWindow):
        return times
    [(number, columns)] = window.query.key_columns[window.input.name].items()
    if new is not None:
        keys, times = codes(new[columns[0]]), window.times(new)
        rows = _with_keys(window, number, np.unique(keys))
    deadlines = push_out_times(
        np.concatenate([window.ring(number, rows), keys]),
        np.concatenate([window.ring("times", rows), times]),
        window.input.window.rows,
    )
    # A deadline that is known stays, as some of the rows that it was computed from may be gone.
    window.set_deadlines(rows, np.minimum(deadlines[: rows.size], window.ring("deadlines", rows)))
    return deadlines[rows.size :]


def push_out_times(keys: Integers, times: Integers, count: int) -> Integers:
    """For each row the time of the row with its key that is so many after it in time, or forever.

    >>> deadlines = push_out_times(np.array([7, 7, 8, 7, 7]), np.array([1, 5, 5, 9, 5]), 2)
    >>> [deadline if deadline < FOREVER else None for deadline in deadlines.tolist()]
    [5, None, None, None, None]
    """
    if not keys.size:
        return times
    order = np.lexsort((times, keys))
    sorted_keys, sorted_times = keys[order], times[order]
    new_key = np.flatnonzero(np.diff(sorted_keys)) + 1
    new_time = np.flatnonzero((np.diff(sorted_keys) != 0) | (np.diff(sorted_times) != 0)) + 1
    places = np.arange(keys.size)
    later = np.append(new_time, keys.size)[np.searchsorted(new_time, places, "right")]
    end = np.append(new_key, keys.size)[np.searchsorted(new_key, places, "right")]
    pushing = later + count - 1
    deadlines = np.empty(keys.size, np.int64)
    deadlines[order] = np.where(pushing < end, sorted_times[np.minimum(pushing, keys.size - 1)], FOREVER)
    return deadlines


def _with_keys(window: Window, number: int, keys: Integers) -> Integers:
    """The numbers of the window's rows with some keys."""
    index = window.index((number,))
    wanted = ProbeKeys(keys, np.full(keys.size, BEGINNING), np.full(keys.size, FOREVER))
    blocks = index.matches(wanted, index.newest(keys), window.start, BEGINNING)
    return np.concatenate([np.empty(0, np.int64), *(block.rows for block in blocks)])

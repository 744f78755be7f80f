"""Arguments of public calls as arrays that kernels may be given, or errors that name what is wrong.

A compiled kernel checks no index: a drop mask with a bit too many would make it read and write beyond its arrays.
Batches are checked as a whole, so a check takes no time for each tuple.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.types import Floats, Integers


def masks_of(masks: ArrayLike, filters: int) -> Integers:
    """Drop masks of so many filters.

    >>> masks_of([1, 2], filters=2).tolist()
    [1, 2]
    >>> masks_of([4], filters=2)
    Traceback (most recent call last):
    ValueError: a drop mask of 2 filters is between 0 and 3
    """
    checked = np.atleast_1d(np.asarray(masks, np.int64))
    if checked.ndim != 1 or (checked >> filters).any():
        raise ValueError(f"a drop mask of {filters} filters is between 0 and {2**filters - 1}")
    return checked


def times_of(times: ArrayLike | None, tuples: int, filters: int) -> Floats:
    """Time samples of so many profile tuples, a row each; NaN without any.

    >>> times_of([1.0, 2.0], tuples=1, filters=2).tolist()
    [[1.0, 2.0]]
    """
    shape = tuples, filters
    if times is None:
        return np.full(shape, np.nan)
    checked = np.ascontiguousarray(times, np.float64)
    if checked.size != tuples * filters or (checked < 0).any() or np.isinf(checked).any():
        raise ValueError(f"times are {shape} non-negative seconds, NaN where not evaluated")
    return checked.reshape(shape)


def costs_of(costs: ArrayLike) -> Floats:
    """The cost of a tuple in each filter.

    >>> costs_of([1, 2]).tolist()
    [1.0, 2.0]
    """
    checked = np.asarray(costs, np.float64)
    if checked.ndim != 1 or not checked.size or not (np.isfinite(checked).all() and (checked >= 0).all()):
        raise ValueError(f"costs are numbers of 0 or more, one for each filter, not {costs!r:.80}")
    return checked

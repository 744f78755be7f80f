"""Arguments of public calls as arrays that kernels may be given, or errors that name what is wrong.

A compiled kernel checks no index: a drop mask with a bit too many would make it read and write beyond its arrays.
Batches are checked as a whole, so a check takes no time for each tuple.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.types import Floats, Integers

MOST = np.iinfo(np.int64).max
LARGEST = 1e100  # seconds, other costs, or counts: products and sums of these stay finite


def numbers_of(numbers: ArrayLike, expected: str) -> Floats:
    """Numbers as an array of floating point, or an error that says which numbers were expected.

    >>> numbers_of([10**400], "costs are numbers")
    Traceback (most recent call last):
    ValueError: costs are numbers, and floating point cannot hold all of those given
    """
    try:
        return np.ascontiguousarray(numbers, np.float64)
    except (TypeError, ValueError, OverflowError):  # a text, rows of different lengths, a number of 400 digits
        raise ValueError(f"{expected}, and floating point cannot hold all of those given") from None


def integers_of(numbers: ArrayLike, expected: str) -> Integers:
    """Whole numbers as an array of 64-bit integers, or an error that says which numbers were expected.

    >>> integers_of([0.5], "contents are partitions")
    Traceback (most recent call last):
    ValueError: contents are partitions, as whole numbers of at most 64 bits
    """
    try:
        given = np.asarray(numbers)
    except ValueError:  # rows of different lengths
        given = np.array(None)
    if (given.size and given.dtype.kind not in "biu") or (given.dtype == np.uint64 and (given > MOST).any()):
        raise ValueError(f"{expected}, as whole numbers of at most 64 bits")
    integers: Integers = given.astype(np.int64, copy=False)
    return integers


def masks_of(masks: ArrayLike, filters: int) -> Integers:
    """Drop masks of so many filters.

    >>> masks_of([1, 2], filters=2).tolist()
    [1, 2]
    >>> masks_of([4], filters=2)
    Traceback (most recent call last):
    ValueError: a drop mask of 2 filters is between 0 and 3
    """
    expected = f"a drop mask of {filters} filters is between 0 and {2**filters - 1}"
    checked = np.atleast_1d(integers_of(masks, expected))
    if checked.ndim != 1 or (checked >> filters).any():
        raise ValueError(expected)
    return checked


def times_of(times: ArrayLike | None, tuples: int, filters: int) -> Floats:
    """Time samples of so many profile tuples, a row each; NaN without any.

    >>> times_of([1.0, 2.0], tuples=1, filters=2).tolist()
    [[1.0, 2.0]]
    """
    shape = tuples, filters
    if times is None:
        return np.full(shape, np.nan)
    expected = f"times are {shape} non-negative seconds, NaN where not evaluated"
    checked = numbers_of(times, expected)
    if checked.size != tuples * filters or (checked < 0).any() or (checked > LARGEST).any():
        raise ValueError(expected)
    return checked.reshape(shape)


def costs_of(costs: ArrayLike) -> Floats:
    """The cost of a tuple in each filter.

    >>> costs_of([1, 2]).tolist()
    [1.0, 2.0]
    """
    checked = numbers_of(costs, "costs are numbers of 0 or more, a number for each filter")
    if checked.ndim != 1 or not checked.size or not ((checked >= 0) & (checked <= LARGEST)).all():
        raise ValueError(f"costs are numbers of 0 or more, a number for each filter, not {costs!r:.80}")
    return checked

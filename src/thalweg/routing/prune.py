"""Which operators and attributes routing need not consider, and why, as text.

An operator whose place in the order is the same for every class is not worth profiling; an attribute that cannot tell
classes apart is not worth a matrix. (content-based-routing-2004, section 4.3)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import numbers_of
from thalweg.ordering.types import Floats, Integers

FAR = 20.0  # times the rank of the nearest other: no class is going to move an operator past it
WIDE = 64.0  # bytes of an average value that are too many to look at for every tuple
COVERED = 0.5  # share of the tuples whose values must be among the frequent values
MONOTONE = 0.95  # share of the steps from tuple to tuple that go one way
WITH_TIME = 0.7  # correlation of ranks with the order of arrival from which on a column tells the time, not a class
CERTAIN = 0.999  # selectivities between this and 1 are 1 for all that is known


def pruned_operators(selectivities: ArrayLike, costs: ArrayLike) -> dict[int, str]:
    """The operators that stay first or last for every class of tuples, with the reason.

    >>> pruned_operators([0.5, 0.6, 0.5, 1.0], costs=[1.0, 1.2, 0.02, 1.0])
    {2: 'cheap or very selective beside the others: it comes first for every class',
    3: 'expensive or unselective beside the others: it comes last for every class'}
    """
    expected = "operators have a selectivity and a positive cost each"
    passed, cost = numbers_of(selectivities, expected), numbers_of(costs, expected)
    if passed.ndim != 1 or passed.shape != cost.shape or not (np.isfinite(passed) & (cost > 0)).all():
        raise ValueError(expected)
    ranks = (1.0 - np.where(passed >= CERTAIN, 1.0, passed)) / cost
    reasons = {}
    for operator, rank in enumerate(ranks.tolist()):
        others = np.delete(ranks, operator) if ranks.size > 1 else ranks
        if rank > FAR * others.max() > 0:
            reasons[operator] = "cheap or very selective beside the others: it comes first for every class"
        elif FAR * rank < others.min():
            reasons[operator] = "expensive or unselective beside the others: it comes last for every class"
    return reasons


def pruned_attribute(
    codes: Integers, numbers: Floats, *, width: float = 0.0, values: int = 64, support: int = 20
) -> str | None:
    """Why an attribute is no candidate, by a sample of its values in order of arrival; None if it is a candidate.

    Parameters
    ----------
    codes, numbers
        The codes and numbers that `thalweg.routing.partition` makes of the values.
    width
        Bytes of an average value.
    values, support
        How many values may have a class of their own, and how often a value must occur for it.

    Examples
    --------
    >>> pruned_attribute(np.zeros(100, np.int64), np.full(100, np.nan))
    'constant'
    >>> pruned_attribute(np.arange(100), np.arange(100.0))
    'grows or falls with time, as a sequence number or a timestamp does'
    """
    known, counts = np.unique(codes, return_counts=True)
    if known.size <= 1:
        return "constant"
    if width > WIDE:
        return f"wide: its values have {width:.0f} bytes on average, which every tuple would be looked at for"
    if is_monotone(numbers) or (known.size > values and follows_time(numbers)):
        return "grows or falls with time, as a sequence number or a timestamp does"
    if np.isnan(numbers).mean() > COVERED:  # no ranges
        frequent = np.sort(counts[counts >= support])[::-1][:values]
        covered = frequent.sum() / codes.size
        if covered < COVERED:
            return (
                f"high cardinality: {known.size} values in {codes.size} tuples, and those that occur at least "
                f"{support} times cover {covered:.0%} of them"
            )
    return None


def is_monotone(numbers: Floats) -> bool:
    """Whether nearly every step from tuple to tuple goes one way, and few stand still.

    >>> is_monotone(np.array([1.0, 2.0, 3.0, 5.0])), is_monotone(np.array([1.0, 1.0, 1.0, 5.0]))
    (True, False)
    """
    steps = np.diff(numbers[np.isfinite(numbers)])
    if not steps.size:
        return False
    return bool(max((steps > 0).mean(), (steps < 0).mean()) >= MONOTONE)


def follows_time(numbers: Floats) -> bool:
    """Whether values nearly grow or fall with time, by steps or with some disorder: such values do not return.

    >>> follows_time(np.arange(100.0) + np.tile([0.0, 9.0], 50)), follows_time(np.arange(100) % 10.0)
    (True, False)
    """
    known = numbers[np.isfinite(numbers)]
    _, ranks = np.unique(known, return_inverse=True)
    if known.size < 3 or not ranks.any():  # noqa: PLR2004 - any two values are in line
        return False
    return bool(abs(np.corrcoef(np.arange(known.size), ranks)[0, 1]) >= WITH_TIME)

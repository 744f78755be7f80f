"""The cost of an order on given tuples: equation (1) of a-greedy-2004, by counting."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import costs_of, masks_of
from thalweg.ordering.precedence import check_filters
from thalweg.ordering.types import Floats


def order_cost(
    masks: ArrayLike, order: Iterable[int], costs: ArrayLike | None = None, weights: Floats | None = None
) -> float:
    """The average cost of a tuple when filters run in this order until a filter drops it; by default each costs 1.

    A tuple counts as often as its weight says, once by default.

    The paper's example 2, eight tuples and four filters, in probes:

    >>> masks = [0b0000, 0b0100, 0b0000, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110]
    >>> [8 * order_cost(masks, order) for order in [(0, 1, 2, 3), (2, 1, 3, 0), (2, 0, 1, 3)]]
    [20.0, 18.0, 16.0]
    """
    order = tuple(order)
    if not all(isinstance(number, int | np.integer) for number in order):
        raise TypeError(f"an order names filters by whole numbers, not {order!r:.80}")
    cost = np.ones(max(len(order), 1)) if costs is None else costs_of(costs)
    check_filters(cost.size)
    alive = masks_of(masks, cost.size)
    if not set(order) <= set(range(cost.size)):
        raise ValueError(f"an order names filters from 0 to {cost.size - 1}, not {order!r:.80}")
    left: Floats = np.ones(alive.size) if weights is None else weights
    tuples, total = float(left.sum()) or 1.0, 0.0
    for number in order:
        total += left.sum() * cost[number]
        passed = (alive >> number) & 1 == 0
        alive, left = alive[passed], left[passed]
    return float(total / tuples)


def drop_counts(masks: ArrayLike, filters: int) -> Floats:
    """How many tuples each filter drops."""
    bits = (np.asarray(masks, np.int64)[:, None] >> np.arange(filters)) & 1
    counts: Floats = bits.sum(axis=0).astype(np.float64)
    return counts

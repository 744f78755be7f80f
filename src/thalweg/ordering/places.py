"""Orders filters that run in two places, where a row pays for every crossing to the other.

The greedy order of joint drop rates does not know that neighbours in one place share a crossing. The order is improved
here by moving one filter at a time, as long as that helps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.cost import order_cost
from thalweg.ordering.precedence import is_legal
from thalweg.ordering.types import Booleans, Floats, Integers

WORTH = 0.9  # a move has to leave less than this share of the cost: estimates are not exact


def placed_cost(masks: ArrayLike, order: Sequence[int], costs: ArrayLike, away: ArrayLike, crossing: float) -> float:
    """The average cost of a tuple, crossings included, when the tuple starts at home.

    Filter 0 is away and drops half of the tuples: the crossing costs less behind filter 1.

    >>> masks, costs, away = [0b01, 0b10, 0b11, 0b00], [1, 1], [True, False]
    >>> placed_cost(masks, (0, 1), costs, away, 10), placed_cost(masks, (1, 0), costs, away, 10)
    (11.5, 6.5)
    """
    cost: Floats = np.array(costs, np.float64)
    abroad: Booleans = np.asarray(away, np.bool_)
    crossed = [number for at, number in enumerate(order) if abroad[number] and not (at and abroad[order[at - 1]])]
    cost[crossed] += crossing
    return order_cost(masks, order, cost)


def placed_order(
    masks: ArrayLike, order: Sequence[int], costs: ArrayLike, away: ArrayLike, crossing: float, required: Integers
) -> tuple[int, ...]:
    """A cheaper order than the given order, crossings included; the same order if no single move is cheaper.

    >>> placed_order([0b01, 0b10, 0b11], (0, 1), [1, 1], [True, False], 10, np.zeros(2, np.int64))
    (1, 0)
    """
    best, cost = tuple(order), placed_cost(masks, order, costs, away, crossing)
    while True:
        moved = min(
            (candidate for candidate in _moves(best) if is_legal(required, candidate)),
            key=lambda candidate: placed_cost(masks, candidate, costs, away, crossing),
            default=best,
        )
        reached = placed_cost(masks, moved, costs, away, crossing)
        if not reached < WORTH * cost:
            return best
        best, cost = moved, reached


def _moves(order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All orders that differ by the place of one filter."""
    rest = [(number, [other for other in order if other != number]) for number in order]
    return [(*others[:at], number, *others[at:]) for number, others in rest for at in range(len(order))]

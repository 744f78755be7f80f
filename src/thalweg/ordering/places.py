"""Orders filters that run in two places, where a row pays for every crossing to the other.

The greedy order of joint drop rates does not know that neighbours in one place share a crossing. It is improved here by
moving one filter at a time, as long as that helps.
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
    """The average cost of a tuple, crossings included, when those before it are home.

    Filter 0 is away and drops half of the tuples: the crossing costs less behind filter 1.

    >>> masks, costs, away = [0b01, 0b10, 0b11, 0b00], [1, 1], [True, False]
    >>> placed_cost(masks, (0, 1), costs, away, 10), placed_cost(masks, (1, 0), costs, away, 10)
    (11.5, 6.5)
    """
    each: Floats = np.array(costs, np.float64)
    abroad: Booleans = np.asarray(away, np.bool_)
    crossed = [one for at, one in enumerate(order) if abroad[one] and not (at and abroad[order[at - 1]])]
    each[crossed] += crossing
    return order_cost(masks, order, each)


def placed_order(
    masks: ArrayLike, order: Sequence[int], costs: ArrayLike, away: ArrayLike, crossing: float, required: Integers
) -> tuple[int, ...]:
    """A cheaper order than the one given, crossings included; the same if there is none by single moves.

    >>> placed_order([0b01, 0b10, 0b11], (0, 1), [1, 1], [True, False], 10, np.zeros(2, np.int64))
    (1, 0)
    """
    best, cost = tuple(order), placed_cost(masks, order, costs, away, crossing)
    while True:
        moved = min(
            (one for one in _moves(best) if is_legal(required, one)),
            key=lambda one: placed_cost(masks, one, costs, away, crossing),
            default=best,
        )
        reached = placed_cost(masks, moved, costs, away, crossing)
        if not reached < WORTH * cost:
            return best
        best, cost = moved, reached


def _moves(order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All orders that differ by the place of one filter."""
    rest = [(one, [other for other in order if other != one]) for one in order]
    return [(*others[:at], one, *others[at:]) for one, others in rest for at in range(len(order))]

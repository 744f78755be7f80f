"""Static greedy: the greedy order of one window of profile tuples, then no more change.

(a-greedy-2004, section 4)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import costs_of, masks_of
from thalweg.ordering.cost import drop_counts
from thalweg.ordering.policy import Floats, Integers, OneTimePolicy
from thalweg.ordering.precedence import check_filters, required_of
from thalweg.ordering.profile import LEAST_TIME


def greedy_order(
    masks: ArrayLike, costs: ArrayLike, required: Integers | None = None, prior: float = 0.0
) -> tuple[int, ...]:
    """The order in which each next filter drops most, per cost, of the tuples that the filters before it let through.

    Ties go to the filter with the lower number. Each filter is thought to drop `prior` tuples besides the given tuples,
    and as many again as its share of the given tuples (docs/decisions/0173).

    >>> greedy_order([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110], costs=[1, 1, 1, 1])
    (2, 0, 1, 3)
    """
    cost = np.maximum(costs_of(costs), LEAST_TIME)
    check_filters(cost.size)
    alive, needed = masks_of(masks, cost.size), required_of(required, cost.size)
    placed, order = 0, list[int]()
    more = prior * (1.0 + drop_counts(alive, cost.size) / max(alive.size, 1))
    while len(order) < cost.size:
        ranks = (drop_counts(alive, cost.size) + more) / cost
        ranks[order] = -1.0
        ranks[(needed & ~np.int64(placed)) != 0] = -1.0
        best = int(np.argmax(ranks))
        order.append(best)
        placed |= 1 << best
        alive = alive[(alive >> best) & 1 == 0]
    return tuple(order)


class StaticGreedy(OneTimePolicy):
    """Orders greedily once, when its window is full.

    >>> policy = StaticGreedy(4, window=6)
    >>> policy.update([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110])
    True
    >>> policy.order
    (2, 0, 1, 3)
    """

    name: ClassVar[str] = "static-greedy"

    def _choose(self, masks: Integers, costs: Floats) -> tuple[int, ...]:
        return greedy_order(masks, costs, self.state.required)

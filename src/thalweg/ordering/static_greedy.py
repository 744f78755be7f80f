"""Static greedy: the greedy order of one window of profile tuples, then no more change.

(a-greedy-2004, section 4)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import costs_of, masks_of
from thalweg.ordering.policy import Floats, Integers, OneTimePolicy
from thalweg.ordering.precedence import check_filters, required_of
from thalweg.ordering.profile import LEAST_TIME


def greedy_order(
    masks: ArrayLike,
    costs: ArrayLike,
    required: Integers | None = None,
    prior: float = 0.0,
    weights: Floats | None = None,
) -> tuple[int, ...]:
    """The order in which each next filter drops most, per cost, of the tuples that the filters before it let through.

    Ties go to the filter with the lower number. Each filter is thought to drop `prior` tuples besides the given tuples,
    and as many again as its share of the given tuples (docs/decisions/0173). A tuple counts as much as its weight says.

    >>> greedy_order([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110], costs=[1, 1, 1, 1])
    (2, 0, 1, 3)
    """
    cost = np.maximum(costs_of(costs), LEAST_TIME)
    check_filters(cost.size)
    tuples, needed = masks_of(masks, cost.size), required_of(required, cost.size)
    drops = (tuples[:, None] >> np.arange(cost.size) & 1).astype(np.float64)
    placed, order = 0, list[int]()
    left: Floats = np.ones(tuples.size) if weights is None else weights  # of each tuple: 0 once it is dropped
    more = prior * (1.0 + left @ drops / max(tuples.size, 1))
    while len(order) < cost.size:
        ranks = (left @ drops + more) / cost
        ranks[order] = -1.0
        ranks[(needed & ~np.int64(placed)) != 0] = -1.0
        best = int(np.argmax(ranks))
        order.append(best)
        placed |= 1 << best
        left = left * (1.0 - drops[:, best])
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

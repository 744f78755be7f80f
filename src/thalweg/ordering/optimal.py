"""Optimal: the cheapest order of one window of profile tuples, found exactly; the yardstick of the other policies.

The problem is NP-hard with correlated filters (pipelined set cover), so this is for few filters and for the lab.
"""

from __future__ import annotations

from itertools import permutations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.kernels import kernel
from thalweg.ordering.checked import costs_of, masks_of
from thalweg.ordering.cost import order_cost
from thalweg.ordering.policy import Floats, Integers, OneTimePolicy
from thalweg.ordering.precedence import is_legal, required_of

EXHAUSTIVE_UP_TO = 4  # filters; 24 orders
MOST_FILTERS = 20  # a million subsets, some 100 ms compiled


def optimal_order(masks: ArrayLike, costs: ArrayLike, required: Integers | None = None) -> tuple[int, ...]:
    """The order of least total cost on these tuples.

    >>> optimal_order([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110], costs=[1, 1, 1, 1])
    (2, 0, 1, 3)
    """
    cost = costs_of(costs)
    if cost.size > MOST_FILTERS:
        raise ValueError(f"optimal takes at most {MOST_FILTERS} filters, not {cost.size}; use a-greedy")
    tuples, needed = masks_of(masks, cost.size), required_of(required, cost.size)
    if cost.size <= EXHAUSTIVE_UP_TO:
        return exhaustive_order(tuples, cost, needed)
    return subset_order(tuples, cost, needed)


def exhaustive_order(masks: Integers, costs: Floats, required: Integers) -> tuple[int, ...]:
    """The cheapest legal order, by trying all legal orders."""
    legal = (order for order in permutations(range(costs.size)) if is_legal(required, order))
    return min(legal, key=lambda order: order_cost(masks, order, costs))


def subset_order(masks: Integers, costs: Floats, required: Integers) -> tuple[int, ...]:
    """The cheapest legal order, by dynamic programming over the sets of filters that have already run."""
    subsets = 1 << costs.size
    tuples = np.bincount(masks, minlength=subsets).astype(np.int64)
    cheapest, last = np.full(subsets, np.inf), np.full(subsets, -1, np.int64)
    _fill_subsets(tuples, costs, required, cheapest, last)
    order: list[int] = []
    subset = (1 << costs.size) - 1
    while subset:
        order.append(int(last[subset]))
        subset &= ~(1 << order[-1])
    return tuple(reversed(order))


@kernel
def _fill_subsets(tuples: Integers, costs: Floats, required: Integers, cheapest: Floats, last: Integers) -> None:
    """For each set of filters, find the cost of its cheapest order and the filter that runs last in it.

    `tuples` comes in as the number of tuples with each mask, and becomes the number dropped only within the set.
    """
    filters, subsets = costs.size, tuples.size
    for i in range(filters):
        for subset in range(subsets):
            if (subset >> i) & 1:
                tuples[subset] += tuples[subset ^ (1 << i)]
    cheapest[0] = 0.0
    for subset in range(1, subsets):
        for i in range(filters):
            before = subset & ~(1 << i)
            if before != subset and required[i] & ~before == 0:
                cost = cheapest[before] + costs[i] * tuples[subsets - 1 - before]
                if cost < cheapest[subset]:
                    cheapest[subset] = cost
                    last[subset] = i


class Optimal(OneTimePolicy):
    """Chooses the cheapest order once, when its window is full.

    >>> policy = Optimal(4, window=6)
    >>> policy.update([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110])
    True
    >>> policy.order
    (2, 0, 1, 3)
    """

    name: ClassVar[str] = "optimal"

    def _prepare(self) -> None:
        if self.filters > MOST_FILTERS:
            raise ValueError(f"optimal takes at most {MOST_FILTERS} filters, not {self.filters}; use a-greedy")
        super()._prepare()

    def _choose(self, masks: Integers, costs: Floats) -> tuple[int, ...]:
        return optimal_order(masks, costs, self.state.required)

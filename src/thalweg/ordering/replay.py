"""Teaches a policy from tuples whose drop masks are all known, as if it had processed them.

A sample has every filter's outcome for every row. A policy that tends to the greedy order gets that order at once.
Other policies that learn from profile tuples are shown the dropped tuples; policies that learn from ordinary processing
are shown the counts that it would have given in their own order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import costs_of, masks_of
from thalweg.ordering.cost import order_cost
from thalweg.ordering.policy import Policy
from thalweg.ordering.static_greedy import greedy_order

GAIN = 1.02  # how many times cheaper the greedy order must be to replace another: what a sample can tell
PARTS = 40  # in which the tuples are shown; a policy may change its order after each


def replay(policy: Policy, masks: ArrayLike, costs: ArrayLike) -> None:
    """Let a policy order by the drop masks of all tuples, and by the cost of a tuple in each filter.

    >>> from thalweg.ordering import AGreedy, MarginalRank
    >>> for policy in AGreedy(2), MarginalRank(2):
    ...     replay(policy, [0b00, 0b01, 0b10, 0b10] * 100, costs=[1.0, 1.0])
    ...     policy.order
    (1, 0)
    (1, 0)
    """
    tuples, cost = masks_of(masks, policy.filters), costs_of(costs)
    if cost.size != policy.filters:
        raise ValueError(f"costs are {policy.filters} numbers, a cost for each filter, not {cost.size}")
    if policy.tends_to_greedy:
        greedy = greedy_order(tuples, cost, policy.state.required, policy.state.prior)
        if order_cost(tuples, policy.order, cost) > GAIN * order_cost(tuples, greedy, cost):
            policy.state.order[:] = greedy
        return
    for part in np.array_split(tuples, min(PARTS, max(tuples.size, 1))):
        evaluated, dropped = np.zeros(cost.size, np.int64), np.zeros(cost.size, np.int64)
        alive = part
        for place in policy.order:
            passed = alive[(alive >> place) & 1 == 0]
            evaluated[place], dropped[place] = alive.size, alive.size - passed.size
            alive = passed
        gone = part[part != 0]
        if gone.size:
            policy.update(gone, np.broadcast_to(cost, (gone.size, cost.size)))
        policy.observe(evaluated, dropped, evaluated * cost)
    policy.conclude()

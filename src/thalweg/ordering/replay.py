"""Teaches a policy from tuples whose drop masks are all known, as if it had processed them.

A sample has every filter's outcome for every row. What A-Greedy and Sweep tend to, the greedy order, it gives at once.
Other policies that learn from profile tuples are shown the dropped ones; those that learn from ordinary processing are
shown what it would have counted in their own order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.a_greedy import AGreedy
from thalweg.ordering.cost import order_cost
from thalweg.ordering.once import Once
from thalweg.ordering.policy import Policy
from thalweg.ordering.static_greedy import greedy_order
from thalweg.ordering.sweep import Sweep
from thalweg.ordering.types import Floats, Integers

GAIN = 1.02  # times cheaper is the greedy order at least that takes another's place: what a sample can tell
PARTS = 40  # in which the tuples are shown; a policy may change its order after each


def replay(policy: Policy, masks: ArrayLike, costs: ArrayLike) -> None:
    """Let a policy order by the drop masks of all tuples, and by what a tuple costs in each filter.

    >>> from thalweg.ordering import AGreedy, MarginalRank
    >>> for policy in AGreedy(2), MarginalRank(2):
    ...     replay(policy, [0b00, 0b01, 0b10, 0b10] * 100, costs=[1.0, 1.0])
    ...     policy.order
    (1, 0)
    (1, 0)
    """
    tuples: Integers = np.asarray(masks, np.int64)
    each: Floats = np.asarray(costs, np.float64)
    if isinstance(policy, AGreedy | Sweep):
        greedy = greedy_order(tuples, each, policy.state.required, policy.state.prior)
        if order_cost(tuples, policy.order, each) > GAIN * order_cost(tuples, greedy, each):
            policy.state.order[:] = greedy
        return
    for part in np.array_split(tuples, min(PARTS, max(tuples.size, 1))):
        evaluated, dropped = np.zeros(each.size, np.int64), np.zeros(each.size, np.int64)
        alive = part
        for one in policy.order:
            passed = alive[(alive >> one) & 1 == 0]
            evaluated[one], dropped[one] = alive.size, alive.size - passed.size
            alive = passed
        gone = part[part != 0]
        if gone.size:
            policy.update(gone, np.broadcast_to(each, (gone.size, each.size)))
        policy.observe(evaluated, dropped, evaluated * each)
    if isinstance(policy, Once) and policy.profile.seen < policy.profile.window:
        policy.decide()  # there is no more to wait for

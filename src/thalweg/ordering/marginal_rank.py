"""Marginal rank: sorts filters by time per dropped row, from ordinary processing alone.

What Velox and Trino do: totals over the whole run, each filter by itself, measured wherever it stands. It needs no
profiling, but a filter behind one that it is correlated with looks worse than it is, and old statistics never age.
"""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from thalweg.kernels import kernel
from thalweg.ordering.peer import Peer
from thalweg.ordering.policy import State, log_change, may_move, move
from thalweg.ordering.profile import Window
from thalweg.ordering.types import Floats, Integers

LOOK_EVERY = 10  # batches between two sorts
DROPPED, SECONDS = 0, 1


@kernel
def observe(
    window: Window, state: State, totals: Floats, evaluated: Integers, dropped: Integers, seconds: Floats
) -> bool:
    """Add a batch to the totals and sort anew from time to time."""
    order = state.order
    for i in range(order.size):
        totals[DROPPED, i] += dropped[i]
        totals[SECONDS, i] += seconds[i]
    state.stage[1] += 1
    if state.stage[1] % LOOK_EVERY:
        return False
    changed = False
    for place in range(1, order.size):  # insertion sort: stable, and nearly sorted already
        target = place
        one = order[place]
        while target > 0 and drops_faster(totals, one, order[target - 1]):
            if not may_move(order, state.required, place, target - 1):
                break
            target -= 1
        if target < place:
            displaced = order[target]
            move(order, place, target)
            log_change(window, state, target, displaced)
            changed = True
    return changed


@kernel
def drops_faster(totals: Floats, one: int, other: int) -> bool:
    """Whether one filter drops more rows per unit of time than another."""
    return bool(totals[DROPPED, one] * totals[SECONDS, other] > totals[DROPPED, other] * totals[SECONDS, one])


class MarginalRank(Peer):
    """Adaptive ordering by time per dropped row, as Velox and Trino do.

    >>> policy = MarginalRank(2)
    >>> for _ in range(10):
    ...     changed = policy.observe(evaluated=[100, 50], dropped=[50, 40], seconds=[2.0, 1.0])
    >>> policy.order
    (1, 0)
    """

    name: ClassVar[str] = "marginal-rank"

    def observe(self, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike) -> bool:
        """Learn from a batch of ordinary processing."""
        counts = self._checked(evaluated, dropped, seconds)
        return observe(self.profile.arrays, self.state, self.totals, *counts)

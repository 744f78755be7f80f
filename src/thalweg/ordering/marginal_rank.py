"""Marginal rank: sorts filters by time per dropped row, from ordinary processing alone.

The method of Velox and Trino: totals over the whole run, each filter by itself, measured wherever it stands. It needs
no profiling, but a filter that is correlated with a filter before it looks worse than it is, and old statistics never
age.
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.kernels import kernel
from thalweg.ordering.policy import Floats, Policy, ProcessingCounts, ProfileWindow, State, log_change, may_move, move

SORT_EVERY = 10  # batches from one sort to the next
BATCHES = 0  # of State.memory
DROPPED, SECONDS = 0, 1  # of State.totals


@kernel
def observe(window: ProfileWindow, state: State, counts: ProcessingCounts, uniform: float) -> bool:
    """Add a batch to the totals and sort anew from time to time."""
    order, totals = state.order, state.totals
    for i in range(order.size):
        totals[DROPPED, i] += counts.dropped[i]
        totals[SECONDS, i] += counts.seconds[i]
    state.memory[BATCHES] += 1
    if state.memory[BATCHES] % SORT_EVERY:
        return False
    changed = False
    for place in range(1, order.size):  # insertion sort: stable, and nearly sorted already
        target = place
        sorted_in = order[place]
        while target > 0 and drops_faster(totals, sorted_in, order[target - 1]):
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
def drops_faster(totals: Floats, left: int, right: int) -> bool:
    """Whether the left filter drops more rows per unit of time than the right filter."""
    return bool(totals[DROPPED, left] * totals[SECONDS, right] > totals[DROPPED, right] * totals[SECONDS, left])


class MarginalRank(Policy):
    """Adaptive ordering by time per dropped row, as Velox and Trino do.

    >>> policy = MarginalRank(2)
    >>> for _ in range(10):
    ...     changed = policy.observe(evaluated=[100, 50], dropped=[50, 40], seconds=[2.0, 1.0])
    >>> policy.order
    (1, 0)
    """

    name: ClassVar[str] = "marginal-rank"
    memory_size: ClassVar[int] = 1
    total_rows: ClassVar[int] = 2
    learns_from_processing: ClassVar[bool] = True

    def _observe(self, counts: ProcessingCounts) -> bool:
        return observe(self.profile.arrays, self.state, counts, 0.0)

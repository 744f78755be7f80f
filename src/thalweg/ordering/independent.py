"""Independent: orders filters by their own drop rate per unit of time, as if no two were correlated.

Eddies and most stream joins order so. The policy keeps only the first row of the matrix view, adapts at once, and can
cost n times the optimum where drop rates are correlated. (a-greedy-2004, section 6, example 6)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.kernels import inlined, kernel
from thalweg.ordering.policy import (
    ROW,
    Batch,
    Policy,
    ProfileWindow,
    State,
    log_change,
    may_move,
    move,
    rank,
    recount,
    slide,
    want_rest,
)


@inlined
def violation(window: ProfileWindow, state: State) -> int:
    """The first position at which a later filter should run instead, or -1 (definition 6.1)."""
    order, mean_time = state.order, window.mean_time
    for position in range(order.size - 1):
        least = rank(state, mean_time, 0, position) / state.alpha
        for later in range(position + 1, order.size):
            better = least < rank(state, mean_time, 0, later)
            if better and may_move(order, state.required, later, position):
                return position
    return -1


@kernel
def correct(window: ProfileWindow, state: State, start: int) -> None:
    """Sort the filters from a position on by their own ranks."""
    counts, order, mean_time = state.counts, state.order, window.mean_time
    displaced = order[start]
    for position in range(start, order.size - 1):
        best = position
        for later in range(position + 1, order.size):
            better = rank(state, mean_time, 0, later) > rank(state, mean_time, 0, best)
            if better and may_move(order, state.required, later, position):
                best = later
        number = counts[0, best]
        for later in range(best, position, -1):
            counts[0, later] = counts[0, later - 1]
        counts[0, position] = number
        move(order, best, position)
    log_change(window, state, start, displaced)


@inlined
def adapt(window: ProfileWindow, state: State, batch: Batch) -> bool:
    """Put profile tuples into the window, one by one, and keep the filters sorted."""
    changed = False
    for k in range(batch.masks.size):
        slide(window, state.counts, state.order, ROW, 0, batch, k)
        position = violation(window, state)
        if position >= 0:
            correct(window, state, position)
            changed = True
    if changed:
        want_rest(state.order, state.wanted)
    return changed


class Independent(Policy):
    """Adaptive ordering by unconditional drop rates.

    >>> policy = Independent(3)
    >>> policy.update([0b001, 0b100, 0b110])
    True
    >>> policy.order
    (2, 0, 1)
    """

    name: ClassVar[str] = "independent"
    default_p: ClassVar[float] = 0.005
    default_adaptive_p: ClassVar[bool] = True
    profiles_all_filters: ClassVar[bool] = True

    def recount_view(self) -> None:
        """Count the first row of the matrix view anew from the window."""
        recount(self.state.counts, self.state.order, ROW, 0, self.profile.arrays)

    def _prepare(self) -> None:
        want_rest(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        return adapt(self.profile.arrays, self.state, batch)

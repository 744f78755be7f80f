"""LocalSwaps: compares neighbours only, so that a profiled tuple costs one further filter.

Swaps two adjacent filters when the later filter drops more, per unit of time, of the tuples that reach them. It keeps
two diagonals of the matrix view, and may stay in a local optimum. (a-greedy-2004, section 7, example 7)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.kernels import inlined, kernel
from thalweg.ordering.policy import (
    DIAGONALS,
    Batch,
    Integers,
    Policy,
    ProfileWindow,
    State,
    log_change,
    may_move,
    move,
    rank,
    recount,
    slide,
)


@inlined
def violation(window: ProfileWindow, state: State) -> int:
    """The first position whose neighbour should run before it, or -1 (definition 7.1)."""
    order, mean_time = state.order, window.mean_time
    for position in range(order.size - 1):
        least = rank(state, mean_time, position, position) / state.alpha
        better = least < rank(state, mean_time, position, position + 1)
        if better and may_move(order, state.required, position + 1, position):
            return position
    return -1


@kernel
def want_next(order: Integers, wanted: Integers) -> None:
    """Ask for profiled tuples to be evaluated on the filter next to the filter that dropped them."""
    wanted[order.size - 1] = 0
    for position in range(order.size - 1):
        wanted[position] = 1 << order[position + 1]


@inlined
def adapt(window: ProfileWindow, state: State, batch: Batch) -> bool:
    """Put profile tuples into the window, one by one; after each, swap at most one pair.

    The diagonals of the new order are counted from the window, in which a neighbour that was not evaluated counts
    as not dropping: that may delay the next swap until the window has turned over, but cannot cause a swap.
    """
    order = state.order
    changed = False
    for k in range(batch.masks.size):
        slide(window, state.counts, order, DIAGONALS, 0, batch, k)
        position = violation(window, state)
        if position >= 0:
            displaced = order[position]
            move(order, position + 1, position)
            log_change(window, state, position, displaced)
            recount(state.counts, order, DIAGONALS, 0, window)
            want_next(order, state.wanted)
            changed = True
    return changed


class LocalSwaps(Policy):
    """Adaptive ordering by swaps of neighbours.

    >>> policy = LocalSwaps(3)
    >>> policy.update([0b110, 0b001, 0b010])
    True
    >>> policy.order
    (1, 0, 2)
    >>> policy.needs(0)
    (0,)
    """

    name: ClassVar[str] = "local-swaps"
    default_p: ClassVar[float] = 0.01

    def _prepare(self) -> None:
        want_next(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        return adapt(self.profile.arrays, self.state, batch)

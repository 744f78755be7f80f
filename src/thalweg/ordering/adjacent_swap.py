"""Adjacent swap: tries a swap of random neighbours and keeps it if batches then took less time.

What DuckDB does: every 20 batches it swaps a random adjacent pair and compares the mean time of the next 10 with
that of the 10 before; a pair whose swap did not help is tried less often. It needs no profiling, and knows nothing
of why an order is better.
"""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from thalweg.kernels import kernel
from thalweg.ordering.peer import Peer
from thalweg.ordering.policy import State, log_change, may_move, move
from thalweg.ordering.profile import Window
from thalweg.ordering.types import Floats, Integers

MEASURED = 10  # batches whose mean time is compared
TRY_EVERY = 20  # batches between two tries
LEAST_LIKELY = 0.01

SECONDS, BATCHES, MEAN, LIKELY = 0, 1, 2, 3  # rows of the totals; only the last has an entry for each position
POSITION, PHASE = 0, 1  # the stage: the position on trial, or -1; batches since the last step


@kernel
def observe(
    window: Window,
    state: State,
    totals: Floats,
    evaluated: Integers,
    dropped: Integers,
    seconds: Floats,
    uniform: float,
) -> bool:
    """Add a batch's time; judge the swap on trial, or begin the next."""
    order, stage = state.order, state.stage
    filters = order.size
    if filters == 1:
        return False
    stage[PHASE] += 1
    tuples = evaluated[order[0]]
    for i in range(filters):
        totals[SECONDS, 0] += seconds[i] / max(tuples, 1)
    totals[BATCHES, 0] += 1
    position = stage[POSITION]
    if position >= 0:
        if stage[PHASE] < MEASURED:
            return False
        better = totals[SECONDS, 0] / totals[BATCHES, 0] < totals[MEAN, 0]
        if better:
            totals[LIKELY, position] = 1.0
        else:
            totals[LIKELY, position] = max(totals[LIKELY, position] / 2, LEAST_LIKELY)
            swap(window, state, position)
        stage[POSITION], stage[PHASE] = -1, 0
        totals[:MEAN] = 0.0
        return not better
    if stage[PHASE] == TRY_EVERY - MEASURED:  # the batches before a try are what it is compared with
        totals[:MEAN] = 0.0
    if stage[PHASE] < TRY_EVERY:
        return False
    totals[MEAN, 0] = totals[SECONDS, 0] / totals[BATCHES, 0]
    totals[:MEAN] = 0.0
    stage[PHASE] = 0
    place = int(uniform * (filters - 1))
    chance = uniform * (filters - 1) - place  # the fraction is uniform again
    if chance < totals[LIKELY, place] and may_move(order, state.required, place + 1, place):
        stage[POSITION] = place
        swap(window, state, place)
        return True
    return False


@kernel
def swap(window: Window, state: State, position: int) -> None:
    """Swap the filters at a position and the next."""
    displaced = state.order[position]
    move(state.order, position + 1, position)
    log_change(window, state, position, displaced)


class AdjacentSwap(Peer):
    """Adaptive ordering by trial swaps of neighbours, as DuckDB does."""

    name: ClassVar[str] = "adjacent-swap"

    def _prepare(self) -> None:
        super()._prepare()
        self.totals[LIKELY] = 1.0
        self.state.stage[:] = -1, 0

    def observe(self, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike) -> bool:
        """Learn from a batch of ordinary processing."""
        counts = self._checked(evaluated, dropped, seconds)
        return observe(self.profile.arrays, self.state, self.totals, *counts, self.random.random())

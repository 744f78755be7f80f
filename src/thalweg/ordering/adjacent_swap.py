"""Adjacent swap: tries a swap of random neighbours and keeps it if batches then took less time.

DuckDB's method: every 20 batches it swaps a random adjacent pair and compares the mean time of the next 10 batches
with that of the 10 before; a pair whose swap did not help is tried less often. It needs no profiling, and does not know
why an order is better.
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.kernels import kernel
from thalweg.ordering.policy import Policy, ProcessingCounts, ProfileWindow, State, log_change, may_move, move

MEASURED = 10  # batches whose mean time is compared
TRY_EVERY = 20  # batches from one trial to the next
LEAST_LIKELY = 0.01

TRIED_POSITION, PHASE = 0, 1  # of State.memory: the position on trial, or -1; batches since the last step
SECONDS, BATCHES, MEAN, LIKELY = range(4)  # of State.totals; only the last row has an entry for each position


@kernel
def observe(window: ProfileWindow, state: State, counts: ProcessingCounts, uniform: float) -> bool:
    """Add a batch's time; judge the swap on trial, or begin the next trial."""
    order, memory, totals = state.order, state.memory, state.totals
    filters = order.size
    if filters == 1:
        return False
    memory[PHASE] += 1
    tuples = counts.evaluated[order[0]]
    for i in range(filters):
        totals[SECONDS, 0] += counts.seconds[i] / max(tuples, 1.0)
    totals[BATCHES, 0] += 1
    position = memory[TRIED_POSITION]
    if position >= 0:
        if memory[PHASE] < MEASURED:
            return False
        better = totals[SECONDS, 0] / totals[BATCHES, 0] < totals[MEAN, 0]
        if better:
            totals[LIKELY, position] = 1.0
        else:
            totals[LIKELY, position] = max(totals[LIKELY, position] / 2, LEAST_LIKELY)
            swap(window, state, position)
        memory[TRIED_POSITION], memory[PHASE] = -1, 0
        totals[:MEAN] = 0.0
        return not better
    if memory[PHASE] == TRY_EVERY - MEASURED:  # a trial is compared with the batches just before it
        totals[:MEAN] = 0.0
    if memory[PHASE] < TRY_EVERY:
        return False
    totals[MEAN, 0] = totals[SECONDS, 0] / totals[BATCHES, 0]
    totals[:MEAN] = 0.0
    memory[PHASE] = 0
    place = int(uniform * (filters - 1))
    chance = uniform * (filters - 1) - place  # the fraction is uniform again
    if chance < totals[LIKELY, place] and may_move(order, state.required, place + 1, place):
        memory[TRIED_POSITION] = place
        swap(window, state, place)
        return True
    return False


@kernel
def swap(window: ProfileWindow, state: State, position: int) -> None:
    """Swap the filters at a position and the next."""
    displaced = state.order[position]
    move(state.order, position + 1, position)
    log_change(window, state, position, displaced)


class AdjacentSwap(Policy):
    """Adaptive ordering by trial swaps of neighbours, as DuckDB does.

    >>> policy = AdjacentSwap(2)
    >>> policy.needs(0)
    ()
    """

    name: ClassVar[str] = "adjacent-swap"
    memory_size: ClassVar[int] = 2
    total_rows: ClassVar[int] = 4
    learns_from_processing: ClassVar[bool] = True

    def _prepare(self) -> None:
        self.state.memory[TRIED_POSITION] = -1
        self.state.totals[LIKELY] = 1.0

    def _observe(self, counts: ProcessingCounts) -> bool:
        return observe(self.profile.arrays, self.state, counts, self.random.random())

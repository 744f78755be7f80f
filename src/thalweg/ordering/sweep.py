"""Sweep: checks one position of the order at a time, so that a profiled tuple costs at most one further filter.

In a stage the filter at position j alone is profiled and compared with the filters before it; the stage ends when
it is moved forward, or after a window of profile tuples without a reason to. Then the next position is profiled.
It reaches the same order as A-Greedy on a stable stream, later. (a-greedy-2004, section 5)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.kernels import inlined, kernel
from thalweg.ordering.policy import (
    COLUMN,
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
)

PROFILED_POSITION, COLLECTED = 0, 1  # of State.memory: the stage's position, and its profile tuples so far


@kernel
def begin_stage(window: ProfileWindow, state: State, column: int) -> None:
    """Profile the filter at another position, and count how often the tuples in the window were dropped by it."""
    state.memory[PROFILED_POSITION] = column
    state.memory[COLLECTED] = 0
    recount(state.counts, state.order, COLUMN, column, window)
    state.wanted[:] = 0
    for position in range(column):
        state.wanted[position] = 1 << state.order[column]


@inlined
def adapt(window: ProfileWindow, state: State, batch: Batch) -> bool:
    """Put profile tuples into the window, one by one, and keep the profiled position's invariant (definition 5.1)."""
    order, memory = state.order, state.memory
    changed = False
    if order.size == 1:
        return changed
    for k in range(batch.masks.size):
        column = memory[PROFILED_POSITION]
        slide(window, state.counts, order, COLUMN, column, batch, k)
        memory[COLLECTED] += 1
        moved = False
        for row in range(column):
            least = rank(state, window.mean_time, row, row) / state.alpha
            if least < rank(state, window.mean_time, row, column) and may_move(order, state.required, column, row):
                displaced = order[row]
                move(order, column, row)
                log_change(window, state, row, displaced)
                moved = changed = True
                break
        if moved or memory[COLLECTED] >= window.masks.size:
            begin_stage(window, state, column % (order.size - 1) + 1)
    return changed


class Sweep(Policy):
    """Adaptive greedy ordering that profiles one position at a time.

    >>> policy = Sweep(3)
    >>> policy.needs(0), policy.needs(1)
    ((1,), ())
    """

    name: ClassVar[str] = "sweep"
    default_window: ClassVar[int] = 500
    default_p: ClassVar[float] = 0.01
    memory_size: ClassVar[int] = 2
    tends_to_greedy: ClassVar[bool] = True

    def _prepare(self) -> None:
        if self.filters > 1:
            begin_stage(self.profile.arrays, self.state, 1)

    def _adapt(self, batch: Batch) -> bool:
        return adapt(self.profile.arrays, self.state, batch)

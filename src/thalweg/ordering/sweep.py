"""Sweep: checks one position of the order at a time, so that a profiled tuple costs at most one further filter.

In a stage the filter at position j alone is profiled and compared with the filters before it; the stage ends when
it is moved forward, or after a window of profile tuples without a reason to. Then the next position is looked at.
It reaches the same order as A-Greedy on a stable stream, later. (a-greedy-2004, section 5)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.kernels import inlined, kernel
from thalweg.ordering.matrix_view import COLUMN, recount, slide
from thalweg.ordering.policy import Policy, State, log_change, may_move, move, rank
from thalweg.ordering.profile import Batch, Window

COLUMN_NOW, COLLECTED = 0, 1


@kernel
def begin_stage(window: Window, state: State, column: int) -> None:
    """Look at another position: profile its filter, and count what the window already knows of it."""
    state.stage[COLUMN_NOW] = column
    state.stage[COLLECTED] = 0
    recount(state.counts, state.order, COLUMN, column, window)
    state.wanted[:] = 0
    for position in range(column):
        state.wanted[position] = 1 << state.order[column]


@inlined
def adapt(window: Window, state: State, batch: Batch) -> bool:
    """Take profile tuples in, one by one, and keep the invariant of the profiled position (definition 5.1)."""
    order, stage = state.order, state.stage
    changed = False
    if order.size == 1:
        return changed
    for k in range(batch.masks.size):
        column = stage[COLUMN_NOW]
        slide(window, state.counts, order, COLUMN, column, batch, k)
        stage[COLLECTED] += 1
        moved = False
        for row in range(column):
            least = rank(state, window.mean_time, row, row) / state.alpha
            if least < rank(state, window.mean_time, row, column) and may_move(order, state.required, column, row):
                displaced = order[row]
                move(order, column, row)
                log_change(window, state, row, displaced)
                moved = changed = True
                break
        if moved or stage[COLLECTED] >= window.masks.size:
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

    def _prepare(self) -> None:
        if self.filters > 1:
            begin_stage(self.profile.arrays, self.state, 1)

    def _adapt(self, batch: Batch) -> bool:
        return adapt(self.profile.arrays, self.state, batch)

"""A-Greedy: keeps the order that a greedy choice by joint drop statistics would give, and corrects it at once.

The greedy invariant: the filter at each position drops most per unit of time among the filters from there on, for
the tuples that the filters before it let through. Its cost is at most four times the optimum's, 4/alpha with thrash
avoidance (theorem 4.1). (a-greedy-2004, section 4, figures 3 to 5)
"""

from __future__ import annotations

import math
from typing import ClassVar

from thalweg.kernels import inlined, kernel
from thalweg.ordering.cost import order_cost
from thalweg.ordering.policy import (
    COUNT,
    FULL,
    Batch,
    Floats,
    Integers,
    Policy,
    ProfileWindow,
    State,
    log_change,
    may_move,
    move,
    recount,
    slide,
    slot_at,
    want_rest,
)
from thalweg.ordering.static_greedy import greedy_order

GAIN = 1.002  # how many times cheaper an order by weighted tuples must be: else noise in costs would change it


@inlined
def joint_rank(window: ProfileWindow, state: State, row: int, position: int) -> float:
    """Drops per unit of time of the filter at a position, among tuples that the positions before `row` let pass.

    Few tuples of a window get as far as the last positions. There the prior decides: it grows with the share of all
    tuples that a filter drops, which the whole window tells. (docs/decisions/0173)
    """
    share = state.counts[0, position] / max(window.cursor[COUNT], 1)
    dropped = state.counts[row, position] + state.prior * (1.0 + share)
    return dropped / window.mean_time[state.order[position]]  # type: ignore[no-any-return]


@inlined
def violation(window: ProfileWindow, state: State, last: int) -> int:
    """The first position that breaks the greedy invariant, or -1; positions up to `last` may (figure 4, equation 4)."""
    order = state.order
    for row in range(min(last + 1, order.size - 1)):
        least = joint_rank(window, state, row, row) / state.alpha
        for position in range(row + 1, order.size):
            better = least < joint_rank(window, state, row, position)
            if better and may_move(order, state.required, position, row):
                return row
    return -1


@kernel
def correct(window: ProfileWindow, state: State, start: int) -> None:
    """Choose greedily anew from a position on, as far as the choice differs (figure 5)."""
    view, order = state.counts, state.order
    filters = order.size
    displaced = order[start]
    before = 0  # the filters at positions before row
    for position in range(start):
        before |= 1 << order[position]
    row = last = start
    while row <= last:
        if row > start:  # the row of the violation is up to date
            count_row(window, view, order, row, before)
        best = -1
        for position in range(row, filters):
            if state.required[order[position]] & ~before:
                continue
            if best < 0 or joint_rank(window, state, row, position) > joint_rank(window, state, row, best):
                best = position
        if best > row:
            for above in range(row + 1):
                number = view[above, best]
                for position in range(best, row, -1):
                    view[above, position] = view[above, position - 1]
                view[above, row] = number
            move(order, best, row)
            last = max(last, best)
        before |= 1 << order[row]
        row += 1
    log_change(window, state, start, displaced)


@kernel
def count_row(window: ProfileWindow, view: Integers, order: Integers, row: int, before: int) -> None:
    """Count one row of the view from the profile window."""
    view[row] = 0
    for k in range(window.cursor[COUNT]):
        mask = window.masks[slot_at(window, k)]
        if mask & before == 0:
            for position in range(row, order.size):
                view[row, position] += (mask >> order[position]) & 1


@inlined
def adapt(window: ProfileWindow, state: State, batch: Batch) -> bool:
    """Put profile tuples into the window, one by one, and keep the greedy invariant."""
    changed = False
    for k in range(batch.masks.size):
        last = slide(window, state.counts, state.order, FULL, 0, batch, k)
        position = violation(window, state, last)
        while position >= 0:
            correct(window, state, position)
            changed = True
            position = violation(window, state, last)
    if changed:
        want_rest(state.order, state.wanted)
    return changed


@kernel
def settle(window: ProfileWindow, state: State) -> None:
    """Correct the order until nothing violates the greedy invariant."""
    position = violation(window, state, state.order.size)
    while position >= 0:
        correct(window, state, position)
        position = violation(window, state, state.order.size)
    want_rest(state.order, state.wanted)


class AGreedy(Policy):
    """Adaptive greedy ordering by joint, conditional drop rates.

    Examples
    --------
    The paper's examples 4 and 5: two more profile tuples put the fourth filter first.

    >>> policy = AGreedy(4, window=6, order=(2, 0, 1, 3), alpha=1.0)
    >>> policy.update([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110])
    False
    >>> policy.update([0b1100, 0b1011])
    True
    >>> policy.order
    (3, 2, 0, 1)
    >>> policy.needs(1)
    (0, 1)
    """

    name: ClassVar[str] = "a-greedy"
    default_p: ClassVar[float] = 0.01
    default_adaptive_p: ClassVar[bool] = True
    profiles_all_filters: ClassVar[bool] = True
    tends_to_greedy: ClassVar[bool] = True
    can_settle: ClassVar[bool] = True

    def recount_view(self) -> None:
        """Count the whole matrix view anew from the window."""
        recount(self.state.counts, self.state.order, FULL, 0, self.profile.arrays)

    def settle(self, weights: Floats | None = None) -> None:
        """Correct the order by the window as it is. This is seldom done, so smaller gains cause no thrashing."""
        if weights is not None:
            self._take_greedy_order(weights)
            return
        self.recount_view()
        settle(self.profile.arrays, self.state._replace(alpha=math.sqrt(self.state.alpha)))

    def _take_greedy_order(self, weights: Floats) -> None:
        """Take the greedy order of weighted profile tuples, if it is better."""
        masks, costs, state, order = self.profile.masks, self.profile.mean_times, self.state, self.order
        greedy = greedy_order(masks, costs, state.required, state.prior, weights)
        if greedy == order:
            return
        if order_cost(masks, order, costs, weights) > GAIN * order_cost(masks, greedy, costs, weights):
            first = next(position for position, number in enumerate(order) if number != greedy[position])
            state.order[:] = greedy
            log_change(self.profile.arrays, state, first, order[first])
            want_rest(state.order, state.wanted)

    def _prepare(self) -> None:
        want_rest(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        return adapt(self.profile.arrays, self.state, batch)

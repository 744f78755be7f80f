"""The matrix view: how often each filter drops profile tuples that the filters before it let through.

``V[i, j]`` counts the profile tuples that the filter at position ``j`` of the order drops among the tuples that no
filter at a position before ``i`` drops; it is proportional to the conditional drop probability d(j|i-1). It is
kept up to date as profile tuples enter and leave, in full for A-Greedy and in the smaller parts that its variants
need. (a-greedy-2004, section 4.2.1, figures 3 and 7. Figure 3 line 8 prints ``b == 0``; the filters that *dropped*
the tuple are counted.)
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from thalweg.kernels import inlined, kernel
from thalweg.ordering.checked import masks_of
from thalweg.ordering.precedence import check_filters, legal_order
from thalweg.ordering.profile import COUNT, Batch, ProfileWindow, append, is_due, remove_oldest, slot_at
from thalweg.ordering.types import Integers

if TYPE_CHECKING:
    from thalweg.ordering.policy import Policy


class ViewEntries(IntEnum):
    """Which entries of the view are kept (figure 7)."""

    FULL = 0  # A-Greedy: the whole upper triangle
    COLUMN = 1  # Sweep: the diagonal and one column, down to that column
    ROW = 2  # Independent: the first row
    DIAGONALS = 3  # LocalSwaps: the diagonal and the diagonal above it


FULL, COLUMN, ROW, DIAGONALS = (int(entries) for entries in ViewEntries)


@inlined
def count(view: Integers, order: Integers, entries: int, column: int, mask: int, sign: int) -> int:
    """Add (sign 1) or take away (sign -1) one profile tuple (figure 3); returns the last row it touches."""
    filters, mask = order.size, int(mask)
    if mask == 0:
        return -1
    first = 0  # the position that drops the tuple
    while not (mask >> int(order[first])) & 1:
        first += 1
    if entries == FULL:
        for position in range(first, filters):  # adding the bit is faster than branching on it
            bit = sign * ((mask >> int(order[position])) & 1)
            for row in range(first + 1):
                view[row, position] += bit
    elif entries == COLUMN:
        if first < column:
            view[first, first] += sign
        if first <= column and (mask >> order[column]) & 1:
            for row in range(first + 1):
                view[row, column] += sign
    elif entries == ROW:
        for position in range(first, filters):
            view[0, position] += sign * ((mask >> order[position]) & 1)
    else:
        view[first, first] += sign
        if first > 0:
            view[first - 1, first] += sign
        if first + 1 < filters:
            view[first, first + 1] += sign * ((mask >> order[first + 1]) & 1)
    return first


@kernel
def recount(view: Integers, order: Integers, entries: int, column: int, window: ProfileWindow) -> None:
    """Count the whole window anew, after the order or the column has changed."""
    view[:] = 0
    for k in range(window.cursor[COUNT]):
        count(view, order, entries, column, window.masks[slot_at(window, k)], 1)


@inlined
def slide(
    window: ProfileWindow, view: Integers, order: Integers, entries: int, column: int, batch: Batch, k: int
) -> int:
    """Put the k-th profile tuple of a batch into the window, from which old tuples leave, and keep the view in step.

    Returns the last row whose ranks may have changed: the last of all rows if average times have changed.
    """
    last = -1
    while is_due(window, batch.stamps[k]):
        slot = remove_oldest(window)
        last = max(last, count(view, order, entries, column, window.masks[slot], -1))
        if window.timed[slot]:
            last = order.size - 1
    append(window, batch, k)
    last = max(last, count(view, order, entries, column, batch.masks[k], 1))
    return order.size - 1 if batch.timed[k] else last


class MatrixView:
    """A matrix view by itself, to look at. Policies keep their views with the same kernels.

    Examples
    --------
    The view of the paper's figure 2(c), for the order F3 F1 F2 F4:

    >>> view = MatrixView((2, 0, 1, 3))
    >>> view.insert([0b0100, 0b1110, 0b0001, 0b0100, 0b1011, 0b1110])
    >>> print(view)
    4 2 3 3
      2 1 1
        0 0
          0
    """

    def __init__(self, order: Iterable[int], entries: ViewEntries = ViewEntries.FULL, column: int = 0) -> None:
        numbers = list(order)
        check_filters(len(numbers))
        self.order = np.array(legal_order(np.zeros(len(numbers), np.int64), numbers), np.int64)
        if not 0 <= column < self.order.size:
            raise ValueError(f"the column of a view is a position of its order, not {column}")
        self.entries = ViewEntries(entries)
        self.column = column
        self.counts = np.zeros((self.order.size, self.order.size), np.int64)

    @classmethod
    def of(cls, policy: Policy) -> MatrixView:
        """The full view of a policy's order over its profile window, whichever entries the policy keeps itself."""
        view = cls(policy.order)
        view.insert(policy.profile.masks)
        return view

    def insert(self, masks: ArrayLike) -> None:
        """Count profile tuples that entered the window."""
        for mask in masks_of(masks, self.order.size):
            count(self.counts, self.order, int(self.entries), self.column, mask, 1)

    def __str__(self) -> str:
        width = len(str(self.counts.max()))
        rows = (
            " ".join(f"{number:{width}d}" if j >= i else " " * width for j, number in enumerate(row))
            for i, row in enumerate(self.counts.tolist())
        )
        return "\n".join(rows)

"""Brings a cell that is some steps behind up to its state, without making it anew.

A worker that stepped a cell some steps ago, while other workers have stepped it since, has most of its rows already.
What it lacks is added, what has left the state is let go; nothing is probed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from thalweg.mjoin.cell import Cell
from thalweg.mjoin.segments import unpack_segment
from thalweg.mjoin.window import FOREVER, Segment, Window


def catch_up(cell: Cell, present: Collection[int], missing: Mapping[int, bytes], watermark: int | None) -> None:
    """Make a cell what `Cell.load` would make of the same state.

    Parameters
    ----------
    cell
        A cell of a query without windows by count.
    present
        The segments that the cell has and that are still in the state.
    missing
        Those of the state that it does not have.
    watermark
        That of the state.
    """
    for window in cell._windows.values():  # noqa: SLF001 - a part of the cell that has a file of its own
        for segment in window.segments:
            if segment.number not in present:  # also one that a step which Spark has lost let expire: it is missing now
                _let_go(window, segment, -FOREVER if watermark is None else watermark)
    arrived = []
    for number, data in missing.items():
        name, rows = unpack_segment(cell.query, data)
        window = cell._windows[name]  # noqa: SLF001 - as above
        arrived.append((int(window.times(rows).max(initial=-FOREVER)), number, window, rows))
        cell._next = max(cell._next, number + 1)  # noqa: SLF001 - as above
    for _, number, window, rows in sorted(arrived, key=lambda one: one[:2]):
        window.append(rows, number).bytes = len(missing[number])
    cell.watermark = watermark


def _let_go(window: Window, segment: Segment, watermark: int) -> None:
    """Make rows expired, whatever their time: the next step removes them."""
    if segment.latest > watermark:  # else they are by themselves
        window.set_deadlines(segment.numbers, np.full(segment.rows, -FOREVER))
    segment.number, segment.bytes = None, 0

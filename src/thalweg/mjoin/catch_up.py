"""Brings a cell that is some steps behind up to its state, without making it anew.

A worker that stepped a cell some steps ago, while other workers have stepped it since, has most of its rows already.
The rows that it lacks are added, and rows that have left the state are let go; nothing is probed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from thalweg.mjoin.cell import Cell
from thalweg.mjoin.segments import unpack_segment
from thalweg.mjoin.window import BEGINNING, Segment, Window


def catch_up(cell: Cell, present: Collection[int], missing: Mapping[int, bytes], watermark: int | None) -> None:
    """Bring a cell to the state that `Cell.load` would load.

    Parameters
    ----------
    cell
        A cell of a query without windows by count.
    present
        The segments that the cell has and that are still in the state.
    missing
        The segments of the state that the cell does not have.
    watermark
        The watermark of the state.
    """
    for name, window in cell.all_windows:
        kept_from = BEGINNING if watermark is None else watermark - cell.query.retention[name]
        for segment in window.segments:
            # A segment that expired in a step which Spark has lost is not present, either: it is missing now.
            if segment.number not in present:
                _let_go(window, segment, kept_from)
    arrived = []
    for number, data in missing.items():
        name, rows = unpack_segment(cell.query, data, may_be_longer=True)  # `Cell.load` has checked that
        window = cell.window_of(name, rows)
        arrived.append((int(window.times(rows).max(initial=BEGINNING)), number, window, rows))
        cell.next_segment = max(cell.next_segment, number + 1)
    for _, number, window, rows in sorted(arrived, key=lambda segment: segment[:2]):
        window.append(rows, number).bytes = len(missing[number])
    cell.watermark = watermark


def _let_go(window: Window, segment: Segment, watermark: int) -> None:
    """Let rows expire, at whichever time they came: the next step removes them."""
    if segment.latest > watermark:  # otherwise they have expired by themselves
        window.set_deadlines(segment.numbers, np.full(segment.rows, BEGINNING))
    segment.number, segment.bytes = None, 0

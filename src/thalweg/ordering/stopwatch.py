"""Estimates the cost of a filter for each row, from timed calls with any number of rows.

A call has a cost that does not depend on its rows, and a filter late in the order gets few rows: time over rows would
make a filter look more expensive the later it stands. So the cost of a call is learnt from calls with one row, and the
rest of the other calls' time is shared among their rows, recent calls counting most.
"""

from __future__ import annotations

import math

SINGLES = 3  # calls with one row, the fastest of which tells the cost of a call: the first calls are often slow
MEMORY = 0.9  # weight of the earlier calls when another call with as many rows comes
SURPRISE = 3.0  # times the expected time: more is not believed of a call, as the processor may have been lost
LEAST_SHARE = 0.01  # of a call's time that is the rows', however much a call with one row took


class Stopwatch:
    """Estimates the seconds a row of one filter.

    >>> watch = Stopwatch()
    >>> for rows, seconds in [(1, 0.011), (1, 0.011), (1, 0.011), (100, 0.110), (10, 0.020)]:
    ...     watch.note(rows, seconds)
    >>> round(watch.per_row, 4)
    0.001
    """

    def __init__(self) -> None:
        self._singles: list[float] = []
        self.per_call = 0.0  # seconds a call, however many its rows; 0 as long as nothing is known
        self._seconds = 0.0
        self._rows = 0.0

    @property
    def per_row(self) -> float:
        """Seconds a row; NaN as long as nothing is known."""
        return self._seconds / self._rows if self._rows else math.nan

    def expect(self, per_row: float, per_call: float = 0.0) -> None:
        """Begin with the costs of an earlier run; the calls that follow soon outweigh them."""
        self._singles, self.per_call = [per_call] * SINGLES, per_call
        if per_row > 0:
            self._seconds, self._rows = per_row, 1.0

    def forget(self) -> None:
        """Estimate the time of a row anew; the time of a call stays."""
        self._seconds = self._rows = 0.0

    def note(self, rows: int, seconds: float) -> None:
        """Learn from one call."""
        if rows <= 1:
            if rows < 1:
                return
            if len(self._singles) < SINGLES:
                self._singles.append(seconds)
                self.per_call = min(self._singles)
                return
        call, known = self.per_call, self._rows
        others = rows - 1 if self._singles and rows > 1 else rows
        spent = max(seconds - call, LEAST_SHARE * seconds)
        memory = MEMORY
        if known:
            spent = min(spent, SURPRISE * (others * self._seconds / known + call))
            # A call with few rows tells little, and must not outweigh calls with many rows.
            usual = (1.0 - MEMORY) * known
            if others < usual:
                memory **= others / usual
        self._seconds = memory * self._seconds + spent
        self._rows = memory * known + others

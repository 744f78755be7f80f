"""The slices in which a pipeline runs its batches: how many rows each has, and when the policy is told of its counts.

An order that is bad, or has become bad, should meet few rows before the policy can correct it. So slices begin small,
and later slices take a bounded time. (docs/decisions/0028)
"""

from __future__ import annotations

import math
from typing import NamedTuple

from thalweg.ordering.stopwatch import SINGLES

# Rows of the first slice after some single rows; then doubled: a bad first order meets few rows. After a change it
# gives the 60 profile tuples by which a regime that returned is recognised, although not all rows are dropped.
FIRST_SLICE = 80
LARGEST_SLICE = 32  # times it is doubled
LEAST_SECONDS = 1e-9
STEADY = 1000  # rows after which the time of a row is known
# Slices of which the policy is told at once, as telling takes as long as a filter, unless a slice is unusual: the share
# of rows that a filter drops differs by so much, or its time by such a factor.
TELL_SLICES = 10
UNUSUAL_SHARE, UNUSUAL_TIME = 0.05, 1.5


class SliceCounts(NamedTuple):
    """The counts of the filters in one slice, a number for each filter."""

    evaluated: list[int]  # rows
    dropped: list[int]  # rows
    seconds: list[float]


class SliceSizes:
    """Chooses how many rows to run at once: few at first, and then as many as take a given time.

    >>> sizes = SliceSizes()
    >>> [sizes.choose(10_000, seconds=0.01) for _ in range(6)]
    [1, 1, 1, 80, 160, 320]
    >>> sizes.note(2000, seconds=0.02)
    >>> sizes.choose(10_000, seconds=0.01)
    640
    >>> sizes.choose(10_000, seconds=0.01), sizes.choose(10_000, seconds=0.01, part=0.2)
    (1001, 200)
    """

    def __init__(self) -> None:
        self._slices = 0
        self._rows = 0
        self._recent_rows = self._recent_seconds = 0.0

    @property
    def has_tried(self) -> bool:
        """Whether the single rows, whose time tells the cost of a call, have run."""
        return self._slices >= SINGLES

    @property
    def row_seconds(self) -> float:
        """The seconds that a row took lately, NaN as long as the first rows are being looked at."""
        return self._recent_seconds / self._recent_rows if self._rows > STEADY else math.nan

    def choose(self, most: int, seconds: float, part: float = 1.0) -> int:
        """How many rows the next slice has, of so many that are left, if it may take so long.

        All rows that are left, if they are fewer than twice as many; else this part of as many.
        """
        self._slices += 1
        if self._slices <= SINGLES:
            return 1
        size = FIRST_SLICE << min(self._slices - SINGLES - 1, LARGEST_SLICE)
        if self._rows <= STEADY:
            return most if size > most // 2 else size
        in_time = int(seconds * self._recent_rows / max(self._recent_seconds, LEAST_SECONDS)) + 1
        return most if min(size, in_time) > most // 2 else min(size, max(int(part * in_time), 1))

    def note(self, rows: int, seconds: float) -> None:
        """Note the rows of a slice, and the time that it took."""
        self._rows += rows
        self._recent_rows = 0.5 * self._recent_rows + rows
        self._recent_seconds = 0.5 * self._recent_seconds + seconds

    def begin_large(self) -> None:
        """Begin with whole batches: the costs of filters are known."""
        self._slices = SINGLES + LARGEST_SLICE

    def begin_small(self) -> None:
        """Begin with few rows again: the stream has changed."""
        self._slices = SINGLES


class _Usual(NamedTuple):
    """How a filter behaved when the policy was last told."""

    share: float = 0.0  # of the rows that it dropped
    row_seconds: float = 0.0  # that a row took


class UntoldSlices:
    """The counts of slices since the policy was last told of ordinary processing.

    All of them are of the order that runs now. When the order changes, other rows reach the filters that no longer have
    the same filters before them, and their counts are forgotten: they would look like a change of the stream.

    >>> untold = UntoldSlices(1)
    >>> untold.add(SliceCounts([100], [50], [1.0]), order=(0,))
    >>> untold.take(order=(0,))
    SliceCounts(evaluated=[100], dropped=[50], seconds=[1.0])
    >>> untold.is_unusual(SliceCounts([100], [51], [1.1])), untold.is_unusual(SliceCounts([100], [80], [1.1]))
    (False, True)
    """

    def __init__(self, filters: int) -> None:
        self._slices: list[SliceCounts] = []
        self._order = tuple(range(filters))
        self._usual = [_Usual()] * filters

    def __len__(self) -> int:
        return len(self._slices)

    @property
    def is_full(self) -> bool:
        """Whether there are so many slices that it is time to tell the policy."""
        return len(self._slices) >= TELL_SLICES

    def is_unusual(self, counts: SliceCounts) -> bool:
        """Whether a slice is unlike the slices of which the policy was last told."""
        for evaluated, dropped, seconds, usual in zip(*counts, self._usual, strict=True):
            if evaluated and (
                abs(dropped / evaluated - usual.share) > UNUSUAL_SHARE
                or seconds > UNUSUAL_TIME * usual.row_seconds * evaluated
            ):
                return True
        return False

    def add(self, counts: SliceCounts, order: tuple[int, ...]) -> None:
        """Keep the counts of a slice that ran in this order."""
        self._follow(order)
        self._slices.append(counts)

    def take(self, order: tuple[int, ...]) -> SliceCounts:
        """The sums of all slices, to tell the policy, whose order is this now; later slices are compared with them."""
        self._follow(order)
        evaluated, dropped, seconds = (
            [sum(numbers) for numbers in zip(*slices, strict=True)] for slices in zip(*self._slices, strict=True)
        )
        self._slices.clear()
        self._usual = [
            _Usual(gone / (count or 1), spent / (count or 1))
            for count, gone, spent in zip(evaluated, dropped, seconds, strict=True)
        ]
        return SliceCounts(evaluated, dropped, seconds)

    def _follow(self, order: tuple[int, ...]) -> None:
        """Forget the counts of all filters that other rows reach in this order."""
        if order == self._order:
            return
        moved = [
            number
            for position, number in enumerate(order)
            if number != self._order[position] or set(order[:position]) != set(self._order[:position])
        ]
        for counts in self._slices:
            for number in moved:
                counts.evaluated[number] = counts.dropped[number] = 0
                counts.seconds[number] = 0.0
        self._order = order

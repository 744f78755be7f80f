"""Rounds of a window (section 3.1): which rounds a row belongs to, and which of them have ended.

Times are microseconds of event time. Round number j ends at j * slide and holds the rows with
(j * slide - length) < time <= j * slide.
"""

from __future__ import annotations

from thalweg.sql.query import RoundWindow


def first_round(time: int, window: RoundWindow) -> int:
    """The first round that holds a row of this time.

    >>> [first_round(time, RoundWindow(20, 20)) for time in (1, 20, 21)]
    [1, 1, 2]
    """
    return -(-time // window.slide)


def last_round(time: int, window: RoundWindow) -> int:
    """The last round that holds a row of this time.

    >>> window = RoundWindow(length=20, slide=5)
    >>> first_round(7, window), last_round(7, window)
    (2, 5)
    """
    return -(-(time + window.length) // window.slide) - 1


def bounds(number: int, window: RoundWindow) -> tuple[int, int]:
    """Where a round begins, which is not part of it, and where it ends, which is.

    >>> bounds(3, RoundWindow(20, 20))
    (40, 60)
    """
    return number * window.slide - window.length, number * window.slide


def last_ended(watermark: int, window: RoundWindow) -> int:
    """The last round whose end the watermark has passed: rows before the watermark do not come any more.

    >>> [last_ended(watermark, RoundWindow(20, 20)) for watermark in (20, 21, 41)]
    [0, 1, 2]
    """
    return -(-watermark // window.slide) - 1


def first_unseen(latest: int, window: RoundWindow) -> int:
    """The first round that begins at or after a time: all its rows are still to come.

    >>> first_unseen(20, RoundWindow(20, 20)), first_unseen(21, RoundWindow(20, 20))
    (2, 3)
    """
    return -(-(latest + window.length) // window.slide)
